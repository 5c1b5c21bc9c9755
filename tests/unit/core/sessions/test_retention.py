from datetime import UTC, datetime, timedelta

import pytest

from gateway_sessions import InvalidInputError
from gateway_sessions.core.sessions.retention import (
    FirstPruneDue,
    GroupMember,
    PrunePlan,
    RetentionBounds,
    SessionGroup,
)

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def bounds(days: float | None = None, count: int | None = None, size: int | None = None) -> RetentionBounds:
    return RetentionBounds.at(NOW, days, count, size)


def group(
    name: str, *, days: float, size: int = 10, protected: bool = False, others: str = ""
) -> SessionGroup:
    members = (GroupMember(name, 1, size), *(GroupMember(one, 1, size) for one in others))
    return SessionGroup(members=members, last_active=NOW - timedelta(days=days), protected=protected)


def taken(wanted: RetentionBounds, *groups: SessionGroup, count: int = 0, size: int = 0) -> list[str]:
    plan = PrunePlan(wanted, count=count, text_bytes=size)
    for one in groups:
        plan.offer_group(one)
    return [one.session_id for one in plan.members]


def test_what_is_older_goes_and_what_is_as_old_stays():
    assert taken(bounds(days=90), group("a", days=90.1), group("b", days=90), group("c", days=89)) == ["a"]


def test_the_oldest_go_until_the_number_is_kept():
    groups = [group(name, days=days) for name, days in (("a", 9), ("b", 8), ("c", 7))]
    assert taken(bounds(count=2), *groups, count=3) == ["a"]
    assert taken(bounds(count=0), *groups, count=3) == ["a", "b", "c"]
    assert taken(bounds(count=3), *groups, count=3) == []


def test_the_oldest_go_until_the_size_is_kept():
    groups = [group(name, days=9, size=100) for name in "abc"]
    assert taken(bounds(size=150), *groups, count=3, size=300) == ["a", "b"]


def test_any_bound_is_enough():
    groups = [group("a", days=100), group("b", days=3)]
    assert taken(bounds(days=90, count=2), *groups, count=2) == ["a"]
    assert taken(bounds(days=90, count=0), *groups, count=2) == ["a", "b"]


def test_what_is_protected_stays_and_counts():
    groups = [group("a", days=100, protected=True), group("b", days=99)]
    assert taken(bounds(days=90, count=0), *groups, count=2) == ["b"]


def test_what_was_touched_within_a_day_stays_however_full_the_store_is():
    assert taken(bounds(count=0), group("a", days=0.9), group("b", days=1.1), count=2) == ["b"]


def test_an_age_below_a_day_means_what_it_says():
    assert taken(bounds(days=0.5), group("a", days=0.6), group("b", days=0.4)) == ["a"]


def test_what_hangs_together_goes_together_and_counts_once():
    plan = PrunePlan(bounds(count=1), count=4, text_bytes=0)
    assert plan.offer_group(group("d", days=9))
    assert plan.offer_group(group("a", days=8, others="de"))
    assert not plan.offer_group(group("e", days=8))
    assert [one.session_id for one in plan.members] == ["d", "a", "e"]
    assert not plan.wants_more(NOW - timedelta(days=7))


def test_a_group_that_was_used_since_is_not_what_was_planned():
    planned = group("a", days=9, others="b")
    assert planned.is_unchanged_since(planned)
    assert group("a", days=9).is_unchanged_since(planned)
    assert not group("a", days=8, others="b").is_unchanged_since(planned)
    assert not group("a", days=9, others="b", protected=True).is_unchanged_since(planned)
    assert not group("a", days=9, others="bc").is_unchanged_since(planned)
    assert planned.messages == 2


@pytest.mark.parametrize("wrong", [{"count": -1}, {"size": -1}, {"count": True}, {"days": float("nan")}, {}])
def test_bounds_that_are_none_are_refused(wrong: dict[str, float]):
    with pytest.raises(InvalidInputError):
        bounds(**wrong)  # type: ignore[arg-type]


def test_of_all_groups_the_one_is_found_that_grows_too_old_first():
    first = FirstPruneDue()
    assert first.last_active is None
    first.offer_group(group("pinned", days=9, protected=True))
    assert first.last_active is None
    first.offer_group(group("a", days=5))
    first.offer_group(group("b", days=7))
    first.offer_group(group("c", days=6))
    assert first.last_active == NOW - timedelta(days=7)
    assert first.wants_more(NOW - timedelta(days=8))
    assert not first.wants_more(NOW - timedelta(days=7))
