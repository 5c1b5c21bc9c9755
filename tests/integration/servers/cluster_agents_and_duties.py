"""What one node has for itself among many: agents that are warm, and duties that only one may have."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from gateway_sessions import Config, SessionEntry
from gateway_sessions.config import ExpiryWatcherConfig
from gateway_sessions.core.queue.inbound import Accepted, InboundMessage, MessageKind
from gateway_sessions.runtime.agents.turn_context import TurnContext
from gateway_sessions.runtime.duties.expiry import ExpiryWatcher, Pruner, Sweep
from gateway_sessions.testing.agents import Gate
from tests.integration.servers.cluster_turns import stop_heartbeat
from tests.integration.servers.nodes import (
    BRISK,
    config_on,
    running_node,
    source_of,
    wait_until,
    wait_until_nodes_meet,
)

OFTEN = ExpiryWatcherConfig(
    first_pass=timedelta(0), interval=timedelta(seconds=0.05), prune_interval=timedelta(seconds=0.05)
)
A_FEW = 5


class RememberingAgent:
    """An agent that knows what it was made from, and what it was asked since."""

    def __init__(self, _entry: SessionEntry, history: list[Any], gate: Gate | None = None) -> None:
        self.knew = [row["content"] for row in history]
        self.heard: list[str] = []
        self.gate = gate

    async def run_turn(self, turn: TurnContext) -> str:
        self.heard.append(turn.text)
        if self.gate is not None:
            await self.gate.passage()
        return f"{len(self.heard)} heard {turn.text}"


class WarmAgents:
    """A test class of an engine inherits this; its `address` is that of an empty database."""

    pytestmark = pytest.mark.timeout(90)

    async def test_a_warm_agent_is_made_anew_when_another_node_has_written(
        self, address: str, tmp_path: Path
    ):
        made: list[RememberingAgent] = []

        def make(entry: SessionEntry, history: list[Any]) -> RememberingAgent:
            made.append(RememberingAgent(entry, history))
            return made[-1]

        config = config_on(address, replace(BRISK, sticky=timedelta(seconds=30)))  # nobody helps out
        async with (
            running_node(tmp_path, config, "a", None, agent_factory=make) as a,
            running_node(tmp_path, config, "b", None, agent_factory=make) as b,
        ):
            await wait_until_nodes_meet(a, b)
            person = a.person_of_its_own()

            async def asked(text: str) -> None:
                await a.receive_message(person, text)
                # An answer that waits for the one before it may be sent by any node.
                await wait_until(
                    lambda: any(
                        one.message.text.endswith(text) for one in (*a.platform.sent, *b.platform.sent)
                    )
                )
                await a.gateway.settled()

            await asked("first")
            await asked("second")
            assert [one.heard for one in made] == [["first", "second"]], "it was warm, and nobody had written"
            session_id = await b.store.peek_session_id(b.key(person))
            assert session_id is not None
            await b.store.append_to_transcript(session_id, {"role": "user", "content": "from elsewhere"})
            await asked("third")
        assert [one.heard for one in made] == [["first", "second"], ["third"]]
        assert any("from elsewhere" in str(known) for known in made[1].knew)

    @pytest.mark.parametrize("kind", [MessageKind.EDIT, MessageKind.DELETE])
    @pytest.mark.parametrize("running", [False, True])
    async def test_a_warm_agent_is_made_anew_after_an_edit_or_a_deletion_on_another_node(
        self, address: str, tmp_path: Path, kind: MessageKind, *, running: bool
    ):
        made: list[RememberingAgent] = []
        gate = Gate()

        def make(entry: SessionEntry, history: list[Any]) -> RememberingAgent:
            made.append(RememberingAgent(entry, history, None if made else gate))
            return made[-1]

        config = config_on(address, replace(BRISK, sticky=timedelta(seconds=30)))  # nobody helps out
        async with (
            running_node(tmp_path, config, "a", None, agent_factory=make) as a,
            running_node(tmp_path, config, "b", None, agent_factory=make) as b,
        ):
            await wait_until_nodes_meet(a, b)
            person = a.person_of_its_own()
            change = InboundMessage(
                source=source_of(person), text="never mind", message_id="my secret", kind=kind, revision=1
            )
            await a.receive_message(person, "my secret")
            if running:
                await gate.reached()
                assert isinstance(await b.gateway.submit(change), Accepted)
            gate.open()
            await wait_until(lambda: a.platform.sent or b.platform.sent)
            await a.gateway.settled()
            if not running:
                assert isinstance(await b.gateway.submit(change), Accepted)
            await a.receive_message(person, "what did I say?")
            await wait_until(lambda: made[-1].heard[-1:] == ["what did I say?"])
            await a.gateway.settled()
        assert [one.heard for one in made] == [["my secret"], ["what did I say?"]]
        assert not any("my secret" in str(known) for known in made[1].knew if known != "1 heard my secret")


class LeaderDuties:
    """The same."""

    pytestmark = pytest.mark.timeout(90)

    @pytest.fixture
    def config(self, address: str) -> Config:
        return config_on(address, expiry_watcher=OFTEN, session_store_max_age=timedelta(days=90))

    @pytest.fixture
    def passes(self, monkeypatch: pytest.MonkeyPatch) -> list[object]:
        """Whoever looked for what is due or old, one after another."""
        passes: list[object] = []

        def noting(sweep: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
            async def noted(duty: object, *arguments: object) -> Sweep | int:
                passes.append(duty)
                return await sweep(duty, *arguments)

            return noted

        for duty in (ExpiryWatcher, Pruner):
            monkeypatch.setattr(duty, "sweep", noting(duty.sweep))
        return passes

    async def test_one_node_ends_and_prunes_and_the_next_one_goes_on_when_it_is_gone(
        self, tmp_path: Path, config: Config, passes: list[object], monkeypatch: pytest.MonkeyPatch
    ):
        async with (
            running_node(tmp_path, config, "a", None, agent_factory=RememberingAgent) as a,
            running_node(tmp_path, config, "b", None, agent_factory=RememberingAgent) as b,
        ):
            await wait_until_nodes_meet(a, b)
            of_a, of_b = (duties_of(one) for one in (a, b))

            def count(duties: list[object]) -> list[int]:
                return [sum(one is duty for one in passes) for duty in duties]

            await wait_until(lambda: min(count(of_a)) >= A_FEW)
            assert count(of_b) == [0, 0]
            beat = a.membership.send_heartbeat_or_rejoin
            stop_heartbeat(a.membership, monkeypatch)  # as somebody who was killed
            await wait_until(lambda: min(count(of_b)) >= A_FEW)
            assert b.membership.leads
            monkeypatch.setattr(a.membership, "send_heartbeat_or_rejoin", beat)
            await wait_until(lambda: a.membership.trusted)
            done = count(of_b)
            await wait_until(lambda: min(count(of_b)) >= max(done) + A_FEW)
            # Before they end: a leads again as soon as b is gone.
            first_of_b = min(passes.index(duty) for duty in of_b)
            assert not any(one is duty for one in passes[first_of_b:] for duty in of_a), (
                "two at the same time"
            )


def duties_of(one: Any) -> list[object]:
    return [one.store._parts.watcher, one.store._parts.pruner]  # noqa: SLF001 -- nobody else needs to know
