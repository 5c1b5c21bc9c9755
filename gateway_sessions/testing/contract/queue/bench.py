"""The fixtures of the queue contract, and short functions that enqueue, answer and read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from functools import partial
from typing import Any, ClassVar, Final, TypeAlias

import pytest
import pytest_asyncio

from gateway_sessions import (
    Accepted,
    BusyMode,
    BusyRules,
    InboundMessage,
    Receipt,
    Rejected,
    SessionSource,
    SessionStore,
    Turn,
    build_session_key,
)
from gateway_sessions.adapters import OutboundMessage, ReplyTarget
from gateway_sessions.queue import Owed, OwedReply
from gateway_sessions.testing.clock import FakeClock
from gateway_sessions.testing.inside import LocalLane, outbox, waiting

OpenStore: TypeAlias = Callable[..., SessionStore]
"""Makes a `SessionStore` that is not open yet, always on the same data; options are parts of its `Config`."""

ALICE: Final = SessionSource(platform="telegram", chat_id="1", user_id="alice")
BOB: Final = SessionSource(platform="telegram", chat_id="2", user_id="bob")
LANE: Final = build_session_key(ALICE)
OTHER_LANE: Final = build_session_key(BOB)
APART: Final = BusyRules(debounce=timedelta(0))
"""Gives each message a turn of its own, however close the messages come."""
COLLECTING: Final = BusyRules(mode=BusyMode.COLLECT)
BEGINS_HERE: Final = LocalLane(begins=lambda: True)
"""Lets a turn begin in the commit that accepts its message."""


class StoreContract:
    """Gives each test an open, empty store."""

    pytestmark: ClassVar[pytest.MarkDecorator] = pytest.mark.asyncio

    @pytest.fixture
    def clock(self) -> FakeClock:
        """Return the clock of the store, which stands still until the test advances it."""
        return FakeClock()

    @pytest.fixture
    def open_store(self) -> OpenStore:
        """Override this fixture: a factory of stores with `clock`, on data that is empty at first."""
        raise NotImplementedError

    @pytest_asyncio.fixture
    async def store(self, open_store: OpenStore) -> AsyncIterator[SessionStore]:
        """Open the store."""
        async with open_store() as opened:
            yield opened


def said(text: str = "hello", *, source: SessionSource = ALICE, **members: Any) -> InboundMessage:
    """Return a message whose id on its platform is its text, unless it has another one or none."""
    return InboundMessage(source=source, text=text, message_id=members.pop("message_id", text), **members)


async def accept(store: SessionStore, *texts: str, **options: Any) -> Accepted:
    """Accept messages one after another; return the last receipt."""
    about = {name: options.pop(name) for name in ("source", "sent_at", "internal") if name in options}
    options.setdefault("rules", APART)
    receipt: Receipt | None = None
    for text in texts:
        receipt = await store.enqueue(said(text, **about), **options)
        assert isinstance(receipt, Accepted), receipt
    assert isinstance(receipt, Accepted)
    return receipt


async def refuse(store: SessionStore, message: InboundMessage, **options: Any) -> Rejected:
    """Expect that a message is refused."""
    receipt = await store.enqueue(message, **options)
    assert isinstance(receipt, Rejected), receipt
    return receipt


async def begin(store: SessionStore, session_key: str | None = LANE) -> Turn:
    """Claim the lane for its next turn."""
    turn = await store.claim(session_key)
    assert turn is not None, "nothing was ready"
    return turn


async def answer(store: SessionStore, text: str = "well", session_key: str = LANE) -> None:
    """Claim the lane for its next turn, and complete the turn."""
    async with await begin(store, session_key) as turn:
        await turn.commit([reply(text)])


async def fates(store: SessionStore, session_key: str = LANE) -> dict[str, int]:
    """Count what became of the accepted messages of a lane."""
    return await store.db.read(partial(waiting.count_outcomes, session_key))


async def talk_of(
    store: SessionStore, session_id: str, *, include_hidden: bool = False
) -> list[tuple[str, str]]:
    """Return the roles and texts of a session's messages."""
    stored = await store.db.get_messages(session_id, include_hidden=include_hidden)
    return [(one.role, one.text) for one in stored]


async def in_line(store: SessionStore, session_key: str = LANE) -> list[int]:
    """Return the places of the messages that wait, in the order of their turns."""
    listed = await store.list_queued(session_key)
    return [one.seq for one in listed if not one.running and one.merged_into is None]


async def replies(store: SessionStore, clock: FakeClock) -> list[OwedReply]:
    """Return the replies that are owed on Telegram and can be sent now."""
    return (await store.db.read(partial(outbox.due_replies, "telegram", "", clock.now(), 100))).replies


def owed(text: str, **members: Any) -> Owed:
    """Return a reply to Alice."""
    message = OutboundMessage(text=text, **members)
    return Owed(target=ReplyTarget.at(ALICE), message=message, owner="main:telegram:user:alice")


def reply(text: str) -> dict[str, Any]:
    """Return the message of a model."""
    return {"role": "assistant", "content": text}
