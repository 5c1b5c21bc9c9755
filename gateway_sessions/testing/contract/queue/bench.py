"""The fixtures of the queue contract, and short functions that enqueue, answer and read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from functools import partial
from typing import Any, ClassVar, Final, TypeAlias

import pytest
import pytest_asyncio

from gateway_sessions import SessionSource, SessionStore, build_session_key
from gateway_sessions.core.delivery.outbound import OutboundMessage, ReplyTarget
from gateway_sessions.core.queue.busy_modes import BusyRules
from gateway_sessions.core.queue.inbound import InboundMessage
from gateway_sessions.core.queue.receipts import Accepted, Receipt, Rejected
from gateway_sessions.core.sessions.busy_mode import BusyMode
from gateway_sessions.runtime.queue.admission import LaneHere
from gateway_sessions.runtime.queue.turn import Turn
from gateway_sessions.storage.transactions.queue import outbox, waiting
from gateway_sessions.storage.transactions.queue.outbox import Owed, OwedReply
from gateway_sessions.testing.clock import FakeClock

OpenStore: TypeAlias = Callable[..., SessionStore]
"""Makes a `SessionStore` that is not open yet, always on the same data; options are parts of its `Config`."""

ALICE: Final = SessionSource(platform="telegram", chat_id="1", user_id="alice")
BOB: Final = SessionSource(platform="telegram", chat_id="2", user_id="bob")
LANE: Final = build_session_key(ALICE)
OTHER_LANE: Final = build_session_key(BOB)
APART: Final = BusyRules(debounce=timedelta(0))
"""Each message gets a turn of its own, however close they come."""
COLLECTING: Final = BusyRules(mode=BusyMode.COLLECT)
BEGINS_HERE: Final = LaneHere(begins=lambda: True)
"""A turn may begin in the commit that takes its message in."""


class StoreContract:
    """Gives each test an open store without anything in it."""

    pytestmark: ClassVar = pytest.mark.asyncio

    @pytest.fixture
    def clock(self) -> FakeClock:
        """The time that the store lives by; it stands still until the test moves it."""
        return FakeClock()

    @pytest.fixture
    def open_store(self) -> OpenStore:
        """Override it: a factory of stores that live by `clock`, on data that is empty at first."""
        raise NotImplementedError

    @pytest_asyncio.fixture
    async def store(self, open_store: OpenStore) -> AsyncIterator[SessionStore]:
        """The store, open."""
        async with open_store() as opened:
            yield opened


def said(text: str = "hello", *, source: SessionSource = ALICE, **members: Any) -> InboundMessage:
    """A message whose id on its platform is what it says, unless it has another one or none."""
    return InboundMessage(source=source, text=text, message_id=members.pop("message_id", text), **members)


async def accept(store: SessionStore, *texts: str, **options: Any) -> Accepted:
    """Let messages be taken in, one after another; what became of the last one."""
    about = {name: options.pop(name) for name in ("source", "sent_at", "internal") if name in options}
    options.setdefault("rules", APART)
    receipt: Receipt | None = None
    for text in texts:
        receipt = await store.enqueue(said(text, **about), **options)
        assert isinstance(receipt, Accepted), receipt
    assert isinstance(receipt, Accepted)
    return receipt


async def refuse(store: SessionStore, message: InboundMessage, **options: Any) -> Rejected:
    """Let a message be refused."""
    receipt = await store.enqueue(message, **options)
    assert isinstance(receipt, Rejected), receipt
    return receipt


async def begin(store: SessionStore, session_key: str | None = LANE) -> Turn:
    """The turn that a lane is ready for."""
    turn = await store.claim(session_key)
    assert turn is not None, "nothing was ready"
    return turn


async def answer(store: SessionStore, text: str = "well", session_key: str = LANE) -> None:
    """Complete the turn that a lane is ready for."""
    async with await begin(store, session_key) as turn:
        await turn.commit([reply(text)])


async def fates(store: SessionStore, session_key: str = LANE) -> dict[str, int]:
    """How often each thing became of what was accepted on a lane."""
    return await store.db.read(partial(waiting.outcomes, session_key))


async def talk_of(
    store: SessionStore, session_id: str, *, include_hidden: bool = False
) -> list[tuple[str, str]]:
    """Who said what in a session."""
    stored = await store.db.get_messages(session_id, include_hidden=include_hidden)
    return [(one.role, one.text) for one in stored]


async def in_line(store: SessionStore, session_key: str = LANE) -> list[int]:
    """The places of the messages whose turns wait, in the order of those turns."""
    listed = await store.list_queued(session_key)
    return [one.seq for one in listed if not one.running and one.merged_into is None]


async def replies(store: SessionStore, clock: FakeClock) -> list[OwedReply]:
    """What is owed on Telegram, as far as it can be sent now."""
    return (await store.db.read(partial(outbox.due, "telegram", "", clock.now(), 100))).replies


def owed(text: str, **members: Any) -> Owed:
    """A reply to Alice."""
    message = OutboundMessage(text=text, **members)
    return Owed(target=ReplyTarget.at(ALICE), message=message, owner="main:telegram:user:alice")


def reply(text: str) -> dict[str, Any]:
    """What a model says."""
    return {"role": "assistant", "content": text}
