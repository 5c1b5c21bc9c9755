"""Who gets room, by every count that there can be, and how fast refusals are answered."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway_sessions.core.queue.admission import (
    FEWEST_PER_SECOND,
    HOLD_FOR_EACH_SECONDS,
    HOLD_STEP_SECONDS,
    LONGEST_HOLD_SECONDS,
    REFUSALS_AT_ONCE,
    REFUSALS_PER_SECOND,
    RESERVED_PART,
    TOLERATED_SECONDS,
    OwnerRoom,
    RefusalRate,
    equal_share,
    lack_of_room,
    node_share,
)

MOST = 8
ROOMS = [
    OwnerRoom(
        most=MOST,
        most_of_owner=most_of_owner,
        taken=taken,
        of_owner=of_owner,
        owners=owners,
        empty_handed=empty_handed,
        crowded=crowded,
    )
    for most_of_owner, taken, of_owner, owners, empty_handed, crowded in product(
        (2, MOST), range(MOST + 2), range(MOST + 2), (1, 2, 5, 100), (0, 1, 5), (False, True)
    )
    if of_owner <= taken
]


def test_nothing_is_taken_beyond_a_cap():
    for room in [one for one in ROOMS if not lack_of_room(one)]:
        assert room.taken < room.most, room
        assert room.of_owner < room.most_of_owner, room


def test_what_there_is_room_for_is_refused_only_to_leave_the_last_places_to_those_without_any():
    kept = 0
    for room in ROOMS:
        if not lack_of_room(room) or room.taken >= room.most or room.of_owner >= room.most_of_owner:
            continue
        kept += 1
        assert room.crowded, room
        assert room.of_owner >= equal_share(room.most, room.owners), room
        assert room.most - room.taken <= min(room.empty_handed, MOST // RESERVED_PART), room
    assert kept


def test_whoever_has_nothing_gets_the_last_place():
    assert not any(lack_of_room(room) for room in ROOMS if not room.of_owner and room.taken < MOST)


@pytest.mark.parametrize(
    ("places", "owners", "share"), [(8, 0, 8), (8, 1, 8), (8, 3, 2), (8, 8, 1), (8, 500, 1), (1, 2, 1)]
)
def test_each_owner_has_an_equal_share_and_one_place_at_least(places: int, owners: int, share: int):
    assert equal_share(places, owners) == share


@given(st.integers(1, 60), st.integers(1, 6), st.data())
def test_nodes_that_count_at_different_moments_stay_within_a_cap(most: int, nodes: int, data: st.DataObject):
    """Each node takes in what its last count allows, and none learns of the others but by counting."""
    waiting, counted, added = 0, [0] * nodes, [0] * nodes
    steps = st.tuples(st.integers(0, nodes - 1), st.sampled_from(["counts", "takes", "takes all it may"]))
    for node, what in data.draw(st.lists(steps, max_size=60)):
        if what == "counts":
            counted[node], added[node] = waiting, 0
            continue
        room = node_share(most - counted[node], nodes, leads=node == 0) - added[node]
        taken = max(room if what == "takes all it may" else min(room, 1), 0)
        waiting, added[node] = waiting + taken, added[node] + taken
        assert waiting <= most + (nodes > 1)


def test_a_node_that_is_alone_may_fill_everything_and_one_among_others_gets_there_step_by_step():
    assert node_share(7, 1, leads=False) == 7
    assert node_share(0, 3, leads=True) == 0
    waiting, most, rounds = 0, 100, 0
    while waiting < most:
        waiting += sum(node_share(most - waiting, 3, leads=one == 0) for one in range(3))
        rounds += 1
    assert (waiting, rounds < 20) == (most, True)


# How fast refusals are answered


def answers(pace: RefusalRate, now: float, refusals: int) -> tuple[RefusalRate, list[float]]:
    """When so many refusals are answered that are asked for at one moment."""
    times: list[float] = []
    for _ in range(refusals):
        pace, at = pace.after_refusal(now)
        times.append(at)
    return pace, times


def test_some_refusals_are_answered_at_once_and_a_flood_is_held():
    _, times = answers(RefusalRate(), 100.0, 10 * REFUSALS_AT_ONCE)
    at_once = REFUSALS_AT_ONCE - 1
    assert times[:at_once] == [100.0] * at_once
    assert times == sorted(times)
    assert times[-1] > 100.0


@given(st.floats(0, 10), st.integers(1, 5000), st.floats(0, 1e6), st.integers(0, 5000))
def test_no_refusal_is_held_longer_than_the_limit(late: float, refusals: int, now: float, held: int):
    pace, times = answers(RefusalRate().after_wake_up(late * 5), now, refusals)
    times.append(pace.after_refusal(now, held)[1])
    assert all(now <= at <= now + LONGEST_HOLD_SECONDS + HOLD_STEP_SECONDS for at in times)


def coming_back(callers: int, seconds: float) -> int:
    """How many refusals so many callers get who come back at once after each."""
    pace, due, answered = RefusalRate(), [0.0] * callers, 0
    while (now := min(due)) < seconds:
        held = sum(at > now for at in due)
        pace, at = pace.after_refusal(now, held)
        due[due.index(now)] = max(at, now + 1e-5)
        answered += 1
    return answered


@pytest.mark.parametrize("callers", [2, 20, 100, 199])
def test_those_who_come_back_at_once_get_the_same_number_of_refusals_however_many_they_are(callers: int):
    most = 1 / HOLD_FOR_EACH_SECONDS + callers / HOLD_STEP_SECONDS * (callers < 20)
    assert coming_back(callers, 10) <= 1.2 * 10 * most + REFUSALS_AT_ONCE + 2 * callers


def test_one_who_hands_in_message_after_message_is_hardly_held_up():
    assert 0.5 * REFUSALS_PER_SECOND <= coming_back(1, 10) / 10 <= 1.1 * REFUSALS_PER_SECOND


def test_the_later_the_event_loop_is_the_fewer_are_answered():
    speeds = [RefusalRate(late=late * TOLERATED_SECONDS).per_second for late in (0, 1, 3, 1000)]
    assert speeds == [
        REFUSALS_PER_SECOND,
        REFUSALS_PER_SECOND / 2,
        REFUSALS_PER_SECOND / 4,
        FEWEST_PER_SECOND,
    ]
    pace = RefusalRate()
    for _ in range(50):
        pace = pace.after_wake_up(0.02)
    assert pace.late == pytest.approx(0.02, rel=0.01)
    for _ in range(50):
        pace = pace.after_wake_up(-1)
    assert pace.late < TOLERATED_SECONDS / 100
