"""Sessions made by hand, and what is known of any session."""

from __future__ import annotations

from datetime import timedelta

import pytest

from gateway_sessions import (
    InvalidInputError,
    Message,
    Relation,
    Scope,
    SessionDB,
    SessionNotFoundError,
    SessionRecord,
)
from gateway_sessions.testing.clock import FakeClock
from gateway_sessions.testing.contract.database import DatabaseContract
from gateway_sessions.testing.contract.talks import EVERYTHING, record


class SessionRowsContract(DatabaseContract):
    """The rows of sessions: made once, ended once, counted as far as one may see them."""

    async def test_a_session_is_what_it_was_made_as(self, db: SessionDB, clock: FakeClock) -> None:
        settings = {"temperature": 0.5}
        await db.create_session(
            "s",
            "cli",
            model="m",
            model_config=settings,
            system_prompt="be kind",
            user_id="a:b",
            extra={"cwd": "/"},
        )
        assert await db.get_session("s") == SessionRecord(
            "s",
            "cli",
            "main:cli:user:a%3Ab",
            clock.now(),
            clock.now(),
            user_id="a:b",
            model="m",
            model_config=settings,
            system_prompt="be kind",
            extra={"cwd": "/"},
        )
        assert await db.get_session("other") is None

    async def test_making_a_session_again_only_fills_in_what_was_not_known(
        self, db: SessionDB, session: str
    ) -> None:
        await db.create_session("parent", "cli")
        assert await db.ensure_session(session) == session
        await db.create_session(session, "web", user_id="mallory", model="m", parent_session_id="parent")
        await db.create_session(
            session, "web", model="n", system_prompt="p", session_key="agent:main:cli:dm:x"
        )
        found = await record(db, session)
        assert (found.source, found.user_id, found.owner) == ("cli", "alice", "main:cli:user:alice")
        assert (found.model, found.system_prompt, found.session_key) == ("m", "p", "agent:main:cli:dm:x")
        assert (found.parent_session_id, found.relation) == ("parent", Relation.SUCCESSION)
        await db.create_session("third", "cli")
        await db.create_session(session, "cli", parent_session_id="third", relation=Relation.BRANCH)
        found = await record(db, session)
        assert (found.parent_session_id, found.relation) == ("parent", Relation.SUCCESSION)

    async def test_a_session_of_nobody_belongs_to_whoever_sits_there(self, db: SessionDB) -> None:
        assert await db.ensure_session("s") == "s"
        assert (await record(db, "s")).owner == "main:unknown:local"

    @pytest.mark.parametrize(
        ("marker", "relation"), [("_branched_from", Relation.BRANCH), ("_delegate_from", Relation.DELEGATE)]
    )
    async def test_a_marker_in_the_settings_says_how_a_session_came_about(
        self, db: SessionDB, session: str, marker: str, relation: Relation
    ) -> None:
        await db.create_session("child", "cli", parent_session_id=session, model_config={marker: session})
        assert (await record(db, "child")).relation is relation

    async def test_descent_stays_a_tree(self, db: SessionDB, session: str) -> None:
        await db.create_session("child", "cli", parent_session_id=session, relation="continuation")
        for parent in ("child", session):
            with pytest.raises(InvalidInputError, match="descendant"):
                await db.create_session(session, "cli", parent_session_id=parent)
        with pytest.raises(SessionNotFoundError):
            await db.create_session("x", "cli", parent_session_id="gone")
        with pytest.raises(InvalidInputError, match="goes on in 'child'"):
            await db.create_session("x", "cli", parent_session_id=session, relation="continuation")
        assert (
            await db.create_session("child", "cli", parent_session_id=session, relation="continuation")
            == "child"
        )
        assert await db.get_session("x") is None

    async def test_a_session_that_cannot_be_stored_is_refused(self, db: SessionDB, session: str) -> None:
        for call in (
            db.create_session("../x", "cli"),
            db.create_session("x", ""),
            db.create_session("x", "cli", user_id="a\nb"),
            db.create_session("x", "cli", session_key=""),
            db.create_session("x", "cli", model_config={"a": float("nan")}),
            db.create_session("x", "cli", started_at="soon"),  # type: ignore[arg-type]  # what a caller gets wrong
            db.create_session("x", "cli", parent_session_id=session, relation="cousin"),
            db.end_session(session, "two\nlines"),
        ):
            with pytest.raises(InvalidInputError):
                await call
        assert await db.session_count(scope=EVERYTHING) == 1

    async def test_the_first_end_of_a_session_stands_until_it_goes_on(
        self, db: SessionDB, session: str, clock: FakeClock
    ) -> None:
        assert await db.reopen_session(session) is False
        assert await db.end_session(session, "user_exit") is True
        assert await db.end_session(session, "other") is False
        found = await record(db, session)
        assert (found.end_reason, found.ended_at) == ("user_exit", clock.now())
        assert await db.reopen_session(session) is True
        assert await db.end_session(session, "again") is True
        assert (await record(db, session)).end_reason == "again"

    async def test_settings_can_be_changed_at_any_time(self, db: SessionDB, session: str) -> None:
        await db.update_system_prompt(session, "p")
        await db.update_session_model(session, "m", {"t": 1})
        await db.update_session_model(session, "n")
        await db.set_session_pinned(session)
        await db.set_session_archived(session)
        found = await record(db, session)
        assert (found.system_prompt, found.model, found.model_config) == ("p", "n", {"t": 1})
        assert (found.pinned, found.archived) == (True, True)
        await db.set_session_pinned(session, pinned=False)
        await db.set_session_archived(session, archived=False)
        await db.update_system_prompt(session, None)
        found = await record(db, session)
        assert (found.system_prompt, found.pinned, found.archived) == (None, False, False)

    async def test_the_first_prompt_of_a_session_is_noted_once(self, db: SessionDB, session: str) -> None:
        assert await db.note_system_prompt(session, "first") is True
        assert await db.note_system_prompt(session, "second") is False
        assert (await record(db, session)).system_prompt == "first"
        assert await db.note_system_prompt("gone", "first") is False

    async def test_sessions_are_counted_as_far_as_one_may_see_them(self, db: SessionDB, session: str) -> None:
        await db.append_message(session, "user", "x")
        await db.create_session("b", "web", user_id="bob", session_key="lane")
        await db.create_session("c", "cli")
        await db.set_session_archived("c")
        assert await db.session_count(scope=EVERYTHING) == 2
        assert await db.session_count(scope=EVERYTHING, include_archived=True) == 3
        assert await db.session_count("cli", scope=EVERYTHING) == 1
        assert await db.session_count(scope=EVERYTHING, min_message_count=1) == 1
        assert await db.session_count(scope=Scope(owners=frozenset({"main:cli:user:alice"}))) == 1
        assert await db.session_count(scope=Scope.lane("lane")) == 1
        assert await db.session_count("cli", scope=Scope.lane("lane")) == 0

    async def test_a_session_began_when_its_maker_says(self, db: SessionDB, clock: FakeClock) -> None:
        await db.create_session("old", "cli", started_at=1_000_000_000)
        await db.append_message("old", "user", "x", timestamp=1_000_000_005)
        found = await record(db, "old")
        assert found.last_active - found.started_at == timedelta(seconds=5)
        await db.append_messages("old", [Message("user", "y")])
        assert (await record(db, "old")).last_active == clock.now()
