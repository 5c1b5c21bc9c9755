"""Budgets for a session, a person's day and everybody's day: how much is used up, and whether to stop.

A budget is used up once the amount spent reaches it, and nearly used up from some percentage on. Tokens are
always known. A price may be unknown: then a budget in dollars counts the known prices only, and the budgets
say what an unknown price does: nothing, a warning (the default), or a stop.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, tzinfo
from enum import StrEnum
from typing import Final, TypeAlias

import msgspec

from gateway_sessions.core.checks import is_whole_number
from gateway_sessions.core.sessions.reset_times import first_instant, next_daily_boundary
from gateway_sessions.core.usage.usage_events import (
    MAX_COUNT,
    UsageSum,
    check_cost,
    to_nanos,
)
from gateway_sessions.errors import InvalidInputError

WARN_PERCENT: Final = 80
ALL: Final = 100


class BudgetOf(StrEnum):
    """The owner and the period of the use that a budget limits."""

    SESSION = "session"  # frees up with a new session, never by itself
    PERSON = "person"  # the owner's sessions of a day; frees up with the next day
    DAY = "day"  # everybody's sessions of a day; frees up with the next day


class BudgetUnit(StrEnum):
    """The unit of a budget."""

    USD = "usd"
    TOKENS = "tokens"


class UnknownPrices(StrEnum):
    """The effect of use with an unknown price on a budget in dollars."""

    IGNORE = "ignore"
    WARN = "warn"
    STOP = "stop"


class BudgetLimit(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The limits of one budget; a limit of None allows everything."""

    usd: float | None = None
    """The dollars that may be spent; None: any amount."""
    tokens: int | None = None
    """The tokens that may be used; None: any number."""

    def __post_init__(self) -> None:
        check_cost("usd", self.usd)
        if self.tokens is not None and not is_whole_number(self.tokens, 0, MAX_COUNT):
            problem = f"tokens must be a whole number from 0 to {MAX_COUNT}, or None"
            raise InvalidInputError(problem)


class Budgets(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """All budgets; a budget without limits allows everything."""

    session: BudgetLimit = BudgetLimit()
    """The budget of one session."""
    person: BudgetLimit = BudgetLimit()
    """The budget of all sessions of one person in a day."""
    day: BudgetLimit = BudgetLimit()
    """The budget of all sessions in a day."""
    warn_percent: int = WARN_PERCENT
    """The percentage of a budget from which on people are warned; 100: not before it is used up."""
    unknown_prices: UnknownPrices = UnknownPrices.WARN
    """The effect of use with an unknown price on a budget in dollars."""

    def __post_init__(self) -> None:
        if not is_whole_number(self.warn_percent, 1, ALL):
            problem = f"warn_percent must be a whole number from 1 to {ALL}"
            raise InvalidInputError(problem)
        if self.unknown_prices not in set(UnknownPrices):
            problem = f"unknown_prices must be one of {', '.join(UnknownPrices)}"
            raise InvalidInputError(problem)


class Spent(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The use so far, of all tasks, and the bounds of the day."""

    session: UsageSum = UsageSum()
    """The use of the session."""
    person: UsageSum = UsageSum()
    """The use of the person on this day."""
    day: UsageSum = UsageSum()
    """The use of everybody on this day."""
    day_began: datetime
    """The instant at which the day began."""
    day_ends: datetime
    """The instant at which the day ends."""


class BudgetUse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The use of one budget, compared with its limit."""

    budget: BudgetOf
    """The budget: of a session, of a person or of a day."""
    unit: BudgetUnit
    """The unit of the limit."""
    limit: float
    """The limit, in the budget's unit."""
    spent: float
    """The use, in the budget's unit; of dollars, the known part."""
    percent: float
    """The share of the limit in percent; 100 or more: used up. A limit of 0 is used up from the beginning."""
    unknown: int
    """The number of uses that `spent` leaves out because their price is unknown."""
    frees_up_at: datetime | None
    """The instant at which the budget frees up; None: never by itself."""


class Allowed(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The plan to go on."""

    uses: tuple[BudgetUse, ...] = ()
    """The use of every budget, the fullest first."""


class Warn(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The plan to go on, and to warn people of *reached*: the fullest budget first."""

    reached: tuple[BudgetUse, ...]
    """The budgets of which people are warned."""
    uses: tuple[BudgetUse, ...]
    """The use of every budget, the fullest first."""


class Stop(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The plan to spend nothing more until each budget of *reached* has freed up."""

    reached: tuple[BudgetUse, ...]
    """The budgets that are used up."""
    uses: tuple[BudgetUse, ...]
    """The use of every budget, the fullest first."""

    @property
    def frees_up_at(self) -> datetime | None:
        """The instant from which more may be spent; None: never by itself."""
        ends = [use.frees_up_at for use in self.reached]
        known = [end for end in ends if end is not None]
        return max(known) if len(known) == len(ends) else None


BudgetPlan: TypeAlias = Allowed | Warn | Stop


def plan_budget(budgets: Budgets, spent: Spent) -> BudgetPlan:
    """Return whether more may be spent, with the use of every budget, the fullest first."""
    uses = tuple(sorted(_compare_with_limits(budgets, spent), key=lambda use: -use.percent))
    blind = [use for use in uses if use.unknown]
    over = [use for use in uses if use.percent >= ALL]
    near = [use for use in uses if use.percent >= budgets.warn_percent]
    if budgets.unknown_prices == UnknownPrices.STOP:
        over += [use for use in blind if use not in over]
    if budgets.unknown_prices == UnknownPrices.WARN:
        near += [use for use in blind if use not in near]
    if over:
        return Stop(reached=tuple(over), uses=uses)
    return Warn(reached=tuple(near), uses=uses) if near else Allowed(uses=uses)


def day_around(now: datetime, zone: tzinfo) -> tuple[datetime, datetime]:
    """Return the begin and the end of the day that contains *now*; days meet without a gap or an overlap."""
    today = now.astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None, fold=0)
    began = first_instant(today - timedelta(days=1), zone)
    while (ends := next_daily_boundary(began, 0, zone)) <= now:
        began = ends
    return began, ends


def _compare_with_limits(budgets: Budgets, spent: Spent) -> Iterator[BudgetUse]:
    for budget, limit, used, frees_up_at in (
        (BudgetOf.SESSION, budgets.session, spent.session, None),
        (BudgetOf.PERSON, budgets.person, spent.person, spent.day_ends),
        (BudgetOf.DAY, budgets.day, spent.day, spent.day_ends),
    ):
        if limit.usd is not None:
            yield BudgetUse(
                budget=budget,
                unit=BudgetUnit.USD,
                limit=limit.usd,
                spent=used.known_cost_usd,
                percent=_percent(used.cost_nanos, to_nanos(limit.usd)),
                unknown=used.unknown,
                frees_up_at=frees_up_at,
            )
        if limit.tokens is not None:
            yield BudgetUse(
                budget=budget,
                unit=BudgetUnit.TOKENS,
                limit=limit.tokens,
                spent=used.total_tokens,
                percent=_percent(used.total_tokens, limit.tokens),
                unknown=0,
                frees_up_at=frees_up_at,
            )


def _percent(spent: int, limit: int) -> float:
    """Return the use in percent. In the range of our numbers the division never rounds up to 100."""
    return ALL * spent / limit if limit else float("inf")
