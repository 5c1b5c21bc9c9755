"""The session that somebody means by its id, the beginning of that, or its title."""

from __future__ import annotations

from datetime import timedelta

import pytest

from gateway_sessions import AmbiguousSessionError, Scope, SessionDB, SessionNotFoundError
from gateway_sessions.testing.clock import FakeClock
from gateway_sessions.testing.contract.database import DatabaseContract
from gateway_sessions.testing.contract.talks import ALICE, BOB, EVERYTHING, split, talk


class ResolvingContract(DatabaseContract):
    """From what a person types to one session, and to the tip of its conversation."""

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
