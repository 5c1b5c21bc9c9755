"""Titles that sessions get by themselves: once, in time, and in nobody's way."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta

import pytest

from gateway_sessions import SessionStore
from gateway_sessions.errors import StorageFullError, StoreStoppedError
from gateway_sessions.runtime.duties import titles
from gateway_sessions.runtime.duties.titles import MAX_TRIES, Titling, plain_titler
from gateway_sessions.sessions import FirstExchange
from gateway_sessions.storage.api.sessions import TitleMethods
from gateway_sessions.testing import FakeClock
from tests.unit.runtime.memory_database import MemoryDatabase
from tests.unit.runtime.store_fixtures import dm_source, open_store


class Memory(MemoryDatabase, TitleMethods):
    """A database without a disk that knows of titles."""

    def say(self, session_id: str, *said: str, relation: str | None = None) -> None:
        """A session in which a person and the agent take turns."""
        self.rows(
            "INSERT INTO sessions (session_id, owner, source, relation, started_at)"
            " VALUES (?, 'o', 's', ?, 1)",
            session_id,
            relation,
        )
        for seq, text in enumerate(said, 1):
            self.rows(
                "INSERT INTO messages (session_id, seq, role, content, sent_at) VALUES (?, ?, ?, ?, 1)",
                session_id,
                seq,
                "user" if seq % 2 else "assistant",
                text,
            )

    def title(self, session_id: str) -> str | None:
        return self.rows("SELECT title FROM sessions WHERE session_id = ?", session_id)[0][0]


@pytest.fixture
def db() -> Memory:
    return Memory()


def titles_of(
    db: Memory, titler: titles.Titler | None = plain_titler, clock: FakeClock | None = None
) -> Titling:
    return Titling(db, clock or FakeClock(), titler)  # type: ignore[arg-type]  # all of a database that is asked for


class Asked:
    """A titler that notes what it is asked, and answers the same."""

    def __init__(self, answer: str | None = "A title") -> None:
        self.answer = answer
        self.exchanges: list[FirstExchange] = []

    async def __call__(self, exchange: FirstExchange) -> str | None:
        self.exchanges.append(exchange)
        return self.answer


class TestWhen:
    async def test_after_the_first_exchange_a_session_gets_a_title(self, db):
        db.say("a", "please fix the docker build", "done")
        duty = titles_of(db)
        duty.consider_session("a")
        assert await duty.sweep() == 1
        assert db.title("a") == "Fix the docker build"

    async def test_a_greeting_waits_for_the_second_message(self, db):
        db.say("a", "hi", "hello")
        duty = titles_of(db)
        duty.consider_session("a")
        assert await duty.sweep() == 0
        db.rows(
            "INSERT INTO messages (session_id, seq, role, content, sent_at)"
            " VALUES ('a', 3, 'user', 'fix it now', 1)"
        )
        duty.consider_session("a")
        assert await duty.sweep() == 1
        assert db.title("a") == "Fix it now"

    @pytest.mark.parametrize(
        "said", [(), ("fix the build",), ("one two", "x", "three four", "x", "five six", "x")]
    )
    async def test_not_before_an_answer_nor_after_the_second_message(self, db, said):
        db.say("a", *said)
        duty = titles_of(db)
        duty.consider_session("a")
        assert await duty.sweep() == 0
        assert db.title("a") is None

    @pytest.mark.parametrize("relation", ["continuation", "delegate"])
    async def test_a_summary_and_the_work_of_a_sub_agent_get_none(self, db, relation):
        db.say("a", "fix the build", "done", relation=relation)
        duty = titles_of(db)
        duty.consider_session("a")
        assert await duty.sweep() == 0

    async def test_a_title_is_never_replaced(self, db):
        db.say("a", "fix the build", "done")
        await db.set_session_title("a", "Mine")
        titler = Asked()
        duty = titles_of(db, titler)
        duty.consider_session("a")
        assert await duty.sweep() == 0
        assert (db.title("a"), titler.exchanges) == ("Mine", [])

    async def test_a_title_given_while_the_titler_thinks_stays(self, db):
        db.say("a", "fix the build", "done")

        async def slow(_: FirstExchange) -> str:
            await db.set_session_title("a", "Mine")
            return "Theirs"

        duty = titles_of(db, slow)
        duty.consider_session("a")
        assert await duty.sweep() == 0
        assert db.title("a") == "Mine"

    async def test_a_taken_title_gets_a_number(self, db):
        for one in "ab":
            db.say(one, "fix the build", "done")
            duty = titles_of(db)
            duty.consider_session(one)
            await duty.sweep()
        assert [db.title(one) for one in "ab"] == ["Fix the build", "Fix the build #2"]


class TestCost:
    async def test_a_session_with_a_title_is_not_looked_at_again(self, db):
        db.say("a", "fix the build", "done")
        duty = titles_of(db)
        for _ in range(3):
            duty.consider_session("a")
            await duty.sweep()
        reads = db.reads
        duty.consider_session("a")
        await duty.sweep()
        assert db.reads == reads == 1

    async def test_a_session_nobody_says_anything_in_is_given_up(self, db):
        db.say("a")
        duty = titles_of(db)
        for _ in range(10):
            duty.consider_session("a")
            await duty.sweep()
        assert db.reads == MAX_TRIES

    async def test_many_at_once_wait_their_turn_and_too_many_come_later(self, db, monkeypatch):
        monkeypatch.setattr(titles, "MAX_WAITING", 2)
        for one in "abc":
            db.say(one, f"fix the {one} build", "done")
        duty = titles_of(db)
        for one in "aabc":
            duty.consider_session(one)
        assert await duty.sweep() == 2
        duty.consider_session("c")
        assert await duty.sweep() == 1

    async def test_without_a_titler_nothing_is_looked_at(self, db):
        db.say("a", "fix the build", "done")
        duty = titles_of(db, None)
        duty.consider_session("a")
        assert await duty.sweep() == 0
        assert db.reads == 0


class TestTitlers:
    async def test_a_titler_is_told_how_the_session_began(self, db):
        db.say("a", "x" * 900, "y" * 900)
        titler = Asked(' Title: "A **title**" ')
        duty = titles_of(db, titler)
        duty.consider_session("a")
        assert await duty.sweep() == 1
        assert titler.exchanges == [FirstExchange("a", ("x" * 500,), "y" * 500)]
        assert db.title("a") == "A title"

    @pytest.mark.parametrize("answer", [None, "", '""', "\u200b"])
    async def test_a_titler_may_have_no_idea(self, db, answer):
        db.say("a", "fix the build", "done")
        duty = titles_of(db, Asked(answer))
        duty.consider_session("a")
        assert await duty.sweep() == 0

    async def test_a_titler_that_fails_is_logged_and_asked_again_later(self, db, caplog):
        db.say("a", "fix the build", "done")

        async def broken(_: FirstExchange) -> str:
            raise RuntimeError

        duty = titles_of(db, broken)
        duty.consider_session("a")
        with caplog.at_level(logging.WARNING):
            assert await duty.sweep() == 0
        (record,) = caplog.records
        assert (record.action, record.session_id) == ("title_failed", "a")
        assert "RuntimeError" in record.problem
        duty.consider_session("a")
        assert await duty.sweep() == 0

    async def test_a_titler_that_takes_too_long_is_cut_off(self, db, caplog, fake_clock):
        db.say("a", "fix the build", "done")
        db.say("b", "fix the build", "done")
        ended: list[str] = []

        async def slow(exchange: FirstExchange) -> str:
            if exchange.session_id == "b":
                return "Quick"
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(exchange.session_id)
            raise AssertionError

        duty = titles_of(db, slow, fake_clock)
        duty.consider_session("a")
        duty.consider_session("b")
        async with asyncio.TaskGroup() as tasks:
            sweep = tasks.create_task(duty.sweep())
            await fake_clock.advance(timedelta(seconds=31))
        assert sweep.result() == 1
        assert ended == ["a"]
        assert "longer" in caplog.records[0].problem

    async def test_a_failing_database_is_logged_and_the_next_session_still_looked_at(self, db, caplog):
        db.say("a", "fix the build", "done")
        db.failure = StorageFullError("disk", "full")
        duty = titles_of(db)
        duty.consider_session("a")
        assert await duty.sweep() == 0
        assert caplog.records[0].action == "title_failed"
        db.failure = None
        duty.consider_session("a")
        assert await duty.sweep() == 1

    async def test_the_duty_ends_with_the_store(self, db):
        db.failure = StoreStoppedError("database")
        duty = titles_of(db)
        duty.consider_session("a")
        await duty.run()


class TestInAStore:
    async def test_the_end_of_a_turn_leads_to_a_title(self, tmp_path):
        done = asyncio.Event()

        async def titler(exchange: FirstExchange) -> str:
            done.set()
            return f"About {exchange.messages[0]}"

        async with open_store(tmp_path, titler=titler) as store:
            entry = await said(store, "Rome", "ok")
            await store.update_session(entry.session_key, 5)
            await done.wait()
            while (title := await store.db.get_session_title(entry.session_id)) is None:  # noqa: ASYNC110 -- nobody tells
                await asyncio.sleep(0)
            assert title == "About Rome"

    async def test_a_store_closes_at_once_while_a_titler_thinks(self, tmp_path):
        asked = asyncio.Event()

        async def slow(_: FirstExchange) -> str:
            asked.set()
            await asyncio.Event().wait()
            raise AssertionError

        async with open_store(tmp_path, titler=slow) as store:
            entry = await said(store, "Rome", "ok")
            await store.update_session(entry.session_key, 5)
            await asked.wait()


async def said(store: SessionStore, question: str, answer: str):
    entry = await store.get_or_create_session(dm_source())
    await store.db.append_message(entry.session_id, "user", question)
    await store.db.append_message(entry.session_id, "assistant", answer)
    return entry
