"""What the tests of agents share: a turn whose ports note what they are given."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gateway_sessions import Message, SessionEntry, SessionSource
from gateway_sessions.core.delivery.outbound_messages import Reply
from gateway_sessions.core.queue.inbound import InboundMessage
from gateway_sessions.core.sessions.agent_validity import AgentValidity
from gateway_sessions.core.transcript.model_history import Chat
from gateway_sessions.core.usage.usage_events import Usage
from gateway_sessions.ports import Clock
from gateway_sessions.runtime.agents.turn_context import TurnContext, TurnControl, TurnPorts
from gateway_sessions.testing import FakeClock

NOW = FakeClock().now()


def entry_of(key: str = "lane", session_id: str = "s1", **members: Any) -> SessionEntry:
    return SessionEntry(
        session_key=key,
        session_id=session_id,
        created_at=NOW,
        updated_at=NOW,
        last_interaction_at=NOW,
        **members,
    )


def message_saying(text: str = "hello", **members: Any) -> InboundMessage:
    source = SessionSource(platform="telegram", chat_id="1", user_id="alice")
    return InboundMessage(source=source, text=text, **members)


def agent_version(number: int = 0, *, session: str = "s1", config: str = "c") -> AgentValidity:
    return AgentValidity(session, (number,), config)


async def empty_history(limit: int | None = None) -> list[Chat]:
    """The history of a session in which nothing was said."""
    return []


async def wait_until(happened: Callable[[], object]) -> None:
    """Let other tasks go on until something has happened."""
    for _ in range(1000):
        if happened():
            return
        await asyncio.sleep(0)
    raise TimeoutError


@dataclass
class RecordedTurn:
    """All that an agent did in its turn."""

    rows: list[Message] = field(default_factory=list)
    said: list[Reply] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    used: list[Usage] = field(default_factory=list)

    async def append(self, rows):
        self.rows.extend(rows)

    async def say(self, reply):
        self.said.append(reply)

    async def show(self, partial, text_format):
        self.shown.append(partial)

    def ports(self) -> TurnPorts:
        return TurnPorts(
            append=self.append, say=self.say, read=empty_history, show=self.show, usage=self.used.append
        )


def make_turn_context(
    *messages: InboundMessage,
    noted: RecordedTurn | None = None,
    clock: Clock | None = None,
    entry: SessionEntry | None = None,
    ports: TurnPorts | None = None,
    **members: Any,
) -> TurnContext:
    return TurnContext(
        entry=entry or entry_of(),
        messages=messages or (message_saying(),),
        clock=clock or FakeClock(),
        control=TurnControl(ports or (noted or RecordedTurn()).ports()),
        **{"seq": 3, "token": 7, **members},
    )
