"""Replies that one node owes and another one sends."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from gateway_sessions.errors import AdapterUnavailableError
from gateway_sessions.runtime.turn_context import TurnContext
from gateway_sessions.testing.fake_platform import FakePlatform
from tests.integration.nodes import config_on, know_each_other, node, until


async def growing(turn: TurnContext) -> str:
    await turn.show("I think")
    return turn.text


def cannot_send(platform: FakePlatform, monkeypatch: pytest.MonkeyPatch) -> None:
    async def send(*_: object, **__: object) -> None:
        raise AdapterUnavailableError(platform.platform, "cannot be reached from here")

    monkeypatch.setattr(platform, "send", send)


class RepliesOnNodes:
    """A test class of an engine inherits this; its `address` is that of an empty database."""

    pytestmark = pytest.mark.timeout(90)

    async def test_answers_go_on_growing_after_another_node_has_sent_one(self, address: str, tmp_path: Path):
        """The node whose turn it was took that one to be owed for good, and showed nothing there any more."""
        config = config_on(address)
        async with (
            node(tmp_path, config, "a", growing) as a,
            node(tmp_path, config, "b", growing) as b,
        ):
            await know_each_other(a, b)
            person = b.person_of_its_own()
            with pytest.MonkeyPatch.context() as patched:
                cannot_send(b.platform, patched)
                await b.hears(person, "one")
                await until(lambda: a.platform.sent)
            for number in range(20):
                await b.hears(person, text := f"more {number}")
                await until(lambda: text in [one.text for one in (*a.platform.sent, *b.platform.sent)])
                if any(one.before for one in b.platform.sent):
                    break
                await anyio.sleep(0.2)
            assert any(one.before for one in b.platform.sent)
