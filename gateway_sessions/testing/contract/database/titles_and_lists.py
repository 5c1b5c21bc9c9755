"""Contract tests of titles, of lookup by id or title, and of lists.

A title is one line, unique for each owner, and numbered along a lineage. A lookup finds a session by its id,
the beginning of its id, or its title. A list has each conversation once, page by page, within a scope.
"""

from __future__ import annotations

import asyncio
import itertools
from datetime import timedelta
from typing import Any

import pytest

from gateway_sessions import InvalidInputError, Scope, SessionDB, SessionNotFoundError
from gateway_sessions.errors import AmbiguousSessionError, InvalidTitleError, TitleTakenError
from gateway_sessions.sessions import SessionSummary
from gateway_sessions.testing.clock import FakeClock
from gateway_sessions.testing.contract.database.bench import (
    ALICE,
    BOB,
    EVERYTHING,
    DatabaseContract,
    listed,
    record,
    split,
    talk,
    talks,
)
from gateway_sessions.testing.inside import lists


async def titled_by(db: SessionDB, session_id: str) -> str | None:
    """Return who gave a session its title."""
    return (await record(db, session_id)).title_by


class TitlesContract(DatabaseContract):
    """Tests titles of people and of the store."""

    async def test_a_session_is_called_what_a_person_says(self, db: SessionDB) -> None:
        await talk(db, "a")
        assert await db.set_session_title("a", "  Trip\tto\u200b Rome ")
        assert await db.get_session_title("a") == "Trip to Rome"
        assert await titled_by(db, "a") == "person"

    @pytest.mark.parametrize("nothing", ["", "  ", "\u200b", None])
    async def test_nothing_clears_the_title(self, db: SessionDB, nothing: str | None) -> None:
        await talk(db, "a")
        await talk(db, "b")
        await db.set_session_title("a", "Trip")
        assert await db.set_session_title("a", nothing)
        assert await db.set_session_title("b", nothing)
        assert (await db.get_session_title("a"), await titled_by(db, "a")) == (None, None)

    async def test_a_session_that_is_not_there_cannot_be_called_anything(self, db: SessionDB) -> None:
        assert not await db.set_session_title("a", "Trip")
        assert await db.get_session_title("a") is None

    async def test_a_title_that_is_too_long_is_refused(self, db: SessionDB) -> None:
        await talk(db, "a")
        with pytest.raises(InvalidTitleError):
            await db.set_session_title("a", "x" * 101)

    async def test_a_session_out_of_sight_is_not_renamed(self, db: SessionDB) -> None:
        await talk(db, "a")
        assert not await db.set_session_title("a", "Trip", scope=BOB)
        assert await db.set_session_title("a", "Trip", scope=ALICE)

    async def test_a_title_can_be_given_again_and_outlasts_the_session(self, db: SessionDB) -> None:
        await talk(db, "a")
        await db.set_session_title("a", "Trip")
        assert await db.set_session_title("a", "Trip")
        await db.end_session("a", "user_exit")
        assert await db.get_session_title("a") == "Trip"

    async def test_two_sessions_of_one_person_cannot_have_one_title(self, db: SessionDB) -> None:
        await talk(db, "a")
        await talk(db, "b")
        await db.set_session_title("a", "Trip")
        with pytest.raises(TitleTakenError, match="another session") as caught:
            await db.set_session_title("b", "Trip")
        assert (caught.value.title, caught.value.holder) == ("Trip", None)
        assert await db.get_session_title("b") is None

    async def test_the_holder_of_a_title_is_named_to_those_who_see_it(self, db: SessionDB) -> None:
        await talk(db, "a", session_key="lane:a")
        await talk(db, "b", session_key="lane:b")
        await db.set_session_title("a", "Trip")
        for scope, holder in ((ALICE, "a"), (EVERYTHING, "a"), (Scope.lane("lane:b"), None)):
            with pytest.raises(TitleTakenError) as caught:
                await db.set_session_title("b", "Trip", scope=scope)
            assert caught.value.holder == holder

    async def test_two_people_may_use_the_same_title(self, db: SessionDB) -> None:
        await talk(db, "a")
        await talk(db, "b", user="bob")
        assert await db.set_session_title("a", "Trip")
        assert await db.set_session_title("b", "Trip")

    async def test_upper_and_lower_case_are_different_titles(self, db: SessionDB) -> None:
        await talk(db, "a")
        await talk(db, "b")
        assert await db.set_session_title("a", "Trip")
        assert await db.set_session_title("b", "trip")

    async def test_what_a_session_continues_passes_the_title_on(self, db: SessionDB) -> None:
        await talk(db, "a", "hello")
        await db.set_session_title("a", "Trip")
        await split(db, "a", "b", "c")
        assert await db.set_session_title("c", "Trip")
        assert [await db.get_session_title(one) for one in "abc"] == [None, "Trip #2", "Trip"]

    async def test_a_continuation_does_not_pass_its_title_back(self, db: SessionDB) -> None:
        await talk(db, "a", "hello")
        await db.set_session_title("a", "Trip")
        await split(db, "a", "b")
        with pytest.raises(TitleTakenError):
            await db.set_session_title("a", "Trip #2")

    async def test_a_branch_is_another_conversation_and_takes_no_title_away(self, db: SessionDB) -> None:
        await talk(db, "a", "hello")
        await db.set_session_title("a", "Trip")
        await db.branch_session("a", "b")
        with pytest.raises(TitleTakenError):
            await db.set_session_title("b", "Trip")

    async def test_of_many_who_want_a_title_one_gets_it(self, db: SessionDB) -> None:
        ids = [await talk(db, f"s{n}") for n in range(16)]
        outcomes = await asyncio.gather(
            *(db.set_session_title(one, "Trip") for one in ids), return_exceptions=True
        )
        assert outcomes.count(True) == 1
        assert sum(isinstance(one, TitleTakenError) for one in outcomes) == 15

    async def test_a_session_without_a_title_gets_an_automatic_one(self, db: SessionDB) -> None:
        await talk(db, "a")
        assert await db.set_auto_title_if_empty("a", 'Title: "Trip"')
        assert (await db.get_session_title("a"), await titled_by(db, "a")) == ("Trip", "automatic")

    async def test_an_automatic_title_overwrites_none(self, db: SessionDB) -> None:
        await talk(db, "a")
        await db.set_session_title("a", "Mine")
        assert not await db.set_auto_title_if_empty("a", "Trip")
        await talk(db, "b")
        assert await db.set_auto_title_if_empty("b", "Trip")
        assert not await db.set_auto_title_if_empty("b", "Other")
        assert [await db.get_session_title(one) for one in "ab"] == ["Mine", "Trip"]

    async def test_an_automatic_title_that_is_taken_gets_the_next_number(self, db: SessionDB) -> None:
        for session_id, title in {"a": "Trip", "b": "Trip #2", "c": "Trip #3"}.items():
            await talk(db, session_id)
            assert await db.set_auto_title_if_empty(session_id, "Trip")
            assert await db.get_session_title(session_id) == title

    async def test_of_two_numbers_the_last_one_counts(self, db: SessionDB) -> None:
        for session_id, title in {"a": "Trip", "b": "Trip #2 #3"}.items():
            await talk(db, session_id)
            await db.set_session_title(session_id, title)
        assert await db.get_next_title_in_lineage("Trip #2 #3", scope=ALICE) == "Trip #2 #4"
        await talk(db, "c")
        assert await db.set_auto_title_if_empty("c", "Trip #2 #3")
        assert await db.get_session_title("c") == "Trip #2 #4"

    @pytest.mark.parametrize("nothing", ["", '""', "\u200b"])
    async def test_nothing_is_no_automatic_title(self, db: SessionDB, nothing: str) -> None:
        await talk(db, "a")
        assert not await db.set_auto_title_if_empty("a", nothing)

    async def test_an_automatic_title_that_is_long_is_cut_and_an_unknown_session_gets_none(
        self, db: SessionDB
    ) -> None:
        await talk(db, "a")
        assert await db.set_auto_title_if_empty("a", "word " * 100)
        assert len(await db.get_session_title("a") or "") <= 80
        assert not await db.set_auto_title_if_empty("nowhere", "Trip")

    async def test_many_sessions_at_once_all_get_an_automatic_title_of_their_own(self, db: SessionDB) -> None:
        ids = [await talk(db, f"s{n}") for n in range(16)]
        assert all(await asyncio.gather(*(db.set_auto_title_if_empty(one, "Trip") for one in ids)))
        titles = {await db.get_session_title(one) for one in ids}
        assert titles == {"Trip", *(f"Trip #{n}" for n in range(2, 17))}

    async def test_the_next_title_is_what_nobody_in_sight_has(self, db: SessionDB) -> None:
        for session_id, title in {"a": "Trip", "b": "Trip #7", "c": "Trip to Rome"}.items():
            await talk(db, session_id)
            await db.set_session_title(session_id, title)
        assert await db.get_next_title_in_lineage("Trip", scope=ALICE) == "Trip #8"
        assert await db.get_next_title_in_lineage("Trip #7", scope=EVERYTHING) == "Trip #8"
        assert await db.get_next_title_in_lineage("Trip", scope=BOB) == "Trip"

    async def test_a_long_base_is_cut_so_that_its_number_fits(self, db: SessionDB) -> None:
        await talk(db, "a", "hello")
        await db.set_session_title("a", "x" * 100)
        await split(db, "a", "b", "c")
        assert await db.get_session_title("b") == "x" * 97 + " #2"
        assert await db.get_session_title("c") == "x" * 97 + " #3"


class ResolvingContract(DatabaseContract):
    """Tests the way from a text to one session, and to the tip of its conversation."""

    async def test_the_newest_numbered_title_wins_over_the_base(
        self, db: SessionDB, clock: FakeClock
    ) -> None:
        for session_id, title in {"a": "Trip #2", "b": "Trip #5", "c": "Trip #4", "d": "Trip"}.items():
            await talk(db, session_id)
            await db.set_session_title(session_id, title)
            clock.step(timedelta(seconds=1))
        assert await db.resolve_session_by_title("Trip", scope=ALICE) == "c"
        assert await db.resolve_session_by_title("Trip #5", scope=ALICE) == "b"

    async def test_only_a_number_continues_a_title(self, db: SessionDB) -> None:
        for session_id, title in {"a": "Trip", "b": "Trip #idea", "c": "Trip #2 and more"}.items():
            await talk(db, session_id)
            await db.set_session_title(session_id, title)
        assert await db.resolve_session_by_title("Trip", scope=ALICE) == "a"

    @pytest.mark.parametrize("wildcard", ["100%", "100_", "1%", "%", "_" * 4])
    async def test_no_character_of_a_title_stands_for_others(self, db: SessionDB, wildcard: str) -> None:
        await talk(db, "a")
        await db.set_session_title("a", "100x #2")
        assert await db.resolve_session_by_title(wildcard, scope=EVERYTHING) is None

    async def test_the_title_of_a_compressed_session_leads_to_its_tip(self, db: SessionDB) -> None:
        await talk(db, "a", "hello")
        await split(db, "a", "b", "c")
        await db.set_session_title("a", "Trip")
        assert await db.resolve_session_by_title("Trip", scope=ALICE) == "c"

    @pytest.mark.parametrize("title", ["", " ", "x" * 101, "Trip"])
    async def test_what_nobody_is_called_is_nobody(self, db: SessionDB, title: str) -> None:
        await talk(db, "a")
        assert await db.resolve_session_by_title(title, scope=EVERYTHING) is None

    async def test_a_title_never_leads_out_of_the_scope(self, db: SessionDB) -> None:
        await talk(db, "a")
        await talk(db, "b", user="bob")
        for one in "ab":
            await db.set_session_title(one, "Trip")
        assert await db.resolve_session_by_title("Trip", scope=ALICE) == "a"
        assert await db.resolve_session_by_title("Trip", scope=BOB) == "b"
        assert await db.resolve_session_by_title("Trip", scope=Scope()) is None
        with pytest.raises(AmbiguousSessionError) as caught:
            await db.resolve_session_by_title("Trip", scope=EVERYTHING)
        assert {one.session_id for one in caught.value.candidates} == {"a", "b"}

    async def test_a_session_is_meant_by_its_id_its_beginning_or_its_title(self, db: SessionDB) -> None:
        await talk(db, "20260301_aa")
        await talk(db, "20260302_bb")
        await db.set_session_title("20260302_bb", "Trip")
        for text in ("20260302_bb", "20260302", " 20260302_bb ", "Trip", " Trip\u200b"):
            assert await db.resolve_session(text, scope=ALICE) == "20260302_bb"

    async def test_whatever_names_a_conversation_leads_to_its_tip(self, db: SessionDB) -> None:
        await talk(db, "first_1", "hello")
        await db.set_session_title("first_1", "Trip")
        await split(db, "first_1", "second_1", "second_2")
        for text in ("first_1", "first", "second_1", "second", "second_2", "Trip", "Trip #2"):
            assert await db.resolve_session(text, scope=ALICE) == "second_2"

    async def test_the_beginning_of_several_ids_lists_them(self, db: SessionDB) -> None:
        await talk(db, "20260301_aa", source="telegram")
        await talk(db, "20260302_bb", source="telegram")
        await db.set_session_title("20260302_bb", "Trip")
        with pytest.raises(AmbiguousSessionError) as caught:
            await db.resolve_session("2026", scope=EVERYTHING)
        found = [(one.session_id, one.title, one.source) for one in caught.value.candidates]
        assert found == [("20260301_aa", None, "telegram"), ("20260302_bb", "Trip", "telegram")]
        assert "20260302_bb (telegram, Trip)" in str(caught.value)

    async def test_no_more_candidates_are_listed_than_a_person_reads(self, db: SessionDB) -> None:
        for n in range(30):
            await talk(db, f"2026_{n:02}")
        with pytest.raises(AmbiguousSessionError) as caught:
            await db.resolve_session("2026", scope=EVERYTHING)
        assert len(caught.value.candidates) == 10

    async def test_an_exact_id_and_an_exact_title_win_over_beginnings(self, db: SessionDB) -> None:
        for one in ("2026", "2026_a", "2027_a", "2027_b"):
            await talk(db, one)
        await db.set_session_title("2026_a", "2027")
        assert await db.resolve_session("2026", scope=ALICE) == "2026"
        assert await db.resolve_session("2027", scope=ALICE) == "2026_a"

    @pytest.mark.parametrize("text", ["", " ", "\n", "nothing", "%", "_", "a" * 200])
    async def test_what_fits_nothing_is_not_found(self, db: SessionDB, text: str) -> None:
        await talk(db, "2026_a")
        with pytest.raises(SessionNotFoundError):
            await db.resolve_session(text, scope=EVERYTHING)

    async def test_what_is_out_of_sight_is_not_found_and_makes_nothing_ambiguous(self, db: SessionDB) -> None:
        await talk(db, "2026_a")
        await talk(db, "2026_b", user="bob")
        assert await db.resolve_session("2026", scope=ALICE) == "2026_a"
        with pytest.raises(SessionNotFoundError):
            await db.resolve_session("2026_b", scope=ALICE)

    async def test_the_session_of_a_sub_agent_is_meant_only_by_its_whole_id(self, db: SessionDB) -> None:
        await talk(db, "2026_a", "hello")
        await talk(db, "2026_b", parent_session_id="2026_a", relation="delegate")
        assert await db.resolve_session("2026", scope=ALICE) == "2026_a"
        assert await db.resolve_session("2026_b", scope=ALICE) == "2026_b"


async def paged(db: SessionDB, size: int, scope: Scope = EVERYTHING, **asked: Any) -> list[str]:
    """Return the whole list, read page by page."""
    found: list[SessionSummary] = []
    after = None
    while page := await db.list_sessions_rich(scope=scope, limit=size, after=after, **asked):
        found += page
        after = page[-1]
        assert len(page) <= size
    return [one.session_id for one in found]


class ListingContract(DatabaseContract):
    """Tests lists of conversations."""

    @pytest.fixture(params=["recent", "recent_of_few"])
    def way(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
        """Return one of two ways to find a page, which must find the same."""
        if request.param == "recent":
            monkeypatch.setattr(lists, "FEW", 0)
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
