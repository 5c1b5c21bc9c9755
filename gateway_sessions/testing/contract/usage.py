"""An event counts once, and every sum is that of its events."""

from __future__ import annotations

from datetime import timedelta

import pytest

from gateway_sessions import CostStatus, InvalidInputError, SessionDB, SessionNotFoundError
from gateway_sessions.testing.clock import FakeClock
from gateway_sessions.testing.contract.database import DatabaseContract
from gateway_sessions.testing.contract.talks import record, split, talk


class UsageContract(DatabaseContract):
    """What models were used for, and what that cost."""

    async def test_the_counters_of_a_session_are_the_sums_of_its_turns(
        self, db: SessionDB, session: str
    ) -> None:
        assert await db.record_usage(
            session,
            "e1",
            model="m",
            input_tokens=10,
            output_tokens=20,
            cache_read_tokens=300,
            cache_write_tokens=4000,
            reasoning_tokens=7,
            estimated_cost_usd=0.25,
        )
        assert await db.record_usage(session, "e2", model="n", input_tokens=1, estimated_cost_usd=0.1)
        assert await db.record_usage(session, "e3", task="title", input_tokens=500)
        kept = await record(db, session)
        assert (kept.input_tokens, kept.output_tokens, kept.cache_read_tokens) == (11, 20, 300)
        assert (kept.cache_write_tokens, kept.reasoning_tokens, kept.api_call_count) == (4000, 7, 2)
        assert (kept.estimated_cost_usd, kept.actual_cost_usd, kept.cost_status) == (0.35, None, "estimated")
        assert kept.model == "m"

    async def test_what_a_session_used_is_told_by_model_and_task(self, db: SessionDB, session: str) -> None:
        await db.record_usage(session, "e1", model="m", input_tokens=10)
        await db.record_usage(session, "e2", model="m", output_tokens=5)
        await db.record_usage(session, "e3", model="m", task="title", input_tokens=3)
        used = await db.usage_of_session(session)
        assert {(one.model, one.task): one.used.total_tokens for one in used.parts} == {
            ("m", "turn"): 15,
            ("m", "title"): 3,
        }
        assert (used.turns.total_tokens, used.auxiliary.total_tokens, used.total.events) == (15, 3, 3)

    async def test_an_event_counts_once_however_often_it_is_told(self, db: SessionDB, session: str) -> None:
        assert await db.record_usage(session, "e1", input_tokens=10)
        before = await record(db, session)
        assert not await db.record_usage(session, "e1", input_tokens=99)
        assert await record(db, session) == before

    async def test_one_event_cannot_belong_to_two_sessions(self, db: SessionDB, session: str) -> None:
        await talk(db, "other")
        await db.record_usage(session, "e1")
        with pytest.raises(InvalidInputError, match="event_id 'e1'"):
            await db.record_usage("other", "e1")

    async def test_a_sum_with_an_unknown_price_is_unknown_until_the_bill_comes(
        self, db: SessionDB, session: str
    ) -> None:
        await db.record_usage(session, "e1", estimated_cost_usd=0.5)
        await db.record_usage(session, "e2", input_tokens=1)
        used = (await db.usage_of_session(session)).total
        assert (used.known_cost_usd, used.cost_usd, used.cost_status) == (0.5, None, CostStatus.UNKNOWN)
        assert await db.amend_usage("e1", 0.4, cost_source="bill")
        assert await db.amend_usage("e2", 0.1, cost_source="bill")
        assert not await db.amend_usage("e2", 7)
        used = (await db.usage_of_session(session)).total
        assert (used.known_cost_usd, used.cost_usd, used.cost_status) == (0.5, 0.5, CostStatus.ACTUAL)
        kept = await record(db, session)
        assert (kept.estimated_cost_usd, kept.actual_cost_usd) == (0.5, 0.5)
        assert (kept.cost_status, kept.cost_source) == ("actual", "bill")

    async def test_a_bill_is_a_number_and_belongs_to_an_event(self, db: SessionDB) -> None:
        with pytest.raises(InvalidInputError, match="never counted"):
            await db.amend_usage("e1", 0.4)
        with pytest.raises(InvalidInputError, match="actual_cost_usd"):
            await db.amend_usage("e1", None)  # type: ignore[arg-type]  # what a caller gets wrong

    async def test_what_a_session_used_stays_with_it_when_it_is_compressed(
        self, db: SessionDB, session: str
    ) -> None:
        await db.record_usage(session, "e1", input_tokens=10)
        await split(db, session, "next")
        await db.record_usage("next", "e2", input_tokens=1)
        used = [(await db.usage_of_session(one)).total.input_tokens for one in (session, "next")]
        assert used == [10, 1]

    async def test_a_session_that_does_not_exist_uses_nothing(self, db: SessionDB) -> None:
        for call in (db.record_usage("gone", "e1"), db.usage_of_session("gone"), db.spent("gone")):
            with pytest.raises(SessionNotFoundError):
                await call
        for call in (db.record_usage("../x", "e1"), db.usage_of_session("../x"), db.spent("../x")):
            with pytest.raises(InvalidInputError):
                await call

    async def test_what_cannot_have_been_used_is_refused(self, db: SessionDB, session: str) -> None:
        for call in (
            db.record_usage(session, ""),
            db.record_usage(session, "e", input_tokens=-1),
            db.record_usage(session, "e", estimated_cost_usd=float("nan")),
            db.record_usage(session, "e", at="soon"),
        ):
            with pytest.raises(InvalidInputError):
                await call
        assert (await db.usage_of_session(session)).total.events == 0

    async def test_what_was_spent_is_told_for_the_session_the_owner_and_the_day(
        self, db: SessionDB, clock: FakeClock
    ) -> None:
        for session_id, user in (("mine", "alice"), ("also", "alice"), ("other", "bob")):
            await talk(db, session_id, user=user)
        now = clock.now()
        used = [
            ("mine", 0, 1),
            ("mine", 30, 10),
            ("also", 0, 100),
            ("other", 0, 1000),
            ("other", -30, 10_000),
        ]
        for session_id, hours_ago, tokens in used:
            await db.record_usage(
                session_id,
                f"e{tokens}",
                at=now - timedelta(hours=hours_ago),
                input_tokens=tokens,
                task="title" if tokens == 1 else "turn",
            )
        spent = await db.spent("mine")
        assert spent.session.total_tokens == 11
        assert spent.person.total_tokens == 101
        assert spent.day.total_tokens == 1101
        assert spent.day_began <= now < spent.day_ends == spent.day_began + timedelta(days=1)

    async def test_what_was_spent_belongs_to_the_day_of_a_zone(self, db: SessionDB, session: str) -> None:
        day = (await db.spent(session, zone="Asia/Tokyo")).day_began
        assert day.utcoffset() == timedelta(0)
        assert day.hour == 15
        await db.record_usage(session, "before", at=day - timedelta(microseconds=1))
        await db.record_usage(session, "after", at=day)
        assert (await db.spent(session, zone="Asia/Tokyo")).day.events == 1
        with pytest.raises(InvalidInputError, match="zone"):
            await db.spent(session, zone="Nowhere")
