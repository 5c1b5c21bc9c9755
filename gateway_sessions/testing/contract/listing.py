"""Lists: each conversation once, page by page, and only what may be seen."""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import Any

import pytest

from gateway_sessions import InvalidInputError, Scope, SessionDB, SessionSummary
from gateway_sessions.storage.verbs import listing
from gateway_sessions.testing.clock import FakeClock
from gateway_sessions.testing.contract.database import DatabaseContract
from gateway_sessions.testing.contract.talks import ALICE, BOB, EVERYTHING, listed, record, split, talk, talks


async def paged(db: SessionDB, size: int, scope: Scope = EVERYTHING, **asked: Any) -> list[str]:
    """The whole list, page by page."""
    found: list[SessionSummary] = []
    after = None
    while page := await db.list_sessions_rich(scope=scope, limit=size, after=after, **asked):
        found += page
        after = page[-1]
        assert len(page) <= size
    return [one.session_id for one in found]


class ListingContract(DatabaseContract):
    """Lists for people who look for a conversation."""

    @pytest.fixture(params=["recent", "recent_of_few"])
    def way(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
        """Both ways to find a page, which must find the same."""
        if request.param == "recent":
            monkeypatch.setattr(listing, "FEW", 0)
        return str(request.param)

    async def test_the_latest_active_stands_first(self, db: SessionDB, clock: FakeClock, way: str) -> None:
        await talks(db, clock, "a", "b", "c")
        clock.step(timedelta(minutes=1))
        await db.append_message("a", "user", "again")
        assert await listed(db) == await listed(db, ALICE) == ["a", "c", "b"]
        assert await listed(db, order_by_last_active=False) == ["c", "b", "a"]

    @pytest.mark.parametrize("recent", [True, False])
    @pytest.mark.parametrize("size", [1, 2, 3, 7])
    async def test_pages_have_no_gaps_and_no_repeats(
        self, db: SessionDB, clock: FakeClock, way: str, size: int, *, recent: bool
    ) -> None:
        await talks(db, clock, "a", "b", "c", "d")
        for one in "efg":
            await talk(db, one, "at the same instant")
        await split(db, "b", "b2", "b3")
        await split(db, "e", "e2")
        whole = await listed(db, order_by_last_active=recent)
        assert sorted(whole) == ["a", "b3", "c", "d", "e2", "f", "g"]
        for scope in (EVERYTHING, ALICE):
            assert await paged(db, size, scope, order_by_last_active=recent) == whole

    async def test_a_session_used_while_somebody_turns_pages_is_not_shown_twice(
        self, db: SessionDB, clock: FakeClock, way: str
    ) -> None:
        await talks(db, clock, "a", "b", "c", "d")
        first = await db.list_sessions_rich(scope=EVERYTHING, limit=2)
        clock.step(timedelta(minutes=1))
        await db.append_message("d", "user", "again")
        second = await db.list_sessions_rich(scope=EVERYTHING, limit=2, after=first[-1])
        assert [one.session_id for one in first + second] == ["d", "c", "b", "a"]

    @pytest.mark.parametrize("limit", [0, -1])
    async def test_a_page_has_room_for_one_at_least(self, db: SessionDB, limit: int) -> None:
        with pytest.raises(InvalidInputError):
            await db.list_sessions_rich(scope=EVERYTHING, limit=limit)

    async def test_a_compressed_conversation_is_shown_as_its_tip_in_the_place_of_its_root(
        self, db: SessionDB, clock: FakeClock, way: str
    ) -> None:
        await talks(db, clock, "a", "b")
        begun = (await record(db, "a")).started_at
        await db.set_session_title("a", "Trip")
        clock.step(timedelta(minutes=1))
        await split(db, "a", "a2", "a3")
        tip = (await db.list_sessions_rich(scope=ALICE))[0]
        assert (tip.session_id, tip.lineage_root, tip.started_at) == ("a3", "a", begun)
        assert (tip.title, tip.preview, tip.message_count) == ("Trip #3", "hello a", 1)
        assert tip.last_active == clock.now()
        assert await listed(db) == ["a3", "b"]
        assert await listed(db, order_by_last_active=False) == ["b", "a3"]
        _, same = await db.list_sessions_rich(scope=ALICE, order_by_last_active=False)
        assert same == tip

    async def test_branches_and_sessions_after_a_reset_are_conversations_of_their_own(
        self, db: SessionDB, clock: FakeClock, way: str
    ) -> None:
        await talks(db, clock, "a")
        await db.branch_session("a", "b")
        await talks(db, clock, "c", parent_session_id="a", relation="succession")
        assert sorted(await listed(db)) == ["a", "b", "c"]

    async def test_the_work_of_sub_agents_is_in_no_list(
        self, db: SessionDB, clock: FakeClock, way: str
    ) -> None:
        await talks(db, clock, "a")
        await talks(db, clock, "d", parent_session_id="a", relation="delegate")
        await split(db, "d", "d2")
        for recent, children in itertools.product([True, False], repeat=2):
            assert await listed(db, order_by_last_active=recent, include_children=children) == ["a"]

    async def test_the_sessions_of_a_conversation_are_listed_if_asked_for(
        self, db: SessionDB, clock: FakeClock, way: str
    ) -> None:
        await talks(db, clock, "a", "b")
        await split(db, "a", "a2")
        for recent in (True, False):
            found = await db.list_sessions_rich(
                scope=EVERYTHING, include_children=True, order_by_last_active=recent
            )
            assert {one.session_id: one.lineage_root for one in found} == {"a": "a", "a2": "a2", "b": "b"}

    async def test_an_original_that_was_reopened_is_shown_beside_what_continued_it(
        self, db: SessionDB, clock: FakeClock, way: str
    ) -> None:
        await talks(db, clock, "a")
        await split(db, "a", "b")
        await db.reopen_session("a")
        for recent in (True, False):
            assert sorted(await listed(db, order_by_last_active=recent)) == ["a", "b"]

    async def test_a_silent_session_has_no_preview(self, db: SessionDB) -> None:
        await talk(db, "a")
        (only,) = await db.list_sessions_rich(scope=EVERYTHING)
        assert (only.preview, only.message_count, only.last_active) == ("", 0, only.started_at)

    async def test_nobody_lists_the_sessions_of_others(
        self, db: SessionDB, clock: FakeClock, way: str
    ) -> None:
        await talks(db, clock, "a")
        await talks(db, clock, "b", user="bob")
        for recent in (True, False):
            assert await listed(db, ALICE, order_by_last_active=recent) == ["a"]
            assert await listed(db, BOB, order_by_last_active=recent) == ["b"]
            assert await listed(db, Scope(), order_by_last_active=recent) == []
            assert sorted(await listed(db, order_by_last_active=recent)) == ["a", "b"]

    async def test_a_lane_lists_its_own_sessions(self, db: SessionDB, clock: FakeClock, way: str) -> None:
        await talks(db, clock, "a", session_key="lane:a")
        await talks(db, clock, "b", session_key="lane:b")
        assert await listed(db, Scope.lane("lane:a")) == ["a"]

    async def test_a_list_is_narrowed_by_source(self, db: SessionDB, clock: FakeClock, way: str) -> None:
        await talks(db, clock, "a", source="telegram")
        await talks(db, clock, "b", source="discord")
        await talks(db, clock, "c", source="tool")
        for recent in (True, False):
            order: dict[str, Any] = {"order_by_last_active": recent}
            assert await listed(db, source="telegram", **order) == ["a"]
            assert await listed(db, exclude_sources=["tool", "discord"], **order) == ["a"]
            assert await listed(db, source="tool", exclude_sources=["tool"], **order) == []
            assert await listed(db, source="nowhere", **order) == []

    async def test_a_list_is_narrowed_by_the_archive(self, db: SessionDB, clock: FakeClock, way: str) -> None:
        await talks(db, clock, "a", "b")
        await split(db, "b", "b2")
        await db.set_session_archived("b2")
        for recent in (True, False):
            for scope in (EVERYTHING, ALICE):
                order: dict[str, Any] = {"order_by_last_active": recent, "scope": scope}
                assert await listed(db, **order) == ["a"]
                assert await listed(db, archived=True, **order) == ["b2"]
                assert sorted(await listed(db, archived=None, **order)) == ["a", "b2"]

    async def test_a_list_is_narrowed_by_the_number_of_messages_of_what_it_shows(
        self, db: SessionDB, clock: FakeClock, way: str
    ) -> None:
        await talks(db, clock, "a", "b")
        for text in ("two", "three"):
            await db.append_message("a", "user", text)
            await db.append_message("b", "user", text)
        await split(db, "b", "b2")
        for recent in (True, False):
            assert await listed(db, min_message_count=3, order_by_last_active=recent) == ["a"]
            assert await paged(db, 1, min_message_count=1, order_by_last_active=recent) == await listed(
                db, order_by_last_active=recent
            )

    @pytest.mark.parametrize(
        ("text", "found"),
        [
            ("rome", ["a"]),
            ("KÖLN", ["b"]),
            ("köl", ["b"]),
            ("hello", ["c", "b", "a"]),
            ("HELLO C", ["c"]),
            ("telegr", ["c"]),
            ("%", []),
            ("_", []),
            ("~", []),
            ("nothing", []),
            ("  rome ", ["a"]),
            (" ", ["c", "b", "a"]),
        ],
    )
    async def test_a_list_is_narrowed_by_what_can_be_read_in_it(
        self, db: SessionDB, clock: FakeClock, way: str, text: str, found: list[str]
    ) -> None:
        await talks(db, clock, "a", "b")
        await talks(db, clock, "c", source="telegram")
        await db.set_session_title("a", "Trip to Rome")
        await db.set_session_title("b", "Köln")
        for recent in (True, False):
            assert await listed(db, search_query=text, order_by_last_active=recent) == found

    async def test_what_is_looked_for_is_looked_for_in_the_tip(
        self, db: SessionDB, clock: FakeClock, way: str
    ) -> None:
        await talks(db, clock, "a", "b")
        await split(db, "a", "a2")
        await db.set_session_title("a", "Old")
        await db.set_session_title("a2", "New")
        for recent in (True, False):
            assert await listed(db, search_query="new", order_by_last_active=recent) == ["a2"]
            assert await listed(db, search_query="old", order_by_last_active=recent) == []

    async def test_what_tools_hold_is_left_out_unless_asked_for(
        self, db: SessionDB, clock: FakeClock
    ) -> None:
        await talks(db, clock, "a")
        await talks(db, clock, "t", source="tool")
        assert [one.session_id for one in await db.recent_sessions(scope=EVERYTHING)] == ["a"]
        assert [one.session_id for one in await db.recent_sessions(scope=EVERYTHING, source="tool")] == ["t"]

    async def test_by_id_the_very_session_stands_first_then_beginnings_then_the_rest(
        self, db: SessionDB, clock: FakeClock
    ) -> None:
        await talks(db, clock, "26", "26_a", "x_26", "26_b", "y_26", "other")
        found = await db.search_sessions_by_id("26", scope=EVERYTHING)
        assert [one.session_id for one in found] == ["26", "26_b", "26_a", "y_26", "x_26"]
        assert len(await db.search_sessions_by_id("26", scope=EVERYTHING, limit=2)) == 2

    @pytest.mark.parametrize("text", ["", " ", "%", "__", "z"])
    async def test_by_id_what_fits_nothing_finds_nothing(
        self, db: SessionDB, clock: FakeClock, text: str
    ) -> None:
        await talks(db, clock, "a", "b")
        assert await db.search_sessions_by_id(text, scope=EVERYTHING) == []

    async def test_by_id_every_kind_is_found_if_it_may_be_seen(self, db: SessionDB, clock: FakeClock) -> None:
        await talks(db, clock, "x1")
        await talks(db, clock, "x2", parent_session_id="x1", relation="delegate")
        await split(db, "x2", "x3")
        await talks(db, clock, "x4", user="bob")
        found = await db.search_sessions_by_id("x", scope=ALICE)
        assert sorted(one.session_id for one in found) == ["x1", "x2", "x3"]
