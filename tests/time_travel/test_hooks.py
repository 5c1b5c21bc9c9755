"""Hooks of a whole store: a call for each end of a session, whatever ended it, through crashes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from gateway_sessions import (
    Config,
    EndReason,
    Scope,
    SessionEntry,
    SessionFinalized,
    SessionResetPolicy,
    SessionSource,
)
from gateway_sessions._process.failpoints import arm_failpoints
from gateway_sessions.config import Durability, HooksConfig, SessionDBConfig, SessionsJsonConfig, SnapshotMode
from gateway_sessions.core.sessions.reset_policy import ResetMode
from gateway_sessions.runtime.store.store import SessionStore
from gateway_sessions.testing import FakeClock

QUICK = Config(
    timezone="UTC",
    sessiondb=SessionDBConfig(durability=Durability.OS),
    sessions_json=SessionsJsonConfig(mode=SnapshotMode.OFF),
)
ANNE = SessionSource(platform="telegram", chat_id="5", user_id="5", chat_type="dm")
BERT = SessionSource(platform="telegram", chat_id="6", user_id="6", chat_type="dm")


def by_policy(**policy: object) -> Config:
    return replace(QUICK, session_reset=SessionResetPolicy(**policy))  # type: ignore[arg-type]


class Recorder:
    def __init__(self, refuses: Callable[[SessionFinalized], bool] = lambda _event: False) -> None:
        self.calls: list[SessionFinalized] = []
        self.refuses = refuses

    async def __call__(self, event: SessionFinalized) -> None:
        self.calls.append(event)
        if self.refuses(event):
            raise ConnectionError("refused")

    @property
    def ends(self) -> list[tuple[str, str]]:
        return [(call.session_id, str(call.reason)) for call in self.calls]


class CrashError(Exception):
    """The process ends here, as far as the store can tell."""


@pytest.fixture
def hook() -> Recorder:
    return Recorder()


@pytest.fixture
def crash_at() -> Iterator[Callable[[str], asyncio.Event]]:
    """CrashError when a failpoint is passed; the event tells that it was."""

    def at(name: str) -> asyncio.Event:
        crashed = asyncio.Event()

        def crash(passed: str) -> None:
            if passed == name:
                arm_failpoints(None)
                crashed.set()
                raise CrashError(name)

        arm_failpoints(crash)
        return crashed

    yield at
    arm_failpoints(None)


class TestEveryEnd:
    """The same hook hears of each end, with its true reason."""

    @pytest.mark.parametrize(
        ("config", "wait", "reason"),
        [
            (by_policy(mode=ResetMode.IDLE, idle_minutes=60), timedelta(hours=2), EndReason.IDLE),
            (by_policy(mode=ResetMode.DAILY, at_hour=4), timedelta(hours=5), EndReason.DAILY),
            (by_policy(mode=ResetMode.CRON, cron="30 2 * * *"), timedelta(hours=3), EndReason.CRON),
        ],
    )
    @pytest.mark.parametrize("noticed_by", ["the next message", "the watcher"])
    async def test_by_policy(self, tmp_path: Path, fake_clock, hook, config, wait, reason, noticed_by):
        if noticed_by == "the next message":
            watcher = replace(config.expiry_watcher, first_pass=timedelta(days=9))
            config = replace(config, expiry_watcher=watcher)
        async with SessionStore.open(tmp_path, config, clock=fake_clock, hooks=[hook]) as store:
            old = await store.get_or_create_session(ANNE)
            await fake_clock.advance(wait)
            new = await store.get_or_create_session(ANNE)
            await fake_clock.advance()
        assert new.auto_reset_reason is reason
        assert hook.ends == [(old.session_id, reason)]

    async def test_by_suspension(self, tmp_path: Path, fake_clock, hook):
        async with SessionStore.open(tmp_path, QUICK, clock=fake_clock, hooks=[hook]) as store:
            old = await store.get_or_create_session(ANNE)
            await store.suspend_session(old.session_key)
            await fake_clock.advance()
            assert hook.ends == []
            await store.get_or_create_session(ANNE)
            await fake_clock.advance()
        assert hook.ends == [(old.session_id, EndReason.SUSPENDED)]

    async def test_not_by_a_resume_mark_that_aged_out(self, tmp_path: Path, fake_clock, hook):
        async with SessionStore.open(tmp_path, QUICK, clock=fake_clock, hooks=[hook]) as store:
            old = await store.get_or_create_session(ANNE)
            await store.mark_resume_pending(old.session_key)
            await fake_clock.advance(hours=2)
            assert (await store.get_or_create_session(ANNE)).session_id == old.session_id
        assert hook.ends == []

    async def test_by_a_person(self, tmp_path: Path, fake_clock, hook):
        async with SessionStore.open(tmp_path, QUICK, clock=fake_clock, hooks=[hook]) as store:
            old = await store.get_or_create_session(ANNE)
            new = await store.reset_session(old.session_key)
            third = await store.get_or_create_session(ANNE, force_new=True)
            back = await store.undo_reset(old.session_key)
            await fake_clock.advance()
        assert back is not None
        assert back.session_id == new.session_id
        assert sorted(hook.ends) == sorted(
            [
                (old.session_id, EndReason.SESSION_RESET),
                (new.session_id, EndReason.SESSION_RESET),
                (third.session_id, EndReason.RESET_UNDONE),
            ]
        )

    async def test_by_switching_away(self, tmp_path: Path, fake_clock, hook):
        async with SessionStore.open(tmp_path, QUICK, clock=fake_clock, hooks=[hook]) as store:
            anne = await store.get_or_create_session(ANNE)
            bert = await store.get_or_create_session(BERT)
            await store.switch_session(anne.session_key, bert.session_id, scope=Scope.operator(), move=True)
            await fake_clock.advance()
        assert hook.ends == [(anne.session_id, EndReason.SESSION_SWITCH)]

    async def test_by_pruning(self, tmp_path: Path, fake_clock, hook):
        config = by_policy(mode=ResetMode.NONE)
        async with SessionStore.open(tmp_path, config, clock=fake_clock, hooks=[hook]) as store:
            old = await store.get_or_create_session(ANNE)
            fake_clock.step(days=40)
            assert await store.prune_old_entries(30) == 1
            await fake_clock.advance()
        assert hook.ends == [(old.session_id, EndReason.PRUNED)]


async def test_a_session_that_has_ended_already_is_not_told_of_again(tmp_path: Path, fake_clock, hook):
    async with SessionStore.open(tmp_path, QUICK, clock=fake_clock, hooks=[hook]) as store:
        old = await store.get_or_create_session(ANNE)
        await fake_clock.advance(days=2)
        await store.suspend_session(old.session_key)
        await store.get_or_create_session(ANNE)
        await fake_clock.advance()
        other = await store.get_or_create_session(BERT)
        fake_clock.step(days=60)
        await store.watcher.sweep()
        await store.prune_old_entries(1)
        await fake_clock.advance()
    assert [call.session_id for call in hook.calls].count(old.session_id) == 1
    assert [call.session_id for call in hook.calls].count(other.session_id) == 1


async def test_each_end_of_one_session_has_a_key_of_its_own(tmp_path: Path, fake_clock, hook):
    async with SessionStore.open(tmp_path, QUICK, clock=fake_clock, hooks=[hook]) as store:
        first = await store.get_or_create_session(ANNE)
        for _ in range(3):
            await store.reset_session(first.session_key)
            await store.undo_reset(first.session_key)
        await fake_clock.advance()
    of_first = [call for call in hook.calls if call.session_id == first.session_id]
    assert len(of_first) == 3
    assert len({call.idempotency_key for call in hook.calls}) == 6


async def test_a_failing_hook_delays_neither_other_hooks_nor_messages(tmp_path: Path, fake_clock, hook):
    async def hang(_event: SessionFinalized) -> None:
        await asyncio.Event().wait()

    async def fail(_event: SessionFinalized) -> None:
        raise ConnectionError("refused")

    async with SessionStore.open(tmp_path, QUICK, clock=fake_clock, hooks=[hang, fail, hook]) as store:
        lanes = []
        for number in range(40):
            source = replace(ANNE, chat_id=str(number), user_id=str(number))
            lanes.append((await store.get_or_create_session(source)).session_key)
        before = fake_clock.now()
        for lane in lanes:
            assert await store.reset_session(lane) is not None
        await fake_clock.advance()
        assert fake_clock.now() == before
        assert len(hook.calls) == 40
        await fake_clock.advance(hours=1)
        dead = await store.hooks.dead_letters()
    assert len(dead) == 80
    assert {call.attempts for call in dead} == {3}


@pytest.mark.parametrize(
    ("failpoint", "heard_before"),
    [("hook_call_counted", 0), ("hook_called", 1)],
    ids=["counted, not called", "called, not noted"],
)
async def test_after_a_crash_the_call_is_repeated_with_the_same_key(
    tmp_path: Path, fake_clock, hook, crash_at, failpoint, heard_before
):
    async def until_it_crashes() -> None:
        async with SessionStore.open(tmp_path, QUICK, clock=fake_clock, hooks=[hook]) as store:
            sessions.append(await store.get_or_create_session(ANNE))
            crashed = crash_at(failpoint)
            await store.reset_session(sessions[0].session_key)
            await crashed.wait()

    sessions: list[SessionEntry] = []
    with pytest.raises(CrashError):
        await until_it_crashes()
    (old,) = sessions
    assert len(hook.calls) == heard_before
    async with SessionStore.open(tmp_path, QUICK, clock=fake_clock, hooks=[hook]) as store:
        await fake_clock.advance()
        assert len(hook.calls) == heard_before, "the attempt under way may still be doing its work"
        for _ in range(3):  # on a busy machine the duty may begin to wait only when time has passed already
            await fake_clock.advance(minutes=2)
            if len(hook.calls) > heard_before:
                break
        assert await store.hooks.dead_letters() == []
    assert hook.calls[-1].attempt == 2
    assert {call.idempotency_key for call in hook.calls} == {
        f"{old.session_id}:{old.version}:{__name__}.Recorder"
    }
    assert len(hook.calls) == heard_before + 1


async def test_a_hook_that_ends_the_process_is_given_up_after_three_times(
    tmp_path: Path, fake_clock, hook, crash_at
):
    async with SessionStore.open(tmp_path, QUICK, clock=fake_clock, hooks=[hook]) as store:
        old = await store.get_or_create_session(ANNE)

    async def until_it_crashes() -> None:
        crashed = crash_at("hook_called")  # from the second time on, the call is due when the store opens
        async with SessionStore.open(tmp_path, QUICK, clock=fake_clock, hooks=[hook]) as store:
            if not hook.calls:
                await store.reset_session(old.session_key)
            await crashed.wait()

    for _ in range(3):
        with pytest.raises(CrashError):
            await until_it_crashes()
        await fake_clock.advance(minutes=2)
    async with SessionStore.open(tmp_path, QUICK, clock=fake_clock, hooks=[hook]) as store:
        await fake_clock.advance(minutes=2)
        (dead,) = await store.hooks.dead_letters()
    assert [call.attempt for call in hook.calls] == [1, 2, 3]
    assert (dead.session_id, dead.attempts) == (old.session_id, 3)


async def test_what_is_owed_at_the_end_is_called_after_the_next_start(tmp_path: Path, fake_clock):
    down = Recorder(refuses=lambda _event: True)
    async with SessionStore.open(tmp_path, QUICK, clock=fake_clock, hooks=[down]) as store:
        old = await store.get_or_create_session(ANNE)
        await store.reset_session(old.session_key)
        await fake_clock.advance()
    up = Recorder()
    async with SessionStore.open(tmp_path, QUICK, clock=fake_clock, hooks=[up]):
        await fake_clock.advance(minutes=1)
    assert [(call.session_id, call.attempt) for call in down.calls + up.calls] == [
        (old.session_id, 1),
        (old.session_id, 2),
    ]
    assert down.calls[0].idempotency_key == up.calls[0].idempotency_key


async def test_a_clean_restart_in_the_middle_of_a_call_costs_no_attempt(tmp_path: Path, fake_clock):
    begun: list[int] = []

    async def slow(event: SessionFinalized) -> None:
        begun.append(event.attempt)
        await fake_clock.sleep(20)

    async with SessionStore.open(tmp_path, QUICK, clock=fake_clock, hooks=[slow]) as store:
        old = await store.get_or_create_session(ANNE)
        await store.reset_session(old.session_key)
        await fake_clock.advance(seconds=1)
    for _ in range(4):
        async with SessionStore.open(tmp_path, QUICK, clock=fake_clock, hooks=[slow]):
            await fake_clock.advance(seconds=1)
    async with SessionStore.open(tmp_path, QUICK, clock=fake_clock, hooks=[slow]) as store:
        await fake_clock.advance(minutes=1)
        assert await store.hooks.dead_letters() == []
    assert begun == [1] * 6


async def test_calls_for_a_hook_that_is_gone_wait_for_it_without_hiding_others(
    tmp_path: Path, fake_clock, hook
):
    async def removed(_event: SessionFinalized) -> None:
        raise ConnectionError("refused")

    async with SessionStore.open(tmp_path, QUICK, clock=fake_clock, hooks=[removed]) as store:
        lane = (await store.get_or_create_session(ANNE)).session_key
        for _ in range(150):
            await store.reset_session(lane)
    async with SessionStore.open(tmp_path, QUICK, clock=fake_clock, hooks=[hook]) as store:
        await store.reset_session(lane)
        await fake_clock.advance(minutes=5)
        assert len(hook.calls) == 1
        store.hooks.register(removed)
        await fake_clock.advance(hours=1)
        assert len(await store.hooks.dead_letters(1000)) == 150


async def test_how_patient_a_store_is_can_be_configured(tmp_path: Path, fake_clock: FakeClock):
    hook = Recorder(refuses=lambda _event: True)
    limits = HooksConfig(max_attempts=5, retry=timedelta(hours=1))
    config = replace(QUICK, hooks=limits)
    async with SessionStore.open(tmp_path, config, clock=fake_clock, hooks=[hook]) as store:
        old = await store.get_or_create_session(ANNE)
        await store.reset_session(old.session_key)
        await fake_clock.advance(hours=3, minutes=59)
        assert [call.attempt for call in hook.calls] == [1, 2, 3, 4]
        await fake_clock.advance(minutes=1)
        assert len(await store.hooks.dead_letters()) == 1
