"""The file that an export writes, and the files that it leaves alone."""

from __future__ import annotations

import json
import sqlite3
import stat
from pathlib import Path

import pytest

from gateway_sessions import InvalidInputError, Scope, SessionDB
from gateway_sessions.core.export.transfer_reports import TransferProgress
from gateway_sessions.errors import StorageCorruptError, StorageUnavailableError

OPERATOR = Scope.operator()


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


async def test_a_file_has_a_line_for_each_session_and_is_private(db: SessionDB, tmp_path: Path):
    await fill(db)
    path = tmp_path / "all.jsonl"
    seen: list[TransferProgress] = []
    report = await db.write_export(path, scope=OPERATOR, progress=seen.append)
    assert [one["id"] for one in lines(path)] == ["a1", "a2", "b1"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert (report.sessions, report.messages, report.bytes) == (3, 5, path.stat().st_size)
    assert seen[-1] == TransferProgress(sessions=3, messages=5, total_sessions=3)


async def test_large_sessions_are_read_in_small_pages(db: SessionDB, tmp_path: Path):
    await db.create_session("s", "cli")
    await db.append_messages("s", [{"role": "user", "content": "x" * 700_000}] * 12)
    seen: list[int] = []
    await db.write_export(
        tmp_path / "s.jsonl", scope=OPERATOR, progress=lambda one: seen.append(one.messages)
    )
    assert seen[0] <= 6
    assert len(lines(tmp_path / "s.jsonl")[0]["messages"]) == 12


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


async def test_damage_is_told_and_not_left_out(db: SessionDB, tmp_path: Path):
    await fill(db)
    with sqlite3.connect(db.path) as connection:
        connection.execute("UPDATE messages SET tool_calls = '[' WHERE session_id = 'b1'")
    connection.close()
    with pytest.raises(StorageCorruptError, match="damaged"):
        await db.write_export(tmp_path / "x.jsonl", scope=OPERATOR)
    assert not (tmp_path / "x.jsonl").exists()
