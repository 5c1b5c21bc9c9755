"""Whenever the process is killed: what was acknowledged is there, and nothing is half done."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import product

import pytest

from gateway_sessions.testing.faults import FAILPOINTS
from tests.architecture.sources import dotted_name, modules
from tests.crash.kills.fork_server import Job, Outcome
from tests.crash.kills.fork_server_client import ForkServer
from tests.crash.kills.matrix import CALLS as SYSTEM_CALLS
from tests.crash.kills.matrix import jobs_of
from tests.crash.kills.store_workload import SCENARIOS
from tests.faulty_system import Mode

SCRIPTS = 1
"""In how many scripts each failpoint is tried in a normal run."""
CALLS = 1
"""How many system calls are tried in a normal run, for each scenario and way of failing."""
SELDOM = 8
"""A script that passes a point one time in so many is not relied on to pass it."""
TURNS = 2
"""How many turns of the event loop, for each scenario."""
GOLDEN = (5**0.5 - 1) / 2
"""Its multiples keep away from each other, modulo 1, as well as those of any number."""
WAYS = (Mode.KILL, Mode.TORN, Mode.EIO, Mode.FULL_ONCE, Mode.FULL_FROM)
SOAK_SECONDS = 2 * 3600

pytestmark = pytest.mark.timeout(120)  # many children, one after another


@pytest.fixture(scope="session")
def whole(fork_server: ForkServer) -> list[Outcome]:
    """Each scenario once, from its beginning to its end."""
    outcomes = fork_server.run([Job(number) for number in range(len(SCENARIOS))])
    check(outcomes)
    assert not any(outcome.died or outcome.failures for outcome in outcomes)
    return outcomes


def check(outcomes: Sequence[Outcome]) -> None:
    broken = [f"--- {outcome.job}\n{outcome.error}" for outcome in outcomes if outcome.error]
    assert not broken, f"{len(broken)} of {len(outcomes)}:\n" + "\n".join(broken[:5])


def at_some_points(whole: list[Outcome]) -> list[Job]:
    """Each point once in a few of the scripts that pass it; they and the modes of a script take turns.

    A script that passes a point far less often than others may not pass it at all when it runs again.
    """
    most = Counter[str]()
    for outcome in whole:
        most |= Counter(outcome.passes)
    passing: dict[str, dict[str, list[Outcome]]] = defaultdict(lambda: defaultdict(list))
    for outcome in whole:
        for point, passes in outcome.passes.items():
            if SELDOM * passes > most[point]:
                passing[point][SCENARIOS[outcome.job.scenario].script].append(outcome)
    jobs = []
    for number, (point, scripts) in enumerate(sorted(passing.items())):
        for script in (sorted(scripts) * 2)[number % len(scripts) :][: min(SCRIPTS, len(scripts))]:
            modes = scripts[script]
            one = modes[number % len(modes)]
            jobs.append(Job(one.job.scenario, point=point, nth=(one.passes[point] + 1) // 2))
    return jobs


def spread(last: int, count: int, number: int) -> list[int]:
    """*count* places from 1 to *last*, far from each other; elsewhere for each *number*."""
    return sorted({1 + int((step + number * GOLDEN % 1) * last / count) for step in range(count)})


def fails_like_this(outcome: Outcome, way: Mode) -> bool:
    """Whether a script is tried with calls that fail like this.

    A gateway waits for a disk that cannot be written, on a clock that stands still in scripts: it is killed.
    """
    return SCENARIOS[outcome.job.scenario].script != "talk" or way in {Mode.KILL, Mode.TORN}


def at_some_calls(whole: list[Outcome]) -> list[Job]:
    return [
        Job(outcome.job.scenario, call=call, mode=way)
        for number, (outcome, way) in enumerate(product(whole, WAYS))
        if fails_like_this(outcome, way)
        for call in spread(outcome.calls, CALLS, number)
    ]


def at_some_turns(whole: list[Outcome]) -> list[Job]:
    return [
        Job(outcome.job.scenario, turn=turn)
        for number, outcome in enumerate(whole)
        for turn in spread(outcome.turns - 1, TURNS, number)
    ]


def test_every_failpoint_is_passed_by_some_scenario(whole: list[Outcome]):
    passed = {point for outcome in whole for point in outcome.passes}
    assert set(FAILPOINTS) - passed == set()


def test_every_failpoint_of_the_package_is_listed():
    names = [
        node.args[0].value
        for module in modules()
        if "failpoint(" in module.text
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and dotted_name(node.func) == "failpoint"
        if isinstance(node.args[0], ast.Constant)
    ]
    assert sorted(set(names)) == sorted(FAILPOINTS)


def test_a_kill_at_any_failpoint_loses_nothing_acknowledged(fork_server: ForkServer, whole: list[Outcome]):
    outcomes = fork_server.run(at_some_points(whole))
    check(outcomes)
    assert {outcome.job.point for outcome in outcomes if outcome.died} == set(FAILPOINTS)


def test_the_matrix_kills_at_every_failpoint(whole: list[Outcome]):
    assert jobs_of(whole, every=1).keys() == {*FAILPOINTS, SYSTEM_CALLS}


def test_a_kill_in_any_turn_of_the_event_loop_loses_nothing_acknowledged(
    fork_server: ForkServer, whole: list[Outcome]
):
    outcomes = fork_server.run(at_some_turns(whole))
    check(outcomes)
    assert any(outcome.died for outcome in outcomes)


@pytest.mark.usefixtures("faulty_system")
def test_a_failing_system_call_loses_nothing_acknowledged(fork_server: ForkServer, whole: list[Outcome]):
    outcomes = fork_server.run(at_some_calls(whole))
    check(outcomes)
    assert any(outcome.died for outcome in outcomes)
    assert any(outcome.failures for outcome in outcomes)


@pytest.mark.soak
@pytest.mark.timeout(SOAK_SECONDS)
def test_a_kill_at_every_pass_of_every_failpoint_loses_nothing_acknowledged(
    fork_server: ForkServer, whole: list[Outcome]
):
    jobs = [
        Job(outcome.job.scenario, point=point, nth=nth)
        for outcome in whole
        for point, passes in outcome.passes.items()
        for nth in range(1, passes + 1)
    ]
    check(fork_server.run(jobs))


@pytest.mark.soak
@pytest.mark.timeout(SOAK_SECONDS)
def test_a_kill_in_every_turn_of_the_event_loop_loses_nothing_acknowledged(
    fork_server: ForkServer, whole: list[Outcome]
):
    jobs = [Job(outcome.job.scenario, turn=turn) for outcome in whole for turn in range(1, outcome.turns)]
    check(fork_server.run(jobs))


@pytest.mark.soak
@pytest.mark.timeout(SOAK_SECONDS)
@pytest.mark.usefixtures("faulty_system")
def test_each_system_call_can_fail_in_each_way_and_nothing_acknowledged_is_lost(
    fork_server: ForkServer, whole: list[Outcome]
):
    jobs = [
        Job(outcome.job.scenario, call=call, mode=way)
        for outcome, way in product(whole, WAYS)
        if fails_like_this(outcome, way)
        for call in range(1, outcome.calls + 1)
    ]
    check(fork_server.run(jobs))
