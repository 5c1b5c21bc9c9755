"""`Usage`: one use of a model as a checked event, and sums that keep unknown prices apart from zero.

Money is counted in whole billionths of a dollar, so that a sum is exact and the same in any order. A price
that nobody knows is None and makes a sum incomplete; it is never taken for zero.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from functools import reduce
from typing import Any, Final, TypedDict, TypeGuard, Unpack

import msgspec

from gateway_sessions.core.checks import plain_text
from gateway_sessions.core.instants import instant_of
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.errors import InvalidInputError

TURN: Final = "turn"
"""The task that answers a person. Others (titles, summaries, compression) are kept apart from it."""
NANOS: Final = 10**9
MAX_COUNT: Final = 10**12
"""No single event uses as much; sums of such numbers fit a database."""
MAX_COST_USD: Final = 10**6
MAX_WORD: Final = 256

COUNTS: Final = (
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
    "api_calls",
)
_WORDS: Final = ("model", "provider", "base_url", "billing_mode", "cost_source", "pricing_version")
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class CostStatus(StrEnum):
    """How well a price is known; of several, the first in this order tells how well their sum is."""

    UNKNOWN = "unknown"  # nobody knows it
    ESTIMATED = "estimated"  # computed from a list of prices
    ACTUAL = "actual"  # told by the provider
    INCLUDED = "included"  # paid already, by a subscription for example


class UsageFacts(TypedDict, total=False):
    """What can be told about one use of a model; what is left out is 0 or not known."""

    task: str
    model: str | None
    provider: str | None
    base_url: str | None
    billing_mode: str | None
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    api_calls: int
    estimated_cost_usd: float | None
    actual_cost_usd: float | None
    cost_status: str
    cost_source: str | None
    pricing_version: str | None


class Usage(msgspec.Struct, frozen=True, kw_only=True, gc=False, repr_omit_defaults=True):
    """One use of a model. `usage_of` makes one of what a caller tells."""

    event_id: str
    at: datetime
    task: str = TURN
    model: str | None = None
    provider: str | None = None
    base_url: str | None = None
    billing_mode: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    """A part of the output tokens, so no sum adds them."""
    api_calls: int = 1
    estimated_cost_usd: float | None = None
    actual_cost_usd: float | None = None
    cost_status: CostStatus = CostStatus.UNKNOWN
    cost_source: str | None = None
    pricing_version: str | None = None


class UsageSum(msgspec.Struct, frozen=True, kw_only=True, gc=False, repr_omit_defaults=True):
    """What several uses of models add up to."""

    events: int = 0
    api_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    cost_nanos: int = 0
    """What is known of the cost, in billionths of a dollar: an event's actual price, else its estimate."""
    unknown: int = 0
    """How many of the events nobody knows the price of."""
    estimated: int = 0
    actual: int = 0
    included: int = 0

    @property
    def total_tokens(self) -> int:
        """All tokens that went in or came out."""
        return self.input_tokens + self.output_tokens + self.cache_read_tokens + self.cache_write_tokens

    @property
    def known_cost_usd(self) -> float:
        """What is known of the cost: it was no less."""
        return from_nanos(self.cost_nanos)

    @property
    def cost_usd(self) -> float | None:
        """The cost; None if the price of any event is unknown."""
        return None if self.unknown else self.known_cost_usd

    @property
    def cost_status(self) -> CostStatus | None:
        """How well the cost is known; None if there was no event."""
        counts = (self.unknown, self.estimated, self.actual, self.included)
        return next((status for status, count in zip(CostStatus, counts, strict=True) if count), None)

    def __add__(self, other: UsageSum) -> UsageSum:
        return UsageSum(
            **{name: getattr(self, name) + getattr(other, name) for name in self.__struct_fields__}
        )


class ModelUsage(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one model of one provider was used for one task."""

    model: str | None
    provider: str | None
    task: str
    used: UsageSum


class SessionUsage(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a session has used, by model and task; the largest use of tokens first."""

    session_id: str
    parts: tuple[ModelUsage, ...] = ()

    @property
    def turns(self) -> UsageSum:
        """What answering people has used: these are the session's own counters."""
        return add_up(part.used for part in self.parts if part.task == TURN)

    @property
    def auxiliary(self) -> UsageSum:
        """What everything else has used, such as titles and summaries."""
        return add_up(part.used for part in self.parts if part.task != TURN)

    @property
    def total(self) -> UsageSum:
        """All of it."""
        return add_up(part.used for part in self.parts)


def usage_of(event_id: str, at: datetime, **facts: Unpack[UsageFacts]) -> Usage:
    """The event that a caller tells of, or `InvalidInputError` with the name of what cannot be.

    A price tells its own status, so that only `included` has to be said.
    """
    if unknown := facts.keys() - UsageFacts.__annotations__:
        problem = f"usage has no {', '.join(sorted(unknown))}"
        raise TypeError(problem)
    estimated = check_cost("estimated_cost_usd", facts.get("estimated_cost_usd"))
    actual = check_cost("actual_cost_usd", facts.get("actual_cost_usd"))
    told: Mapping[str, object] = facts
    words: dict[str, Any] = {name: check_word(name, told.get(name)) for name in _WORDS}
    counts: dict[str, Any] = {name: _count(name, told.get(name, int(name == "api_calls"))) for name in COUNTS}
    words["base_url"] = without_credentials(words["base_url"])
    return Usage(
        event_id=check_event_id(event_id),
        at=at,
        task=check_word("task", facts.get("task")) or TURN,
        estimated_cost_usd=estimated,
        actual_cost_usd=actual,
        cost_status=_status(facts.get("cost_status"), estimated, actual),
        **counts,
        **words,
    )


def check_usage(usage: Usage) -> Usage:
    """Return an event as `usage_of` would have made it, or raise `InvalidInputError`."""
    if not isinstance(usage, Usage):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers exist
        problem = f"usage must be a Usage, not {type(usage).__name__}"
        raise InvalidInputError(problem)
    at = instant_of("at", usage.at)
    if at is None:
        problem = "a use of a model must have a time, `at`"
        raise InvalidInputError(problem)
    told: Any = {name: getattr(usage, name) for name in UsageFacts.__annotations__}
    return usage_of(usage.event_id, at, **told)


def add_up(sums: Iterable[UsageSum]) -> UsageSum:
    """The sum of sums."""
    return reduce(UsageSum.__add__, sums, UsageSum())


def ranked(parts: Iterable[ModelUsage]) -> tuple[ModelUsage, ...]:
    """The largest use of tokens first."""
    return tuple(
        sorted(
            parts,
            key=lambda part: (-part.used.total_tokens, part.model or "", part.provider or "", part.task),
        )
    )


def sum_of(usage: Usage) -> UsageSum:
    """What one event adds to a sum."""
    return UsageSum(
        events=1,
        cost_nanos=cost_nanos(usage.cost_status, usage.estimated_cost_usd, usage.actual_cost_usd),
        **{name: getattr(usage, name) for name in COUNTS},
        **{str(usage.cost_status): 1},
    )


def cost_nanos(status: str, estimated: float | None, actual: float | None) -> int:
    """What is known of one event's cost."""
    if status == CostStatus.ACTUAL:
        return to_nanos(actual)
    return to_nanos(estimated) if status == CostStatus.ESTIMATED else 0


def worse(*statuses: str) -> CostStatus:
    """How well a sum is known of which the parts are known so well; a strange word counts as unknown."""
    order = list(CostStatus)
    return min((_known_status(status) for status in statuses), key=order.index, default=CostStatus.UNKNOWN)


def counted(entry: SessionEntry, added: UsageSum, cost_status: str) -> SessionEntry:
    """The entry with more use on its counters; one that was imported with some counts on from them."""
    nanos = max(to_nanos(entry.estimated_cost_usd) + added.cost_nanos, 0)
    return entry.altered(
        input_tokens=entry.input_tokens + added.input_tokens,
        output_tokens=entry.output_tokens + added.output_tokens,
        cache_read_tokens=entry.cache_read_tokens + added.cache_read_tokens,
        cache_write_tokens=entry.cache_write_tokens + added.cache_write_tokens,
        total_tokens=entry.total_tokens + added.total_tokens,
        estimated_cost_usd=from_nanos(nanos),
        cost_status=str(cost_status),
    )


def to_nanos(usd: float | None) -> int:
    """Whole billionths of a dollar, exact up to nine million dollars; nothing for None."""
    return round(usd * NANOS) if usd is not None else 0


def from_nanos(nanos: int) -> float:
    """The same as dollars."""
    return nanos / NANOS


def check_event_id(event_id: object) -> str:
    """Return the id of an event, or raise `InvalidInputError`."""
    word = check_word("event_id", event_id)
    if not word:
        problem = "event_id must not be empty"
        raise InvalidInputError(problem)
    return word


def check_word(name: str, word: object) -> str | None:
    """Return a name on one line, or raise `InvalidInputError`; nothing is None."""
    if word is None or word == "":
        return None
    if not isinstance(word, str) or len(word) > MAX_WORD or _UNSAFE.search(word):
        problem = f"{name} must be one line of at most {MAX_WORD} characters"
        raise InvalidInputError(problem)
    return plain_text(word)


def check_cost(name: str, cost: object) -> float | None:
    """Return a price in dollars, to the billionth; None is a price that nobody knows."""
    if cost is None:
        return None
    if isinstance(cost, bool) or not isinstance(cost, int | float) or not 0 <= cost <= MAX_COST_USD:
        problem = f"{name} must be a number from 0 to {MAX_COST_USD}, or None if nobody knows it"
        raise InvalidInputError(problem)
    return from_nanos(to_nanos(cost))


def without_credentials(url: str | None) -> str | None:
    """The address without user, password and query: credentials never reach the disk."""
    if url is None:
        return None
    plain = re.split(r"[?#]", url, maxsplit=1)[0]
    scheme, mark, rest = plain.rpartition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}{mark}{authority.rpartition('@')[2]}{slash}{path}"


def is_whole(number: object, smallest: int, largest: int) -> TypeGuard[int]:
    """Whether that is a whole number in a range; True and False are no numbers."""
    return isinstance(number, int) and not isinstance(number, bool) and smallest <= number <= largest


def _count(name: str, count: object) -> int:
    if not is_whole(count, 0, MAX_COUNT):
        problem = f"{name} must be a whole number from 0 to {MAX_COUNT}"
        raise InvalidInputError(problem)
    return int(count)


def _status(told: object, estimated: float | None, actual: float | None) -> CostStatus:
    """The status that the prices have; what was told must not contradict them."""
    known = CostStatus.UNKNOWN
    if actual is not None:
        known = CostStatus.ACTUAL
    elif estimated is not None:
        known = CostStatus.ESTIMATED
    if told in (None, CostStatus.UNKNOWN, known):
        return known
    if told == CostStatus.INCLUDED and actual is None:
        return CostStatus.INCLUDED
    problem = f"cost_status = {told!r} does not fit what is known of the price, which is {known.value}"
    raise InvalidInputError(problem)


def _known_status(word: str) -> CostStatus:
    return CostStatus(word) if word in set(CostStatus) else CostStatus.UNKNOWN
