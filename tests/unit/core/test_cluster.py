"""What nodes conclude from what they know of each other."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway_sessions.core.cluster import (
    SHARDS,
    SLOTS,
    ClusterRules,
    Node,
    free_slot,
    is_leader,
    lost_epochs,
    node_of,
    node_that_made,
    shard_of,
    takes_over_first,
    trusted_until,
)
from gateway_sessions.errors import ConfigError

NAMES = st.frozensets(st.text(min_size=1, max_size=8), min_size=1, max_size=8)
LANES = st.text(max_size=40)


def node(epoch: int, *, silent: bool = False, slot: int | None = None, first_id: int = 0) -> Node:
    return Node(
        epoch=epoch,
        slot=epoch if slot is None else slot,
        name=f"node {epoch}",
        version="1",
        first_id=first_id,
        silent=silent,
    )


class TestRules:
    def test_a_node_stops_long_before_it_can_be_declared_dead(self):
        rules = ClusterRules()
        assert trusted_until(100.0, rules) == 115.0
        assert rules.trust < rules.ttl

    @pytest.mark.parametrize(
        ("wrong", "key"),
        [
            ({"heartbeat": timedelta(0)}, "heartbeat_seconds"),
            ({"ttl": timedelta(seconds=10)}, "ttl_seconds"),
            ({"poll": timedelta(0)}, "poll_ms"),
            ({"sticky": timedelta(seconds=-1)}, "sticky_ms"),
            ({"name": ""}, "name"),
            ({"name": "a\nb"}, "name"),
            ({"name": "a" * 201}, "name"),
        ],
    )
    def test_rules_that_nobody_could_keep_are_refused(self, wrong: dict, key: str):
        with pytest.raises(ConfigError, match=f"cluster.{key}"):
            ClusterRules(**wrong)


class TestPlaces:
    @given(LANES)
    def test_a_lane_is_in_one_part_for_ever(self, lane: str):
        assert shard_of(lane) == shard_of(lane)
        assert 0 <= shard_of(lane) < SHARDS

    def test_the_part_of_a_lane_is_the_same_in_every_version(self):
        assert [shard_of(lane) for lane in ("", "a", "agent:main:telegram:dm:1")] == [944, 663, 741]

    @given(st.integers(0, SHARDS - 1), NAMES, st.text(min_size=1, max_size=8))
    def test_only_the_parts_move_that_a_node_gets_or_had(self, shard: int, names: frozenset, new: str):
        before, after = node_of(shard, names), node_of(shard, names | {new})
        assert before in names
        assert after in {before, new}

    def test_everybody_gets_about_as_much(self):
        names = frozenset(f"node {number}" for number in range(8))
        shares = Counter(node_of(shard, names) for shard in range(SHARDS))
        assert set(shares) == names
        assert max(shares.values()) < 1.5 * SHARDS / len(names)


class TestLeading:
    @given(st.sets(st.integers(1, 50), min_size=1))
    def test_exactly_one_leads(self, epochs: set[int]):
        nodes = [node(one) for one in epochs]
        assert [one for one in epochs if is_leader(one, nodes)] == [min(epochs)]

    @given(st.sets(st.integers(1, 50), min_size=1), st.sets(st.integers(1, 50)))
    def test_who_leads_goes_on_whoever_comes_and_goes(self, epochs: set[int], gone: set[int]):
        leader = min(epochs)
        later = [node(one) for one in (epochs - gone) | {leader, max(epochs) + 1}]
        assert is_leader(leader, later)

    def test_a_silent_node_leads_until_it_is_declared_dead_but_does_not_see_to_the_dead(self):
        nodes = [node(1, silent=True), node(2), node(3)]
        assert [one for one in (1, 2, 3) if is_leader(one, nodes)] == [1]
        assert [one for one in (1, 2, 3) if takes_over_first(one, nodes)] == [2]

    def test_nobody_leads_where_nobody_is(self):
        assert not is_leader(1, [])


class TestLosing:
    def test_the_silent_and_the_vanished_are_lost(self):
        before = [node(1), node(2), node(3)]
        assert lost_epochs(before, [node(1), node(3, silent=True), node(4)]) == {2, 3}

    @given(st.sets(st.integers(1, 20)))
    def test_nobody_is_lost_while_all_live(self, epochs: set[int]):
        nodes = [node(one) for one in epochs]
        assert lost_epochs(nodes, [*nodes, node(21)]) == frozenset()


class TestNumbers:
    @given(st.sets(st.integers(0, SLOTS - 1), max_size=30))
    def test_a_new_node_gets_a_number_that_nobody_has(self, taken: set[int]):
        slot = free_slot(taken)
        assert slot is not None
        assert slot not in taken

    def test_there_are_only_so_many(self):
        assert free_slot(range(SLOTS)) is None

    def test_an_id_tells_who_made_it(self):
        nodes = [node(4, slot=3, first_id=10 * SLOTS + 3), node(5, slot=7, first_id=20 * SLOTS + 7)]
        assert node_that_made(12 * SLOTS + 3, nodes) == nodes[0]
        assert node_that_made(21 * SLOTS + 7, nodes) == nodes[1]
        assert node_that_made(12 * SLOTS + 7, nodes) is None  # of somebody who had that number before
        assert node_that_made(12 * SLOTS + 4, nodes) is None
        assert node_that_made(12 * SLOTS + 3, [replace(nodes[0], slot=9)]) is None
