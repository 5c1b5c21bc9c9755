"""Forgetting a person whose messages wait: no byte of what they sent, or of what they are owed, is left."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from msgspec import structs

from gateway_sessions import (
    Accepted,
    Attachment,
    AttachmentKind,
    BusyRules,
    InboundMessage,
    SessionSource,
    SessionStore,
)
from gateway_sessions.core.delivery.outbound_messages import OutboundMessage, ReplyTarget
from gateway_sessions.core.queue.items import ItemKind
from gateway_sessions.errors import StorageUnavailableError
from gateway_sessions.queue import Owed
from gateway_sessions.storage.transactions.queue import outbox
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.faults import crash_at, raising
from gateway_sessions.testing.inside import queue_of
from tests.crash.kills.invariants import check_database
from tests.raw_sql import execute_sql
from tests.unit.runtime.store_fixtures import open_store, quick_config

WORD, USER, CHAT, NAME = "xyzzycanary", "4242424242", "9797979797", "Plugh Canary"
CANARIES = (WORD, USER, CHAT, NAME)
APART = BusyRules(debounce=timedelta(0))
DM = SessionSource(platform="telegram", chat_id=CHAT, user_id=USER, user_name=NAME)
ROOM = SessionSource(platform="telegram", chat_type="group", chat_id="room", user_id=USER, user_name=NAME)
BOB = SessionSource(platform="telegram", chat_type="group", chat_id="room", user_id="bob")


def traces(home: Path) -> dict[str, list[str]]:
    """The canaries in every byte of every file."""
    found: dict[str, list[str]] = {}
    for path in sorted(one for one in home.rglob("*") if one.is_file()):
        if hits := [one for one in CANARIES if one.encode() in path.read_bytes()]:
            found[path.name] = hits
    return found


async def say(store: SessionStore, source: SessionSource, text: str) -> str:
    message = InboundMessage(source=source, text=f"{text} {WORD}", message_id=f"{WORD} {text}")
    receipt = await store.enqueue(message, rules=APART)
    assert isinstance(receipt, Accepted)
    return receipt.session_key


async def answer(store: SessionStore, key: str) -> None:
    turn = await store.claim(key)
    assert turn is not None
    asked = turn.messages[0]
    target = ReplyTarget.answering(asked)
    owed = Owed(target=target, message=OutboundMessage(text=f"about {WORD}"), owner=turn.entry.owner)
    said = {"role": "assistant", "content": f"about {WORD}"}
    await turn.commit([said], replies=[structs.replace(owed, seq=turn.seq)] * 2)


async def plant(store: SessionStore, clock: FakeClock) -> tuple[str, str]:
    """Leave traces wherever a queue does; the lane and the room."""
    room = await say(store, ROOM, "to all")
    for _ in range(2):
        lane = await say(store, DM, f"turned {_}")
        await answer(store, lane)
    (first,) = [one for one in await owing(store, clock) if one.session_key == lane]
    await store.db.write(partial(outbox.mark_sent, [outbox.SentReply(first, WORD, clock.now())]))
    (second,) = [one for one in await owing(store, clock) if one.session_key == lane]
    await store.db.write(partial(outbox.give_up_reply, second, clock.now(), f"not {WORD}", unclear=0))
    await say(store, DM, "dead")
    turn = await store.claim(lane)
    assert turn is not None
    await turn.fail(f"{NAME} broke it")
    for text in ("waiting", "cancelled"):
        await say(store, DM, text)
    await store.cancel_queued(lane, 5)
    command = InboundMessage(source=DM, text=f"/title {WORD}", message_id=f"c{WORD}")
    await queue_of(store).record_arrival(command, ItemKind.COMMAND)
    await say(store, BOB, "from Bob".replace(WORD, ""))
    return lane, room


async def owing(store: SessionStore, clock: FakeClock) -> list[outbox.OwedReply]:
    return (await store.db.read(partial(outbox.due_replies, "telegram", "", clock.now(), 100))).replies


async def test_no_byte_of_what_an_erased_person_sent_or_is_owed_is_left(home: Path, fake_clock: FakeClock):
    config = quick_config(group_sessions_per_user=False)
    async with open_store(home, config, clock=fake_clock) as store:
        _, room = await plant(store, fake_clock)
        assert (await asyncio.to_thread(traces, home))["sessions.db-wal"] == list(CANARIES)
        # What Bob has said of the word stays, as it would in a room; here he takes it back.
        await store.cancel_queued(room, 2)
        await asyncio.to_thread(
            execute_sql, home / "sessions.db", "UPDATE inbox SET event = 'b' WHERE sender = 'bob'"
        )
        fake_clock.step(timedelta(minutes=1))
        receipt = await store.erase(DM)
        assert (receipt.rows["inbox"], receipt.rows["outbox"]) == (7, 4)
        assert await asyncio.to_thread(traces, home) == {}
        assert queue_of(store).total_waiting == await store.queue_depth(room) == 0
        left = await asyncio.to_thread(execute_sql, home / "sessions.db", "SELECT sender, outcome FROM inbox")
        assert left == [("bob", "cancelled")]
    assert await asyncio.to_thread(traces, home) == {}


async def shown_in(store: SessionStore, key: str) -> str:
    entry = await store.get_session(key)
    assert entry is not None
    told = await store.db.get_messages_as_conversation(entry.session_id)
    return json.dumps([told, [repr(one) for one in await store.db.get_messages(entry.session_id)]])


@pytest.mark.parametrize("piecemeal", [False, True], ids=["at_the_end", "while_it_runs"])
async def test_what_they_said_in_a_room_goes_and_what_others_said_stays(
    home: Path, fake_clock: FakeClock, piecemeal: bool
):
    async with open_store(
        home, quick_config(group_sessions_per_user=False), clock=fake_clock, titler=None
    ) as store:
        photo = Attachment(kind=AttachmentKind.PHOTO, url="file:///cat.png")
        theirs = InboundMessage(source=ROOM, text="look", message_id="a", attachments=(photo,))
        bobs = structs.replace(theirs, source=replace(BOB, user_name="Bob"), message_id="b")
        for message in (theirs, bobs):
            receipt = await store.enqueue(message, rules=APART)
            assert isinstance(receipt, Accepted)
            turn = await store.claim(receipt.session_key)
            assert turn is not None
            if piecemeal:
                await turn.append({"role": "assistant", "content": "let me see"})
            await turn.commit([{"role": "assistant", "content": "a cat"}])
        assert NAME in await shown_in(store, receipt.session_key)
        fake_clock.step(timedelta(minutes=1))
        report = await store.erase(DM)
        shown = await shown_in(store, receipt.session_key)
        assert NAME not in shown
        assert "[Bob] look" in shown
        entry = await store.get_session(receipt.session_key)
        assert entry is not None
        left = await store.db.get_messages(entry.session_id, include_hidden=True)
        said = [(one.role, one.platform_message_id) for one in left]
        assert said.count(("user", "b")) == said.count(("user", None)) + 1 == 1
        assert [one.seq for one in left] == list(range(1, len(left) + 1))
        assert (report.rows["inbox"], report.rows["messages"], report.rows["scrubbed"]) == (1, 1, 2)
        assert await asyncio.to_thread(traces, home) == {}
        with closing(sqlite3.connect(home / "sessions.db")) as connection:
            check_database(connection)


async def test_an_erasure_that_is_cut_off_between_rows_is_finished_later(home: Path, fake_clock: FakeClock):
    config = quick_config(group_sessions_per_user=False)
    async with open_store(home, config, clock=fake_clock, titler=None) as store:  # nobody else commits
        lane, _ = await plant(store, fake_clock)
        fake_clock.step(timedelta(minutes=1))
        fault = raising(StorageUnavailableError("disk", "is gone"))
        with crash_at("before_commit", nth=2, action=fault), pytest.raises(StorageUnavailableError):
            await store.erase(DM)
        assert await store.db.unfinished_erasures() == 1
        fake_clock.step(timedelta(minutes=1))
        again = InboundMessage(source=DM, text="I am back", message_id="new")
        assert isinstance(await store.enqueue(again), Accepted)
        assert await store.db.finish_erasures() in (0, 1)
        assert [one.message.text for one in await store.list_queued(lane)] == ["I am back"]
        rows = await asyncio.to_thread(
            execute_sql, home / "sessions.db", "SELECT count(*) FROM inbox WHERE sender = ?", USER
        )
        assert rows == [(1,)]


async def test_much_is_removed_in_pieces(home: Path, fake_clock: FakeClock):
    async with open_store(home, clock=fake_clock) as store:
        messages = [InboundMessage(source=DM, text=str(n), message_id=str(n)) for n in range(501)]
        await asyncio.gather(*(store.enqueue(one, rules=BusyRules(merge_limit=999)) for one in messages))
        fake_clock.step(timedelta(minutes=1))
        turn = await store.claim()
        assert turn is not None
        await turn.commit()
        receipt = await store.erase(DM)
        assert receipt.rows["inbox"] == 501
