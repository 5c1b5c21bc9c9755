"""Contract tests of use, costs and the insights report.

A report must equal the counts of plain Python over the same rows, for every scope, source, span and zone.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

import pytest

from gateway_sessions import InvalidInputError, Scope, SessionDB, SessionNotFoundError
from gateway_sessions.testing.clock import FakeClock
from gateway_sessions.testing.contract.database.bench import EVERYTHING, DatabaseContract, record, split, talk
from gateway_sessions.testing.inside import add_usage_sums, make_usage, sum_of_event
from gateway_sessions.usage import CostStatus, Insights, TopSessions, Usage


class UsageContract(DatabaseContract):
    """Tests that each event counts once, and that sums are those of the events."""

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


TOOLS: Final = ("web", "shell", "read")
LANE: Final = "agent:main:discord:dm:9"


@dataclass
class Past:
    """Holds a session as the test remembers it."""

    id: str
    platform: str
    user: str | None
    key: str | None
    began: datetime
    last: datetime
    messages: list[tuple[datetime, str | None]] = field(default_factory=list[tuple[datetime, str | None]])
    events: list[Usage] = field(default_factory=list[Usage])

    @property
    def owner(self) -> str:
        """Return its owner."""
        return f"main:{self.platform}:" + (f"user:{self.user}" if self.user else "local")


def some_past(chance: random.Random, now: datetime) -> list[Past]:
    """Make sessions of some weeks, with messages and use."""
    made: list[Past] = []
    for number in range(30):
        began = now - timedelta(minutes=chance.randrange(50 * 24 * 60))
        platform = chance.choice(["telegram", "discord"])
        user, key = chance.choice(["ann", "bob", None]), chance.choice([None, LANE])
        past = Past(f"s{number:02}", platform, user, key, began, began)
        for _ in range(chance.choice([0, 1, 5, 30])):
            at = began + timedelta(minutes=chance.randrange(int((now - began).total_seconds()) // 60 + 1))
            past.messages.append((at, chance.choice(TOOLS) if chance.random() < 0.4 else None))
            past.last = max(past.last, at)
        for event in range(chance.choice([0, 1, 6])):
            past.events.append(
                make_usage(
                    f"{past.id}:{event}",
                    began + (now - began) * chance.random(),
                    input_tokens=chance.randrange(999),
                    model=chance.choice(["m", "n", None]),
                    task=chance.choice(["turn", "title"]),
                    estimated_cost_usd=chance.choice([None, chance.random()]),
                )
            )
        made.append(past)
    return made


async def lived(db: SessionDB, past: Sequence[Past]) -> None:
    """Write these sessions into a database."""
    for one in past:
        await db.create_session(
            one.id, one.platform, user_id=one.user, session_key=one.key, started_at=one.began
        )
        said = [
            {"role": "tool" if tool else "user", "content": "x", "tool_name": tool, "timestamp": at}
            for at, tool in one.messages
        ]
        await db.append_messages(one.id, said)
        for usage in one.events:
            await db.record_usage(
                one.id,
                usage.event_id,
                at=usage.at,
                input_tokens=usage.input_tokens,
                model=usage.model,
                task=usage.task,
                estimated_cost_usd=usage.estimated_cost_usd,
            )


def check(report: Insights, past: Sequence[Past], since: datetime, zone: str) -> None:
    """Compare a report with these sessions."""
    used = [one for one in past if one.last >= since]
    events = [(one, event) for one in past for event in one.events if event.at >= since]
    platforms = {one.platform for one in [*used, *(one for one, _ in events)]}
    assert {one.platform for one in report.platforms} == platforms
    for found in report.platforms:
        name = found.platform
        ours = [one for one in used if one.platform == name]
        said = [tool for one in ours for at, tool in one.messages if at >= since]
        assert (found.sessions, found.started) == (len(ours), sum(one.began >= since for one in ours))
        assert found.active == sum((one.last - max(one.began, since) for one in ours), timedelta())
        assert (found.messages, found.tool_calls) == (len(said), len([one for one in said if one]))
        assert found.used == add_usage_sums(
            sum_of_event(event) for one, event in events if one.platform == name
        )
    models = {(part.model, part.task): part.used for part in report.models}
    assert set(models) == {(event.model, event.task) for _, event in events}
    for key, total in models.items():
        assert total == add_usage_sums(
            sum_of_event(event) for _, event in events if (event.model, event.task) == key
        )
    check_messages(report, [said for one in past for said in one.messages if said[0] >= since], zone)
    check_top(report.top, used)


def check_messages(report: Insights, said: Sequence[tuple[datetime, str | None]], zone: str) -> None:
    """Compare the messages of a report with these."""
    assert report.overview.messages == len(said)
    tools = Counter(tool for _, tool in said if tool is not None)
    assert {tool.name: tool.calls for tool in report.tools} == tools
    assert [tool.calls for tool in report.tools] == sorted(tools.values(), reverse=True)
    local = [at.astimezone(ZoneInfo(zone)) for at, _ in said]
    assert dict(report.activity.days) == Counter(at.date() for at in local)
    assert report.activity.weekdays == tuple(sum(at.weekday() == day for at in local) for day in range(7))
    assert report.activity.hours == tuple(sum(at.hour == hour for at in local) for hour in range(24))


def check_top(top: TopSessions, used: Sequence[Past]) -> None:
    """Compare the outstanding sessions of a report with the right ones."""

    def best(amount: Callable[[Past], int]) -> list[tuple[str, int]]:
        ordered = sorted(used, key=lambda one: (-amount(one), one.id))
        return [(one.id, amount(one)) for one in ordered if amount(one)][:5]

    turns = {
        one.id: add_usage_sums(
            sum_of_event(event) for event in one.events if event.task == "turn"
        ).total_tokens
        for one in used
    }
    lasting = [(one.session_id, one.amount) for one in top.longest]
    assert lasting == best(lambda one: int((one.last - one.began).total_seconds()))
    assert [(one.session_id, one.amount) for one in top.most_messages] == best(lambda one: len(one.messages))
    assert [(one.session_id, one.amount) for one in top.most_tokens] == best(lambda one: turns[one.id])


def someone(*users: str, platform: str = "telegram") -> Scope:
    """Return the scope of these people."""
    return Scope(owners=frozenset(f"main:{platform}:user:{user}" for user in users))


SCOPES: Final[Mapping[Scope, Callable[[Past], bool]]] = {
    EVERYTHING: lambda one: True,
    someone("ann"): lambda one: one.owner == "main:telegram:user:ann",
    someone("ann", "bob"): lambda one: one.platform == "telegram" and one.user is not None,
    Scope.lane(LANE): lambda one: one.key is not None,
    someone("nobody"): lambda one: False,
    Scope(): lambda one: False,
}


class InsightsContract(DatabaseContract):
    """Tests the insights report."""

    async def test_a_report_counts_exactly_what_its_scope_sees(self, db: SessionDB, clock: FakeClock) -> None:
        past = some_past(random.Random(7), clock.now())
        await lived(db, past)
        for scope, visible in SCOPES.items():
            for source, days, zone in (
                (None, 30, "UTC"),
                ("telegram", 3.5, "Asia/Kathmandu"),
                (None, 400, "America/St_Johns"),
                ("signal", 30, "UTC"),
            ):
                shown = [one for one in past if visible(one) and source in (None, one.platform)]
                report = await db.insights(days, scope=scope, source=source, zone=zone)
                since = clock.now() - timedelta(days=days)
                assert (report.since, report.until) == (since, clock.now())
                assert (report.zone, report.source) == (zone, source)
                check(report, shown, since, zone)
                assert report.empty is (not report.platforms)

    async def test_nothing_makes_an_empty_report_and_no_span_makes_none(self, db: SessionDB) -> None:
        report = await db.insights(scope=EVERYTHING)
        assert report.empty
        assert (report.overview.messages, report.overview.used.cost_usd) == (0, 0)
        for days in (0, -1, float("nan"), 1e9):
            with pytest.raises(InvalidInputError, match="days"):
                await db.insights(days, scope=EVERYTHING)
        with pytest.raises(InvalidInputError, match="zone"):
            await db.insights(scope=EVERYTHING, zone="Nowhere")
