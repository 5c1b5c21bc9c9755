"""Many nodes have one database open: each lane has one turn at a time, wherever it runs."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest

from gateway_sessions import Config, SessionDB, SessionFinalized
from gateway_sessions.config import SessionsJsonConfig, SnapshotMode
from gateway_sessions.core.queue.inbound import Accepted, Disposition, Duplicate
from gateway_sessions.core.sessions.busy_mode import BusyMode
from gateway_sessions.errors import NodeSilentError, StorageUnavailableError, StoreBusyError
from gateway_sessions.runtime.agents.turn_context import TurnContext
from gateway_sessions.runtime.gateway import turn_signals
from gateway_sessions.runtime.queue.queue_operations import QueueOperations
from gateway_sessions.storage.engines.membership import Membership
from gateway_sessions.storage.engines.server.executor import BegunTransaction, TransactionRun
from gateway_sessions.storage.tables import nodes
from gateway_sessions.testing.agents import Gate
from tests.integration.servers.nodes import (
    BRISK,
    RunningNode,
    config_on,
    running_node,
    source_of,
    wait_until,
    wait_until_nodes_meet,
)


class LoggingAgent:
    """An agent that notes what it began and ended, in one list for all nodes."""

    def __init__(self, name: str, log: list[tuple[str, str, str]], gate: Gate | None = None) -> None:
        self.name = name
        self.log = log
        self.gate = gate
        self.heard: list[str] = []

    async def run_turn(self, turn: TurnContext) -> str:
        self.log.append((self.name, "begin", turn.text))
        if self.gate is not None:
            await self.gate.passage()
        await asyncio.sleep(0.005)
        self.log.append((self.name, "end", turn.text))
        return f"{self.name} heard {turn.text}"

    async def steer(self, message: object) -> bool:
        self.heard.append(message.text)  # type: ignore[attr-defined]
        return True


def answers_of(*nodes: RunningNode) -> list[str]:
    """What the agents said that people have seen, on whichever node."""
    return [sent.text for one in nodes for sent in one.platform.sent if not sent.message.is_notice]


def stop_heartbeat(membership: Membership, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a node say nothing any more, as if its network were gone."""

    async def nothing(_: object) -> bool:
        return False

    monkeypatch.setattr(membership, "send_heartbeat_or_rejoin", nothing)


class ClusterTurns:
    """A test class of an engine inherits this; its `address` is that of an empty database."""

    pytestmark = pytest.mark.timeout(90)
    calls: ClassVar[bool]
    """Whether nodes can call each other there."""

    @pytest.fixture
    def config(self, address: str) -> Config:
        return config_on(address)

    @pytest.fixture
    def log(self) -> list[tuple[str, str, str]]:
        return []

    @pytest.fixture
    async def stack(self) -> AsyncIterator[AsyncExitStack]:
        async with AsyncExitStack() as stack:
            yield stack

    async def test_each_opening_is_a_node_of_its_own(self, address: str, tmp_path: Path):
        async with SessionDB.open(address, home=tmp_path / "a", cluster=BRISK) as a:
            async with SessionDB.open(address, home=tmp_path / "b", cluster=BRISK) as b:
                one, other = a.ownership.membership, b.ownership.membership
                assert one is not None
                assert other is not None
                await wait_until(lambda: [node.epoch for node in one.nodes] == [1, 2])
                assert (one.leads, other.leads) == (True, False)
                with pytest.raises(StoreBusyError):
                    await SessionDB.open(address, home=tmp_path / "b").__aenter__()
                ids = [next(db.ownership.change_ids) for db in (a, b) for _ in range(50)]
                assert len(set(ids)) == len(ids)
            await wait_until(lambda: [node.epoch for node in one.nodes] == [1])

    async def test_rows_get_ids_of_their_own_whichever_node_makes_them(self, address: str, tmp_path: Path):
        async with (
            SessionDB.open(address, home=tmp_path / "a", cluster=BRISK) as a,
            SessionDB.open(address, home=tmp_path / "b", cluster=BRISK) as b,
        ):
            await a.create_session("s", "cli")
            for number in range(20):
                await (a if number % 2 else b).append_message("s", "user", str(number))
            rows = await a.get_messages("s")
            assert [one.text for one in rows] == [str(number) for number in range(20)]
            assert len({one.message_id for one in rows}) == 20

    async def test_one_message_that_reaches_several_nodes_gets_one_turn(
        self, tmp_path: Path, config: Config, log: list, stack: AsyncExitStack
    ):
        patient = replace(config, cluster=replace(config.cluster, sticky=timedelta(seconds=5)))
        nodes = [
            await stack.enter_async_context(running_node(tmp_path, patient, name, LoggingAgent(name, log)))
            for name in "abc"
        ]
        await wait_until_nodes_meet(*nodes)
        people = [f"p{number}" for number in range(12)]
        receipts = await asyncio.gather(
            *(
                nodes[(first + one) % 3].receive_message(person, f"{person} {number}")
                for number in range(3)
                for first, person in enumerate(people)
                for one in range(3)
            )
        )
        kinds = Counter(type(receipt) for receipt in receipts)
        assert kinds == {Accepted: 36, Duplicate: 72}
        await wait_until(lambda: len([1 for one in log if one[1] == "end"]) == 36)
        await asyncio.gather(*(one.gateway.settled() for one in nodes))
        assert Counter(text for _, what, text in log if what == "begin") == {
            f"{person} {number}": 1 for number in range(3) for person in people
        }
        if self.calls:  # else turns begin where each message happened to be taken in
            assert len({name for name, *_ in log}) == 3, "not all of them work"
        for person in people:
            said = await nodes[0].said(person)
            assert len(said) == 6
        await wait_until(lambda: len(answers_of(*nodes)) == 36)
        assert set(Counter(answers_of(*nodes)).values()) == {1}

    async def test_a_turn_begins_where_its_lane_belongs_if_that_node_can_be_called(
        self, tmp_path: Path, address: str, log: list, stack: AsyncExitStack
    ):
        patient = replace(BRISK, sticky=timedelta(seconds=30), poll=timedelta(seconds=30))
        config = config_on(address, patient)
        a = await stack.enter_async_context(running_node(tmp_path, config, "a", LoggingAgent("a", log)))
        b = await stack.enter_async_context(running_node(tmp_path, config, "b", LoggingAgent("b", log)))
        await wait_until_nodes_meet(a, b)
        assert a.store.db.ownership.shared is not None
        assert a.store.db.ownership.shared.notifies_at_once is self.calls
        await b.receive_message(a.person_of_its_own(), "first")
        await wait_until(lambda: ("a" if self.calls else "b", "end", "first") in log, seconds=10)

    async def test_an_interruption_reaches_the_turn_on_another_node(
        self, tmp_path: Path, address: str, log: list, stack: AsyncExitStack
    ):
        config, gate = config_on(address, mode=BusyMode.INTERRUPT), Gate()
        a = await stack.enter_async_context(running_node(tmp_path, config, "a", LoggingAgent("a", log, gate)))
        b = await stack.enter_async_context(running_node(tmp_path, config, "b", LoggingAgent("b", log)))
        await wait_until_nodes_meet(a, b)
        person = a.person_of_its_own()
        await a.receive_message(person, "first")
        await gate.reached()  # and it stays there: nothing but the interruption ends this turn
        receipt = await b.receive_message(person, "second")
        assert isinstance(receipt, Accepted)
        assert receipt.disposition is Disposition.INTERRUPTS
        await wait_until(lambda: ("b", "end", "second") in log or ("a", "begin", "second") in log)
        assert ("a", "end", "first") not in log

    async def test_what_is_said_into_a_turn_reaches_it_on_another_node(
        self, tmp_path: Path, address: str, log: list, stack: AsyncExitStack
    ):
        config, gate = config_on(address, mode=BusyMode.STEER), Gate()
        agent = LoggingAgent("a", log, gate)
        a = await stack.enter_async_context(running_node(tmp_path, config, "a", agent))
        b = await stack.enter_async_context(running_node(tmp_path, config, "b", LoggingAgent("b", log)))
        await wait_until_nodes_meet(a, b)
        person = a.person_of_its_own()
        await a.receive_message(person, "first")
        await gate.reached()
        receipt = await b.receive_message(person, "also this")
        assert receipt.disposition is Disposition.STEERS
        await wait_until(lambda: agent.heard == ["also this"])
        gate.open()
        await wait_until(lambda: ("a", "end", "first") in log)
        await asyncio.gather(a.gateway.settled(), b.gateway.settled())
        assert [text for _, what, text in log if what == "begin"] == ["first"]
        assert (await b.said(person))[0] == "first\n\nalso this"

    @pytest.mark.parametrize("command", ["/stop", "/new"])
    async def test_a_command_on_one_node_ends_the_turn_on_another(
        self, tmp_path: Path, config: Config, log: list, stack: AsyncExitStack, command: str
    ):
        gate = Gate()
        a = await stack.enter_async_context(running_node(tmp_path, config, "a", LoggingAgent("a", log, gate)))
        b = await stack.enter_async_context(running_node(tmp_path, config, "b", LoggingAgent("b", log)))
        await wait_until_nodes_meet(a, b)
        person = a.person_of_its_own()
        await a.receive_message(person, "first")
        await gate.reached()
        await b.receive_message(person, command)
        await wait_until(lambda: a.gateway.running_turn(a.key(person)) is None, seconds=3)
        gate.open()
        assert ("a", "end", "first") not in log

    async def test_a_node_that_ends_hands_its_lanes_back_at_once(
        self, tmp_path: Path, config: Config, log: list, stack: AsyncExitStack
    ):
        b = await stack.enter_async_context(running_node(tmp_path, config, "b", LoggingAgent("b", log)))
        gate = Gate()
        async with running_node(tmp_path, config, "a", LoggingAgent("a", log, gate)) as a:
            await wait_until_nodes_meet(a, b)
            person = a.person_of_its_own()
            await a.receive_message(person, "first")
            await gate.reached()
            await a.gateway.drain(timedelta(0))
        await wait_until(lambda: ("b", "end", "first") in log, seconds=5)
        await wait_until(lambda: len(b.membership.nodes) == 1, seconds=2)

    async def test_a_node_that_cannot_be_heard_stops_and_another_goes_on(
        self,
        tmp_path: Path,
        config: Config,
        log: list,
        stack: AsyncExitStack,
        monkeypatch: pytest.MonkeyPatch,
    ):
        gate = Gate()
        a = await stack.enter_async_context(running_node(tmp_path, config, "a", LoggingAgent("a", log, gate)))
        b = await stack.enter_async_context(running_node(tmp_path, config, "b", LoggingAgent("b", log)))
        await wait_until_nodes_meet(a, b)
        person = a.person_of_its_own()
        await a.receive_message(person, "first")
        await gate.reached()
        was = a.membership.epoch
        beat = a.membership.send_heartbeat_or_rejoin
        stop_heartbeat(a.membership, monkeypatch)
        await wait_until(lambda: not a.membership.trusted)
        await wait_until(lambda: a.gateway.running_turn(a.key(person)) is None)  # before anybody else has it
        with pytest.raises(NodeSilentError, match="lives"):
            await a.store.db.create_session("late", "cli")
        await wait_until(lambda: ("b", "end", "first") in log)
        await wait_until(lambda: b.membership.leads)
        monkeypatch.setattr(a.membership, "send_heartbeat_or_rejoin", beat)
        await wait_until(lambda: a.membership.trusted)
        assert a.membership.epoch > was
        await a.store.db.create_session("again", "cli")
        assert ("a", "end", "first") not in log

    async def test_who_was_declared_dead_writes_nothing_even_if_it_trusts_itself(
        self, tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
    ):
        """As after a long pause of the whole machine, with a clock that stood still meanwhile."""
        async with (
            SessionDB.open(address, home=tmp_path / "a", cluster=BRISK) as a,
            SessionDB.open(address, home=tmp_path / "b", cluster=BRISK) as b,
        ):
            assert a.ownership.membership is not None
            stop_heartbeat(a.ownership.membership, monkeypatch)
            monkeypatch.setattr(Membership, "trusted", True)
            await asyncio.sleep(BRISK.ttl.total_seconds() + 0.2)
            await b.write(b.ownership.living_nodes)
            with pytest.raises(NodeSilentError, match="others have its turns"):
                await a.create_session("s", "cli")
            assert await b.get_session("s") is None

    async def test_who_stops_while_it_says_that_it_lives_is_declared_dead_all_the_same(
        self, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        """As when its machine is gone, and no network tells the server: its row is locked meanwhile."""
        drive, stops = TransactionRun.drive, "stops"

        async def stopping(run: TransactionRun, begun: BegunTransaction[Any]) -> object:
            done = await drive(run, begun)
            task = asyncio.current_task()
            if task is not None and task.get_name() == stops:
                await asyncio.Event().wait()
            return done

        monkeypatch.setattr(TransactionRun, "drive", stopping)
        async with (
            SessionDB.open(address, home=tmp_path / "a", cluster=BRISK) as a,
            SessionDB.open(address, home=tmp_path / "b", cluster=BRISK) as b,
        ):
            assert a.ownership.membership is not None
            assert a.ownership.shared is not None
            stop_heartbeat(a.ownership.membership, monkeypatch)
            living = a.ownership.shared.run_heartbeat(
                partial(nodes.record_heartbeat, a.ownership.epoch, BRISK.ttl)
            )
            with_text = asyncio.create_task(living, name=stops)
            async with asyncio.timeout(20):
                while a.ownership.epoch in [one.epoch for one in await b.read(nodes.all_nodes)]:
                    with suppress(StorageUnavailableError):
                        await b.write(b.ownership.living_nodes)
                    await asyncio.sleep(0.2)
            with_text.cancel()

    async def test_what_runs_on_lanes_of_living_nodes_is_left_alone_by_who_starts(
        self, tmp_path: Path, config: Config, log: list, stack: AsyncExitStack
    ):
        gate = Gate()
        a = await stack.enter_async_context(running_node(tmp_path, config, "a", LoggingAgent("a", log, gate)))
        await a.receive_message("ann", "first")
        await gate.reached()
        b: RunningNode = await stack.enter_async_context(
            running_node(tmp_path, config, "b", LoggingAgent("b", log))
        )
        assert (b.store.started.resumed, b.store.started.doubted) == ((), 0)
        await asyncio.sleep(1)
        gate.open()
        await wait_until(lambda: ("a", "end", "first") in log)
        await wait_until(lambda: answers_of(a, b) == ["a heard first"])
        assert [one for one in log if one[1] == "begin"] == [("a", "begin", "first")]

    async def test_sessions_json_of_the_oldest_node_follows_the_others(
        self, tmp_path: Path, config: Config, log: list, stack: AsyncExitStack
    ):
        shown = replace(
            config,
            sessions_json=SessionsJsonConfig(mode=SnapshotMode.COALESCED, interval=timedelta(seconds=0.1)),
        )
        a = await stack.enter_async_context(running_node(tmp_path, shown, "a", LoggingAgent("a", log)))
        b = await stack.enter_async_context(running_node(tmp_path, config, "b", LoggingAgent("b", log)))
        await wait_until_nodes_meet(a, b)
        entry = await b.store.get_or_create_session(source_of("ann"))
        file = a.store.home / "sessions.json"
        await wait_until(lambda: file.exists() and entry.session_id in file.read_text())

    async def test_hooks_are_called_once_by_the_oldest_node(
        self, tmp_path: Path, config: Config, log: list, stack: AsyncExitStack
    ):
        called: list[str] = []

        def hook_of(name: str) -> Callable[[SessionFinalized], Awaitable[None]]:
            async def hook(event: SessionFinalized) -> None:
                called.append(f"{name} {event.session_id}")

            return hook

        nodes = [
            await stack.enter_async_context(
                running_node(tmp_path, config, name, LoggingAgent(name, log), hooks={"seen": hook_of(name)})
            )
            for name in "ab"
        ]
        await wait_until_nodes_meet(*nodes)
        entry = await nodes[1].store.get_or_create_session(source_of("ann"))
        await nodes[1].store.reset_session(entry.session_key)
        await wait_until(lambda: called)
        await asyncio.sleep(0.5)
        assert called == [f"a {entry.session_id}"]

    async def test_a_turn_that_began_unheard_is_taken_back(
        self,
        tmp_path: Path,
        config: Config,
        log: list,
        stack: AsyncExitStack,
        monkeypatch: pytest.MonkeyPatch,
    ):
        """As when the connection is lost after the commit that begins it was sent."""
        monkeypatch.setattr(turn_signals, "UNHEARD_SECONDS", 1.0)
        a = await stack.enter_async_context(running_node(tmp_path, config, "a", LoggingAgent("a", log)))
        begun, heard = QueueOperations._make_turn, [False]  # noqa: SLF001 -- where the answer is lost

        def lost(ledger: QueueOperations, claimed: object) -> object:
            if not heard[0]:
                heard[0] = True
                raise StorageUnavailableError("the database", "the connection was lost during the commit")
            return begun(ledger, claimed)  # type: ignore[arg-type]

        monkeypatch.setattr(QueueOperations, "_make_turn", lost)
        with pytest.raises(StorageUnavailableError):
            await a.receive_message("ann", "first")
        assert isinstance(await a.receive_message("ann", "first"), Duplicate)
        await wait_until(lambda: ("a", "end", "first") in log)
        await wait_until(lambda: answers_of(a) == ["a heard first"])
