"""Schedules of several nodes: each time is run by one of them, whoever leads and whoever is gone."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import anyio
import pytest

from gateway_sessions import InboundMessage, SessionStore, TurnContext
from gateway_sessions.core.delivery.schedules import ScheduleState
from tests.integration.servers.nodes import (
    RunningNode,
    config_on,
    running_node,
    source_of,
    wait_until,
    wait_until_nodes_meet,
)

SOON = timedelta(seconds=1)
SEVERAL = 8


async def echo(turn: TurnContext) -> str:
    return turn.text


def said_by(*nodes: RunningNode) -> list[str]:
    return sorted(one.text for node in nodes for one in node.platform.sent)


async def add_everything(node: RunningNode, at: datetime) -> None:
    """Add schedules that say something, and schedules that begin turns; each node adds the same."""
    for number in range(SEVERAL):
        to = source_of(f"p{number}")
        await node.gateway.schedules.add(f"say {number}", at=at, to=to, say=f"said {number}")
        await node.gateway.schedules.add(f"turn {number}", at=at, to=to, prompt=f"asked {number}")


class ClusterSchedules:
    """A test class of an engine inherits this; its `address` is that of an empty database."""

    pytestmark = pytest.mark.timeout(90)

    async def test_each_time_is_run_by_one_node(self, address: str, tmp_path: Path):
        config = config_on(address)
        async with (
            running_node(tmp_path, config, "a", echo) as a,
            running_node(tmp_path, config, "b", echo) as b,
            running_node(tmp_path, config, "c", echo) as c,
        ):
            await wait_until_nodes_meet(a, b, c)
            at = a.store.clock.now() + SOON
            for node in (c, b, a):
                await add_everything(node, at)
            for node in (a, b, c):
                node.gateway.look_again()
            await wait_until(lambda: len(said_by(a, b, c)) >= 2 * SEVERAL)
            await anyio.sleep(0.5)  # a second run would come now
            expected = [f"{kind} {number}" for kind in ("asked", "said") for number in range(SEVERAL)]
            assert said_by(a, b, c) == expected
            listed = await b.gateway.schedules.list()
            assert {(one.state, one.runs) for one in listed} == {(ScheduleState.DONE, 1)}

    async def test_all_look_at_once_and_one_of_them_runs_it(self, address: str, tmp_path: Path):
        """Here no node leaves anything to the leading one."""
        config = config_on(address)
        async with (
            running_node(tmp_path, config, "a", echo) as a,
            running_node(tmp_path, config, "b", echo) as b,
        ):
            await wait_until_nodes_meet(a, b)
            at = a.store.clock.now() - timedelta(minutes=1)
            for number in range(SEVERAL):
                to = source_of(f"p{number}")
                await a.gateway.schedules.add(f"x{number}", at=at, to=to, say=f"{number}")
            async with anyio.create_task_group() as tasks:
                for node in (a, b):
                    tasks.start_soon(node.gateway.schedules.sweep)
            await wait_until(lambda: len(said_by(a, b)) >= SEVERAL)
            await anyio.sleep(0.5)
            assert said_by(a, b) == [str(number) for number in range(SEVERAL)]

    async def test_a_leading_node_without_a_gateway_holds_nothing_up(self, address: str, tmp_path: Path):
        config = config_on(address)
        alone = replace(config, cluster=replace(config.cluster, name="store"))
        async with (
            SessionStore.open(tmp_path / "store", alone) as store,
            running_node(tmp_path, config, "b", echo) as b,
        ):
            membership = store.db.ownership.membership
            assert membership is not None
            await wait_until(lambda: membership.leads and not b.membership.leads)
            await b.gateway.say(source_of("ann"), "hello", when=store.clock.now() + SOON)
            await wait_until(lambda: said_by(b) == ["hello"])

    async def test_what_was_said_under_a_key_on_one_node_is_not_said_by_another(
        self, address: str, tmp_path: Path
    ):
        config = config_on(address)
        async with (
            running_node(tmp_path, config, "a", echo) as a,
            running_node(tmp_path, config, "b", echo) as b,
        ):
            receipts = []

            async def say(node: RunningNode) -> None:
                receipts.append(await node.gateway.say(source_of("ann"), "hi", idempotency_key="k"))

            async with anyio.create_task_group() as tasks:
                for node in (a, b, a, b):
                    tasks.start_soon(say, node)
            assert sorted(one.duplicate for one in receipts) == [False, True, True, True]
            await wait_until(lambda: said_by(a, b) == ["hi"])

    async def test_an_answer_that_another_node_gives_is_heard(self, address: str, tmp_path: Path):
        config = config_on(address, replace(config_on(address).cluster, sticky=timedelta(seconds=30)))
        async with (
            running_node(tmp_path, config, "a", echo) as a,
            running_node(tmp_path, config, "b", echo) as b,
        ):
            await wait_until_nodes_meet(a, b)
            asked = InboundMessage(source=source_of(b.person_of_its_own()), text="and?")
            answer = await a.gateway.ask(asked, timeout=timedelta(seconds=40))
            assert answer.text == "and?"
