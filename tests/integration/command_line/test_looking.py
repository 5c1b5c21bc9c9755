"""What happened, why a lane is as it is, and what other policies would have done."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

from gateway_sessions import Config, SessionDB, SessionResetPolicy, SessionStore
from gateway_sessions.core.sessions.reasons import EndReason
from gateway_sessions.core.sessions.reset_policy import ResetMode
from gateway_sessions.testing import FakeClock
from tests.integration.command_line.conftest import Gsess, key_of_person, source_of_person
from tests.integration.command_line.test_commands import session_of

CONFIG = """
timezone: Europe/Berlin
platforms:
  telegram:
    session_reset:
      mode: daily
      at_hour: 3
"""


def test_insights_report_the_last_days(gsess: Gsess, home: Path):
    ended = gsess("--home", home, "insights", "--days", 2)
    assert "telegram" in ended.out
    assert "4, 4 of them new" in ended.out
    assert gsess("--home", home, "insights", "--json").json_answer["results"][0]["platforms"]


def test_insights_tell_the_cost_and_what_stands_out(gsess: Gsess, home: Path):
    assert "Cost" not in gsess("--home", home, "insights").out

    async def use(event: str, price: float | None) -> None:
        async with SessionStore.open(home) as store:
            await store.db.record_usage(
                "loose", event, model="m", input_tokens=1200, estimated_cost_usd=price
            )

    asyncio.run(use("a", 0.25))
    told = gsess("--home", home, "insights").lines
    assert ["Cost", "$0.2500", "(estimated)"] in [line.split() for line in told]
    assert ["most", "tokens", "1,200", "tokens", "cli", "—", "loose"] in [line.split() for line in told]
    assert [line.split()[2:4] for line in told if line.startswith("most messages")] == [["2", "messages"]]
    asyncio.run(use("b", None))
    told = gsess("--home", home, "insights").lines
    [cost] = [line for line in told if line.startswith("Cost")]
    assert "unknown for 1 of 2 calls" in cost
    assert "$0.2500" in cost


def test_insights_need_no_message(gsess: Gsess, empty: Path):
    async def make() -> None:
        async with SessionStore.open(empty) as store:
            await store.db.create_session("silent", "cli")

    asyncio.run(make())
    assert "1, 1 of them new" in gsess("--home", empty, "insights").out


def test_a_session_that_no_lane_has_is_shown_and_not_explained(gsess: Gsess, empty: Path):
    async def make() -> None:
        async with SessionStore.open(empty) as store:
            await store.db.create_session("imported", "cli")

    asyncio.run(make())
    assert gsess("--home", empty, "sessions", "show", "imported").code == 0
    ended = gsess("--home", empty, "explain", "imported")
    assert ended.code == 2
    assert "session 'imported' is of no lane" in ended.err


def test_a_lane_is_explained_with_the_line_that_decides(gsess: Gsess, home: Path):
    (home / "config.yaml").write_text(CONFIG)
    ended = gsess("--home", home, "explain", "my project")
    assert "platforms.telegram.session_reset.at_hour: 3" in ended.out
    assert "line 7" in ended.out
    assert "03:00:00 Europe/Berlin" in ended.out
    assert "3 messages" in ended.out
    assert f"goes on with {session_of(home, 1)}" in ended.out
    answer = gsess("--home", home, "explain", key_of_person(1), "--json").json_answer
    assert answer["results"][0]["policy"]["path"] == "platforms.telegram.session_reset"


def test_each_field_of_a_policy_is_explained_by_its_line(gsess: Gsess, home: Path):
    (home / "config.yaml").write_text(
        "timezone: Europe/Berlin\nsession_reset: {mode: daily}\n"
        "platforms: {telegram: {session_reset: {at_hour: 3}}}\n"
    )
    told = gsess("--home", home, "explain", key_of_person(0)).out
    assert f"session_reset.mode: daily ({home / 'config.yaml'}, line 2)" in told
    assert f"platforms.telegram.session_reset.at_hour: 3 ({home / 'config.yaml'}, line 3)" in told
    assert f"timezone: Europe/Berlin ({home / 'config.yaml'}, line 1)" in told
    assert "a direct chat has one session" in told
    assert "Begun" in told
    assert "the default" not in told


def test_a_policy_of_the_session_is_explained_as_its_own(gsess: Gsess, home: Path):
    async def change() -> None:
        async with SessionStore.open(home) as store:
            await store.set_reset_policy(
                key_of_person(0), SessionResetPolicy(mode=ResetMode.DAILY, at_hour=7)
            )
            await store.set_zone(key_of_person(0), "Asia/Tokyo")

    asyncio.run(change())
    told = gsess("--home", home, "explain", key_of_person(0), "--json").json_answer["facts"]["policy_fields"]
    assert [(one["field"], one["value"], one["where"]) for one in told] == [
        ("mode", "daily", "this session's own policy"),
        ("at_hour", "7", "this session's own policy"),
        ("timezone", "Asia/Tokyo", "this chat's own zone"),
    ]
    assert "at_hour: 7 (this session's own policy)" in gsess("--home", home, "explain", key_of_person(0)).out


def test_a_boundary_that_waits_is_explained(gsess: Gsess, tmp_path: Path):
    config = Config(timezone="UTC", session_reset=SessionResetPolicy(mode=ResetMode.DAILY, grace_minutes=60))

    async def pass_by() -> None:
        clock = FakeClock(datetime(2026, 3, 1, 3, 50, tzinfo=UTC))
        async with SessionStore.open(tmp_path, config, clock=clock) as store:
            await store.get_or_create_session(source_of_person(0))
            clock.step(timedelta(minutes=20))
            await store.get_or_create_session(source_of_person(0))

    asyncio.run(pass_by())
    told = gsess("--home", tmp_path, "explain", key_of_person(0)).lines
    assert [line.split()[1:3] for line in told if line.startswith("Passed")] == [["2026-03-01", "04:00:00"]]


async def say(home: Path, spoken: dict[str, tuple[float, ...]]) -> None:
    """Somebody wrote on those lanes, so many hours ago."""
    async with SessionDB.open(home / "sessions.db") as db:
        now = db._clock.now()  # noqa: SLF001 -- what was said before is said a while ago
        for lane, hours in spoken.items():
            session = f"s{lane}".replace(":", "-")
            await db.create_session(session, "telegram", session_key=lane)
            moments = [(now - timedelta(hours=one)).timestamp() for one in hours]
            said = [{"role": "user", "content": "x", "timestamp": one} for one in moments]
            await db.append_messages(session, said)


def test_a_policy_is_tried_on_what_was_recorded(gsess: Gsess, tmp_path: Path):
    asyncio.run(say(tmp_path / "home", {key_of_person(1): (72, 71, 40, 1), "odd": (2, 1)}))
    (tmp_path / "new.yaml").write_text("session_reset: {mode: idle, idle_minutes: 720}\ntimezone: UTC\n")
    ended = gsess("--home", tmp_path / "home", "simulate", "--policy", tmp_path / "new.yaml")
    assert "2 resets on 1 of 2 lanes: 2 idle" in ended.out
    found = gsess(
        "--home", tmp_path / "home", "simulate", "--policy", tmp_path / "new.yaml", "--json"
    ).json_answer
    assert [one["reason"] for one in found["results"]] == [EndReason.IDLE] * 2
    assert found["facts"] == {"lanes": 2, "lanes_resetting": 1}


def test_a_lane_without_a_session_has_the_policy_of_its_key(gsess: Gsess, tmp_path: Path):
    asyncio.run(say(tmp_path / "home", {"agent:main:telegram:group:7:1": (30, 1), key_of_person(1): (30, 1)}))
    (tmp_path / "new.yaml").write_text(
        "session_reset: never\n"
        "platforms: {telegram: {chat_types: {group: {session_reset: {mode: idle, idle_minutes: 60}}}}}\n"
    )
    found = gsess(
        "--home", tmp_path / "home", "simulate", "--policy", tmp_path / "new.yaml", "--json"
    ).json_answer
    assert [one["session_key"] for one in found["results"]] == ["agent:main:telegram:group:7:1"]


def test_what_a_session_has_of_its_own_stays_when_a_policy_is_tried(gsess: Gsess, home: Path):
    async def change() -> None:
        async with SessionStore.open(home) as store:
            await store.set_reset_policy(key_of_person(0), SessionResetPolicy(mode=ResetMode.NONE))
            now = store.db._clock.now()  # noqa: SLF001 -- as above
            for number in (0, 1):
                said = {"role": "user", "content": "x", "timestamp": (now - timedelta(hours=30)).timestamp()}
                await store.db.append_messages(session_of(home, number), [said])

    asyncio.run(change())
    (home / "new.yaml").write_text("session_reset: {mode: idle, idle_minutes: 60}\n")
    found = gsess("--home", home, "simulate", "--policy", home / "new.yaml", "--json").json_answer["results"]
    assert {one["session_key"] for one in found} == {key_of_person(1)}


def test_a_simulation_says_how_many_lanes_it_does_not_show(gsess: Gsess, tmp_path: Path):
    asyncio.run(say(tmp_path / "home", {key_of_person(number): (30, 1) for number in range(22)}))
    (tmp_path / "new.yaml").write_text("session_reset: {mode: idle, idle_minutes: 60}\n")
    ended = gsess("--home", tmp_path / "home", "simulate", "--policy", tmp_path / "new.yaml")
    assert "22 resets on 22 of 22 lanes" in ended.out
    assert len(ended.lines) == 1 + 2 + 20 + 1
    assert "2 more lanes" in ended.lines[-1]
