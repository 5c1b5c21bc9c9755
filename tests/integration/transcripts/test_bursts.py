"""The messages of a burst stay messages of their own, wherever their row goes."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from gateway_sessions import Accepted, Config, Scope, SessionDB, SessionStore
from gateway_sessions.core.queue.inbound import InboundMessage, MessageKind, Receipt, Rejected
from gateway_sessions.operator import migrate_store
from gateway_sessions.storage.engines.sqlite.engine import SqliteEngine
from gateway_sessions.storage.tables.sql_files import load_migrations
from gateway_sessions.storage.transactions.upkeep import consistency
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.contract.queue.bench import ALICE, COLLECTING, LANE, begin, reply, said

CONFIG = Config.from_mapping({"sessions_json": {"mode": "off"}, "timezone": "UTC"})
BEFORE = tuple(one for one in load_migrations("sqlite") if one.version <= 6)
TEXTS = ("first,\nas ever", "Transfer 100 to Bob", "and never to Eve")


def opened(home: Path, clock: FakeClock) -> SessionStore:
    return SessionStore.open(home, CONFIG, clock=clock)


async def answered(home: Path, clock: FakeClock) -> str:
    """A store in which a burst was answered; its session."""
    async with opened(home, clock) as store:
        for number, text in enumerate(TEXTS):
            message = said(text, message_id=f"m{number}")
            assert isinstance(await store.enqueue(message, rules=COLLECTING), Accepted)
        clock.step(timedelta(seconds=5))
        turn = await begin(store)
        await turn.commit([reply("well")])
        return turn.entry.session_id


def edit(which: str, text: str) -> InboundMessage:
    return InboundMessage(source=ALICE, text=text, message_id=which, kind=MessageKind.EDIT, revision=1)


def deletion(which: str) -> InboundMessage:
    return InboundMessage(source=ALICE, message_id=which, kind=MessageKind.DELETE)


async def change(store: SessionStore, session_id: str) -> list[str]:
    """What a burst says after the second message was edited and the third one deleted."""
    for one in (edit("m1", "Transfer 200 to Bob"), deletion("m2")):
        receipt: Receipt = await store.enqueue(one)
        assert isinstance(receipt, Accepted), receipt
    assert await store.db.read(consistency.find_all) == []
    return [one.text for one in await store.db.get_messages(session_id) if one.role == "user"]


async def test_in_a_store_that_took_it_in_from_a_file(tmp_path: Path, fake_clock: FakeClock):
    session_id = await answered(tmp_path / "old", fake_clock)
    async with opened(tmp_path / "old", fake_clock) as store:
        exported = await store.db.export_session(session_id, scope=Scope.operator())
    row = exported["messages"][0]
    assert [one["id"] for one in row["platform_messages"]] == ["m0", "m1", "m2"]
    assert {one["sender"] for one in row["platform_messages"]} == {"alice"}
    async with opened(tmp_path / "new", fake_clock) as store:
        report = await store.db.import_sessions([exported])
        assert (report.imported, report.findings) == (1, ())
        assert await store.db.export_session(session_id, scope=Scope.operator()) == exported
        assert await change(store, session_id) == ["first,\nas ever\nTransfer 200 to Bob"]
        assert (await store.db.import_sessions([exported])).imported == 0


async def test_in_a_database_that_it_was_moved_to(tmp_path: Path, fake_clock: FakeClock):
    session_id = await answered(tmp_path / "old", fake_clock)
    (tmp_path / "new").mkdir()
    await migrate_store(tmp_path / "old" / "sessions.db", tmp_path / "new" / "sessions.db", clock=fake_clock)
    async with opened(tmp_path / "new", fake_clock) as store:
        assert await change(store, session_id) == ["first,\nas ever\nTransfer 200 to Bob"]


async def test_in_a_transcript_that_a_program_has_written_anew(tmp_path: Path, fake_clock: FakeClock):
    session_id = await answered(tmp_path, fake_clock)
    async with opened(tmp_path, fake_clock) as store:
        await store.rewrite_transcript(session_id, await store.load_transcript(session_id))
        assert await change(store, session_id) == ["first,\nas ever\nTransfer 200 to Bob"]


async def test_a_file_whose_parts_are_none_is_refused_for_that(tmp_path: Path, fake_clock: FakeClock):
    session_id = await answered(tmp_path / "old", fake_clock)
    async with opened(tmp_path / "old", fake_clock) as store:
        exported = await store.db.export_session(session_id, scope=Scope.operator())
    exported["messages"][0]["platform_messages"] = "all of them"
    async with opened(tmp_path / "new", fake_clock) as store:
        report = await store.db.import_sessions([exported])
        assert report.imported == 0
        assert "platform_messages must be a list, not str" in report.errors[0].detail


def add_as_before(database: Path, ids: str, text: str) -> None:
    """A session with a burst as version 0.1 has written it."""
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute(
            "INSERT INTO sessions (session_id, session_key, owner, source, started_at)"
            " VALUES ('s', ?, 'o', 'telegram', 1)",
            (LANE,),
        )
        extra = f'{{"platform_message_ids":{ids},"name":"Ann"}}'
        size = len(text) + len(extra) + len("one")
        connection.execute(
            "INSERT INTO totals (session_id, last_active, last_seq, message_count, text_bytes, preview)"
            " VALUES ('s', 1, 1, 1, ?, ?)",
            (size, text.replace("\n", " ")),
        )
        connection.execute(
            "INSERT INTO messages (message_id, session_id, seq, role, content, sent_at, platform_message_id,"
            " extra) VALUES (1, 's', 1, 'user', ?, 1, 'one', ?)",
            (text, extra),
        )


@pytest.mark.parametrize(
    ("text", "after_edit", "after_deletion"),
    [("a\nb\nc", "a\nbetter\nc", "a\nc"), ("a\nb\nc, and\nmore", None, None)],
)
async def test_a_row_of_an_earlier_version_is_told_apart_where_each_message_is_one_line(
    tmp_path: Path, fake_clock: FakeClock, text: str, after_edit: str | None, after_deletion: str | None
):
    async with SessionDB(SqliteEngine(tmp_path / "sessions.db", migrations=BEFORE), fake_clock, wait=0):
        pass
    add_as_before(tmp_path / "sessions.db", '["one","two","three"]', text)
    async with opened(tmp_path, fake_clock) as store:
        assert await store.db.read(consistency.find_all) == []
        receipt = await store.enqueue(edit("two", "better"))
        assert isinstance(receipt, Accepted if after_edit else Rejected)
        stored = await store.db.get_messages("s")
        assert [one.text for one in stored] == [after_edit or text]
        assert isinstance(await store.enqueue(deletion("two")), Accepted)
        stored = await store.db.get_messages("s")
        assert [one.text for one in stored] == ([after_deletion] if after_deletion else [])
        assert await store.db.read(consistency.find_all) == []
