from datetime import UTC, datetime
from decimal import Decimal
from itertools import permutations

import pytest

from gateway_sessions import InvalidInputError, SessionEntry
from gateway_sessions.core.usage.usage_events import (
    MAX_COST_USD,
    MAX_COUNT,
    CostStatus,
    ModelUsage,
    SessionUsage,
    Usage,
    UsageSum,
    add_usage_sums,
    add_usage_to_entry,
    check_usage,
    least_certain_status,
    make_usage,
    strip_credentials,
    sum_of_event,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def event(**facts):
    return make_usage("e", NOW, **facts)


def entry(**members) -> SessionEntry:
    return SessionEntry(
        session_key="k", session_id="s", created_at=NOW, updated_at=NOW, last_interaction_at=NOW, **members
    )


def test_an_event_that_somebody_made_by_hand_is_as_if_it_had_been_told():
    by_hand = Usage(event_id="e", at=NOW, model="m", input_tokens=3, estimated_cost_usd=0.5)
    assert check_usage(by_hand) == event(model="m", input_tokens=3, estimated_cost_usd=0.5)
    assert check_usage(event(api_calls=2)) == event(api_calls=2)


@pytest.mark.parametrize(
    "wrong",
    [
        {"input_tokens": "3"},
        {"at": None},
        {"at": "soon"},
        {"event_id": ""},
        {"estimated_cost_usd": float("nan")},
        {"model": 5},
    ],
)
def test_an_event_that_somebody_made_by_hand_is_refused_where_it_is_told(wrong):
    with pytest.raises(InvalidInputError, match=next(iter(wrong))):
        check_usage(Usage(**{"event_id": "e", "at": NOW, **wrong}))


def test_what_is_no_event_is_refused():
    with pytest.raises(InvalidInputError, match="Usage, not dict"):
        check_usage({"event_id": "e"})


def test_what_is_left_out_is_nothing_and_its_price_is_unknown():
    usage = event()
    assert (usage.task, usage.api_calls, usage.input_tokens) == ("turn", 1, 0)
    assert (usage.estimated_cost_usd, usage.cost_status) == (None, CostStatus.UNKNOWN)


@pytest.mark.parametrize(
    ("facts", "status"),
    [
        ({"estimated_cost_usd": 0.0}, "estimated"),
        ({"estimated_cost_usd": 0.1, "cost_status": "unknown"}, "estimated"),
        ({"estimated_cost_usd": 0.1, "actual_cost_usd": 0.2}, "actual"),
        ({"actual_cost_usd": 0.2, "cost_status": "actual"}, "actual"),
        ({"cost_status": "included"}, "included"),
        ({"cost_status": "included", "estimated_cost_usd": 0.1}, "included"),
        ({"cost_status": "unknown"}, "unknown"),
    ],
)
def test_a_price_tells_its_own_status(facts, status):
    assert event(**facts).cost_status == status


@pytest.mark.parametrize(
    "facts",
    [
        {"cost_status": "actual"},
        {"cost_status": "estimated"},
        {"cost_status": "estimated", "actual_cost_usd": 1.0},
        {"cost_status": "included", "actual_cost_usd": 1.0},
        {"cost_status": "cheap"},
    ],
)
def test_a_status_that_contradicts_the_price_is_refused(facts):
    with pytest.raises(InvalidInputError, match="cost_status"):
        event(**facts)


COUNTS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")


@pytest.mark.parametrize("name", [*COUNTS, "api_calls"])
@pytest.mark.parametrize("count", [-1, MAX_COUNT + 1, 1.0, True, "1", None], ids=repr)
def test_an_impossible_count_is_refused_by_name(name, count):
    with pytest.raises(InvalidInputError, match=name):
        event(**{name: count})


@pytest.mark.parametrize("name", ["estimated_cost_usd", "actual_cost_usd"])
@pytest.mark.parametrize(
    "cost", [-0.1, float("nan"), float("inf"), MAX_COST_USD + 1, 10**400, True, "1", Decimal(1)], ids=repr
)
def test_an_impossible_price_is_refused_by_name(name, cost):
    with pytest.raises(InvalidInputError, match=name):
        event(**{name: cost})


@pytest.mark.parametrize("name", ["model", "provider", "base_url", "task", "cost_source", "pricing_version"])
@pytest.mark.parametrize("word", ["a\nb", "x" * 257, "\ud800", "\0", 7], ids=repr)
def test_a_name_that_is_not_one_line_is_refused_by_name(name, word):
    with pytest.raises(InvalidInputError, match=name):
        event(**{name: word})


@pytest.mark.parametrize("event_id", ["", None, 5, "a\nb"], ids=repr)
def test_an_event_has_an_id(event_id):
    with pytest.raises(InvalidInputError, match="event_id"):
        make_usage(event_id, NOW)


def test_a_fact_that_does_not_exist_is_a_mistake_of_the_program():
    with pytest.raises(TypeError, match="input_token"):
        event(input_token=5)


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        (None, None),
        ("https://api.example/v1", "https://api.example/v1"),
        ("https://me:secret@api.example:8443/v1?key=secret#secret", "https://api.example:8443/v1"),
        ("me:secret@api.example/v1", "api.example/v1"),
        ("https://api.example?key=http://secret@x", "https://api.example"),
        ("api.example/a@b", "api.example/a@b"),
    ],
)
def test_an_address_is_kept_without_credentials(url, kept):
    assert strip_credentials(url) == kept


def test_sums_are_exact_in_any_order():
    events = [sum_of_event(event(estimated_cost_usd=cost)) for cost in (0.1, 0.2, 0.3, 1e6, 1e-9)]
    assert {add_usage_sums(order).known_cost_usd for order in permutations(events)} == {1_000_000.600000001}


def test_a_sum_with_an_unknown_price_is_no_price():
    known, unknown = sum_of_event(event(actual_cost_usd=0.5)), sum_of_event(event(input_tokens=7))
    assert known.cost_usd == 0.5
    assert (known + unknown).cost_usd is None
    assert (known + unknown).known_cost_usd == 0.5
    assert (known + unknown).unknown == 1


def test_nothing_used_costs_nothing():
    assert UsageSum().cost_usd == 0.0
    assert UsageSum().cost_status is None


def test_the_actual_price_takes_the_place_of_the_estimate_and_what_is_included_costs_nothing():
    assert sum_of_event(event(estimated_cost_usd=0.5, actual_cost_usd=0.4)).cost_usd == 0.4
    assert sum_of_event(event(estimated_cost_usd=0.5, cost_status="included")).cost_usd == 0.0


def test_reasoning_tokens_are_not_added_to_the_output_that_holds_them():
    usage = event(
        input_tokens=1, output_tokens=20, cache_read_tokens=300, cache_write_tokens=4000, reasoning_tokens=15
    )
    assert sum_of_event(usage).total_tokens == 4321


def test_a_sum_is_known_as_well_as_the_worst_known_part():
    parts = [
        sum_of_event(event(**facts))
        for facts in ({"cost_status": "included"}, {"actual_cost_usd": 1.0}, {"estimated_cost_usd": 1.0}, {})
    ]
    sums = [add_usage_sums(parts[: count + 1]).cost_status for count in range(4)]
    assert sums == ["included", "actual", "estimated", "unknown"]
    assert least_certain_status("included", "actual", "estimated") == "estimated"
    assert least_certain_status("actual", "word of another program") == "unknown"
    assert least_certain_status() == "unknown"


def test_the_use_of_a_session_keeps_other_tasks_apart_from_its_turns():
    turns, titles = sum_of_event(event(input_tokens=5)), sum_of_event(event(input_tokens=7))
    parts = tuple(
        ModelUsage(model="m", provider=None, task=task, used=used)
        for task, used in (("turn", turns), ("title", titles))
    )
    usage = SessionUsage(session_id="s", parts=parts)
    assert usage.turns.input_tokens == 5
    assert usage.auxiliary.input_tokens == 7
    assert usage.total.input_tokens == 12


def test_an_imported_entry_counts_on_from_its_own_counters():
    before = entry(input_tokens=100, total_tokens=120, estimated_cost_usd=0.1)
    after = add_usage_to_entry(
        before, sum_of_event(event(input_tokens=5, estimated_cost_usd=0.2)), "estimated"
    )
    assert (after.input_tokens, after.total_tokens) == (105, 125)
    assert (after.estimated_cost_usd, after.cost_status) == (0.3, "estimated")


def test_a_lower_price_never_makes_an_entry_earn_money():
    after = add_usage_to_entry(entry(estimated_cost_usd=0.1), UsageSum(cost_nanos=-(10**9)), "actual")
    assert after.estimated_cost_usd == 0.0
