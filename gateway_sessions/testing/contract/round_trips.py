"""Whatever a database holds survives an export and an import, and the receipt of an erasure outlives both."""

from __future__ import annotations

import io
from datetime import timedelta

from gateway_sessions import Message, SessionDB
from gateway_sessions.testing.clock import FakeClock
from gateway_sessions.testing.contract.database import DatabaseContract
from gateway_sessions.testing.contract.talks import EVERYTHING, everything, talk, there


async def live(db: SessionDB, clock: FakeClock) -> None:
    """A past with everything in it that an export tells of."""
    await db.create_session("a", "cli", user_id="alice", model="m", model_config={"t": 0.5}, extra={"x": [1]})
    call = {"id": "c", "function": {"name": "look", "arguments": "{}"}}
    await db.append_messages(
        "a",
        [
            Message("user", "one", platform_message_id="1"),
            Message("assistant", [{"type": "text", "text": "two"}], tool_calls=[call], reasoning="hm"),
            Message("tool", "three", tool_call_id="c", tool_name="look", extra={"mood": "good"}),
            Message("user", "four"),
        ],
    )
    clock.step(timedelta(seconds=1.5))
    await db.edit_message("a", "1", "ONE")
    await db.rewind_session("a")
    await db.set_session_title("a", "Trip")
    await db.record_usage("a", "e1", model="m", input_tokens=7, estimated_cost_usd=0.1)
    await db.split_session("a", "b", [Message("user", "summary")])
    await db.branch_session("b", "c")
    await talk(db, "d", "hi", user="bob", parent_session_id="c", relation="delegate")
    await db.end_session("d", "done")
    await db.set_session_pinned("c")
    await db.set_session_archived("d")


class RoundTripsContract(DatabaseContract):
    """Out, and in again."""

    async def test_what_was_exported_comes_back_exactly_after_it_was_deleted(
        self, db: SessionDB, clock: FakeClock
    ) -> None:
        await live(db, clock)
        stream = io.BytesIO()
        await db.write_export(stream, scope=EVERYTHING)
        before = await everything(db)
        await db.delete_sessions([one["id"] for one in before])
        assert await there(db) == set()
        report = await db.import_sessions(stream.getvalue().splitlines())
        assert (report.imported, report.findings) == (len(before), ())
        assert await everything(db) == before
        again = await db.import_sessions(db.export_all(scope=EVERYTHING))
        assert (again.imported, again.skipped, again.findings) == (0, len(before), ())

    async def test_times_survive_export_and_import_to_the_microsecond(
        self, db: SessionDB, session: str, clock: FakeClock
    ) -> None:
        years = range(0, 900, 7)
        moments = [clock.now() + timedelta(days=365 * one, microseconds=one) for one in years]
        await db.append_messages(session, [Message("user", "x", sent_at=one) for one in moments])
        exported = await everything(db)
        await db.delete_session(session)
        await db.import_sessions(exported)
        assert [one.sent_at for one in await db.get_messages(session)] == moments

    async def test_nobody_who_was_erased_is_imported_again(self, db: SessionDB, clock: FakeClock) -> None:
        await talk(db, "a", "hello")
        exported = await everything(db)
        await db.erase("main:cli:user:alice")
        report = await db.import_sessions(exported)
        assert (report.imported, ["erased" in one.detail for one in report.clashes]) == (0, [True])
        clock.step(timedelta(minutes=1))
        await talk(db, "b", "back again")
        assert await there(db) == {"b"}
