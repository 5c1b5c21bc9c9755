"""A database that was closed and is opened again is what it was."""

from __future__ import annotations

import asyncio

import pytest

from gateway_sessions import (
    Message,
    NothingToUndoError,
    SentBeforeErasureError,
    SessionDB,
    StoreBusyError,
    StoreStoppedError,
)
from gateway_sessions.testing.clock import FakeClock
from gateway_sessions.testing.contract.database import Capability, DatabaseContract, OpenDB
from gateway_sessions.testing.contract.round_trips import live
from gateway_sessions.testing.contract.talks import (
    BOB,
    EVERYTHING,
    contents,
    everything,
    found,
    listed,
    talk,
)


class RestartingContract(DatabaseContract):
    """Opening, closing, and what stays."""

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
