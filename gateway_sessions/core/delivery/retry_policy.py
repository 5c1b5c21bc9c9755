"""The plan after a send that failed or may have failed: retry, resend marked as a repeat, or give up.

A certain failure costs only time: the reply is sent later, until it is too old. After an uncertain failure,
people may see a second try as a repeat. It is made all the same, a few times, and says that it may be a
repeat.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, TypeAlias

from gateway_sessions.errors import (
    AdapterUnavailableError,
    DeliveryRefusedError,
    InvalidInputError,
    RateLimitedError,
)

UNTOLD_PAUSE: Final = timedelta(seconds=2)
"""The pause for a platform that asks for one without saying how long."""
LONGEST_PAUSE: Final = timedelta(days=365)
"""The longest pause that a platform may ask for; longer ones would overflow instants."""

# 2 to this power exceeds every pause; without the cap, the power would overflow a float.
_MOST_DOUBLINGS: Final = 40
_ZERO: Final = timedelta()


class SendFailure(StrEnum):
    """The certainty about a send that did not succeed."""

    UNAVAILABLE = "unavailable"  # not sent
    RATE_LIMITED = "rate_limited"  # not sent
    REFUSED = "refused"  # not sent, and never will be
    UNKNOWN = "unknown"  # sent or not


class GiveUpReason(StrEnum):
    """The reason why a reply is not sent any more."""

    REFUSED = "refused"  # the platform does not take it
    TOO_OLD = "too_old"  # it is older than `max_age`
    UNCLEAR = "unclear"  # it may have been sent, more than once


@dataclass(frozen=True, slots=True)
class Failed:
    """A failed send, as the adapter reported it."""

    how: SendFailure
    retry_after: timedelta = _ZERO
    """The time that the platform asked to wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryRules:
    """The patience of a gateway with a platform."""

    first_pause: timedelta = timedelta(seconds=2)
    """The pause after the first failure; it doubles with each further failure."""
    longest_pause: timedelta = timedelta(minutes=5)
    """The longest pause between two tries."""
    max_age: timedelta = timedelta(hours=24)
    """The age from which on a reply is not sent any more."""
    max_unclear: int = 3
    """The number of sends of one reply that may end uncertain; 1: no send is repeated."""

    def __post_init__(self) -> None:
        if not _ZERO < self.first_pause <= self.longest_pause:
            problem = "first_pause must be longer than nothing, and no longer than longest_pause"
            raise InvalidInputError(problem)
        if self.max_age <= _ZERO or self.max_unclear < 1:
            problem = "max_age must be longer than nothing, and max_unclear at least 1"
            raise InvalidInputError(problem)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """The tries of a reply so far, the latest send included."""

    reply_id: int | str
    owed_since: datetime
    """The instant since when the reply is owed."""
    attempts: int
    """The number of sends."""
    unclear: int = 0
    """The number of sends after which it is unknown whether people have the reply."""


@dataclass(frozen=True, slots=True)
class RetryAt:
    """The plan to send the reply again, unchanged."""

    at: datetime


@dataclass(frozen=True, slots=True)
class ResendMarked:
    """The plan to send the reply again, with the mark that it may be a repeat."""

    at: datetime


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The plan to keep the reply as a dead letter."""

    reason: GiveUpReason


DeliveryPlan: TypeAlias = RetryAt | ResendMarked | GiveUp


def classify_failure(error: BaseException | None) -> Failed:
    """Return the failure that an adapter's error reports; None: the end is unknown, as after a crash."""
    match error:
        case RateLimitedError():
            return Failed(SendFailure.RATE_LIMITED, _bounded_pause(error.retry_after))
        case AdapterUnavailableError():
            return Failed(SendFailure.UNAVAILABLE)
        case DeliveryRefusedError():
            return Failed(SendFailure.REFUSED)
        case _:
            return Failed(SendFailure.UNKNOWN)


def requested_pause(retry_after: float | None) -> timedelta:
    """Return the pause for a platform that asked to wait so many seconds."""
    return _bounded_pause(retry_after) or UNTOLD_PAUSE


def pause_left(begun_at: datetime, length: timedelta, now: datetime) -> timedelta:
    """Return the rest of a pause; never more than its length, even if the clock was set back."""
    return min(max(begun_at + length - now, _ZERO), length)


def plan_delivery(
    failed: Failed, tried: Tried, *, now: datetime, idempotent: bool, rules: DeliveryRules
) -> DeliveryPlan:
    """Return the plan for a reply after a failure. An *idempotent* platform shows a repeated reply once."""
    uncertain = not idempotent and tried.unclear > 0
    if failed.how is SendFailure.REFUSED:
        return GiveUp(GiveUpReason.REFUSED)
    if uncertain and failed.how is SendFailure.UNKNOWN and tried.unclear >= rules.max_unclear:
        return GiveUp(GiveUpReason.UNCLEAR)
    at = now + max(failed.retry_after, pause_after_attempts(tried.attempts, rules, tried.reply_id))
    if is_too_old(tried.owed_since, at, rules):
        return GiveUp(GiveUpReason.TOO_OLD)
    return ResendMarked(at) if uncertain else RetryAt(at)


def pause_after_attempts(attempts: int, rules: DeliveryRules, reply_id: int | str) -> timedelta:
    """Return the pause after that many attempts; always the same for the same reply.

    The pause is shorter by up to a quarter, by a hash of the reply, so that replies that failed together come
    back apart.
    """
    doublings = min(max(attempts - 1, 0), _MOST_DOUBLINGS)
    seconds = min(rules.first_pause.total_seconds() * 2**doublings, rules.longest_pause.total_seconds())
    share = zlib.crc32(f"{reply_id} {attempts}".encode()) / 2**32
    return timedelta(seconds=seconds * (1 - share / 4))


def is_too_old(owed_since: datetime, at: datetime, rules: DeliveryRules) -> bool:
    """Return whether a reply is too old at that time to be sent."""
    return at - owed_since > rules.max_age


def _bounded_pause(seconds: float | None) -> timedelta:
    """Return the pause that a platform asked for, within bounds."""
    if seconds is None or math.isnan(seconds):
        return _ZERO
    return timedelta(seconds=min(max(seconds, 0), LONGEST_PAUSE.total_seconds()))
