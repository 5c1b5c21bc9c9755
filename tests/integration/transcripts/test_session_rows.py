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
    SessionOnLaneError,
    SessionRecord,
    SessionSource,
    SessionStore,
)
from gateway_sessions.testing import FakeClock

EVERYTHING = Scope.operator()


async def record(db: SessionDB, session: str) -> SessionRecord:
    found = await db.get_session(session)
    assert found is not None
    return found


async def test_a_session_is_what_it_was_made_as(db: SessionDB, fake_clock: FakeClock):
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
        fake_clock.now(),
        fake_clock.now(),
        user_id="a:b",
        model="m",
        model_config=settings,
        system_prompt="be kind",
        extra={"cwd": "/"},
    )
    assert await db.get_session("other") is None


async def test_making_a_session_again_only_fills_in_what_was_not_known(db: SessionDB, session: str):
    await db.create_session("parent", "cli")
    assert await db.ensure_session(session) == session
    await db.create_session(session, "web", user_id="mallory", model="m", parent_session_id="parent")
    await db.create_session(session, "web", model="n", system_prompt="p", session_key="agent:main:cli:dm:x")
    found = await record(db, session)
    assert (found.source, found.user_id, found.owner) == ("cli", "alice", "main:cli:user:alice")
    assert (found.model, found.system_prompt, found.session_key) == ("m", "p", "agent:main:cli:dm:x")
    assert (found.parent_session_id, found.relation) == ("parent", Relation.SUCCESSION)
    await db.create_session("third", "cli")
    await db.create_session(session, "cli", parent_session_id="third", relation=Relation.BRANCH)
    found = await record(db, session)
    assert (found.parent_session_id, found.relation) == ("parent", Relation.SUCCESSION)


async def test_a_session_of_nobody_belongs_to_whoever_sits_there(db: SessionDB):
    assert await db.ensure_session("s") == "s"
    assert (await record(db, "s")).owner == "main:unknown:local"


@pytest.mark.parametrize(
    ("marker", "relation"), [("_branched_from", Relation.BRANCH), ("_delegate_from", Relation.DELEGATE)]
)
async def test_a_marker_in_the_settings_says_how_a_session_came_about(
    db: SessionDB, session: str, marker: str, relation: Relation
):
    await db.create_session("child", "cli", parent_session_id=session, model_config={marker: session})
    assert (await record(db, "child")).relation is relation


async def test_descent_stays_a_tree(db: SessionDB, session: str):
    await db.create_session("child", "cli", parent_session_id=session, relation="continuation")
    for parent in ("child", session):
        with pytest.raises(InvalidInputError, match="descendant"):
            await db.create_session(session, "cli", parent_session_id=parent)
    with pytest.raises(SessionNotFoundError):
        await db.create_session("x", "cli", parent_session_id="gone")
    with pytest.raises(InvalidInputError, match="goes on in 'child'"):
        await db.create_session("x", "cli", parent_session_id=session, relation="continuation")
    assert (
        await db.create_session("child", "cli", parent_session_id=session, relation="continuation") == "child"
    )
    assert await db.get_session("x") is None


async def test_what_cannot_be_stored_is_refused(db: SessionDB, session: str):
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
    db: SessionDB, session: str, fake_clock: FakeClock
):
    assert await db.reopen_session(session) is False
    assert await db.end_session(session, "user_exit") is True
    assert await db.end_session(session, "other") is False
    found = await record(db, session)
    assert (found.end_reason, found.ended_at) == ("user_exit", fake_clock.now())
    assert await db.reopen_session(session) is True
    assert await db.end_session(session, "again") is True
    assert (await record(db, session)).end_reason == "again"


async def test_the_session_of_a_lane_is_not_ended_behind_its_back(store: SessionStore):
    entry = await store.get_or_create_session(
        SessionSource(platform="telegram", chat_id="1", user_id="alice")
    )
    for call in (store.db.end_session(entry.session_id, "x"), store.db.reopen_session(entry.session_id)):
        with pytest.raises(SessionOnLaneError) as caught:
            await call
        assert caught.value.session_key == entry.session_key
    await store.reset_session(entry.session_key)
    assert await store.db.reopen_session(entry.session_id) is True
    assert await store.db.end_session(entry.session_id, "done") is True
    back = await store.undo_reset(entry.session_key)
    assert back is not None
    assert back.session_id == entry.session_id


async def test_a_session_made_for_a_lane_belongs_to_its_owner(store: SessionStore):
    entry = await store.get_or_create_session(
        SessionSource(platform="telegram", chat_id="1", user_id="alice")
    )
    await store.db.create_session("side", "tool", session_key=entry.session_key)
    assert (await record(store.db, "side")).owner == entry.owner


async def test_settings_can_be_changed_at_any_time(db: SessionDB, session: str):
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


async def test_sessions_are_counted_as_far_as_one_may_see_them(db: SessionDB, session: str):
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


async def test_a_session_began_when_its_maker_says(db: SessionDB, fake_clock: FakeClock):
    await db.create_session("old", "cli", started_at=1_000_000_000)
    await db.append_message("old", "user", "x", timestamp=1_000_000_005)
    found = await record(db, "old")
    assert found.last_active - found.started_at == timedelta(seconds=5)
    await db.append_messages("old", [Message("user", "y")])
    assert (await record(db, "old")).last_active == fake_clock.now()
