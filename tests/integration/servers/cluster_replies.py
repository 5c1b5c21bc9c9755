"""Replies that one node owes and another one sends."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import anyio
import pytest

from gateway_sessions.errors import AdapterUnavailableError
from gateway_sessions.runtime.agents.turn_context import TurnContext
from gateway_sessions.storage.engines.membership import Membership
from gateway_sessions.testing.agents import Gate, ScriptedAgent, answers, shows, waits_at
from gateway_sessions.testing.fake_platform import FakePlatform
from tests.integration.servers.nodes import config_on, running_node, wait_until, wait_until_nodes_meet

MANY = 24


async def growing(turn: TurnContext) -> str:
    await turn.show("I think")
    return turn.text


def cannot_send(platform: FakePlatform, monkeypatch: pytest.MonkeyPatch) -> None:
    async def send(*_: object, **__: object) -> None:
        raise AdapterUnavailableError(platform.platform, "cannot be reached from here")

    monkeypatch.setattr(platform, "send", send)


class ClusterReplies:
    """A test class of an engine inherits this; its `address` is that of an empty database."""

    pytestmark = pytest.mark.timeout(90)

    async def test_answers_go_on_growing_after_another_node_has_sent_one(self, address: str, tmp_path: Path):
        """The node whose turn it was took that one to be owed for good, and showed nothing there any more."""
        config = config_on(address)
        async with (
            running_node(tmp_path, config, "a", growing) as a,
            running_node(tmp_path, config, "b", growing) as b,
        ):
            await wait_until_nodes_meet(a, b)
            with pytest.MonkeyPatch.context() as patched:
                cannot_send(b.platform, patched)
                # Both look when a reply is due again, and its own node is mostly first: one of many will do.
                for person in b.persons_of_its_own(MANY):
                    await b.receive_message(person, f"one of {person}")
                await wait_until(lambda: a.platform.sent)
            person = a.platform.sent[0].target.chat_id
            for number in range(20):
                await b.receive_message(person, text := f"more {number}")
                await wait_until(lambda: text in [one.text for one in (*a.platform.sent, *b.platform.sent)])
                if any(one.before for one in b.platform.sent):
                    break
                await anyio.sleep(0.2)
            assert any(one.before for one in b.platform.sent)

    async def test_another_node_goes_on_in_the_message_that_was_growing(self, address: str, tmp_path: Path):
        config, gate = config_on(address), Gate()
        async with running_node(tmp_path, config, "b", ScriptedAgent("I think so.")) as b:
            async with running_node(
                tmp_path, config, "a", ScriptedAgent([shows("I think"), waits_at(gate)])
            ) as a:
                await wait_until_nodes_meet(a, b)
                b.platform.sent = a.platform.sent  # it is the same platform to people
                person = a.person_of_its_own()
                await a.receive_message(person, "one")
                await gate.reached()
                assert b.platform.shown(person) == ["I think"]
                await a.gateway.drain(timedelta(0))
            await wait_until(lambda: b.platform.shown(person) == ["I think so."])

    async def test_a_node_that_others_may_have_declared_dead_shows_nothing(
        self, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        """Another one may have taken the turn over and answered it in the same message."""
        gate, end = Gate(), Gate()
        steps = [shows("I think"), waits_at(gate), shows("I think so"), waits_at(end), answers("I do.")]
        agent = ScriptedAgent(steps)
        async with running_node(tmp_path, config_on(address), "a", agent) as a:
            await a.receive_message("ann", "one")
            await gate.reached()
            with monkeypatch.context() as patched:
                patched.setattr(Membership, "trusted", False)
                gate.open()
                await end.reached()
            end.open()
            await wait_until(lambda: a.platform.shown("ann") == ["I do."])
            assert [one.text for one in a.platform.sent[0].before] == ["I think"]
