"""Contract tests of schedules and unprompted messages: once for each name and time, remembered, forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, TypeVar

import msgspec

from gateway_sessions import InboundMessage, Message, SessionStore
from gateway_sessions.adapters import OutboundMessage, ReplyTarget
from gateway_sessions.queue import (
    MissedTimes,
    SayTask,
    Schedule,
    ScheduleKind,
    ScheduleState,
    Timing,
    TurnTask,
)
from gateway_sessions.testing.clock import FakeClock
from gateway_sessions.testing.contract.queue.bench import (
    ALICE,
    BOB,
    LANE,
    OTHER_LANE,
    StoreContract,
    accept,
    answer,
    begin,
    owed,
    replies,
    said,
    talk_of,
)
from gateway_sessions.testing.inside import (
    RunPlan,
    Transaction,
    answers,
    plan_run,
    queue_of,
    schedules,
    transcript_version,
)

T = TypeVar("T")

DAILY: Final = Timing(cron="0 8 * * *", zone="Europe/Berlin")
DAILY.check()  # reads the zone now, and not while a test runs
OWNER: Final = "main:telegram:user:alice"
DAY: Final = timedelta(days=1)


def schedule(clock: FakeClock, name: str = "morning", **changes: Any) -> Schedule:
    """Return a schedule that says something to Alice, each day."""
    first = Schedule(
        name=name,
        kind=ScheduleKind.SAY,
        session_key=LANE,
        owner=OWNER,
        platform="telegram",
        account="",
        task=SayTask(target=ReplyTarget.at(ALICE), message=OutboundMessage(text="Good morning")),
        timing=DAILY,
        state=ScheduleState.WAITING,
        due_at=DAILY.next_after(clock.now()),
        created_at=clock.now(),
    )
    return replace(first, **changes)


async def apply(store: SessionStore, transaction: Callable[[], Transaction[T]]) -> T:
    """Run a transaction that asks for no facts of a change."""
    return await queue_of(store).apply(lambda _: transaction())


async def save(store: SessionStore, wanted: Schedule) -> schedules.Saved:
    """Add or change a schedule."""
    return await apply(store, partial(schedules.save_schedule, wanted))


async def named(store: SessionStore, name: str = "morning") -> Schedule:
    """Return the schedule of that name."""
    found = await store.db.read(partial(schedules.load_schedule, name))
    assert found is not None
    return found


async def due(store: SessionStore, now: datetime, kind: ScheduleKind = ScheduleKind.SAY) -> list[Schedule]:
    """Return the schedules whose time has come."""
    return (await store.db.read(partial(schedules.due_schedules, kind, now, 10))).schedules


async def run(store: SessionStore, one: Schedule, plan: RunPlan) -> schedules.Said | None:
    """Say what a schedule says, as a gateway does."""
    row = Message("assistant", one.text)
    return await queue_of(store).apply(
        lambda change: schedules.run_say(one, plan, [owed(one.text)], row, change)
    )


async def say(
    store: SessionStore, memory: Schedule | None = None, text: str = "By the way"
) -> schedules.Said:
    """Say something to Alice, as a gateway does."""
    row = Message("assistant", text)
    return await queue_of(store).apply(lambda change: schedules.say(memory, LANE, [owed(text)], row, change))


class SchedulesContract(StoreContract):
    """What every database keeps of what the gateway says and begins by itself."""

    async def test_a_schedule_comes_back_as_it_was_saved(self, store: SessionStore, clock: FakeClock) -> None:
        message = InboundMessage(source=ALICE, text="What is new? \u2603", internal=True, metadata={"a": [1]})
        for wanted in (
            schedule(clock),
            schedule(clock, "once", timing=None, due_at=clock.now() + DAY),
            schedule(clock, "turn", kind=ScheduleKind.TURN, task=TurnTask(message=message)),
            schedule(clock, "skips", timing=msgspec.structs.replace(DAILY, missed=MissedTimes.SKIP)),
            schedule(clock, "\u00fcber ' \" % _ \\ \U0001f600"),
        ):
            assert (await save(store, wanted)).is_new
            assert await named(store, wanted.name) == wanted

    async def test_names_are_told_apart_by_each_letter(self, store: SessionStore, clock: FakeClock) -> None:
        for name in ("a", "A", "a ", "\u00e4"):
            assert (await save(store, schedule(clock, name))).is_new
        listed = await store.db.read(partial(schedules.list_schedules, "", 10))
        assert [one.name for one in listed] == ["A", "a", "a ", "\u00e4"]

    async def test_saving_the_same_again_changes_nothing(self, store: SessionStore, clock: FakeClock) -> None:
        await save(store, schedule(clock))
        await clock.advance(timedelta(hours=1))
        again = await save(store, schedule(clock))
        assert (again.is_new, again.was_changed) == (False, False)
        assert (await named(store)).version == 1

    async def test_other_words_keep_the_time_and_a_pause(self, store: SessionStore, clock: FakeClock) -> None:
        await save(store, schedule(clock))
        await apply(store, partial(schedules.pause_schedule, "morning"))
        task = SayTask(target=ReplyTarget.at(ALICE), message=OutboundMessage(text="Hello"))
        changed = await save(store, schedule(clock, task=task, due_at=clock.now() + 9 * DAY))
        assert changed.was_changed
        found = await named(store)
        assert (found.text, found.state) == ("Hello", ScheduleState.PAUSED)
        assert found.due_at == schedule(clock).due_at

    async def test_another_timing_begins_anew(self, store: SessionStore, clock: FakeClock) -> None:
        await save(store, schedule(clock))
        await apply(store, partial(schedules.pause_schedule, "morning"))
        hourly = Timing(cron="0 * * * *", zone="UTC")
        await save(store, schedule(clock, timing=hourly, due_at=hourly.next_after(clock.now())))
        found = await named(store)
        assert (found.state, found.timing) == (ScheduleState.WAITING, hourly)
        assert found.due_at == hourly.next_after(clock.now())

    async def test_a_time_is_run_once_by_whoever_is_first(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        await save(store, schedule(clock))
        await clock.advance(DAY)
        (one,) = await due(store, clock.now())
        plan = plan_run(one.due_at or clock.now(), one.timing, clock.now())
        ran = await asyncio.gather(*(run(store, one, plan) for _ in range(4)))
        assert sum(result is not None for result in ran) == 1
        assert [reply.message.text for reply in await replies(store, clock)] == ["Good morning"]
        found = await named(store)
        assert (found.runs, found.last_at, found.due_at) == (1, clock.now(), plan.next_at)
        assert await due(store, clock.now()) == []

    async def test_what_runs_once_is_done_and_its_name_is_remembered(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        wanted = schedule(clock, timing=None, due_at=clock.now())
        await save(store, wanted)
        (one,) = await due(store, clock.now())
        assert await run(store, one, plan_run(clock.now(), None, clock.now())) is not None
        found = await named(store)
        assert (found.state, found.task, found.due_at, found.runs) == (ScheduleState.DONE, None, None, 1)
        again = await save(store, wanted)
        assert (again.is_new, again.was_changed) == (False, False)
        assert await due(store, clock.now() + DAY) == []

    async def test_due_schedules_come_in_the_order_of_their_times_page_by_page(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        for number, name in enumerate("cabd"):
            await save(store, schedule(clock, name, timing=None, due_at=clock.now() + number // 2 * DAY))
        found: list[str] = []
        after: tuple[datetime, str] | None = None
        look = partial(schedules.due_schedules, ScheduleKind.SAY, clock.now() + DAY, 1)
        while page := (await store.db.read(partial(look, after))).schedules:
            found += [one.name for one in page]
            assert page[-1].due_at is not None
            after = (page[-1].due_at, page[-1].name)
        assert found == ["a", "c", "b", "d"]
        first = await store.db.read(partial(schedules.due_schedules, ScheduleKind.SAY, clock.now(), 10))
        assert first.next_at == clock.now() + DAY
        turns = await store.db.read(partial(schedules.due_schedules, ScheduleKind.TURN, clock.now(), 10))
        assert turns == ([], None)

    async def test_a_paused_schedule_is_not_due_and_goes_on_with_its_next_time(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        await save(store, schedule(clock))
        await apply(store, partial(schedules.pause_schedule, "morning"))
        await clock.advance(3 * DAY)
        assert await due(store, clock.now()) == []
        resumed = await apply(store, partial(schedules.resume_schedule, "morning", clock.now()))
        assert resumed is not None
        assert resumed.due_at == DAILY.next_after(clock.now())
        assert await due(store, clock.now()) == []
        for change in (schedules.pause_schedule, partial(schedules.resume_schedule, now=clock.now())):
            assert await apply(store, partial(change, "unknown")) is None

    async def test_it_is_removed_and_only_what_waits_is_cancelled(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        await save(store, schedule(clock))
        await apply(store, partial(schedules.pause_schedule, "morning"))
        assert not await apply(store, partial(schedules.cancel_schedule, "morning"))
        assert await apply(store, partial(schedules.remove_schedule, "morning"))
        assert not await apply(store, partial(schedules.remove_schedule, "morning"))
        await save(store, schedule(clock))
        assert await apply(store, partial(schedules.cancel_schedule, "morning"))

    async def test_a_schedule_that_cannot_run_ends_with_its_problem(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        await save(store, schedule(clock))
        one = await named(store)
        assert await apply(store, partial(schedules.end_schedule, one, "no such chat", clock.now()))
        found = await named(store)
        assert (found.state, found.problem) == (ScheduleState.DONE, "no such chat")

    async def test_what_is_said_is_owed_and_remembered_by_the_session(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        await accept(store, "hello")
        await answer(store)
        result = await say(store)
        entry = await store.get_or_create_session(ALICE, touch=False)
        assert result.session_id == entry.session_id
        assert await talk_of(store, entry.session_id) == [
            ("user", "hello"),
            ("assistant", "well"),
            ("assistant", "By the way"),
        ]
        (reply,) = await replies(store, clock)
        assert (reply.message.text, reply.session_id, reply.seq) == ("By the way", entry.session_id, None)

    async def test_without_a_session_it_is_owed_all_the_same(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        result = await say(store)
        assert result.session_id is None
        assert [reply.session_key for reply in await replies(store, clock)] == [LANE]

    async def test_a_running_turn_lets_its_agent_read_the_conversation_anew(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        await accept(store, "hello")
        async with await begin(store) as turn:
            session_id = turn.entry.session_id
            before = await store.db.read(partial(transcript_version, session_id))
            await say(store)
            after = await store.db.read(partial(transcript_version, session_id))
            assert after.edit_count == before.edit_count + 1
            await turn.commit([{"role": "assistant", "content": "well"}])

    async def test_what_was_said_under_a_name_is_not_said_again(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        memory = schedule(clock, "say:order 7", task=None, timing=None, state=ScheduleState.DONE, due_at=None)
        said_by = await asyncio.gather(*(say(store, memory) for _ in range(4)))
        assert sum(one.is_new for one in said_by) == 1
        assert len(await replies(store, clock)) == 1
        assert await store.db.read(partial(schedules.list_schedules, "", 10)) == []

    async def test_what_waits_under_a_name_is_known(self, store: SessionStore, clock: FakeClock) -> None:
        wanted = schedule(clock, "say:k", timing=None, due_at=clock.now() + DAY)
        assert (await apply(store, partial(schedules.add_said, wanted))).is_new
        again = await apply(store, partial(schedules.add_said, replace(wanted, due_at=clock.now())))
        assert not again.is_new
        assert again.schedule.due_at == clock.now() + DAY

    async def test_it_is_there_after_a_restart(self, store: SessionStore, clock: FakeClock) -> None:
        """Here only that another reader sees it: the tests of each engine kill processes."""
        await save(store, schedule(clock))
        assert await named(store) == schedule(clock)

    async def test_an_erasure_takes_the_schedules_of_the_person(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        await accept(store, "hello")
        await answer(store)
        await save(store, schedule(clock))
        await save(store, schedule(clock, "bob", owner="main:telegram:user:bob", session_key=OTHER_LANE))
        told = [one async for one in store.export_person(ALICE)]
        assert "Good morning" in str(told)
        await store.erase(ALICE)
        listed = await store.db.read(partial(schedules.list_schedules, "", 10))
        assert [one.name for one in listed] == ["bob"]

    async def test_what_was_done_is_forgotten_with_the_window_for_duplicates(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        memory = schedule(clock, "say:k", task=None, timing=None, state=ScheduleState.DONE, due_at=None)
        await say(store, memory)
        await save(store, schedule(clock))
        await clock.advance(timedelta(seconds=1))
        await queue_of(store).forget_settled(clock.now())
        assert await store.db.read(partial(schedules.load_schedule, "say:k")) is None
        assert (await named(store)).state is ScheduleState.WAITING


class AnswersContract(StoreContract):
    """The outcome of a message, and the answer that the transcript has to it."""

    async def test_the_answer_is_the_last_row_of_the_turn(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        await accept(store, "one")
        event = said("one").idempotency_key or ""
        assert (await store.db.read(partial(answers.outcome_of, event))).outcome is None
        async with await begin(store) as turn:
            await turn.commit(
                [
                    {"role": "assistant", "content": "first"},
                    {"role": "assistant", "content": "second", "finish_reason": "stop"},
                ]
            )
        await say(store)
        await accept(store, "two")
        await answer(store, "third")
        ended = await store.db.read(partial(answers.outcome_of, event))
        assert (ended.outcome, ended.session_key) == ("turned", LANE)
        found = await store.db.read(partial(answers.answer_to, LANE, "one"))
        assert found is not None
        assert (found.text, found.finish_reason) == ("second", "stop")

    async def test_an_unknown_message_has_no_answer(self, store: SessionStore, clock: FakeClock) -> None:
        await accept(store, "one", source=BOB)
        event = said("never").idempotency_key or ""
        assert (await store.db.read(partial(answers.outcome_of, event))).outcome == answers.FORGOTTEN
        assert await store.db.read(partial(answers.answer_to, OTHER_LANE, "never")) is None
