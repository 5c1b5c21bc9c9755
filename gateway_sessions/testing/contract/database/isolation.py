"""Contract tests of scopes, of concurrent and cancelled calls, and of reopening."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import pytest

from gateway_sessions import Message, Scope, SessionDB, SessionNotFoundError, StoreBusyError
from gateway_sessions.errors import (
    AmbiguousSessionError,
    NothingToUndoError,
    SentBeforeErasureError,
    StoreStoppedError,
)
from gateway_sessions.testing.clock import FakeClock
from gateway_sessions.testing.contract.database.bench import (
    ALICE,
    BOB,
    EVERYTHING,
    SUMMARY,
    Capability,
    DatabaseContract,
    OpenDB,
    contents,
    everything,
    found,
    in_order,
    listed,
    talk,
)
from gateway_sessions.testing.contract.database.transfer import live

Seen = Callable[[SessionDB, Scope], Awaitable[set[str]]]


async def _exported(db: SessionDB, scope: Scope) -> set[str]:
    return {one["id"] for one in await in_order(db.export_all(scope=scope))}


async def _written(db: SessionDB, scope: Scope) -> set[str]:
    stream = io.BytesIO()
    await db.write_export(stream, scope=scope)
    return {name for name in ("mine_a", "mine_b", "mine_c") if name.encode() in stream.getvalue()}


async def _one_by_one(db: SessionDB, scope: Scope) -> set[str]:
    seen: set[str] = set()
    for one in ("mine_a", "mine_b", "mine_c"):
        try:
            seen.add((await db.export_session(one, scope=scope))["id"])
        except SessionNotFoundError:
            continue
    return seen


async def _meant(db: SessionDB, scope: Scope) -> set[str]:
    try:
        return {await db.resolve_session("mine", scope=scope)}
    except SessionNotFoundError:
        return set()
    except AmbiguousSessionError as several:
        return {one.session_id for one in several.candidates}


async def _called(db: SessionDB, scope: Scope) -> set[str]:
    try:
        one = await db.resolve_session_by_title("Trip", scope=scope)
    except AmbiguousSessionError as several:
        return {one.session_id for one in several.candidates}
    return set() if one is None else {one}


async def _active(db: SessionDB, scope: Scope) -> set[str]:
    report = await db.insights(scope=scope)
    return {one.session_id for one in report.top.most_messages}


READS: Final[Mapping[str, Seen]] = {
    "lists": lambda db, scope: _ids(db.list_sessions_rich(scope=scope)),
    "lists_of_all_sessions": lambda db, scope: _ids(
        db.list_sessions_rich(scope=scope, include_children=True)
    ),
    "choices": lambda db, scope: _ids(db.recent_sessions(scope=scope)),
    "ids": lambda db, scope: _ids(db.search_sessions_by_id("mine", scope=scope)),
    "words": lambda db, scope: _hits(db.search_messages("secret", scope=scope)),
    "texts": lambda db, scope: _hits(db.search_messages("ecre", scope=scope, mode="substring")),
    "conversations": lambda db, scope: _conversations(db.search_sessions("secret", scope=scope)),
    "exports": _exported,
    "files": _written,
    "single_exports": _one_by_one,
    "beginnings": _meant,
    "titles": _called,
    "insights": _active,
}


async def _ids(found: Awaitable[Any]) -> set[str]:
    return {one.session_id for one in await found}


async def _hits(found: Awaitable[Any]) -> set[str]:
    return {one.session_id for one in (await found).hits}


async def _conversations(found: Awaitable[Any]) -> set[str]:
    return {one.root_id for one in (await found).sessions}


class IsolationContract(DatabaseContract):
    """Tests that a scope shows its own sessions, and no other call shows anything else."""

    @pytest.mark.parametrize("read", READS)
    async def test_every_read_across_sessions_shows_what_its_scope_sees_and_no_more(
        self, db: SessionDB, read: str
    ) -> None:
        await talk(db, "mine_a", "a secret of Alice")
        await talk(db, "mine_b", "a secret of Bob", user="bob", session_key="agent:main:cli:dm:b")
        await talk(db, "mine_c", "a secret of a lane", user="carol", session_key="agent:main:cli:dm:c")
        for one in ("mine_a", "mine_b", "mine_c"):
            await db.set_session_title(one, "Trip")
        await db.catch_up_search_index()
        seen = READS[read]
        assert await seen(db, ALICE) == {"mine_a"}
        assert await seen(db, BOB) == {"mine_b"}
        assert await seen(db, Scope.lane("agent:main:cli:dm:c")) == {"mine_c"}
        assert await seen(db, Scope(owners=ALICE.owners | BOB.owners)) == {"mine_a", "mine_b"}
        assert await seen(db, Scope(owners=frozenset({"main:cli:user:mallory"}))) == set()
        assert await seen(db, Scope()) == set()
        assert await seen(db, EVERYTHING) == {"mine_a", "mine_b", "mine_c"}

    async def test_counts_and_next_titles_tell_nothing_about_others(self, db: SessionDB) -> None:
        await talk(db, "a", "hello")
        await db.set_session_title("a", "Trip")
        assert await db.session_count(scope=ALICE) == 1
        assert await db.session_count(scope=BOB) == 0
        assert await db.get_next_title_in_lineage("Trip", scope=ALICE) == "Trip #2"
        assert await db.get_next_title_in_lineage("Trip", scope=BOB) == "Trip"
        assert not await db.set_session_title("a", "Stolen", scope=BOB)
        assert await db.get_session_title("a") == "Trip"

    async def test_names_that_look_like_others_are_somebody_else(self, db: SessionDB) -> None:
        for number, user in enumerate(("x", "X", "x ", "x%", "x:y", "x%3Ay", "\uff58", "é", "e\u0301", "_")):
            await talk(db, f"s{number}", "hello", user=user)
        owners = {one.owner for one in await db.list_sessions_rich(scope=EVERYTHING)}
        assert len(owners) == 10
        for owner in owners:
            (only,) = await db.list_sessions_rich(scope=Scope(owners=frozenset({owner})))
            assert only.owner == owner
            found = await db.search_messages("hello", scope=Scope(owners=frozenset({owner})))
            assert [one.session_id for one in found.hits] == [only.session_id]


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
"""The most turns of the loop for which a caller waits before it is cancelled."""


class ConcurrencyContract(DatabaseContract):
    """Tests the order of concurrent calls, and their cancellation."""

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
    """Return a session as another program exported it."""
    said = [{"role": "user", "content": str(n), "timestamp": n} for n in range(3)]
    return {"id": f"{session_id}_next", "source": "cli", "started_at": 1, "messages": said}


async def prepared(db: SessionDB, session_id: str) -> str:
    """Create a session with messages, and return its export."""
    await talk(db, session_id, "hello")
    await db.append_message(session_id, "user", "said on a platform", platform_message_id="1")
    return await past(db, session_id)


async def past(db: SessionDB, session_id: str) -> str:
    """Return a session and its descendants as one export shows them, without its id."""
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


class RestartingContract(DatabaseContract):
    """Tests that a database which is opened again is as it was closed."""

    async def test_all_is_there_after_a_restart(self, open_db: OpenDB, clock: FakeClock) -> None:
        async with open_db() as db:
            await live(db, clock)
            past, shown = await everything(db), await listed(db)
            records = [await db.get_session(one) for one in "abcd"]
            used = await db.usage_of_session("a")
        async with open_db() as db:
            assert await everything(db) == past
            assert await listed(db) == shown
            assert [await db.get_session(one) for one in "abcd"] == records
            assert await db.usage_of_session("a") == used
            assert await db.get_session_title("b") == "Trip #2"
            assert await found(db, "four", include_hidden=True) == ["four"]
            assert await db.restore_rewound("a") == 1

    async def test_every_restart_goes_on_where_the_last_one_ended(self, open_db: OpenDB) -> None:
        ids: list[int] = []
        for run in range(4):
            async with open_db() as db:
                await db.ensure_session("s", "cli")
                ids += await db.append_messages("s", [Message("user", f"{run} {n}") for n in range(3)])
                if run == 2:
                    await db.clear_messages("s")
        assert ids == sorted(set(ids))
        async with open_db() as db:
            stored = await db.get_messages("s")
            assert [(one.seq, one.content) for one in stored] == [(1, "3 0"), (2, "3 1"), (3, "3 2")]

    async def test_what_was_forbidden_before_a_restart_is_forbidden_after_it(
        self, open_db: OpenDB, clock: FakeClock
    ) -> None:
        sent = clock.now()
        async with open_db() as db:
            await talk(db, "a", "hello")
            await db.rewind_session("a")
            await db.append_message("a", "user", "on we go")
            assert await db.record_usage("a", "e1", input_tokens=3)
            await db.erase("main:cli:user:bob")
        async with open_db() as db:
            with pytest.raises(NothingToUndoError):
                await db.restore_rewound("a")
            assert not await db.record_usage("a", "e1", input_tokens=3)
            await talk(db, "b", user="bob")
            with pytest.raises(SentBeforeErasureError):
                await db.append_message("b", "user", "late", timestamp=sent)
            assert await listed(db, BOB) == ["b"]

    async def test_a_search_is_complete_after_a_restart_whatever_was_in_the_index(
        self, open_db: OpenDB
    ) -> None:
        async with open_db() as db:
            await talk(db, "a", "docker one")
            await db.catch_up_search_index()
            await talk(db, "b", "docker two")
        async with open_db() as db:
            await talk(db, "c", "docker three")
            assert await found(db, "docker", sort="oldest") == ["docker one", "docker two", "docker three"]
            await db.delete_session("b")
        async with open_db() as db:
            assert await found(db, "docker", sort="oldest") == ["docker one", "docker three"]

    async def test_what_was_not_acknowledged_at_the_end_is_whole_or_not_there(self, open_db: OpenDB) -> None:
        async with open_db() as db:
            await db.create_session("s", "cli")
            pending = [
                asyncio.ensure_future(db.append_messages("s", [Message("user", f"{n}")] * 2))
                for n in range(20)
            ]
            await asyncio.sleep(0)
        outcomes = await asyncio.gather(*pending, return_exceptions=True)
        done = [str(n) for n, outcome in enumerate(outcomes) if isinstance(outcome, list)]
        assert all(isinstance(one, (list, StoreStoppedError)) for one in outcomes)
        async with open_db() as db:
            stored = await contents(db, "s")
            assert all(stored.count(text) == 2 for text in set(stored))
            assert set(done) <= set(stored)

    async def test_a_database_that_is_not_open_says_so(self, open_db: OpenDB) -> None:
        db = open_db()
        async with db:
            await db.create_session("s", "cli")
        for call in (
            lambda: db.append_message("s", "user", "x"),
            lambda: db.get_messages("s"),
            lambda: db.get_session("s"),
            lambda: db.list_sessions_rich(scope=EVERYTHING),
            lambda: db.search_messages("x", scope=EVERYTHING),
        ):
            with pytest.raises(StoreStoppedError):
                await call()

    async def test_a_second_program_is_refused_or_sees_what_the_first_one_did(self, open_db: OpenDB) -> None:
        async with open_db() as db:
            await talk(db, "a", "hello")
            if Capability.ONE_OWNER in self.capabilities:
                with pytest.raises(StoreBusyError):
                    await open_db().__aenter__()
            else:
                async with open_db() as other:
                    assert await contents(other, "a") == ["hello"]
                    await other.append_message("a", "user", "from elsewhere")
            await db.append_message("a", "user", "here")
            assert (await contents(db, "a"))[-1] == "here"

    async def test_upkeep_changes_nothing_that_can_be_seen(self, db: SessionDB, clock: FakeClock) -> None:
        await live(db, clock)
        past = await everything(db)
        if Capability.UPKEEP in self.capabilities:
            await db.vacuum()
            await db.optimise()
            await db.back_up()
        assert await db.finish_removals() == 0
        await db.rebuild_search_index()
        assert await found(db, "summary") == ["summary", "summary"]
        assert await everything(db) == past
