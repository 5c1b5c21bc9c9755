"""Hooks: called at least once with one key, three times at most, and never in each other's way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial

import anyio
import pytest

from gateway_sessions.config import HooksConfig
from gateway_sessions.core.committed_changes import SessionEnd
from gateway_sessions.core.sessions.reasons import EndReason
from gateway_sessions.errors import InvalidInputError, StorageFullError
from gateway_sessions.runtime.duties.session_hooks import Hooks, SessionFinalized
from gateway_sessions.testing import FakeClock
from tests.unit.runtime.memory_database import MemoryDatabase

LIMITS = HooksConfig(timeout=timedelta(seconds=30), max_attempts=3, retry=timedelta(minutes=1), concurrency=2)
START = datetime(2026, 1, 1, tzinfo=UTC)


class Recorder:
    """A hook that remembers what it was called with, and then does what it is told."""

    def __init__(self, then: Callable[[SessionFinalized], Awaitable[object]] | None = None) -> None:
        self.calls: list[SessionFinalized] = []
        self.then = then

    async def __call__(self, event: SessionFinalized) -> None:
        self.calls.append(event)
        if self.then is not None:
            await self.then(event)

    @property
    def sessions(self) -> list[str]:
        return [call.session_id for call in self.calls]


async def refuse(event: SessionFinalized) -> None:
    raise ConnectionError(f"no way to tell of {event.session_id}")


async def hang(_event: SessionFinalized) -> None:
    await asyncio.Event().wait()


async def raise_cancelled(_event: SessionFinalized) -> None:
    raise asyncio.CancelledError


async def cancel_itself(_event: SessionFinalized) -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)


async def await_something_cancelled(_event: SessionFinalized) -> None:
    inner = asyncio.create_task(asyncio.Event().wait())
    inner.cancel()
    await inner


async def swallow_the_deadline(_event: SessionFinalized) -> None:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        return


@pytest.fixture
def db() -> MemoryDatabase:
    return MemoryDatabase()


@pytest.fixture
def hooks(db: MemoryDatabase, fake_clock: FakeClock) -> Hooks:
    return Hooks(db, fake_clock, LIMITS)


@asynccontextmanager
async def running(hooks: Hooks) -> AsyncIterator[None]:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(hooks.run)
        yield
        tasks.cancel_scope.cancel()


async def test_a_hook_hears_what_ended_and_why(hooks, db):
    hook = Recorder()
    hooks.register(hook, name="memory")
    db.owe("memory", "s1", START)
    assert await hooks.sweep() == 1
    assert hook.calls == [
        SessionFinalized(
            session_key="lane of s1",
            session_id="s1",
            reason=EndReason.IDLE,
            platform="irc",
            chat_type="dm",
            ended_at=START,
            idempotency_key="s1:1:memory",
            attempt=1,
        )
    ]


async def test_a_call_that_succeeded_is_never_made_again(hooks, db, fake_clock):
    hook = Recorder()
    hooks.register(hook, name="memory")
    db.owe("memory", "s1", START)
    async with running(hooks):
        await fake_clock.advance(days=3)
    assert hook.sessions == ["s1"]
    assert db.rows("SELECT * FROM hook_calls") == []


async def test_every_attempt_carries_the_same_key_and_its_number(hooks, db, fake_clock):
    hook = Recorder(refuse)
    hooks.register(hook, name="memory")
    db.owe("memory", "s1", START)
    async with running(hooks):
        await fake_clock.advance(days=1)
    assert [(call.idempotency_key, call.attempt) for call in hook.calls] == [
        ("s1:1:memory", 1),
        ("s1:1:memory", 2),
        ("s1:1:memory", 3),
    ]


async def test_attempts_are_as_far_apart_as_configured(hooks, db, fake_clock):
    moments = []
    hook = Recorder(refuse)
    hooks.register(hook, name="memory")
    db.owe("memory", "s1", START)
    async with running(hooks):
        for second in range(200):
            await fake_clock.advance(seconds=1 if second else 0)
            if len(hook.calls) > len(moments):
                moments.append(fake_clock.now() - START)
    assert moments == [timedelta(0), timedelta(minutes=1), timedelta(minutes=2)]


async def test_after_the_last_attempt_a_call_is_a_dead_letter_with_its_error(hooks, db, fake_clock):
    hooks.register(Recorder(refuse), name="memory")
    db.owe("memory", "s1", START)
    async with running(hooks):
        await fake_clock.advance(minutes=1)
        assert await hooks.dead_letters() == []
        await fake_clock.advance(minutes=1)
    (dead,) = await hooks.dead_letters()
    assert (dead.hook, dead.session_id, dead.attempts) == ("memory", "s1", 3)
    assert dead.last_error == "ConnectionError: no way to tell of s1"


async def test_a_requeued_dead_letter_gets_all_its_attempts_again_under_its_old_key(hooks, db, fake_clock):
    hook = Recorder(refuse)
    hooks.register(hook, name="memory")
    db.owe("memory", "s1", START)
    async with running(hooks):
        await fake_clock.advance(hours=1)
        (dead,) = await hooks.dead_letters()
        await hooks.requeue(dead.idempotency_key)
        await fake_clock.advance(minutes=1)
        hook.then = None
        await fake_clock.advance(minutes=1)
    assert [call.attempt for call in hook.calls] == [1, 2, 3, 1, 2, 3]
    assert len({call.idempotency_key for call in hook.calls}) == 1
    assert await hooks.dead_letters() == []


async def test_requeueing_what_is_no_dead_letter_changes_nothing(hooks, db, fake_clock):
    hook = Recorder(refuse)
    hooks.register(hook, name="memory")
    db.owe("memory", "s1", START)
    async with running(hooks):
        await fake_clock.advance()
        await hooks.requeue("s1:1:memory")
        await hooks.requeue("no such key")
        await fake_clock.advance()
    assert [call.attempt for call in hook.calls] == [1]


@pytest.mark.parametrize(
    ("behaviour", "error"),
    [
        (hang, "took longer than 30 s"),
        (swallow_the_deadline, "took longer than 30 s"),
        (raise_cancelled, "cancelled itself"),
        (cancel_itself, "cancelled itself"),
        (await_something_cancelled, "cancelled itself"),
    ],
)
async def test_misbehaviour_is_the_failure_of_that_call_alone(hooks, db, fake_clock, behaviour, error):
    bad, good = Recorder(behaviour), Recorder()
    hooks.register(bad, name="bad")
    hooks.register(good, name="good")
    db.owe("bad", "s1", START)
    db.owe("good", "s1", START)
    async with running(hooks):
        await fake_clock.advance(hours=1)
        db.owe("good", "s2", START)
        hooks.wake()
        await fake_clock.advance()
    assert [call.attempt for call in bad.calls] == [1, 2, 3]
    assert good.sessions == ["s1", "s2"]
    assert [dead.last_error for dead in await hooks.dead_letters()] == [error]


async def test_an_error_without_end_is_cut(hooks, db):
    async def complain(_event: SessionFinalized) -> None:
        raise ValueError("x" * 10_000)

    hooks.register(complain)
    db.owe(hooks.names[0], "s1", START)
    assert await hooks.sweep() == 0
    (error,) = db.rows("SELECT last_error FROM hook_calls")[0]
    assert len(error) == 500


async def test_a_hook_that_hangs_for_many_sessions_does_not_delay_the_others(hooks, db, fake_clock):
    stuck, good = Recorder(hang), Recorder()
    hooks.register(stuck, name="a stuck one")
    hooks.register(good, name="good")
    for number in range(300):
        db.owe("a stuck one", f"s{number}", START)
    db.owe("good", "last", START)
    async with running(hooks):
        await fake_clock.advance()
        assert good.sessions == ["last"]
        assert len(stuck.calls) == LIMITS.concurrency


async def test_a_call_owed_while_another_runs_begins_at_once(hooks, db, fake_clock):
    async def first_is_slow(event: SessionFinalized) -> None:
        if event.session_id == "slow":
            await fake_clock.sleep(29)

    hook = Recorder(first_is_slow)
    hooks.register(hook, name="memory")
    db.owe("memory", "slow", START)
    async with running(hooks):
        await fake_clock.advance(seconds=1)
        db.owe("memory", "next", START)
        hooks.wake()
        await fake_clock.advance()
        assert hook.sessions == ["slow", "next"]
        await fake_clock.advance(days=1)
    assert hook.sessions == ["slow", "next"]


async def test_only_the_end_of_a_session_wakes_the_hooks(hooks, db, fake_clock):
    hook = Recorder()
    hooks.register(hook, name="memory")
    async with running(hooks):
        await fake_clock.advance()
        db.owe("memory", "s1", START)
        hooks.hear_news([])
        await fake_clock.advance()
        assert hook.sessions == []
        hooks.hear_news([SessionEnd(at=START, session_key="lane", session_id="s1", reason="idle")])
        await fake_clock.advance()
        assert hook.sessions == ["s1"]


async def test_calls_owed_to_a_hook_that_is_not_registered_hide_no_others(hooks, db):
    """They may be thousands, and the oldest."""
    hook = Recorder()
    hooks.register(hook, name="memory")
    for number in range(1000):
        db.owe("removed", f"s{number}", START - timedelta(days=1))
    db.owe("memory", "mine", START)
    assert await hooks.sweep() == 1
    assert hook.sessions == ["mine"]


async def test_calls_owed_to_a_hook_that_is_not_registered_cost_nothing_while_time_passes(
    hooks, db, fake_clock
):
    hooks.register(Recorder(), name="memory")
    db.owe("removed", "s1", START)
    async with running(hooks):
        await fake_clock.advance(days=365)
        assert fake_clock.sleepers == 0
    assert db.reads < 5


async def test_a_hook_registered_later_gets_what_it_was_owed(hooks, db, fake_clock):
    hook = Recorder()
    db.owe("memory", "s1", START)
    async with running(hooks):
        await fake_clock.advance(days=1)
        hooks.register(hook, name="memory")
        await fake_clock.advance()
    assert hook.sessions == ["s1"]


async def test_more_calls_than_there_is_room_for_are_all_made(hooks, db, fake_clock):
    together = 0
    most = 0

    async def count(_event: SessionFinalized) -> None:
        nonlocal together, most
        together += 1
        most = max(most, together)
        await asyncio.sleep(0)
        together -= 1

    hook = Recorder(count)
    hooks.register(hook, name="memory")
    for number in range(250):
        db.owe("memory", f"s{number:03}", START)
    async with running(hooks):
        await fake_clock.advance()
    assert sorted(hook.sessions) == [f"s{number:03}" for number in range(250)]
    assert most == LIMITS.concurrency


async def test_a_sweep_waits_for_the_outcome_of_everything_owed(hooks, db):
    hook = Recorder()
    hooks.register(hook, name="memory")
    for number in range(25):
        db.owe("memory", f"s{number:03}", START)
    assert await hooks.sweep() == 25
    assert await hooks.sweep() == 0


async def test_a_call_counted_three_times_without_an_outcome_is_given_up_uncalled(hooks, db):
    """Each attempt ended the process; a fourth would, too."""
    hook = Recorder()
    hooks.register(hook, name="memory")
    db.owe("memory", "s1", START)
    db.rows("UPDATE hook_calls SET attempts = 3, last_error = 'the process ended in this attempt'")
    assert await hooks.sweep() == 0
    assert hook.calls == []
    (dead,) = await hooks.dead_letters()
    assert (dead.attempts, dead.last_error) == (3, "the process ended in this attempt")


async def test_an_attempt_broken_off_by_the_end_of_the_duty_does_not_count(hooks, db, fake_clock):
    hook = Recorder(hang)
    hooks.register(hook, name="memory")
    db.owe("memory", "s1", START)
    for _ in range(5):
        async with running(hooks):
            await fake_clock.advance(seconds=1)
    hook.then = None
    async with running(hooks):
        await fake_clock.advance()
    assert [call.attempt for call in hook.calls] == [1] * 6
    assert db.rows("SELECT * FROM hook_calls") == []


async def test_a_failing_database_delays_hooks_and_ends_nothing(hooks, db, fake_clock):
    hook = Recorder()
    hooks.register(hook, name="memory")
    db.failure = StorageFullError("sessions.db", "no room")
    async with running(hooks):
        db.owe("memory", "s1", START)
        hooks.wake()
        await fake_clock.advance(minutes=10)
        assert hook.calls == []
        db.failure = None
        await fake_clock.advance(minutes=1)
    assert hook.sessions == ["s1"]


async def test_an_outcome_that_cannot_be_stored_means_another_attempt_with_the_same_key(
    hooks, db, fake_clock
):
    async def fill_the_disk(_event: SessionFinalized) -> None:
        db.failure = StorageFullError("sessions.db", "no room")

    hook = Recorder(fill_the_disk)
    hooks.register(hook, name="memory")
    db.owe("memory", "s1", START)
    async with running(hooks):
        await fake_clock.advance()
        db.failure = hook.then = None
        await fake_clock.advance(minutes=5)
    assert [(call.idempotency_key, call.attempt) for call in hook.calls] == [
        ("s1:1:memory", 1),
        ("s1:1:memory", 2),
    ]
    assert db.rows("SELECT * FROM hook_calls") == []


async def test_a_hook_without_a_name_is_known_by_where_it_stands(hooks):
    hooks.register(refuse)
    hooks.register(Recorder())
    assert hooks.names == (f"{__name__}.refuse", f"{__name__}.Recorder")


async def test_two_hooks_of_one_name_are_refused(hooks):
    hooks.register(partial(refuse))
    with pytest.raises(InvalidInputError, match="give each a name"):
        hooks.register(partial(hang))


async def test_the_same_hook_may_be_registered_twice(hooks):
    hooks.register(refuse)
    hooks.register(refuse)
    assert len(hooks.names) == 1
