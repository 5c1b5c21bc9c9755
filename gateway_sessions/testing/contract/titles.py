"""What sessions are called: one line, unique for each owner, numbered along a lineage."""

from __future__ import annotations

import asyncio

import pytest

from gateway_sessions import InvalidTitleError, Scope, SessionDB, TitleTakenError
from gateway_sessions.testing.contract.database import DatabaseContract
from gateway_sessions.testing.contract.talks import ALICE, BOB, EVERYTHING, record, split, talk


async def titled_by(db: SessionDB, session_id: str) -> str | None:
    """Who gave a session its title."""
    return (await record(db, session_id)).title_by


class TitlesContract(DatabaseContract):
    """Titles that people give, and those that come about by themselves."""

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
