"""What people are told about budgets: whose, how full, and what they can do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from gateway_sessions.core.notices.notice_texts import budget_stop, budget_warning
from gateway_sessions.core.usage.budgets import BudgetOf, BudgetUnit, BudgetUse, Stop

VIENNA = ZoneInfo("Europe/Vienna")
NOW = datetime(2026, 6, 10, 17, 0, tzinfo=UTC)
MIDNIGHT = datetime(2026, 6, 10, 22, 0, tzinfo=UTC)


def use(budget: BudgetOf, percent: float, *, unknown: int = 0, ends: datetime | None = MIDNIGHT) -> BudgetUse:
    return BudgetUse(
        budget=budget,
        unit=BudgetUnit.TOKENS,
        limit=100,
        spent=percent,
        percent=percent,
        unknown=unknown,
        frees_up_at=None if budget is BudgetOf.SESSION else ends,
    )


def stopped(*uses: BudgetUse, now: datetime = NOW) -> str:
    return budget_stop(Stop(reached=uses, uses=uses), now, VIENNA)


def test_a_warning_says_how_full_each_budget_is_and_never_that_it_is_full():
    told = budget_warning([use(BudgetOf.PERSON, 99.99), use(BudgetOf.SESSION, 80)])
    assert told == "99 % of your budget for today is used. 80 % of the budget of this conversation is used."


def test_a_warning_says_what_nobody_knows():
    told = budget_warning([use(BudgetOf.DAY, 12.5, unknown=2)])
    assert told == (
        "At least 12 % of today's budget for everybody is used; of some of it nobody knows the price."
    )


def test_a_stop_says_when_it_goes_on_in_the_zone_of_the_people():
    assert stopped(use(BudgetOf.PERSON, 130)) == (
        "I did not work on that: your budget for today is used up. "
        "It goes on at 00:00 (Europe/Vienna), in 5 hours. Please send your message again then."
    )


def test_a_conversation_that_is_used_up_never_frees_up_by_itself():
    assert "/new begins a conversation with a budget of its own." in stopped(use(BudgetOf.SESSION, 100))


def test_where_both_are_used_up_it_takes_both():
    told = stopped(use(BudgetOf.SESSION, 100), use(BudgetOf.DAY, 100))
    assert "of this conversation is used up and today's budget for everybody is used up." in told
    assert "in 5 hours, in a conversation that /new begins." in told


def test_a_budget_in_two_units_is_named_once():
    told = stopped(use(BudgetOf.DAY, 100), use(BudgetOf.DAY, 200))
    assert told.count("everybody") == 1


def test_a_budget_that_cannot_be_kept_is_not_called_used_up():
    told = stopped(use(BudgetOf.PERSON, 10, unknown=1))
    assert "nobody knows how much of your budget for today is used." in told


@pytest.mark.parametrize(
    ("left", "words"),
    [
        (timedelta(seconds=59), "in less than a minute"),
        (timedelta(minutes=1), "in 1 minute,"),
        (timedelta(minutes=119), "in 119 minutes"),
        (timedelta(hours=2, minutes=20), "in 2 hours"),
    ],
)
def test_how_long_it_takes_is_said_in_words(left: timedelta, words: str):
    told = stopped(use(BudgetOf.DAY, 100), use(BudgetOf.SESSION, 100), now=MIDNIGHT - left)
    assert words in told
