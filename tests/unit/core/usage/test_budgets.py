from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from gateway_sessions import InvalidInputError
from gateway_sessions.core.usage.budgets import (
    Allowed,
    BudgetLimit,
    BudgetOf,
    Budgets,
    BudgetUnit,
    Spent,
    Stop,
    UnknownPrices,
    Warn,
    day_around,
    plan_budget,
)
from gateway_sessions.core.usage.usage_events import NANOS, UsageSum

NOON = datetime(2026, 6, 10, 12, tzinfo=UTC)
BEGAN, ENDS = NOON.replace(hour=0), NOON.replace(hour=0) + timedelta(days=1)


def used(usd: float = 0, tokens: int = 0, unknown: int = 0) -> UsageSum:
    return UsageSum(events=1, cost_nanos=round(usd * NANOS), input_tokens=tokens, unknown=unknown)


def spent(**sums: UsageSum) -> Spent:
    return Spent(day_began=BEGAN, day_ends=ENDS, **sums)


def names(uses):
    return [(use.budget, use.unit) for use in uses]


def test_without_limits_everything_is_allowed():
    assert plan_budget(Budgets(), spent(day=used(10**6, 10**12, 5))) == Allowed(uses=())


@pytest.mark.parametrize(
    ("usd", "kind"),
    [(0, Allowed), (7.999999999, Allowed), (8, Warn), (9.999999999, Warn), (10, Stop), (10.5, Stop)],
)
def test_a_budget_in_dollars_warns_from_its_percentage_on_and_stops_when_it_is_reached(usd, kind):
    plan = plan_budget(Budgets(session=BudgetLimit(usd=10)), spent(session=used(usd)))
    assert type(plan) is kind


@pytest.mark.parametrize(("tokens", "kind"), [(79, Allowed), (80, Warn), (99, Warn), (100, Stop)])
def test_a_budget_in_tokens_does_the_same(tokens, kind):
    plan = plan_budget(Budgets(day=BudgetLimit(tokens=100)), spent(day=used(tokens=tokens)))
    assert type(plan) is kind


def test_one_token_below_the_largest_limit_is_not_enough_to_stop():
    largest = 10**12
    assert isinstance(
        plan_budget(Budgets(day=BudgetLimit(tokens=largest)), spent(day=used(tokens=largest - 1))), Warn
    )
    assert isinstance(
        plan_budget(Budgets(day=BudgetLimit(usd=10**6)), spent(day=UsageSum(cost_nanos=10**15 - 1))), Warn
    )


def test_a_budget_of_nothing_stops_at_once():
    plan = plan_budget(Budgets(session=BudgetLimit(usd=0)), spent())
    assert isinstance(plan, Stop)
    assert plan.reached[0].percent == float("inf")


def test_a_warning_can_wait_until_the_budget_is_used_up():
    budgets = Budgets(session=BudgetLimit(usd=10), warn_percent=100)
    assert isinstance(plan_budget(budgets, spent(session=used(9.99))), Allowed)
    assert isinstance(plan_budget(budgets, spent(session=used(10))), Stop)


def test_a_plan_names_each_limit_that_was_reached_the_fullest_first():
    budgets = Budgets(
        session=BudgetLimit(usd=10, tokens=1000), person=BudgetLimit(tokens=50), day=BudgetLimit(usd=100)
    )
    plan = plan_budget(budgets, spent(session=used(9, 10), person=used(tokens=100), day=used(110)))
    assert isinstance(plan, Stop)
    assert names(plan.reached) == [(BudgetOf.PERSON, BudgetUnit.TOKENS), (BudgetOf.DAY, BudgetUnit.USD)]
    assert names(plan.uses)[2:] == [(BudgetOf.SESSION, BudgetUnit.USD), (BudgetOf.SESSION, BudgetUnit.TOKENS)]
    first = plan.reached[0]
    assert (first.limit, first.spent, first.percent, first.frees_up_at) == (50, 100, 200, ENDS)


def test_the_budget_of_a_day_frees_up_with_the_next_day():
    plan = plan_budget(Budgets(person=BudgetLimit(usd=1)), spent(person=used(1)))
    assert isinstance(plan, Stop)
    assert plan.frees_up_at == ENDS


def test_the_budget_of_a_session_never_frees_up_by_itself():
    budgets = Budgets(session=BudgetLimit(usd=1), person=BudgetLimit(usd=1))
    plan = plan_budget(budgets, spent(session=used(1), person=used(1)))
    assert isinstance(plan, Stop)
    assert plan.frees_up_at is None


@pytest.mark.parametrize(("rule", "kind"), [("ignore", Allowed), (UnknownPrices.WARN, Warn), ("stop", Stop)])
def test_the_budgets_say_what_an_unknown_price_means(rule, kind):
    budgets = Budgets(session=BudgetLimit(usd=10, tokens=1000), unknown_prices=rule)
    plan = plan_budget(budgets, spent(session=used(1, 10, unknown=3)))
    assert type(plan) is kind
    if not isinstance(plan, Allowed):
        assert [(use.unit, use.unknown) for use in plan.reached] == [(BudgetUnit.USD, 3)]


@pytest.mark.parametrize("rule", UnknownPrices)
def test_a_budget_in_tokens_does_not_ask_for_prices(rule):
    budgets = Budgets(session=BudgetLimit(tokens=1000), unknown_prices=rule)
    assert isinstance(plan_budget(budgets, spent(session=used(tokens=1, unknown=3))), Allowed)


def test_what_is_used_up_is_named_once_even_if_its_price_is_unknown():
    budgets = Budgets(session=BudgetLimit(usd=1), unknown_prices=UnknownPrices.STOP)
    assert len(plan_budget(budgets, spent(session=used(1, unknown=1))).reached) == 1


@pytest.mark.parametrize(
    ("kind", "members"),
    [
        (BudgetLimit, {"usd": -1}),
        (BudgetLimit, {"usd": float("nan")}),
        (BudgetLimit, {"tokens": -1}),
        (BudgetLimit, {"tokens": 1.5}),
        (BudgetLimit, {"tokens": True}),
        (Budgets, {"warn_percent": 0}),
        (Budgets, {"warn_percent": 101}),
        (Budgets, {"unknown_prices": "guess"}),
    ],
    ids=repr,
)
def test_impossible_budgets_are_refused(kind, members):
    with pytest.raises(InvalidInputError, match=next(iter(members))):
        kind(**members)


@pytest.mark.parametrize("zone", ["UTC", "Europe/Vienna", "America/Havana", "Asia/Beirut", "Pacific/Apia"])
@pytest.mark.parametrize("year", [2011, 2026])
def test_days_meet_without_a_gap_or_an_overlap(zone, year):
    """In Havana and Beirut clocks change at midnight, and Apia left out the thirtieth of December 2011."""
    now, last = datetime(year, 1, 1, tzinfo=UTC), None
    while now.year == year:
        began, ends = day_around(now, ZoneInfo(zone))
        assert began <= now < ends
        assert last is None or began == last[0] or began == last[1]
        last, now = (began, ends), now + timedelta(hours=5, minutes=30)
