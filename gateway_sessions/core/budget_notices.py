"""What people are told about budgets: that one is nearly used up, or that it is, and when it frees up."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, tzinfo
from types import MappingProxyType
from typing import Final

from gateway_sessions.core.budgets import ALL, BudgetOf, BudgetUse, Stop

_WHOSE: Final = MappingProxyType(
    {
        BudgetOf.SESSION: "the budget of this conversation",
        BudgetOf.PERSON: "your budget for today",
        BudgetOf.DAY: "today's budget for everybody",
    }
)
_AGAIN: Final = "Please send your message again then."
"""Not /retry: by then another conversation may have begun, in which there is nothing to try again."""
_HOUR: Final = timedelta(hours=1)
_MINUTE: Final = timedelta(minutes=1)


def budget_warning(uses: Sequence[BudgetUse]) -> str:
    """What people are told who may go on."""
    return " ".join(_sentence(_nearly(use)) for use in uses)


def budget_stop(stop: Stop, now: datetime, zone: tzinfo) -> str:
    """What people are told whose message is not worked on."""
    why = " and ".join(dict.fromkeys(_reached(use) for use in stop.reached))
    return f"I did not work on that: {why}. {_way_on(stop, now, zone)} {_AGAIN}"


def _nearly(use: BudgetUse) -> str:
    whose, percent = _WHOSE[use.budget], int(use.percent)
    if use.unknown:
        return f"at least {percent} % of {whose} is used; of some of it nobody knows the price."
    return f"{percent} % of {whose} is used."


def _reached(use: BudgetUse) -> str:
    whose = _WHOSE[use.budget]
    return f"{whose} is used up" if use.percent >= ALL else f"nobody knows how much of {whose} is used"


def _way_on(stop: Stop, now: datetime, zone: tzinfo) -> str:
    needs_new = any(use.frees_up_at is None for use in stop.reached)
    days = [use.frees_up_at for use in stop.reached if use.frees_up_at is not None]
    if not days:
        return "/new begins a conversation with a budget of its own."
    at = max(days)
    where = ", in a conversation that /new begins" if needs_new else ""
    return f"It goes on at {at.astimezone(zone):%H:%M} ({zone}), {_in_words(at - now)}{where}."


def _in_words(left: timedelta) -> str:
    if left < _MINUTE:
        return "in less than a minute"
    unit, name = (_HOUR, "hour") if left >= 2 * _HOUR else (_MINUTE, "minute")
    count = round(left / unit)
    return f"in {count} {name}{'s' if count != 1 else ''}"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
