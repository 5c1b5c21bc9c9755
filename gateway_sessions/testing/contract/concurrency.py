"""Many callers at once, and callers that do not wait for the end."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import pytest

from gateway_sessions import Message, SessionDB
from gateway_sessions.testing.contract.database import DatabaseContract
from gateway_sessions.testing.contract.talks import EVERYTHING, SUMMARY, contents, talk

Call = Callable[[SessionDB, str], Awaitable[object]]

CALLS: Final[Mapping[str, Call]] = {
    "append_messages": lambda db, one: db.append_messages(one, SUMMARY * 3),
    "rewind_session": lambda db, one: db.rewind_session(one),
    "replace_messages": lambda db, one: db.replace_messages(one, SUMMARY),
    "archive_and_compact": lambda db, one: db.archive_and_compact(one, SUMMARY),
    "edit_message": lambda db, one: db.edit_message(one, "1", "edited"),
    "split_session": lambda db, one: db.split_session(one, f"{one}_next", SUMMARY),
    "branch_session": lambda db, one: db.branch_session(one, f"{one}_next"),
    "set_session_title": lambda db, one: db.set_session_title(one, f"Trip of {one}"),
    "record_usage": lambda db, one: db.record_usage(one, f"e_{one}", input_tokens=5, estimated_cost_usd=0.5),
    "end_session": lambda db, one: db.end_session(one, "done"),
    "delete_session": lambda db, one: db.delete_session(one),
    "import_sessions": lambda db, one: db.import_sessions([imported(one)]),
}
TURNS: Final = 4
"""How long, in turns of the loop, a caller waits at most before it is cancelled."""


class ConcurrencyContract(DatabaseContract):
    """Order among callers, and cancellation."""

    async def test_the_writers_of_many_sessions_do_not_mix_them_up(self, db: SessionDB) -> None:
        ids = [await talk(db, f"s{n}") for n in range(8)]
        await asyncio.gather(*(db.append_message(one, "user", f"{one} {n}") for n in range(8) for one in ids))
        for one in ids:
            assert await contents(db, one) == [f"{one} {n}" for n in range(8)]

    async def test_a_batch_stands_together_however_many_write_at_once(
        self, db: SessionDB, session: str
    ) -> None:
        batches = [[Message("user", f"{batch} {n}") for n in range(5)] for batch in range(10)]
        ids = await asyncio.gather(*(db.append_messages(session, one) for one in batches))
        stored = await db.get_messages(session)
        place = {one.message_id: one.seq for one in stored}
        for batch in ids:
            assert [place[one] - place[batch[0]] for one in batch] == [0, 1, 2, 3, 4]
        assert [one.seq for one in stored] == list(range(1, 51))

    async def test_of_many_who_create_or_end_a_session_one_is_the_first(self, db: SessionDB) -> None:
        await asyncio.gather(*(db.create_session("s", "cli", model=f"m{n}") for n in range(10)))
        assert await db.session_count(scope=EVERYTHING) == 1
        ended = await asyncio.gather(*(db.end_session("s", f"r{n}") for n in range(10)))
        assert ended.count(True) == 1
        record = await db.get_session("s")
        assert record is not None
        assert record.end_reason == f"r{ended.index(True)}"

    async def test_an_event_that_many_tell_at_once_counts_once(self, db: SessionDB, session: str) -> None:
        told = await asyncio.gather(*(db.record_usage(session, "e", input_tokens=7) for _ in range(10)))
        assert told.count(True) == 1
        assert (await db.usage_of_session(session)).total.input_tokens == 7

    async def test_a_rewind_among_appends_loses_nothing(self, db: SessionDB, session: str) -> None:
        appends = [db.append_message(session, "user", str(n)) for n in range(20)]
        rewinds = [db.rewind_session(session) for _ in range(5)]
        await asyncio.gather(*appends[:10], *rewinds, *appends[10:])
        stored = await db.get_messages(session, include_hidden=True)
        assert sorted(one.text for one in stored) == sorted(map(str, range(20)))
        assert [one.seq for one in stored] == list(range(1, 21))
        assert sum(one.active for one in stored) == await db.message_count(session) == 15

    @pytest.mark.parametrize("name", CALLS)
    async def test_a_cancelled_call_is_done_or_was_never_made(self, db: SessionDB, name: str) -> None:
        call = CALLS[name]
        before = await prepared(db, "talk_ref")
        await call(db, "talk_ref")
        after = await past(db, "talk_ref")
        assert before != after
        for turns in range(TURNS):
            assert await prepared(db, f"talk_{turns}") == before
            await cancelled(call(db, f"talk_{turns}"), turns)
            assert await past(db, f"talk_{turns}") in (before, after)
        assert await prepared(db, "talk_end") == before
        await call(db, "talk_end")
        assert await past(db, "talk_end") == after


def imported(session_id: str) -> dict[str, Any]:
    """A session as somebody exported it."""
    said = [{"role": "user", "content": str(n), "timestamp": n} for n in range(3)]
    return {"id": f"{session_id}_next", "source": "cli", "started_at": 1, "messages": said}


async def prepared(db: SessionDB, session_id: str) -> str:
    """Make a session with something in it; its past."""
    await talk(db, session_id, "hello")
    await db.append_message(session_id, "user", "said on a platform", platform_message_id="1")
    return await past(db, session_id)


async def past(db: SessionDB, session_id: str) -> str:
    """A session and what came from it, as an export shows it at one moment, whatever its id is."""
    told = io.BytesIO()
    await db.write_export(told, scope=EVERYTHING)
    shown = [one for one in map(json.loads, told.getvalue().splitlines()) if one["id"].startswith(session_id)]
    return json.dumps(shown).replace(session_id, "it")


async def cancelled(call: Awaitable[object], turns: int) -> None:
    """Make a call and cancel it so many turns of the loop later."""
    task = asyncio.ensure_future(call)
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task})
