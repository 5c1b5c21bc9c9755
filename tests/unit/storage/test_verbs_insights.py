"""A report equals what plain Python counts over the same rows, for every scope, platform, span and zone."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from zoneinfo import ZoneInfo

import pytest

from gateway_sessions import InvalidInputError, Scope, SessionDB
from gateway_sessions.core.insights import Insights, TopSessions
from gateway_sessions.core.usage import add_up, sum_of, usage_of
from gateway_sessions.testing import FakeClock

NOW = datetime(2026, 3, 31, 12, 7, tzinfo=UTC)
EVERYTHING = Scope.operator()
PEOPLE = ["ann", "bob", None]
TOOLS = ["web", "shell", "read"]


def someone(*users: str, platform: str = "telegram") -> Scope:
    return Scope(owners=frozenset(f"main:{platform}:user:{user}" for user in users))


def some_sessions(rng: random.Random) -> list[SimpleNamespace]:
    made = []
    for number in range(30):
        user = rng.choice(PEOPLE)
        platform = rng.choice(["telegram", "discord"])
        began = NOW - timedelta(minutes=rng.randrange(50 * 24 * 60))
        session = SimpleNamespace(id=f"s{number:02}", platform=platform, began=began, last=began)
        session.user = user
        session.key = rng.choice([None, "agent:main:discord:dm:9"])
        owner = f"user:{user}" if user else "local"
        session.owner = f"main:{platform}:{owner}"
        session.messages, session.events = [], []
        for _ in range(rng.choice([0, 1, 5, 30])):
            at = began + timedelta(minutes=rng.randrange(int((NOW - began).total_seconds()) // 60 + 1))
            session.messages.append((at, rng.choice(TOOLS) if rng.random() < 0.4 else None))
            session.last = max(session.last, at)
        for event in range(rng.choice([0, 1, 6])):
            at = began + (NOW - began) * rng.random()
            facts = {"input_tokens": rng.randrange(999), "model": rng.choice(["m", "n", None])}
            facts |= {"task": rng.choice(["turn", "title"])}
            facts |= rng.choice([{}, {"estimated_cost_usd": rng.random()}, {"actual_cost_usd": rng.random()}])
            session.events.append(usage_of(f"{session.id}:{event}", at, **facts))
        made.append(session)
    return made


@pytest.fixture(scope="module")
def sessions() -> list[SimpleNamespace]:
    return some_sessions(random.Random(7))


@pytest.fixture
async def db(tmp_path: Path, sessions: list[SimpleNamespace]) -> AsyncIterator[SessionDB]:
    clock = FakeClock(NOW)
    async with SessionDB.open(tmp_path / "sessions.db", clock=clock, survives_power_cut=False) as opened:
        for one in sessions:
            await opened.create_session(
                one.id, one.platform, user_id=one.user, session_key=one.key, started_at=one.began
            )
            await opened.append_messages(
                one.id,
                [
                    {"role": "tool" if tool else "user", "content": "x", "tool_name": tool, "timestamp": at}
                    for at, tool in one.messages
                ],
            )
            for usage in one.events:
                facts = {name: getattr(usage, name) for name in usage.__struct_fields__}
                await opened.record_usage(one.id, facts.pop("event_id"), **facts)
        yield opened


def check(report: Insights, sessions: list[SimpleNamespace], since: datetime, zone: str) -> None:
    used = [one for one in sessions if one.last >= since]
    said = [(one, at, tool) for one in sessions for at, tool in one.messages if at >= since]
    events = [(one, event) for one in sessions for event in one.events if event.at >= since]
    platforms = sorted({one.platform for one in [*used, *(one for one, _ in events)]})
    assert sorted(one.platform for one in report.platforms) == platforms
    for found in report.platforms:
        name = found.platform
        ours = [one for one in used if one.platform == name]
        assert found.sessions == len(ours)
        assert found.started == sum(one.began >= since for one in ours)
        assert found.active == sum((one.last - max(one.began, since) for one in ours), timedelta())
        assert found.messages == sum(one.platform == name for one, _, _ in said)
        assert found.tool_calls == sum(one.platform == name and tool is not None for one, _, tool in said)
        assert found.used == add_up(sum_of(event) for one, event in events if one.platform == name)
    assert report.overview.used == add_up(sum_of(event) for _, event in events)
    assert report.overview.messages == len(said)
    models = {(part.model, part.task): part.used for part in report.models}
    assert set(models) == {(event.model, event.task) for _, event in events}
    for key, total in models.items():
        assert total == add_up(sum_of(event) for _, event in events if (event.model, event.task) == key)
    tools = Counter(tool for _, _, tool in said if tool is not None)
    assert {tool.name: tool.calls for tool in report.tools} == tools
    assert [tool.calls for tool in report.tools] == sorted(tools.values(), reverse=True)
    local = [at.astimezone(ZoneInfo(zone)) for _, at, _ in said]
    assert dict(report.activity.days) == Counter(at.date() for at in local)
    assert report.activity.weekdays == tuple(sum(at.weekday() == day for at in local) for day in range(7))
    assert report.activity.hours == tuple(sum(at.hour == hour for at in local) for hour in range(24))
    check_top(report.top, used)


def check_top(top: TopSessions, used: list[SimpleNamespace]) -> None:
    def best(amount) -> list[tuple[str, int]]:
        ordered = sorted(used, key=lambda one: (-amount(one), one.id))
        return [(one.id, amount(one)) for one in ordered if amount(one)][:5]

    turns = {
        one.id: add_up(sum_of(event) for event in one.events if event.task == "turn").total_tokens
        for one in used
    }
    lasting = [(one.session_id, one.amount) for one in top.longest]
    assert lasting == best(lambda one: int((one.last - one.began).total_seconds()))
    assert [(one.session_id, one.amount) for one in top.most_messages] == best(lambda one: len(one.messages))
    assert [(one.session_id, one.amount) for one in top.most_tokens] == best(lambda one: turns[one.id])


SCOPES = {
    EVERYTHING: lambda one: True,
    someone("ann"): lambda one: one.owner == "main:telegram:user:ann",
    someone("ann", "bob"): lambda one: one.platform == "telegram" and one.user,
    Scope.lane("agent:main:discord:dm:9"): lambda one: one.key is not None,
    someone("nobody"): lambda one: False,
    Scope(): lambda one: False,
}


@pytest.mark.parametrize("source", [None, "telegram", "signal"])
async def test_a_report_counts_exactly_what_its_scope_sees(db: SessionDB, sessions, source):
    for scope, visible in SCOPES.items():
        shown = [one for one in sessions if visible(one) and source in (None, one.platform)]
        for days, zone in ((30, "UTC"), (3.5, "Asia/Kathmandu"), (400, "America/St_Johns")):
            report = await db.insights(days, scope=scope, source=source, zone=zone)
            since = NOW - timedelta(days=days)
            assert (report.since, report.until, report.zone, report.source) == (since, NOW, zone, source)
            check(report, shown, since, zone)
            assert report.empty is (not report.platforms)


async def test_an_empty_store_has_an_empty_report_of_any_span_that_is_one(tmp_path: Path):
    async with SessionDB.open(tmp_path / "sessions.db", survives_power_cut=False) as db:
        report = await db.insights(scope=EVERYTHING)
        assert report.empty
        assert (report.overview.messages, report.overview.used.cost_usd) == (0, 0)
        for days in (0, -1, float("nan"), 1e9, "many"):
            with pytest.raises(InvalidInputError, match="days"):
                await db.insights(days, scope=EVERYTHING)
