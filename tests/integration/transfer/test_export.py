"""What an export writes, for whom, and in which file."""

from __future__ import annotations

import asyncio
import io
import json
import sqlite3
import stat
from pathlib import Path

import pytest

from gateway_sessions import (
    InvalidInputError,
    Scope,
    SessionDB,
    SessionNotFoundError,
    SessionSource,
    StorageCorruptError,
    StorageUnavailableError,
)
from gateway_sessions.core.export.members import ESTABLISHED
from gateway_sessions.core.export.reports import TransferProgress

OPERATOR = Scope.operator()
ALICE = Scope.of(SessionSource(platform="cli", chat_id="alice", user_id="alice"))


async def fill(db: SessionDB) -> None:
    """Two sessions of Alice's, of which one continues the other, and one of Bob's."""
    await db.create_session("a1", "cli", user_id="alice", model="m", model_config={"temperature": 0.5})
    await db.append_messages("a1", [{"role": "user", "content": f"question {number}"} for number in range(3)])
    await db.create_session("b1", "telegram", user_id="bob")
    await db.append_message("b1", "user", "hello from Bob")
    await db.create_session("a2", "cli", user_id="alice", parent_session_id="a1", relation="continuation")
    await db.append_message("a2", "user", "a summary")
    await db.end_session("a1", "compression")


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


async def test_a_session_has_the_established_members_and_its_messages(db: SessionDB):
    await fill(db)
    exported = await db.export_session("a1", scope=OPERATOR)
    assert list(exported)[: len(ESTABLISHED) + 2] == ["id", "format", *ESTABLISHED]
    assert exported["id"] == "a1"
    assert exported["model_config"] == {"temperature": 0.5}
    assert isinstance(exported["started_at"], float)
    assert [one["content"] for one in exported["messages"]] == ["question 0", "question 1", "question 2"]
    assert exported["messages"][0].keys() == {"seq", "role", "content", "timestamp"}
    json.dumps(exported)


async def test_nobody_exports_what_they_cannot_see(db: SessionDB):
    await fill(db)
    with pytest.raises(SessionNotFoundError):
        await db.export_session("b1", scope=ALICE)
    assert [one["id"] async for one in db.export_all(scope=ALICE)] == ["a1", "a2"]
    with pytest.raises(SessionNotFoundError):
        await db.write_export(io.BytesIO(), scope=ALICE, session_id="b1", lineage="logical")
    stream = io.BytesIO()
    await db.write_export(stream, scope=ALICE)
    assert b"Bob" not in stream.getvalue()


async def test_all_sessions_come_in_the_order_in_which_they_began(db: SessionDB):
    await fill(db)
    assert [one["id"] async for one in db.export_all(scope=OPERATOR)] == ["a1", "a2", "b1"]
    assert [one["id"] async for one in db.export_all(scope=OPERATOR, source="telegram")] == ["b1"]


async def test_a_file_has_a_line_for_each_session_and_is_private(db: SessionDB, tmp_path: Path):
    await fill(db)
    path = tmp_path / "all.jsonl"
    seen: list[TransferProgress] = []
    report = await db.write_export(path, scope=OPERATOR, progress=seen.append)
    assert [one["id"] for one in lines(path)] == ["a1", "a2", "b1"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert (report.sessions, report.messages, report.bytes) == (3, 5, path.stat().st_size)
    assert seen[-1] == TransferProgress(sessions=3, messages=5, total_sessions=3)


async def test_one_session_or_the_line_it_stands_in(db: SessionDB, tmp_path: Path):
    await fill(db)
    path = tmp_path / "one.jsonl"
    await db.write_export(path, scope=OPERATOR, session_id="a2")
    assert [one["id"] for one in lines(path)] == ["a2"]
    await db.write_export(path, scope=OPERATOR, session_id="a2", lineage="logical")
    assert [one["id"] for one in lines(path)] == ["a1", "a2"]


async def test_logically_a_compressed_conversation_stands_together(db: SessionDB, tmp_path: Path):
    await fill(db)
    path = tmp_path / "all.jsonl"
    await db.write_export(path, scope=OPERATOR, lineage="logical")
    assert [one["id"] for one in lines(path)] == ["a1", "a2", "b1"]


async def test_hidden_messages_may_be_left_out(db: SessionDB):
    await fill(db)
    await db.rewind_session("a1")
    whole = await db.export_session("a1", scope=OPERATOR)
    assert whole["messages"][-1]["hidden_because"] == "rewound"
    assert whole["messages"][-1]["active"] is False
    shown = await db.export_session("a1", scope=OPERATOR, include_hidden=False)
    assert [one["seq"] for one in shown["messages"]] == [1, 2]


@pytest.mark.parametrize(
    ("form", "beginning"), [("markdown", b"# question 0\n"), ("html", b"<!DOCTYPE html>")]
)
async def test_people_get_pages_they_can_read(db: SessionDB, form: str, beginning: bytes):
    await fill(db)
    stream = io.BytesIO()
    report = await db.write_export(stream, scope=OPERATOR, format=form)
    assert stream.getvalue().startswith(beginning)
    assert report.bytes == len(stream.getvalue())


async def test_large_sessions_are_read_in_small_pages(db: SessionDB, tmp_path: Path):
    await db.create_session("s", "cli")
    await db.append_messages("s", [{"role": "user", "content": "x" * 700_000}] * 12)
    seen: list[int] = []
    await db.write_export(
        tmp_path / "s.jsonl", scope=OPERATOR, progress=lambda one: seen.append(one.messages)
    )
    assert seen[0] <= 6
    assert len(lines(tmp_path / "s.jsonl")[0]["messages"]) == 12


async def test_an_export_shows_one_moment(db: SessionDB, tmp_path: Path):
    await fill(db)
    written: list[asyncio.Task[int]] = []

    def write_meanwhile(_: TransferProgress) -> None:
        if not written:
            written.append(asyncio.ensure_future(db.append_message("b1", "user", "too late")))

    path = tmp_path / "all.jsonl"
    await db.write_export(path, scope=OPERATOR, progress=write_meanwhile)
    await written[0]
    assert b"too late" not in path.read_bytes()


async def test_a_failure_leaves_the_old_file_and_nothing_else(db: SessionDB, tmp_path: Path):
    await fill(db)
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "all.jsonl").write_bytes(b"old")

    def fail(_: TransferProgress) -> None:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        await db.write_export(folder / "all.jsonl", scope=OPERATOR, progress=fail)
    assert [(one.name, one.read_bytes()) for one in folder.iterdir()] == [("all.jsonl", b"old")]


async def test_a_place_that_is_not_there_is_a_storage_error(db: SessionDB, tmp_path: Path):
    with pytest.raises(StorageUnavailableError, match="No such file"):
        await db.write_export(tmp_path / "nowhere" / "x.jsonl", scope=OPERATOR)


@pytest.mark.parametrize("end", ["", "-wal", "-shm"])
async def test_an_export_never_takes_the_place_of_the_database(db: SessionDB, end: str):
    await fill(db)
    with pytest.raises(InvalidInputError, match="the store itself"):
        await db.write_export(db.path.with_name(db.path.name + end), scope=OPERATOR)
    assert (await db.export_session("b1", scope=OPERATOR))["messages"]


async def test_options_that_nobody_knows_are_refused(db: SessionDB):
    with pytest.raises(InvalidInputError, match="jsonl, markdown, html"):
        await db.write_export(io.BytesIO(), scope=OPERATOR, format="pdf")
    with pytest.raises(InvalidInputError, match="lineage"):
        await db.write_export(io.BytesIO(), scope=OPERATOR, lineage="family")  # type: ignore[arg-type]


async def test_damage_is_told_and_not_left_out(db: SessionDB, tmp_path: Path):
    await fill(db)
    with sqlite3.connect(db.path) as connection:
        connection.execute("UPDATE messages SET tool_calls = '[' WHERE session_id = 'b1'")
    connection.close()
    with pytest.raises(StorageCorruptError, match="damaged"):
        await db.write_export(tmp_path / "x.jsonl", scope=OPERATOR)
    assert not (tmp_path / "x.jsonl").exists()
