"""Whenever the process is killed: what was acknowledged is there, and nothing is half done."""

from __future__ import annotations

import ast
from collections.abc import Sequence

import pytest

from gateway_sessions.testing.crash import FAILPOINTS
from tests.architecture.sources import dotted_name, modules
from tests.crash.conftest import Forge
from tests.crash.forge import Job, Mode, Outcome
from tests.crash.invariants import sampled
from tests.crash.workload import SCENARIOS

PASSES = 1
"""How many passes of each point are tried in a normal run."""
CALLS = 3
"""How many system calls, for each scenario and way of failing."""
TURNS = 3
"""How many turns of the event loop, for each scenario."""
WAYS = (Mode.KILL, Mode.TORN, Mode.EIO, Mode.FULL_ONCE, Mode.FULL_FROM)
SOAK_SECONDS = 2 * 3600

pytestmark = pytest.mark.timeout(120)  # many children, one after another


@pytest.fixture(scope="session")
def whole(forge: Forge) -> list[Outcome]:
    """Each scenario once, from its beginning to its end."""
    outcomes = forge.run([Job(number) for number in range(len(SCENARIOS))])
    check(outcomes)
    assert not any(outcome.died or outcome.failures for outcome in outcomes)
    return outcomes


def check(outcomes: Sequence[Outcome]) -> None:
    broken = [f"--- {outcome.job}\n{outcome.error}" for outcome in outcomes if outcome.error]
    assert not broken, f"{len(broken)} of {len(outcomes)}:\n" + "\n".join(broken[:5])


def at_points(whole: list[Outcome], most: int) -> list[Job]:
    return [
        Job(outcome.job.scenario, point=point, nth=nth)
        for outcome in whole
        for point, passes in sorted(outcome.passes.items())
        for nth in sampled(range(1, passes + 1), most)
    ]


def at_calls(whole: list[Outcome], most: int) -> list[Job]:
    return [
        Job(outcome.job.scenario, call=call, mode=way)
        for outcome in whole
        for shift, way in enumerate(WAYS)
        for call in sampled(range(1 + shift, outcome.calls + 1), most)
    ]


def at_turns(whole: list[Outcome], most: int) -> list[Job]:
    return [
        Job(outcome.job.scenario, turn=turn)
        for outcome in whole
        for turn in sampled(range(1, outcome.turns), most)
    ]


def test_every_failpoint_is_passed_by_some_scenario(whole: list[Outcome]):
    passed = {point for outcome in whole for point in outcome.passes}
    assert set(FAILPOINTS) - passed == set()


def test_every_failpoint_of_the_package_is_listed():
    names = [
        node.args[0].value
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and dotted_name(node.func) == "failpoint"
        if isinstance(node.args[0], ast.Constant)
    ]
    assert sorted(set(names)) == sorted(FAILPOINTS)


def test_a_kill_at_any_failpoint_loses_nothing_acknowledged(forge: Forge, whole: list[Outcome]):
    outcomes = forge.run(at_points(whole, PASSES))
    check(outcomes)
    assert {outcome.job.point for outcome in outcomes if outcome.died} == set(FAILPOINTS)


def test_a_kill_in_any_turn_of_the_event_loop_loses_nothing_acknowledged(forge: Forge, whole: list[Outcome]):
    outcomes = forge.run(at_turns(whole, TURNS))
    check(outcomes)
    assert any(outcome.died for outcome in outcomes)


@pytest.mark.usefixtures("faulty_system")
def test_a_failing_system_call_loses_nothing_acknowledged(forge: Forge, whole: list[Outcome]):
    outcomes = forge.run(at_calls(whole, CALLS))
    check(outcomes)
    assert any(outcome.died for outcome in outcomes)
    assert any(outcome.failures for outcome in outcomes)


@pytest.mark.soak
@pytest.mark.timeout(SOAK_SECONDS)
def test_a_kill_at_every_pass_of_every_failpoint_loses_nothing_acknowledged(
    forge: Forge, whole: list[Outcome]
):
    check(forge.run(at_points(whole, 1_000_000)))


@pytest.mark.soak
@pytest.mark.timeout(SOAK_SECONDS)
def test_a_kill_in_every_turn_of_the_event_loop_loses_nothing_acknowledged(
    forge: Forge, whole: list[Outcome]
):
    check(forge.run(at_turns(whole, 1_000_000)))


@pytest.mark.soak
@pytest.mark.timeout(SOAK_SECONDS)
@pytest.mark.usefixtures("faulty_system")
def test_each_system_call_can_fail_in_each_way_and_nothing_acknowledged_is_lost(
    forge: Forge, whole: list[Outcome]
):
    check(forge.run(at_calls(whole, 1_000_000)))
