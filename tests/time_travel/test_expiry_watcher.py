"""The watcher of a whole store, driven by nothing but the passing of time."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from gateway_sessions import Config, EndReason, SessionFinalized, SessionResetPolicy, SessionSource
from gateway_sessions._process.failpoints import arm_failpoints
from gateway_sessions.config import (
    Durability,
    ExpiryWatcherConfig,
    SessionDBConfig,
    SessionsJsonConfig,
    SnapshotMode,
)
from gateway_sessions.core.sessions.reset_policy import ResetMode
from gateway_sessions.runtime.store.store import SessionStore
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.clock import START as NEW_YEAR

START = datetime.fromisoformat(NEW_YEAR) + ExpiryWatcherConfig().first_pass
TICK = timedelta(microseconds=1)
QUICK = Config(
    timezone="UTC",
    session_reset=SessionResetPolicy(mode=ResetMode.IDLE, idle_minutes=30),
    sessiondb=SessionDBConfig(durability=Durability.OS),
    sessions_json=SessionsJsonConfig(mode=SnapshotMode.OFF),
)
ANNE = SessionSource(platform="telegram", chat_id="5", user_id="5", chat_type="dm")
BERT = SessionSource(platform="telegram", chat_id="6", user_id="6", chat_type="dm")


class Watched:
    """A store, the sessions that its hook was told of, and who is at work in it."""

    def __init__(self, path: Path, clock: FakeClock, config: Config) -> None:
        self.path = path
        self.clock = clock
        self.config = config
        self.told: list[str] = []
        self.busy: set[str] = set()
        self.broken = False

    @asynccontextmanager
    async def open(self, config: Config | None = None) -> AsyncIterator[SessionStore]:
        async with SessionStore.open(
            self.path,
            config or self.config,
            clock=self.clock,
            hooks=[self.hear],
            has_active_processes=self.works,
        ) as store:
            yield store

    async def hear(self, event: SessionFinalized) -> None:
        self.told.append(event.session_id)

    async def works(self, session_key: str) -> bool:
        if self.broken:
            raise ConnectionError("no answer")
        return session_key in self.busy

    def lease(self, session_key: str, *, free: bool = False) -> None:
        """What a running turn writes."""
        with closing(sqlite3.connect(self.path / "sessions.db", isolation_level=None)) as raw:
            raw.execute(
                "INSERT INTO lanes (session_key, lease_epoch) VALUES (?, ?)"
                " ON CONFLICT (session_key) DO UPDATE SET lease_epoch = excluded.lease_epoch",
                (session_key, None if free else 1),
            )


@pytest.fixture
def watched(tmp_path: Path, fake_clock: FakeClock) -> Watched:
    return Watched(tmp_path, fake_clock, QUICK)


async def expired(store: SessionStore, *entries) -> list[bool]:
    found = [await store.get_session(entry.session_key) for entry in entries]
    return [entry is not None and entry.expiry_finalized for entry in found]


class TestRhythm:
    async def test_the_first_pass_comes_after_a_minute(self, watched, fake_clock):
        async with watched.open() as store:
            anne = await store.get_or_create_session(ANNE)
        await fake_clock.advance(hours=1)
        async with watched.open() as store:
            await fake_clock.advance(seconds=59)
            assert await expired(store, anne) == [False]
            await fake_clock.advance(seconds=1)
            assert await expired(store, anne) == [True]
            assert watched.told == [anne.session_id]

    async def test_then_there_is_one_every_five_minutes(self, watched, fake_clock):
        async with watched.open() as store:
            anne = await store.get_or_create_session(ANNE)
            await fake_clock.advance(minutes=2)
            bert = await store.get_or_create_session(BERT)
            await fake_clock.advance(minutes=28, seconds=59)
            assert await expired(store, anne, bert) == [False, False]
            await fake_clock.advance(seconds=1)
            assert await expired(store, anne, bert) == [True, False]
            await fake_clock.advance(minutes=5)
            assert await expired(store, anne, bert) == [True, True]

    async def test_both_times_can_be_configured(self, watched, fake_clock):
        timing = ExpiryWatcherConfig(first_pass=timedelta(hours=1), interval=timedelta(hours=2))
        async with watched.open(replace(QUICK, expiry_watcher=timing)) as store:
            anne = await store.get_or_create_session(ANNE)
            await fake_clock.advance(minutes=59)
            bert = await store.get_or_create_session(BERT)
            await fake_clock.advance(minutes=1)
            assert await expired(store, anne, bert) == [True, False]
            await fake_clock.advance(hours=2)
            assert await expired(store, anne, bert) == [True, True]

    @pytest.mark.parametrize(
        ("policy", "due"),
        [
            (SessionResetPolicy(mode=ResetMode.IDLE, idle_minutes=60), timedelta(hours=1) + TICK),
            (SessionResetPolicy(mode=ResetMode.DAILY, at_hour=4), timedelta(hours=4)),
            (SessionResetPolicy(mode=ResetMode.CRON, cron="30 2 * * *"), timedelta(hours=2.5)),
        ],
    )
    async def test_a_pass_finds_a_session_from_its_very_instant(self, watched, fake_clock, policy, due):
        config = replace(
            QUICK, session_reset=policy, expiry_watcher=ExpiryWatcherConfig(first_pass=timedelta(days=30))
        )
        async with watched.open(config) as store:
            anne = await store.get_or_create_session(ANNE)
            await fake_clock.advance(due - TICK)
            assert (await store.watcher.sweep()).finalised == 0
            await fake_clock.advance(TICK)
            assert (await store.watcher.sweep()).finalised == 1
            assert await expired(store, anne) == [True]


class TestWhatIsLeftAlone:
    async def test_a_session_that_is_used_never_ends(self, watched, fake_clock):
        async with watched.open() as store:
            anne = await store.get_or_create_session(ANNE)
            for _ in range(12):
                await fake_clock.advance(minutes=30)
                assert (await store.get_or_create_session(ANNE)).session_id == anne.session_id
        assert watched.told == []

    async def test_heartbeats_do_not_keep_a_session(self, watched, fake_clock):
        async with watched.open() as store:
            anne = await store.get_or_create_session(ANNE)
            for _ in range(6):
                await fake_clock.advance(minutes=5)
                await store.get_or_create_session(ANNE, touch=False)
            await fake_clock.advance(minutes=1)
            assert await expired(store, anne) == [True]

    async def test_a_turn_may_run_longer_than_any_policy(self, watched, fake_clock):
        async with watched.open() as store:
            anne = await store.get_or_create_session(ANNE)
            watched.lease(anne.session_key)
            await fake_clock.advance(hours=6)
            assert await expired(store, anne) == [False]
            watched.lease(anne.session_key, free=True)
            await store.update_session(anne.session_key, session_id=anne.session_id)
            await fake_clock.advance(minutes=30)
            assert await expired(store, anne) == [False]
            await fake_clock.advance(minutes=5)
            assert await expired(store, anne) == [True]

    async def test_active_work_is_waited_for_a_day_at_most(self, watched, fake_clock):
        async with watched.open() as store:
            anne = await store.get_or_create_session(ANNE)
            bert = await store.get_or_create_session(BERT)
            watched.busy |= {anne.session_key, bert.session_key}
            fake_clock.step(hours=23)
            await fake_clock.advance(hours=1, minutes=25)
            assert await expired(store, anne, bert) == [False, False]
            watched.busy.discard(bert.session_key)
            await fake_clock.advance(minutes=5)
            assert await expired(store, anne, bert) == [False, True]
            await fake_clock.advance(minutes=5)
            assert await expired(store, anne, bert) == [True, True]

    async def test_who_cannot_tell_whether_work_runs_is_waited_for_as_well(self, watched, fake_clock):
        watched.broken = True
        async with watched.open() as store:
            anne = await store.get_or_create_session(ANNE)
            fake_clock.step(hours=23)
            await fake_clock.advance(hours=1)
            assert await expired(store, anne) == [False]
            watched.broken = False
            await fake_clock.advance(minutes=5)
            assert await expired(store, anne) == [True]

    async def test_active_work_outlasts_an_interruption(self, watched, fake_clock):
        """A resume mark ages out after an hour; what still works on the lane is not cut off by its policy."""
        config = replace(QUICK, session_reset=SessionResetPolicy(mode=ResetMode.IDLE, idle_minutes=100))
        async with watched.open(config) as store:
            anne = await store.get_or_create_session(ANNE)
            await store.mark_resume_pending(anne.session_key)
            watched.busy.add(anne.session_key)
            await fake_clock.advance(hours=3)
            assert await expired(store, anne) == [False]
            watched.busy.clear()
            await fake_clock.advance(minutes=5)
            assert await expired(store, anne) == [True]

    async def test_an_interrupted_session_gets_its_grace(self, watched, fake_clock):
        policy = SessionResetPolicy(mode=ResetMode.IDLE, idle_minutes=100, grace_minutes=180)
        async with watched.open(replace(QUICK, session_reset=policy)) as store:
            anne = await store.get_or_create_session(ANNE)
            await store.mark_resume_pending(anne.session_key)
            await fake_clock.advance(minutes=179)
            assert await expired(store, anne) == [False]
            await fake_clock.advance(minutes=6)
            assert await expired(store, anne) == [True]


class TestAfterwards:
    async def test_the_next_message_starts_afresh_and_knows_why(self, watched, fake_clock):
        async with watched.open() as store:
            anne = await store.get_or_create_session(ANNE)
            await fake_clock.advance(hours=1)
            new = await store.get_or_create_session(ANNE)
        assert new.session_id != anne.session_id
        assert (new.auto_reset_reason, new.previous_session_id) == (EndReason.IDLE, anne.session_id)

    async def test_it_does_so_however_late_and_whatever_the_policy_says_then(self, watched, fake_clock):
        async with watched.open() as store:
            anne = await store.get_or_create_session(ANNE)
            await fake_clock.advance(hours=1)
        never = replace(QUICK, session_reset=SessionResetPolicy(mode=ResetMode.NONE))
        async with watched.open(never) as store:
            assert await expired(store, anne) == [True]
            assert not await store.mark_resume_pending(anne.session_key)
            new = await store.get_or_create_session(ANNE, touch=False)
        assert new.session_id != anne.session_id
        assert new.auto_reset_reason is EndReason.IDLE

    async def test_a_policy_that_comes_with_a_new_configuration_ends_old_sessions(self, watched, fake_clock):
        never = replace(QUICK, session_reset=SessionResetPolicy(mode=ResetMode.NONE))
        async with watched.open(never) as store:
            anne = await store.get_or_create_session(ANNE)
            fake_clock.step(days=9)
            await fake_clock.advance(minutes=10)
            assert await expired(store, anne) == [False]
        async with watched.open() as store:
            await fake_clock.advance(minutes=1)
            assert await expired(store, anne) == [True]


class TestTrouble:
    async def test_a_failing_commit_ends_one_pass_and_not_the_watcher(self, watched, fake_clock, caplog):
        def fail(name: str) -> None:
            if name == "before_commit":
                raise sqlite3.OperationalError("disk I/O error")

        async with watched.open() as store:
            anne = await store.get_or_create_session(ANNE)
            await fake_clock.advance(minutes=28)
            arm_failpoints(fail)
            try:
                await fake_clock.advance(minutes=5)
            finally:
                arm_failpoints(None)
            assert await expired(store, anne) == [False]
            assert [record.action for record in caplog.records if hasattr(record, "action")] == [
                "sweep_failed"
            ]
            await fake_clock.advance(minutes=5)
            assert await expired(store, anne) == [True]
        assert watched.told == [anne.session_id]

    @pytest.mark.alone
    async def test_a_pass_over_many_lanes_stays_in_pages_and_lets_others_through(self, watched, fake_clock):
        async with watched.open() as store:
            for start in range(0, 2_000, 500):
                sources = [
                    replace(ANNE, chat_id=str(one), user_id=str(one)) for one in range(start, start + 500)
                ]
                await asyncio.gather(*map(store.get_or_create_session, sources))
            await fake_clock.advance(minutes=20)
            fresh = await store.get_or_create_session(BERT)
            loop = asyncio.get_running_loop()
            fake_clock.step(minutes=15)
            sweeping = asyncio.create_task(store.watcher.sweep())
            longest, served, last = 0.0, 0, loop.time()
            while not sweeping.done():
                await store.get_or_create_session(BERT)
                served += 1
                longest, last = max(longest, loop.time() - last), loop.time()
            assert sweeping.result().finalised == 1_999
            assert (await store.peek_session_id(fresh.session_key)) == fresh.session_id
            assert served > 20
            assert longest < 0.5


async def test_in_a_quiet_year_each_session_ends_at_its_hour_and_nothing_else_happens(tmp_path: Path):
    clock = FakeClock()
    config = replace(QUICK, session_reset=SessionResetPolicy(mode=ResetMode.IDLE, idle_minutes=31))
    heard: dict[str, datetime] = {}

    async def hook(event: SessionFinalized) -> None:
        heard[event.session_key] = clock.now()

    async with SessionStore.open(tmp_path, config, clock=clock, hooks=[hook]) as store:
        expected: dict[str, datetime] = {}
        for number in range(20):
            entry = await store.get_or_create_session(replace(ANNE, user_id=str(number), chat_id=str(number)))
            silent = entry.last_interaction_at + timedelta(minutes=31, microseconds=1)
            passes = -((START - silent) // timedelta(minutes=5))
            expected[entry.session_key] = START + passes * timedelta(minutes=5)
            await clock.advance(minutes=7)
        before = store.db.writes_begun
        await clock.advance(days=365)
        assert heard == expected
        assert store.db.writes_begun - before < 10 * len(expected)
