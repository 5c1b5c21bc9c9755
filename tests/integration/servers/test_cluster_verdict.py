"""What the judge of a cluster run lets pass, and what it does not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.checker import Absence, Verdict, overlapping_commits, seconds_to_takeover


def turn(
    token: int, begin: float, end: float | None, *, node: str = "a", text: str = "hi"
) -> list[dict[str, Any]]:
    facts = {"node": node, "lane": "lane0", "text": text, "token": token}
    begun = [{"kind": "begin", "at": begin, **facts}]
    return begun if end is None else [*begun, {"kind": "end", "at": end, **facts}]


@pytest.mark.parametrize("fault", ["lost", "doubled", "reordered", "wrong"])
def test_any_fault_spoils_a_run(fault: str):
    assert Verdict().good
    assert not Verdict(**{fault: ["something"]}).good


@pytest.mark.parametrize(("code", "good"), [(0, True), (None, True), (1, False), (-9, False), (-11, False)])
def test_a_node_that_does_not_end_in_order_spoils_a_run(code: int | None, good: bool):
    verdict = Verdict()
    verdict.judge_ends({"node0": 0, "node1": code})
    assert verdict.good is good


def test_two_turns_of_a_lane_that_overlap_and_both_stand_are_wrong():
    effects = [*turn(1, 0.0, 5.0), *turn(2, 4.0, 6.0, node="b")]
    assert len(overlapping_commits(effects, {("lane0", 1), ("lane0", 2)})) == 1


def test_an_overlap_with_a_turn_that_was_fenced_off_is_allowed():
    effects = [*turn(1, 0.0, 5.0), *turn(2, 4.0, 6.0, node="b"), *turn(3, 6.5, 7.0)]
    assert overlapping_commits(effects, {("lane0", 2), ("lane0", 3)}) == []


def test_turns_that_follow_each_other_are_right():
    effects = [*turn(1, 0.0, 1.0), *turn(2, 1.0, 2.0), *turn(3, 3.0, None)]
    assert overlapping_commits(effects, {("lane0", 1), ("lane0", 2)}) == []


def test_what_stood_still_with_a_node_is_counted_until_it_is_begun_again():
    effects = [
        *turn(1, 0.0, 1.0, text="done"),
        *turn(2, 2.0, None, text="cut off"),
        *turn(3, 2.5, None, node="b", text="of another one"),
        *turn(4, 9.0, 9.5, node="b", text="cut off"),
        *turn(5, 11.0, 11.5, node="b", text="done"),
    ]
    assert seconds_to_takeover(effects, Absence(node="a", at=3.0, killed=False)) == [6.0]
