"""`Usage`: one use of a model as a checked event, and sums that keep unknown prices apart from zero.

Money is counted in whole billionths of a dollar, so that a sum is exact and the same in any order. An unknown
price is None and makes a sum incomplete; it is never taken for zero.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from functools import reduce
from typing import Any, Final, TypedDict, Unpack

import msgspec

from gateway_sessions.core.checks import is_whole_number
from gateway_sessions.core.instants import parse_instant
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.core.storable_text import check_word
from gateway_sessions.errors import InvalidInputError

TURN: Final = "turn"
"""The task that answers a person; other tasks (titles, summaries, compression) are counted apart from it."""
NANOS: Final = 10**9
"""The billionths of a dollar: list prices of single tokens are exact in this unit."""
MAX_COUNT: Final = 10**12
"""The largest count of one event; a million such counts still fit into a database's integer."""
# The largest cost of one event: a larger one is a mistake, and sums in billionths must fit 63 bits.
MAX_COST_USD: Final = 10**6

COUNTS: Final = (
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
    "api_calls",
)
_WORDS: Final = ("model", "provider", "base_url", "billing_mode", "cost_source", "pricing_version")


class CostStatus(StrEnum):
    """The certainty of a price; of several prices, the first in this order is the certainty of their sum."""

    UNKNOWN = "unknown"  # the price is not known
    ESTIMATED = "estimated"  # computed from a list of prices
    ACTUAL = "actual"  # told by the provider
    INCLUDED = "included"  # paid already, by a subscription for example


_ORDER: Final = tuple(CostStatus)
_UNKNOWN_COST: Final = _ORDER.index(CostStatus.UNKNOWN)
_CERTAINTY: Final[Mapping[str, int]] = {str(status): place for place, status in enumerate(_ORDER)}


class UsageFacts(TypedDict, total=False):
    """The facts that a caller may give about one use of a model; an absent fact is 0 or unknown."""

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
    """One use of a model. `make_usage` makes one from a caller's facts."""

    event_id: str
    at: datetime
    """The instant of the call."""
    task: str = TURN
    """The task of the model, such as a turn or a title."""
    model: str | None = None
    provider: str | None = None
    base_url: str | None = None
    billing_mode: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    """The part of the output tokens that was reasoning; sums do not add it again."""
    api_calls: int = 1
    estimated_cost_usd: float | None = None
    actual_cost_usd: float | None = None
    cost_status: CostStatus = CostStatus.UNKNOWN
    cost_source: str | None = None
    pricing_version: str | None = None


class UsageSum(msgspec.Struct, frozen=True, kw_only=True, gc=False, repr_omit_defaults=True):
    """The sum of several uses of models."""

    events: int = 0
    """The number of uses."""
    api_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    cost_nanos: int = 0
    """The known part of the cost, in billionths of a dollar: each event's actual price, else its estimate."""
    unknown: int = 0
    """The number of events with an unknown price."""
    estimated: int = 0
    """The number of events with an estimated price."""
    actual: int = 0
    """The number of events with an actual price."""
    included: int = 0
    """The number of events that were paid for already."""

    @property
    def total_tokens(self) -> int:
        """The number of all tokens that went in or came out."""
        return self.input_tokens + self.output_tokens + self.cache_read_tokens + self.cache_write_tokens

    @property
    def known_cost_usd(self) -> float:
        """The known part of the cost, in dollars: a lower bound."""
        return from_nanos(self.cost_nanos)

    @property
    def cost_usd(self) -> float | None:
        """The cost in dollars; None if the price of any event is unknown."""
        return None if self.unknown else self.known_cost_usd

    @property
    def cost_status(self) -> CostStatus | None:
        """The certainty of the cost; None without events."""
        counts = (self.unknown, self.estimated, self.actual, self.included)
        return next((status for status, count in zip(CostStatus, counts, strict=True) if count), None)

    def __add__(self, other: UsageSum) -> UsageSum:
        return UsageSum(
            **{name: getattr(self, name) + getattr(other, name) for name in self.__struct_fields__}
        )


class ModelUsage(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The use of one model of one provider for one task."""

    model: str | None
    provider: str | None
    task: str
    """The task of the model, such as a turn or a title."""
    used: UsageSum
    """The sum of the use."""


class SessionUsage(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The use of a session by model and task; the largest use of tokens first."""

    session_id: str
    parts: tuple[ModelUsage, ...] = ()
    """The use by model, provider and task."""

    @property
    def turns(self) -> UsageSum:
        """The use of turns: these are the session's own counters."""
        return add_usage_sums(part.used for part in self.parts if part.task == TURN)

    @property
    def auxiliary(self) -> UsageSum:
        """The use of all other tasks, such as titles and summaries."""
        return add_usage_sums(part.used for part in self.parts if part.task != TURN)

    @property
    def total(self) -> UsageSum:
        """The use of all tasks."""
        return add_usage_sums(part.used for part in self.parts)


def make_usage(event_id: str, at: datetime, **facts: Unpack[UsageFacts]) -> Usage:
    """Return the event of a caller's facts, or raise `InvalidInputError` with the name of a bad fact.

    A price implies its own status, so that only `included` must be given.
    """
    if unknown := facts.keys() - UsageFacts.__annotations__:
        problem = f"usage has no {', '.join(sorted(unknown))}"
        raise TypeError(problem)
    estimated = check_cost("estimated_cost_usd", facts.get("estimated_cost_usd"))
    actual = check_cost("actual_cost_usd", facts.get("actual_cost_usd"))
    raw: Mapping[str, object] = facts
    words: dict[str, Any] = {name: check_optional_word(name, raw.get(name)) for name in _WORDS}
    counts: dict[str, Any] = {
        name: _check_count(name, raw.get(name, int(name == "api_calls"))) for name in COUNTS
    }
    words["base_url"] = strip_credentials(words["base_url"])
    return Usage(
        event_id=check_event_id(event_id),
        at=at,
        task=check_optional_word("task", facts.get("task")) or TURN,
        estimated_cost_usd=estimated,
        actual_cost_usd=actual,
        cost_status=_check_cost_status(facts.get("cost_status"), estimated, actual),
        **counts,
        **words,
    )


def check_usage(usage: Usage) -> Usage:
    """Return an event as `make_usage` would have made it, or raise `InvalidInputError`."""
    if not isinstance(usage, Usage):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers exist
        problem = f"usage must be a Usage, not {type(usage).__name__}"
        raise InvalidInputError(problem)
    at = parse_instant("at", usage.at)
    if at is None:
        problem = "a use of a model must have a time, `at`"
        raise InvalidInputError(problem)
    facts: Any = {name: getattr(usage, name) for name in UsageFacts.__annotations__}
    return make_usage(usage.event_id, at, **facts)


def add_usage_sums(sums: Iterable[UsageSum]) -> UsageSum:
    """Return the sum of sums."""
    return reduce(UsageSum.__add__, sums, UsageSum())


def rank_by_tokens(parts: Iterable[ModelUsage]) -> tuple[ModelUsage, ...]:
    """Return the parts, the largest use of tokens first."""
    return tuple(
        sorted(
            parts,
            key=lambda part: (-part.used.total_tokens, part.model or "", part.provider or "", part.task),
        )
    )


def sum_of_event(usage: Usage) -> UsageSum:
    """Return the summand of one event."""
    return UsageSum(
        events=1,
        cost_nanos=cost_nanos(usage.cost_status, usage.estimated_cost_usd, usage.actual_cost_usd),
        **{name: getattr(usage, name) for name in COUNTS},
        **{str(usage.cost_status): 1},
    )


def cost_nanos(status: str, estimated: float | None, actual: float | None) -> int:
    """Return the known cost of one event, in billionths of a dollar."""
    if status == CostStatus.ACTUAL:
        return to_nanos(actual)
    return to_nanos(estimated) if status == CostStatus.ESTIMATED else 0


def least_certain_status(*statuses: str) -> CostStatus:
    """Return the certainty of a sum whose parts have these certainties; an unknown word counts as unknown."""
    return _ORDER[min((_CERTAINTY.get(status, _UNKNOWN_COST) for status in statuses), default=_UNKNOWN_COST)]


def add_usage_to_entry(entry: SessionEntry, added: UsageSum, cost_status: str) -> SessionEntry:
    """Return the entry with more use on its counters; the counts of an imported entry go on."""
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
    """Return dollars as whole billionths, exact up to nine million dollars; 0 for None."""
    return round(usd * NANOS) if usd is not None else 0


def from_nanos(nanos: int) -> float:
    """Return billionths as dollars."""
    return nanos / NANOS


def check_event_id(event_id: object) -> str:
    """Return the id of an event, or raise `InvalidInputError`."""
    return check_word("event_id", event_id)


def check_optional_word(name: str, word: object) -> str | None:
    """Return a name on one line, or raise `InvalidInputError`; None for an empty one."""
    return None if word is None or word == "" else check_word(name, word)


def check_cost(name: str, cost: object) -> float | None:
    """Return a price in dollars, rounded to the billionth; None is an unknown price."""
    if cost is None:
        return None
    if isinstance(cost, bool) or not isinstance(cost, int | float) or not 0 <= cost <= MAX_COST_USD:
        problem = f"{name} must be a number from 0 to {MAX_COST_USD}, or None if nobody knows it"
        raise InvalidInputError(problem)
    return from_nanos(to_nanos(cost))


def strip_credentials(url: str | None) -> str | None:
    """Return the address without user, password and query: credentials never reach the disk."""
    if url is None:
        return None
    plain = re.split(r"[?#]", url, maxsplit=1)[0]
    scheme, mark, rest = plain.rpartition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}{mark}{authority.rpartition('@')[2]}{slash}{path}"


def _check_count(name: str, count: object) -> int:
    if not is_whole_number(count, 0, MAX_COUNT):
        problem = f"{name} must be a whole number from 0 to {MAX_COUNT}"
        raise InvalidInputError(problem)
    return int(count)


def _check_cost_status(stated: object, estimated: float | None, actual: float | None) -> CostStatus:
    """Return the status that the prices imply; the given status must not contradict it."""
    known = CostStatus.UNKNOWN
    if actual is not None:
        known = CostStatus.ACTUAL
    elif estimated is not None:
        known = CostStatus.ESTIMATED
    if stated in (None, CostStatus.UNKNOWN, known):
        return known
    if stated == CostStatus.INCLUDED and actual is None:
        return CostStatus.INCLUDED
    problem = f"cost_status = {stated!r} does not fit what is known of the price, which is {known.value}"
    raise InvalidInputError(problem)
