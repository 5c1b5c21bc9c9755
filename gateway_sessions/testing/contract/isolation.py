"""Two people on one database: whatever is read across sessions is read for somebody."""

from __future__ import annotations

import io
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import pytest

from gateway_sessions import AmbiguousSessionError, Scope, SessionDB, SessionNotFoundError
from gateway_sessions.testing.contract.database import DatabaseContract
from gateway_sessions.testing.contract.talks import ALICE, BOB, EVERYTHING, in_order, talk

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
    """What a scope sees, and that nothing else ever shows."""

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
