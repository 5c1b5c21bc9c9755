"""Reset policies: when a session is due for a reset, and what defers a reset that is due.

There is one rule. `next_reset` gives the instant from which a session is due, and `reset_due` asks whether
that instant has come. The instant has two parts. The end of the idle time moves with every interaction. The
boundary of the day or of the schedule must not move: when a message is kept although a boundary has passed,
`missed_boundary` says which boundary to remember. `plan_reset` adds the two reasons to wait.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta, tzinfo
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeAlias, TypeVar, cast

from gateway_sessions.core.instants import RESOLUTION, as_utc
from gateway_sessions.core.sessions.reasons import EndReason
from gateway_sessions.core.sessions.reset_times import (
    check_cron,
    next_cron_boundary,
    next_daily_boundary,
    zone_named,
)
from gateway_sessions.errors import InvalidPolicyError

_MAX_HOURS: Final = 24 * 3653  # ten years
_MAX_MINUTES: Final = 60 * _MAX_HOURS
_FLAGS: Final[Mapping[str, bool]] = MappingProxyType(
    {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
)

_Choice = TypeVar("_Choice", bound=StrEnum)


class ResetMode(StrEnum):
    """The cause that ends a session."""

    NONE = "none"  # nothing but people
    IDLE = "idle"  # silence of `idle_minutes`
    DAILY = "daily"  # the hour `at_hour` of each local date
    BOTH = "both"  # silence and the hour, combined by `require`
    CRON = "cron"  # the local times that `cron` names


class Require(StrEnum):
    """The rule by which mode `both` combines its two conditions."""

    ANY = "any"
    ALL = "all"


_WITH_SILENCE: Final = (ResetMode.IDLE, ResetMode.BOTH)
_WITH_BOUNDARY: Final = (ResetMode.DAILY, ResetMode.BOTH, ResetMode.CRON)


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidPolicyError(name, value, "must be text")
    return value


def _choice(name: str, value: object, choices: type[_Choice]) -> _Choice:
    try:
        return choices(_text(name, value))
    except ValueError:
        raise InvalidPolicyError(name, value, f"must be one of {', '.join(choices)}") from None


def _platform(value: object) -> str:
    """Return the name of a platform as message sources spell it."""
    return _text("platform", value).strip().lower()


def _check_number(name: str, value: object, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InvalidPolicyError(name, value, f"must be a whole number from {low} to {high}")


def _check_flag(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise InvalidPolicyError(name, value, "must be true or false")


def _check_list(name: str, value: object) -> Sequence[object]:
    if not isinstance(value, (list, tuple)):
        raise InvalidPolicyError(name, value, "must be a list")
    return cast("Sequence[object]", value)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionResetPolicy:
    """The rule by which a session ends by itself; a policy that could never be evaluated cannot be made."""

    mode: ResetMode = ResetMode.BOTH
    """The cause that ends a session: nothing, silence, an hour of the day, silence and hour combined, or the
    times of `cron`."""
    at_hour: int = 4
    """The local hour of the daily reset."""
    idle_minutes: int = 1440
    """The silence after which a session is idle."""
    cron: str | None = None
    """Five fields: minute, hour, day, month, weekday. Needed by mode `cron`, refused in others."""
    require: Require = Require.ANY
    """The combination of mode `both`: a reset when either condition holds, or only when both do; `all` is
    refused in other modes."""
    grace_minutes: int = 0
    """The minutes after the last interaction within which a due reset waits."""
    zone: str | None = None
    """The IANA zone of `at_hour` and `cron`; None is that of the chat, else the one of the whole
    configuration."""
    notify: bool = True
    """Whether people are told about a reset that they did not ask for."""
    notify_exclude_platforms: tuple[str, ...] = ("api_server", "webhook")
    """The platforms on which people are not told about resets."""
    bg_process_max_age_hours: int = 24
    """The hours for which background work puts a due reset off; 0 or less: for as long as the work takes."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "mode", _choice("mode", self.mode, ResetMode))
        object.__setattr__(self, "require", _choice("require", self.require, Require))
        _check_number("at_hour", self.at_hour, 0, 23)
        _check_number("idle_minutes", self.idle_minutes, 1, _MAX_MINUTES)
        _check_number("grace_minutes", self.grace_minutes, 0, _MAX_MINUTES)
        _check_number("bg_process_max_age_hours", self.bg_process_max_age_hours, -_MAX_HOURS, _MAX_HOURS)
        _check_flag("notify", self.notify)
        excluded = map(_platform, _check_list("notify_exclude_platforms", self.notify_exclude_platforms))
        object.__setattr__(self, "notify_exclude_platforms", tuple(excluded))
        if self.zone is not None:
            zone_named(_text("zone", self.zone))
        if self.cron is not None:
            check_cron(_text("cron", self.cron))
        if (self.mode is ResetMode.CRON) != (self.cron is not None):
            raise InvalidPolicyError("cron", self.cron, "must be given in mode 'cron', and only there")
        if self.require is Require.ALL and self.mode is not ResetMode.BOTH:
            raise InvalidPolicyError("require", "all", "has nothing to combine; set mode to 'both'")

    def to_dict(self) -> dict[str, Any]:
        """Return the stored form, with every field."""
        stored = {one.name: getattr(self, one.name) for one in fields(self)}
        stored |= {"mode": self.mode.value, "require": self.require.value}
        return stored | {"notify_exclude_platforms": list(self.notify_exclude_platforms)}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> SessionResetPolicy:
        """Return the policy of a stored form, also of Hermes'; missing and null members mean the default."""
        known = {one.name: stored[one.name] for one in fields(cls) if stored.get(one.name) is not None}
        flag = known.get("notify")
        if isinstance(flag, str):
            known["notify"] = _FLAGS.get(flag.strip().lower(), flag)
        return cls(**known)


def deciding_fields(mode: ResetMode) -> tuple[str, ...]:
    """Return the fields that decide when a policy of this mode resets, apart from its zone."""
    return (
        "mode",
        *(("at_hour",) if mode in (ResetMode.DAILY, ResetMode.BOTH) else ()),
        *(("idle_minutes",) if mode in _WITH_SILENCE else ()),
        *(("require",) if mode is ResetMode.BOTH else ()),
        *(("cron",) if mode is ResetMode.CRON else ()),
    )


PRESETS: Final[Mapping[str, SessionResetPolicy]] = MappingProxyType(
    {
        "never": SessionResetPolicy(mode=ResetMode.NONE),
        "hermes-classic": SessionResetPolicy(mode=ResetMode.BOTH, at_hour=4, idle_minutes=1440),
    }
)
"""The policies that have a name of one word."""


class Clocks(Protocol):
    """The instants that a policy reads from a session's entry."""

    @property
    def last_interaction_at(self) -> datetime:
        """The instant at which a person last wrote, or got an answer."""
        ...

    @property
    def deferred_boundary(self) -> datetime | None:
        """A boundary that has passed without a reset; see `missed_boundary`."""
        ...


@dataclass(frozen=True, slots=True)
class DueReset:
    """A reset that the policy asks for: the instant since when it is due, and the reason."""

    at: datetime
    reason: EndReason


def next_reset(policy: SessionResetPolicy, clocks: Clocks, zone: tzinfo) -> DueReset | None:
    """Return the reset that is due next if nothing happens before; None: never."""
    idle_end, boundary = _idle_reset_time(policy, clocks), _next_boundary(policy, clocks, zone)
    if policy.require is Require.ALL:
        silence_decides = idle_end is None or (boundary is not None and idle_end >= boundary)
    else:
        silence_decides = boundary is None or (idle_end is not None and idle_end <= boundary)
    if silence_decides:
        return None if idle_end is None else DueReset(idle_end, EndReason.IDLE)
    reason = EndReason.CRON if policy.mode is ResetMode.CRON else EndReason.DAILY
    return None if boundary is None else DueReset(boundary, reason)


def reset_due(policy: SessionResetPolicy, clocks: Clocks, now: datetime, zone: tzinfo) -> DueReset | None:
    """Return the reset that is due at *now*; None before the instant of `next_reset`.

    When silence and boundary are both due and either would do, the reason is the silence, as in Hermes.
    """
    due = next_reset(policy, clocks, zone)
    if due is None or now < due.at:
        return None
    if due.reason is EndReason.DAILY and policy.require is Require.ANY:
        idle_end = _idle_reset_time(policy, clocks)
        if idle_end is not None and idle_end <= now:
            return DueReset(due.at, EndReason.IDLE)
    return due


def missed_boundary(
    policy: SessionResetPolicy, clocks: Clocks, now: datetime, zone: tzinfo
) -> datetime | None:
    """Return the value of `deferred_boundary` to store when `last_interaction_at` moves to *now*.

    Boundaries are searched after the last interaction, so an interaction that is kept would make a passed
    boundary disappear, and its reset with it. This happens when a reset is deferred, when `require` is `all`
    and the silence was too short, and when a turn that began before the boundary ends after it. So call this
    with the clocks as they were before the move, and store the result as it is: the earliest boundary that
    has passed without a reset, the same until the session is replaced. None: no boundary has passed, or the
    policy knows none, and the boundary of an earlier policy is dropped.
    """
    boundary = _next_boundary(policy, clocks, zone)
    return boundary if boundary is not None and boundary <= now else None


class Deferral(StrEnum):
    """The reason why a due reset waits."""

    GRACE = "grace"
    ACTIVE_WORK = "active_work"


@dataclass(frozen=True, slots=True)
class NotDue:
    """The plan to keep the session."""


@dataclass(frozen=True, slots=True)
class AskActiveWork:
    """The plan to find out whether a reset would cut off active work, and to plan again."""

    due: DueReset


@dataclass(frozen=True, slots=True)
class Deferred:
    """The plan to keep the session although its reset is due; see `missed_boundary` for what to remember."""

    by: Deferral
    due: DueReset


@dataclass(frozen=True, slots=True)
class ResetNow:
    """The plan to end the session now."""

    due: DueReset


ResetPlan: TypeAlias = NotDue | AskActiveWork | Deferred | ResetNow
"""The plan for the reset of a session."""

ActiveWork: TypeAlias = bool | None
"""Whether work runs in the session that a reset would cut off; None: unknown so far."""


def plan_reset(
    policy: SessionResetPolicy, clocks: Clocks, now: datetime, zone: tzinfo, active_work: ActiveWork
) -> ResetPlan:
    """Decide what to do about the reset of a session now."""
    due = reset_due(policy, clocks, now, zone)
    return NotDue() if due is None else defer_or_reset(due, policy, clocks, now, active_work)


def defer_or_reset(
    due: DueReset, policy: SessionResetPolicy, clocks: Clocks, now: datetime, active_work: ActiveWork
) -> ResetPlan:
    """Decide what to do about a reset that is due, for whatever reason."""
    now = as_utc(now)
    if now - as_utc(clocks.last_interaction_at) < timedelta(minutes=policy.grace_minutes):
        return Deferred(Deferral.GRACE, due)
    if active_work is None:
        return AskActiveWork(due)
    hours = policy.bg_process_max_age_hours
    if active_work and (hours <= 0 or now - due.at < timedelta(hours=hours)):
        return Deferred(Deferral.ACTIVE_WORK, due)
    return ResetNow(due)


def _idle_reset_time(policy: SessionResetPolicy, clocks: Clocks) -> datetime | None:
    if policy.mode not in _WITH_SILENCE:
        return None
    try:
        # Hermes resets strictly after the idle time, never at its end: so the first instant is one tick
        # later.
        return as_utc(clocks.last_interaction_at) + timedelta(minutes=policy.idle_minutes) + RESOLUTION
    except OverflowError:
        return None


def _next_boundary(policy: SessionResetPolicy, clocks: Clocks, zone: tzinfo) -> datetime | None:
    """Return the boundary that was missed already, else the first one after the last interaction."""
    if policy.mode not in _WITH_BOUNDARY:
        return None
    if clocks.deferred_boundary is not None:
        return as_utc(clocks.deferred_boundary)
    try:
        if policy.cron is not None:
            return next_cron_boundary(as_utc(clocks.last_interaction_at), policy.cron, zone)
        return next_daily_boundary(as_utc(clocks.last_interaction_at), policy.at_hour, zone)
    except OverflowError:
        return None
