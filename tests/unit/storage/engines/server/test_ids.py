"""Ids for rows: rising, and of one node alone."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from gateway_sessions.core.cluster import SLOTS
from gateway_sessions.storage.engines.server.ordering import RisingIds


def ids_of(slot: int, first: int = 0, earliest: int = 0) -> RisingIds:
    ids = RisingIds()
    ids.begin_at(first, slot=slot, slots=SLOTS, earliest=lambda: earliest)
    return ids


@given(st.integers(0, SLOTS - 1), st.integers(0, SLOTS - 1), st.integers(0, 1 << 40), st.integers(0, 1 << 40))
def test_no_two_nodes_make_the_same(one: int, other: int, first: int, second: int):
    made, others = ({next(ids) for _ in range(20)} for ids in (ids_of(one, first), ids_of(other, second)))
    assert one == other or not made & others
    assert {row_id % SLOTS for row_id in made} == {one}


@given(st.integers(0, SLOTS - 1), st.lists(st.integers(0, 1 << 50), min_size=1), st.integers(0, 1 << 50))
def test_they_rise_whatever_the_time_is(slot: int, times: list[int], first: int):
    now = iter(times)
    ids = RisingIds()
    ids.begin_at(first, slot=slot, slots=SLOTS, earliest=lambda: next(now))
    made = [next(ids) for _ in times]
    assert all(row_id >= time for row_id, time in zip(made, times, strict=True))
    assert all(before < after for before, after in pairwise([first - 1, *made]))


def test_an_id_is_not_below_the_time():
    ids = RisingIds()
    ids.begin_at(0, slot=3, slots=SLOTS, earliest=lambda: 10_000_000)
    assert next(ids) >= 10_000_000


def test_one_owner_alone_counts_on_without_gaps():
    ids = RisingIds()
    ids.begin_at(7)
    assert [next(ids) for _ in range(3)] == [7, 8, 9]
