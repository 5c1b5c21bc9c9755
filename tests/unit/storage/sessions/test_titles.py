"""Titles: unique for each owner, cleaned, numbered along a lineage, and a way to find a session again."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from gateway_sessions import (
    AmbiguousSessionError,
    InvalidTitleError,
    Scope,
    SessionDB,
    SessionNotFoundError,
    TitleTakenError,
)
from tests.unit.storage.sessions.talks import ALICE, BOB, EVERYTHING, execute, split, talk

pytestmark = pytest.mark.asyncio(loop_scope="module")


def titled_by(db: SessionDB, session_id: str) -> object:
    return execute(db, "SELECT title_by FROM sessions WHERE session_id = ?", session_id)[0][0]


class TestSetting:
    async def test_a_session_is_called_what_a_person_says(self, db):
        await talk(db, "a")
        assert await db.set_session_title("a", "  Trip\tto\u200b Rome ")
        assert await db.get_session_title("a") == "Trip to Rome"
        assert titled_by(db, "a") == "person"

    @pytest.mark.parametrize("nothing", ["", "  ", "\u200b", None])
    async def test_nothing_clears_the_title(self, db, nothing):
        await talk(db, "a")
        await talk(db, "b")
        await db.set_session_title("a", "Trip")
        assert await db.set_session_title("a", nothing)
        assert await db.set_session_title("b", nothing)
        assert (await db.get_session_title("a"), titled_by(db, "a")) == (None, None)

    async def test_a_session_that_is_not_there_cannot_be_called_anything(self, db):
        assert not await db.set_session_title("a", "Trip")
        assert await db.get_session_title("a") is None

    async def test_a_title_that_is_too_long_is_refused(self, db):
        await talk(db, "a")
        with pytest.raises(InvalidTitleError):
            await db.set_session_title("a", "x" * 101)

    async def test_a_session_out_of_sight_is_not_renamed(self, db):
        await talk(db, "a")
        assert not await db.set_session_title("a", "Trip", scope=BOB)
        assert await db.set_session_title("a", "Trip", scope=ALICE)

    async def test_it_may_be_called_the_same_again_and_keeps_the_title_when_it_ends(self, db):
        await talk(db, "a")
        await db.set_session_title("a", "Trip")
        assert await db.set_session_title("a", "Trip")
        await db.end_session("a", "user_exit")
        assert await db.get_session_title("a") == "Trip"


class TestUniqueness:
    async def test_two_sessions_of_one_person_cannot_have_one_title(self, db):
        await talk(db, "a")
        await talk(db, "b")
        await db.set_session_title("a", "Trip")
        with pytest.raises(TitleTakenError, match="another session") as caught:
            await db.set_session_title("b", "Trip")
        assert (caught.value.title, caught.value.holder) == ("Trip", None)
        assert await db.get_session_title("b") is None

    async def test_the_holder_is_named_to_those_who_see_it(self, db):
        await talk(db, "a", session_key="lane:a")
        await talk(db, "b", session_key="lane:b")
        await db.set_session_title("a", "Trip")
        for scope, holder in ((ALICE, "a"), (EVERYTHING, "a"), (Scope.lane("lane:b"), None)):
            with pytest.raises(TitleTakenError) as caught:
                await db.set_session_title("b", "Trip", scope=scope)
            assert caught.value.holder == holder

    async def test_two_people_may_use_the_same_title(self, db):
        await talk(db, "a")
        await talk(db, "b", user="bob")
        assert await db.set_session_title("a", "Trip")
        assert await db.set_session_title("b", "Trip")

    async def test_upper_and_lower_case_are_different_titles(self, db):
        await talk(db, "a")
        await talk(db, "b")
        assert await db.set_session_title("a", "Trip")
        assert await db.set_session_title("b", "trip")

    async def test_what_a_session_continues_passes_the_title_on(self, db):
        await talk(db, "a", "hello")
        await db.set_session_title("a", "Trip")
        await split(db, "a", "b", "c")
        assert await db.set_session_title("c", "Trip")
        assert [await db.get_session_title(one) for one in "abc"] == [None, "Trip #2", "Trip"]

    async def test_a_continuation_does_not_pass_its_title_back(self, db):
        await talk(db, "a", "hello")
        await db.set_session_title("a", "Trip")
        await split(db, "a", "b")
        with pytest.raises(TitleTakenError):
            await db.set_session_title("a", "Trip #2")

    async def test_a_branch_is_another_conversation_and_takes_no_title_away(self, db):
        await talk(db, "a", "hello")
        await db.set_session_title("a", "Trip")
        await db.branch_session("a", "b")
        with pytest.raises(TitleTakenError):
            await db.set_session_title("b", "Trip")

    async def test_of_many_who_want_a_title_one_gets_it(self, db):
        ids = [await talk(db, f"s{n}") for n in range(16)]
        outcomes = await asyncio.gather(
            *(db.set_session_title(one, "Trip") for one in ids), return_exceptions=True
        )
        assert outcomes.count(True) == 1
        assert sum(isinstance(one, TitleTakenError) for one in outcomes) == 15


class TestAutomatic:
    async def test_a_session_without_a_title_gets_one(self, db):
        await talk(db, "a")
        assert await db.set_auto_title_if_empty("a", 'Title: "Trip"')
        assert (await db.get_session_title("a"), titled_by(db, "a")) == ("Trip", "automatic")

    async def test_a_title_is_never_overwritten(self, db):
        await talk(db, "a")
        await db.set_session_title("a", "Mine")
        assert not await db.set_auto_title_if_empty("a", "Trip")
        await talk(db, "b")
        assert await db.set_auto_title_if_empty("b", "Trip")
        assert not await db.set_auto_title_if_empty("b", "Other")
        assert [await db.get_session_title(one) for one in "ab"] == ["Mine", "Trip"]

    async def test_a_taken_title_gets_the_next_number(self, db):
        for session_id, title in {"a": "Trip", "b": "Trip #2", "c": "Trip #3"}.items():
            await talk(db, session_id)
            assert await db.set_auto_title_if_empty(session_id, "Trip")
            assert await db.get_session_title(session_id) == title

    @pytest.mark.parametrize("nothing", ["", '""', "\u200b"])
    async def test_nothing_is_no_title(self, db, nothing):
        await talk(db, "a")
        assert not await db.set_auto_title_if_empty("a", nothing)

    async def test_a_long_one_is_cut_and_an_unknown_session_has_none(self, db):
        await talk(db, "a")
        assert await db.set_auto_title_if_empty("a", "word " * 100)
        assert len(await db.get_session_title("a") or "") <= 80
        assert not await db.set_auto_title_if_empty("nowhere", "Trip")

    async def test_many_at_once_all_get_a_title_of_their_own(self, db):
        ids = [await talk(db, f"s{n}") for n in range(16)]
        assert all(await asyncio.gather(*(db.set_auto_title_if_empty(one, "Trip") for one in ids)))
        titles = {await db.get_session_title(one) for one in ids}
        assert titles == {"Trip", *(f"Trip #{n}" for n in range(2, 17))}


class TestLineage:
    async def test_the_next_title_is_what_nobody_in_sight_has(self, db):
        for session_id, title in {"a": "Trip", "b": "Trip #7", "c": "Trip to Rome"}.items():
            await talk(db, session_id)
            await db.set_session_title(session_id, title)
        assert await db.get_next_title_in_lineage("Trip", scope=ALICE) == "Trip #8"
        assert await db.get_next_title_in_lineage("Trip #7", scope=EVERYTHING) == "Trip #8"
        assert await db.get_next_title_in_lineage("Trip", scope=BOB) == "Trip"

    async def test_a_long_base_is_cut_so_that_its_number_fits(self, db):
        await talk(db, "a", "hello")
        await db.set_session_title("a", "x" * 100)
        await split(db, "a", "b", "c")
        assert await db.get_session_title("b") == "x" * 97 + " #2"
        assert await db.get_session_title("c") == "x" * 97 + " #3"


class TestResolvingTitles:
    async def test_the_newest_numbered_one_wins_over_the_base(self, db, clock):
        for session_id, title in {"a": "Trip #2", "b": "Trip #5", "c": "Trip #4", "d": "Trip"}.items():
            await talk(db, session_id)
            await db.set_session_title(session_id, title)
            clock.step(timedelta(seconds=1))
        assert await db.resolve_session_by_title("Trip", scope=ALICE) == "c"
        assert await db.resolve_session_by_title("Trip #5", scope=ALICE) == "b"

    async def test_only_a_number_continues_a_title(self, db):
        for session_id, title in {"a": "Trip", "b": "Trip #idea", "c": "Trip #2 and more"}.items():
            await talk(db, session_id)
            await db.set_session_title(session_id, title)
        assert await db.resolve_session_by_title("Trip", scope=ALICE) == "a"

    @pytest.mark.parametrize("wildcard", ["100%", "100_", "1%", "%", "_" * 4])
    async def test_characters_are_what_they_are(self, db, wildcard):
        await talk(db, "a")
        await db.set_session_title("a", "100x #2")
        assert await db.resolve_session_by_title(wildcard, scope=EVERYTHING) is None

    async def test_the_title_of_a_compressed_session_leads_to_its_tip(self, db):
        await talk(db, "a", "hello")
        await split(db, "a", "b", "c")
        await db.set_session_title("a", "Trip")
        assert await db.resolve_session_by_title("Trip", scope=ALICE) == "c"

    @pytest.mark.parametrize("title", ["", " ", "x" * 101, "Trip"])
    async def test_what_nobody_is_called_is_nobody(self, db, title):
        await talk(db, "a")
        assert await db.resolve_session_by_title(title, scope=EVERYTHING) is None

    async def test_it_never_crosses_the_scope(self, db):
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


class TestResolving:
    async def test_by_id_by_its_beginning_and_by_title(self, db):
        await talk(db, "20260301_aa")
        await talk(db, "20260302_bb")
        await db.set_session_title("20260302_bb", "Trip")
        for text in ("20260302_bb", "20260302", " 20260302_bb ", "Trip", " Trip\u200b"):
            assert await db.resolve_session(text, scope=ALICE) == "20260302_bb"

    async def test_all_lead_to_the_tip(self, db):
        await talk(db, "first_1", "hello")
        await db.set_session_title("first_1", "Trip")
        await split(db, "first_1", "second_1", "second_2")
        for text in ("first_1", "first", "second_1", "second", "second_2", "Trip", "Trip #2"):
            assert await db.resolve_session(text, scope=ALICE) == "second_2"

    async def test_a_beginning_of_several_lists_them(self, db):
        await talk(db, "20260301_aa", source="telegram")
        await talk(db, "20260302_bb", source="telegram")
        await db.set_session_title("20260302_bb", "Trip")
        with pytest.raises(AmbiguousSessionError) as caught:
            await db.resolve_session("2026", scope=EVERYTHING)
        found = [(one.session_id, one.title, one.source) for one in caught.value.candidates]
        assert found == [("20260301_aa", None, "telegram"), ("20260302_bb", "Trip", "telegram")]
        assert "20260302_bb (telegram, Trip)" in str(caught.value)

    async def test_no_more_candidates_are_listed_than_a_person_reads(self, db):
        for n in range(30):
            await talk(db, f"2026_{n:02}")
        with pytest.raises(AmbiguousSessionError) as caught:
            await db.resolve_session("2026", scope=EVERYTHING)
        assert len(caught.value.candidates) == 10

    async def test_an_exact_id_and_an_exact_title_win_over_beginnings(self, db):
        for one in ("2026", "2026_a", "2027_a", "2027_b"):
            await talk(db, one)
        await db.set_session_title("2026_a", "2027")
        assert await db.resolve_session("2026", scope=ALICE) == "2026"
        assert await db.resolve_session("2027", scope=ALICE) == "2026_a"

    async def test_many_sessions_of_one_conversation_are_one(self, db):
        ids = [f"2026_{n:03}" for n in range(202)]
        await talk(db, ids[0], "hello")
        await split(db, *ids)
        assert await db.resolve_session("2026", scope=ALICE) == ids[-1]
        await talk(db, "2026_z")
        with pytest.raises(AmbiguousSessionError):
            await db.resolve_session("2026", scope=ALICE)

    @pytest.mark.parametrize("text", ["", " ", "\n", "nothing", "%", "_", "a" * 200])
    async def test_what_fits_nothing_is_not_found(self, db, text):
        await talk(db, "2026_a")
        with pytest.raises(SessionNotFoundError):
            await db.resolve_session(text, scope=EVERYTHING)

    async def test_what_is_out_of_sight_is_not_found_and_makes_nothing_ambiguous(self, db):
        await talk(db, "2026_a")
        await talk(db, "2026_b", user="bob")
        assert await db.resolve_session("2026", scope=ALICE) == "2026_a"
        with pytest.raises(SessionNotFoundError):
            await db.resolve_session("2026_b", scope=ALICE)

    async def test_the_session_of_a_sub_agent_is_meant_only_by_its_whole_id(self, db):
        await talk(db, "2026_a", "hello")
        await talk(db, "2026_b", parent_session_id="2026_a", relation="delegate")
        assert await db.resolve_session("2026", scope=ALICE) == "2026_a"
        assert await db.resolve_session("2026_b", scope=ALICE) == "2026_b"

    async def test_a_tip_out_of_sight_does_not_lead_there(self, db):
        await talk(db, "a", "hello")
        await split(db, "a", "b", "c")
        execute(db, "UPDATE sessions SET owner = 'main:cli:user:bob' WHERE session_id = 'c'")
        assert await db.resolve_session("a", scope=ALICE) == "b"
        assert await db.resolve_session("c", scope=BOB) == "c"
