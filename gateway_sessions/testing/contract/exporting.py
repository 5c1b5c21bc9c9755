"""What an export shows, and to whom."""

from __future__ import annotations

import asyncio
import io
import json
from typing import Any

import pytest

from gateway_sessions import InvalidInputError, SessionDB, SessionNotFoundError, TransferProgress
from gateway_sessions.core.export.members import ESTABLISHED
from gateway_sessions.testing.contract.database import DatabaseContract
from gateway_sessions.testing.contract.talks import ALICE, EVERYTHING


async def fill(db: SessionDB) -> None:
    """Two sessions of Alice's, of which one continues the other, and one of Bob's."""
    await db.create_session("a1", "cli", user_id="alice", model="m", model_config={"temperature": 0.5})
    await db.append_messages("a1", [{"role": "user", "content": f"question {number}"} for number in range(3)])
    await db.create_session("b1", "telegram", user_id="bob")
    await db.append_message("b1", "user", "hello from Bob")
    await db.create_session("a2", "cli", user_id="alice", parent_session_id="a1", relation="continuation")
    await db.append_message("a2", "user", "a summary")
    await db.end_session("a1", "compression")


async def lines(db: SessionDB, **asked: Any) -> list[dict[str, Any]]:
    """The lines that an export writes."""
    stream = io.BytesIO()
    await db.write_export(stream, scope=EVERYTHING, **asked)
    return [json.loads(line) for line in stream.getvalue().splitlines()]


class ExportingContract(DatabaseContract):
    """Sessions on their way out."""

    async def test_an_export_has_the_established_members_and_its_messages(self, db: SessionDB) -> None:
        await fill(db)
        exported = await db.export_session("a1", scope=EVERYTHING)
        assert list(exported)[: len(ESTABLISHED) + 2] == ["id", "format", *ESTABLISHED]
        assert exported["id"] == "a1"
        assert exported["model_config"] == {"temperature": 0.5}
        assert isinstance(exported["started_at"], float)
        assert [one["content"] for one in exported["messages"]] == ["question 0", "question 1", "question 2"]
        assert exported["messages"][0].keys() == {"seq", "role", "content", "timestamp"}
        json.dumps(exported)

    async def test_nobody_exports_what_they_cannot_see(self, db: SessionDB) -> None:
        await fill(db)
        with pytest.raises(SessionNotFoundError):
            await db.export_session("b1", scope=ALICE)
        assert [one["id"] async for one in db.export_all(scope=ALICE)] == ["a1", "a2"]
        with pytest.raises(SessionNotFoundError):
            await db.write_export(io.BytesIO(), scope=ALICE, session_id="b1", lineage="logical")
        stream = io.BytesIO()
        await db.write_export(stream, scope=ALICE)
        assert b"Bob" not in stream.getvalue()

    async def test_sessions_are_exported_in_the_order_in_which_they_began(self, db: SessionDB) -> None:
        await fill(db)
        assert [one["id"] async for one in db.export_all(scope=EVERYTHING)] == ["a1", "a2", "b1"]
        assert [one["id"] async for one in db.export_all(scope=EVERYTHING, source="telegram")] == ["b1"]

    async def test_one_session_is_exported_or_the_line_it_stands_in(self, db: SessionDB) -> None:
        await fill(db)
        assert [one["id"] for one in await lines(db, session_id="a2")] == ["a2"]
        both = await lines(db, session_id="a2", lineage="logical")
        assert [one["id"] for one in both] == ["a1", "a2"]

    async def test_logically_a_compressed_conversation_stands_together(self, db: SessionDB) -> None:
        await fill(db)
        assert [one["id"] for one in await lines(db, lineage="logical")] == ["a1", "a2", "b1"]

    async def test_hidden_messages_may_be_left_out_of_an_export(self, db: SessionDB) -> None:
        await fill(db)
        await db.rewind_session("a1")
        whole = await db.export_session("a1", scope=EVERYTHING)
        assert whole["messages"][-1]["hidden_because"] == "rewound"
        assert whole["messages"][-1]["active"] is False
        shown = await db.export_session("a1", scope=EVERYTHING, include_hidden=False)
        assert [one["seq"] for one in shown["messages"]] == [1, 2]

    @pytest.mark.parametrize(
        ("form", "beginning"), [("markdown", b"# question 0\n"), ("html", b"<!DOCTYPE html>")]
    )
    async def test_people_get_pages_they_can_read(self, db: SessionDB, form: str, beginning: bytes) -> None:
        await fill(db)
        stream = io.BytesIO()
        report = await db.write_export(stream, scope=EVERYTHING, format=form)
        assert stream.getvalue().startswith(beginning)
        assert report.bytes == len(stream.getvalue())

    async def test_an_export_shows_one_moment(self, db: SessionDB) -> None:
        await fill(db)
        written: list[asyncio.Task[int]] = []

        def write_meanwhile(_: TransferProgress) -> None:
            if not written:
                written.append(asyncio.ensure_future(db.append_message("b1", "user", "too late")))

        shown = await lines(db, progress=write_meanwhile)
        await written[0]
        assert "too late" not in str(shown)
        assert "too late" in str(await lines(db))

    async def test_options_of_an_export_that_nobody_knows_are_refused(self, db: SessionDB) -> None:
        with pytest.raises(InvalidInputError, match="jsonl, markdown, html"):
            await db.write_export(io.BytesIO(), scope=EVERYTHING, format="pdf")
        with pytest.raises(InvalidInputError, match="lineage"):
            await db.write_export(io.BytesIO(), scope=EVERYTHING, lineage="family")  # type: ignore[arg-type]  # what a caller gets wrong
