"""Where an import takes lines from, and what is too much for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gateway_sessions import Scope, SessionDB
from gateway_sessions.errors import StorageUnavailableError
from gateway_sessions.storage.transfer import export_files, import_files

DATA = Path(__file__).parents[2] / "data"
OPERATOR = Scope.operator()
T = 1772722800.25


def session(session_id: str, **more: Any) -> dict[str, Any]:
    """A session as some other program exports it."""
    message = {"role": "user", "content": f"hello from {session_id}", "timestamp": T}
    return {"id": session_id, "source": "cli", "started_at": T, "messages": [message]} | more


async def test_a_line_that_is_too_long_is_passed_over(
    db: SessionDB, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(export_files, "MAX_LINE_BYTES", 400)
    monkeypatch.setattr(export_files, "_SKIPPED", 100)
    path = tmp_path / "x.jsonl"
    long = session("long", title="x" * 2000)
    path.write_text("\n".join(json.dumps(one) for one in (long, session("short"), long)))
    report = await db.import_sessions(path)
    assert (report.imported, [one.line for one in report.errors]) == (1, [1, 3])


async def test_findings_without_end_are_only_counted(db: SessionDB, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(import_files, "MAX_FINDINGS", 2)
    report = await db.import_sessions([{}] * 5)
    assert (len(report.findings), report.more_findings) == (2, 3)


async def test_a_file_that_is_not_there_is_a_storage_error(db: SessionDB, tmp_path: Path):
    with pytest.raises(StorageUnavailableError):
        await db.import_sessions(tmp_path / "nowhere.jsonl")


async def test_an_export_that_hermes_wrote_is_taken_in(db: SessionDB):
    lines = (DATA / "hermes_0_19.jsonl").read_text("utf-8").splitlines()
    report = await db.import_sessions(lines)
    assert (report.imported, len(report.errors)) == (10, 1)
    assert "'api/with slash'" in report.errors[0].detail
    root = await db.export_session("20260305_150000_aaaaaaaa", scope=OPERATOR)
    assert (root["title"], root["model_config"]) == ("Trip to Lisbon", {"temperature": 0.5})
    assert (root["input_tokens"], root["extra"]["chat_id"]) == (290, "4711")
    assert root["messages"][5]["content"][0] == {"type": "text", "text": "And this?"}
    assert root["messages"][2]["reasoning_details"] == [{"type": "summary", "text": "look"}]
    branch = await db.export_session("20260305_170000_dddddd", scope=OPERATOR)
    assert branch["relation"] == "branch"
    assert (await db.import_sessions(lines)).skipped == 10
