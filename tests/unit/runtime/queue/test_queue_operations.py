"""The queue of an open store: who gives up waiting, what is damaged, and what others are shown."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from gateway_sessions import Rejected, SessionStore, StorageError
from gateway_sessions._process.failpoints import arm_failpoints
from gateway_sessions.config import SnapshotMode
from gateway_sessions.core.queue.inbound import InboundMessage
from gateway_sessions.core.queue.items import ItemKind
from gateway_sessions.core.sessions.entry import session_id_at
from gateway_sessions.errors import FencedError, StorageCorruptError, StorageUnavailableError
from gateway_sessions.queue import RejectReason
from gateway_sessions.runtime.context import RandomDigits
from gateway_sessions.runtime.queue.admission import LocalLane
from gateway_sessions.runtime.queue.listener import QueueListener
from gateway_sessions.runtime.queue.turn import Turn
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.contract.queue.bench import (
    APART,
    BEGINS_HERE,
    BOB,
    COLLECTING,
    LANE,
    OTHER_LANE,
    accept,
    answer,
    begin,
    fates,
    in_line,
    reply,
    said,
    talk_of,
)
from gateway_sessions.testing.inside import queue_of
from tests.crash.suspensions import Suspensions
from tests.raw_sql import execute_sql
from tests.unit.runtime.store_fixtures import IDLE, config_with_snapshot, open_store, quick_config

TRIES = 40


@pytest.fixture
async def store(home: Path, fake_clock: FakeClock) -> AsyncIterator[SessionStore]:
    async with open_store(home, clock=fake_clock) as opened:
        yield opened


def ids(monkeypatch: pytest.MonkeyPatch, *digits: str) -> None:
    """What random digits will be."""
    given: Iterator[str] = itertools.chain(digits, map(str, itertools.count(1000)))
    monkeypatch.setattr(RandomDigits, "hex_digits", lambda *_: next(given))


async def enqueue_and_begin(store: SessionStore, message: InboundMessage) -> Turn | None:
    """What a gateway does with a message."""
    _, turn = await queue_of(store).enqueue(message, APART, here=BEGINS_HERE)
    return turn


class TestTakenIds:
    """A turn needs a new session, and its id exists already."""

    async def expired(self, store: SessionStore, monkeypatch: pytest.MonkeyPatch) -> str:
        """A lane whose session is over; its id, which ends like all others unless something else is said."""
        monkeypatch.setattr(RandomDigits, "hex_digits", lambda *_: "taken")
        await accept(store, "one")
        old = await store.peek_session_id(LANE)
        assert old is not None
        await store.suspend_session(LANE)
        return old

    async def test_a_claim_takes_another_one(self, store: SessionStore, monkeypatch: pytest.MonkeyPatch):
        old = await self.expired(store, monkeypatch)
        ids(monkeypatch, "taken", "free")
        turn = await begin(store)
        assert (turn.seq, turn.entry.session_id) == (1, old.replace("taken", "free"))
        assert (await store.list_queued(LANE))[0].running

    async def test_a_claim_that_finds_none_changes_nothing(
        self, store: SessionStore, monkeypatch: pytest.MonkeyPatch
    ):
        await self.expired(store, monkeypatch)
        monkeypatch.setattr(RandomDigits, "hex_digits", lambda *_: "taken")
        with pytest.raises(StorageError, match="no id was free"):
            await store.claim(LANE)
        assert await in_line(store) == [1]
        ids(monkeypatch, "free")
        assert (await begin(store)).seq == 1

    async def test_a_commit_that_goes_on_is_made_once(
        self, store: SessionStore, monkeypatch: pytest.MonkeyPatch
    ):
        await self.expired(store, monkeypatch)
        ids(monkeypatch, "next")
        await answer(store)
        await accept(store, "two", "three")
        turn = await begin(store)
        await store.suspend_session(LANE)
        ids(monkeypatch, "next", "free")
        following = (await turn.commit([reply("hi")], go_on=True)).next
        assert following is not None
        assert following.entry.session_id.endswith("free")
        assert (await talk_of(store, turn.entry.session_id))[-2:] == [("user", "two"), ("assistant", "hi")]
        assert await fates(store) == {"turned": 2, "open": 1}

    async def test_a_message_whose_turn_begins_at_once_is_taken_in_once(
        self, home: Path, monkeypatch: pytest.MonkeyPatch, fake_clock: FakeClock
    ):
        async with open_store(home, quick_config(session_reset=IDLE), clock=fake_clock) as store:
            await self.expired(store, monkeypatch)
            ids(monkeypatch, "next")
            await answer(store)
            await accept(store, "two")
            fake_clock.step(timedelta(hours=2))
            await store.suspend_session(LANE)
            await store.db.create_session(session_id_at(fake_clock.now(), "taken"), "cli")
            ids(monkeypatch, "taken", "free")
            turn = await enqueue_and_begin(store, said("three"))
            assert turn is not None
            assert (turn.seq, turn.entry.session_id.rpartition("_")[2]) == (2, "free")
            assert await in_line(store) == [3]


class ReadyLanes(QueueListener):
    """Keeps the lanes on which a turn can begin."""

    def __init__(self) -> None:
        self.lanes: list[str] = []

    def hear_waiting_turn(self, session_key: str) -> None:
        self.lanes.append(session_key)


class TestCallersWhoGiveUp:
    """Whoever is cancelled leaves no turn that nobody works on."""

    async def cancelled_everywhere(
        self,
        store: SessionStore,
        call: Callable[[str], Awaitable[object]],
        prepare: Callable[[str], Awaitable[object]],
        *,
        later: bool,
        allowed: Callable[[str], list[str]] = lambda _: [],
    ) -> int:
        """Cancel a call at each await in turn; how often that was. What may run after it is *allowed*."""
        for at in range(1, TRIES):
            name = f"m{at}{later}"
            await prepare(name)

            def cancel() -> None:
                loop, task = asyncio.get_running_loop(), asyncio.current_task()
                assert task is not None
                loop.call_soon(task.cancel) if later else task.cancel()

            suspensions = Suspensions(at, cancel)
            task = asyncio.ensure_future(suspensions.watch(call(name)))  # type: ignore[arg-type]
            await asyncio.wait({task})
            if not suspensions.reached:
                task.result()
                return at - 1
            running = [one.message.text for one in await store.list_queued(LANE) if one.running]
            assert running in ([], allowed(name)) or not task.cancelled()
            await store.stop_turn(LANE)
        raise AssertionError

    @pytest.mark.parametrize("later", [False, True])
    async def test_a_claim_is_given_back(self, store: SessionStore, later: bool):
        ready = ReadyLanes()
        queue_of(store).attach_listener(ready)
        assert await self.cancelled_everywhere(
            store,
            lambda _: store.claim(LANE),
            lambda name: accept(store, name, "and another"[: -len(name)] + name),
            later=later,
        )
        assert LANE in ready.lanes

    @pytest.mark.parametrize("later", [False, True])
    async def test_a_turn_that_begins_with_its_message_is_given_back(self, store: SessionStore, later: bool):
        async def nothing(_: str) -> None:
            return

        assert await self.cancelled_everywhere(
            store, lambda name: enqueue_and_begin(store, said(name)), nothing, later=later
        )

    @pytest.mark.parametrize("later", [False, True])
    async def test_the_turn_that_a_commit_goes_on_with_is_given_back(self, store: SessionStore, later: bool):
        turns: list[Turn] = []

        async def prepare(name: str) -> None:
            await accept(store, name, f"{name}, next")
            turns.append(await begin(store))

        assert await self.cancelled_everywhere(
            store,
            lambda _: turns[-1].commit([reply("hi")], go_on=True),
            prepare,
            later=later,
            allowed=lambda name: [name],  # if nothing was committed
        )

    @pytest.mark.parametrize("later", [False, True])
    async def test_the_turn_of_another_lane_that_has_the_place_of_one_is_given_back(
        self, store: SessionStore, later: bool
    ):
        turns: list[Turn] = []
        ready = ReadyLanes()
        queue_of(store).attach_listener(ready)

        async def prepare(name: str) -> None:
            await store.stop_turn(OTHER_LANE)
            await accept(store, name, f"{name}, next")
            await accept(store, name, source=BOB)
            turns.append(await begin(store))

        assert await self.cancelled_everywhere(
            store,
            lambda _: turns[-1].commit([reply("hi")], go_on=OTHER_LANE),
            prepare,
            later=later,
            allowed=lambda name: [name],  # if nothing was committed
        )
        # The last call was not cancelled, so that turn runs.
        assert [one.running for one in await store.list_queued(OTHER_LANE)] == [True]
        assert {LANE, OTHER_LANE} <= {*ready.lanes}

    async def test_what_was_committed_stays_committed(self, store: SessionStore):
        await accept(store, "one", "two")
        turn = await begin(store)
        task = asyncio.ensure_future(turn.commit([reply("hi")], go_on=True))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})
        assert await fates(store) in ({"open": 2}, {"turned": 1, "open": 1})
        if task.cancelled():
            following = await store.claim(LANE)
            assert following is None or following.seq == 2


async def test_what_a_turn_is_not_about_any_more_is_not_written_down(store: SessionStore, home: Path):
    turn = await enqueue_and_begin(store, said("secret"))
    assert turn is not None
    await asyncio.to_thread(execute_sql, home / "sessions.db", "DELETE FROM inbox")
    await turn.commit([reply("yes")])
    assert await talk_of(store, turn.entry.session_id) == [("assistant", "yes")]


def put_anything(home: Path, sql: str) -> None:
    """Change a database as damage does, which asks for no kind of values."""
    with closing(sqlite3.connect(home / "sessions.db")) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_master SET sql = replace(sql, 'STRICT,', '') WHERE name = 'lanes'")
        connection.execute("PRAGMA writable_schema = RESET")
        connection.execute(sql)


class TestDamage:
    """A stored message that cannot be read any more."""

    async def damaged(self, store: SessionStore, home: Path, seq: int = 1) -> None:
        await asyncio.to_thread(
            execute_sql, home / "sessions.db", "UPDATE inbox SET payload = '{' WHERE seq = ?", seq
        )

    async def test_it_becomes_a_dead_letter_and_its_lane_goes_on(self, store: SessionStore, home: Path):
        await accept(store, "one", "two", source=BOB)
        await accept(store, "one", "two")
        await self.damaged(store, home)
        turns = [await begin(store, None) for _ in range(2)]
        assert sorted((one.session_key, one.seq) for one in turns) == [(LANE, 2), (OTHER_LANE, 2)]
        letters = await store.dead_letters()
        assert [one.message for one in letters] == [None, None]
        assert "damaged" in letters[0].problem
        assert queue_of(store).total_waiting == 0

    @pytest.mark.parametrize("wrong", ["'many'", "2.5", "x'ff'"])
    async def test_a_count_that_is_no_number_is_counted_anew(
        self, home: Path, fake_clock: FakeClock, wrong: str
    ):
        async with open_store(home, clock=fake_clock) as store:
            await accept(store, "one", "two")
        await asyncio.to_thread(put_anything, home, f"UPDATE lanes SET waiting = {wrong}")  # noqa: S608
        async with open_store(home, clock=fake_clock) as store:
            assert queue_of(store).total_waiting == 2
            assert (await accept(store, "three")).depth == 3
            await answer(store)
            assert queue_of(store).total_waiting == await store.queue_depth(LANE) == 2

    async def test_a_lane_of_which_nothing_can_be_read_has_no_turn(self, store: SessionStore, home: Path):
        await accept(store, "one")
        await self.damaged(store, home)
        assert await store.claim() is None
        assert await store.queue_depth(LANE) == 0
        assert await enqueue_and_begin(store, said("two")) is not None

    async def test_the_next_start_is_not_kept_from_opening(self, home: Path, fake_clock: FakeClock):
        async with open_store(home, clock=fake_clock) as store:
            await accept(store, "one")
            await begin(store)
            await queue_of(store).record_arrival(said("/help", source=BOB), ItemKind.COMMAND)
            await asyncio.to_thread(execute_sql, home / "sessions.db", "UPDATE inbox SET payload = 'x'")
        for attempt in (1, 2, 3):
            async with open_store(home, clock=fake_clock) as store:
                assert store.started.abandoned == ()
                assert bool(store.started.resumed) == (attempt < 3)
                if attempt < 3:
                    await asyncio.to_thread(
                        execute_sql, home / "sessions.db", "UPDATE lanes SET lease_epoch = 1 + attempts"
                    )

    async def test_it_can_be_taken_back_and_its_turn_can_be_stopped(self, store: SessionStore, home: Path):
        await accept(store, "one", "two")
        turn = await begin(store)
        await self.damaged(store, home, 1)
        await self.damaged(store, home, 2)
        assert (await store.cancel_queued(LANE, 2), (await store.stop_turn(LANE)).stopped) == (1, 1)
        with pytest.raises(FencedError):
            await turn.commit()

    async def test_a_damaged_lane_does_not_keep_others_waiting(self, store: SessionStore, home: Path):
        await accept(store, "one")
        await accept(store, "one", source=BOB)
        broken = "UPDATE entries SET record = '{' WHERE session_key = ?"
        await asyncio.to_thread(execute_sql, home / "sessions.db", broken, LANE)
        # As if somebody else had written it: what is remembered of it is not current any more.
        newer = "UPDATE clocks SET version = version + 1"
        await asyncio.to_thread(execute_sql, home / "sessions.db", newer)
        assert (await begin(store, None)).session_key == OTHER_LANE
        with pytest.raises(StorageCorruptError):
            await store.claim()


class TestShown:
    """In mode sync, sessions.json shows what a call has changed before it returns."""

    async def test_the_session_that_a_message_begins(self, home: Path, fake_clock: FakeClock):
        async with open_store(home, config_with_snapshot(SnapshotMode.SYNC), clock=fake_clock) as store:
            await accept(store, "one")
            assert await asyncio.to_thread(self.shown, home) == await store.peek_session_id(LANE)
            await store.suspend_session(LANE)
            turn = await begin(store)
            assert await asyncio.to_thread(self.shown, home) == turn.entry.session_id

    async def test_a_file_that_cannot_be_written_stops_no_turn(self, home: Path, fake_clock: FakeClock):
        async with open_store(home, config_with_snapshot(SnapshotMode.SYNC), clock=fake_clock) as store:
            await asyncio.to_thread(self.spoil, home)
            await accept(store, "one")
            async with await begin(store) as turn:
                await turn.commit([reply("hi")])
            assert await fates(store) == {"turned": 1}

    @pytest.mark.parametrize("go_on", [False, True])
    async def test_whoever_gives_up_waiting_for_the_file_leaves_no_turn_behind(
        self, store: SessionStore, go_on: bool, monkeypatch: pytest.MonkeyPatch
    ):
        await accept(store, "one", "two")
        turn = await begin(store)
        reached, never = asyncio.Event(), asyncio.Event()

        async def shown() -> None:
            reached.set()
            await never.wait()

        if go_on:
            monkeypatch.setattr(queue_of(store), "_shown", shown)
            task = asyncio.ensure_future(turn.commit([reply("hi")], go_on=True))
        else:
            await turn.release()
            monkeypatch.setattr(queue_of(store), "_shown", shown)
            task = asyncio.ensure_future(store.claim(LANE))  # type: ignore[arg-type]
        await reached.wait()
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
        assert await in_line(store) == ([2] if go_on else [1, 2])

    def shown(self, home: Path) -> str:
        return str(json.loads((home / "sessions.json").read_text())[LANE]["session_id"])

    def spoil(self, home: Path) -> None:
        (home / "sessions.json").unlink(missing_ok=True)
        (home / "sessions.json").mkdir()


def no_commit(point: str) -> None:
    """A disk that is gone."""
    if point == "before_commit":
        raise StorageUnavailableError("disk", "is gone")


class TestLeaving:
    """What the log says of a turn that ended otherwise than its program thought."""

    async def test_a_turn_that_was_overtaken(self, store: SessionStore, caplog: pytest.LogCaptureFixture):
        await accept(store, "one")
        with caplog.at_level(logging.INFO, "gateway_sessions"):
            async with await begin(store) as turn:
                await store.stop_turn(LANE)
        told = [one for one in caplog.records if getattr(one, "action", None) == "turn_fenced"]
        assert [vars(one)["token"] for one in told] == [turn.token]

    async def test_a_turn_that_cannot_be_given_back_is_taken_up_by_the_next_process(
        self, home: Path, fake_clock: FakeClock, caplog: pytest.LogCaptureFixture
    ):
        async with open_store(home, clock=fake_clock) as store:
            await accept(store, "one")
            try:
                async with await begin(store):
                    arm_failpoints(no_commit)
            finally:
                arm_failpoints(None)
            assert "turn_kept" in {getattr(one, "action", None) for one in caplog.records}
        async with open_store(home, clock=fake_clock) as store:
            assert store.started.resumed == (LANE,)
            assert (await begin(store)).attempt == 2

    async def test_the_end_of_the_program_leaves_the_turn_to_the_next_one(self, store: SessionStore):
        await accept(store, "one")
        turn = await begin(store)
        with pytest.raises(KeyboardInterrupt):
            async with turn:
                raise KeyboardInterrupt
        assert (await store.list_queued(LANE))[0].running


async def test_what_is_carried_out_at_once_may_be_unfit_as_well(home: Path, fake_clock: FakeClock):
    async with open_store(home, clock=fake_clock) as store:
        sent = fake_clock.now()
        for text, reason in (("", RejectReason.EMPTY), ("x" * (2 << 20), RejectReason.TOO_LARGE)):
            refused = await queue_of(store).record_arrival(said(text, message_id="1"), ItemKind.COMMAND)
            assert isinstance(refused, Rejected)
            assert refused.reason is reason
        fake_clock.step(timedelta(minutes=1))
        await store.erase("main:telegram:user:alice")
        late = await queue_of(store).record_arrival(said("/title x", sent_at=sent), ItemKind.COMMAND)
        assert isinstance(late, Rejected)
        assert late.reason is RejectReason.ERASED
        assert await queue_of(store).routing.lane_of(BOB) == (OTHER_LANE, "main:telegram:user:bob")


async def test_how_much_waits_is_known_after_everything_that_changes_it(home: Path, fake_clock: FakeClock):
    async with open_store(home, quick_config(), clock=fake_clock) as store:
        await accept(store, "one", "two", "three")
        await asyncio.gather(
            store.cancel_queued(LANE, 2),
            accept(store, "four"),
            store.move_queued(LANE, 3, 1),
            store.claim(LANE),
            accept(store, "five"),
        )
        assert queue_of(store).total_waiting == await store.queue_depth(LANE)
        assert queue_of(store).waiting_on_lane(LANE) == await store.queue_depth(LANE)
        await queue_of(store).refresh_counts()
        assert list(queue_of(store).lanes_waiting) == [LANE]


async def test_a_message_stands_in_line_since_when_its_process_says(
    store: SessionStore, fake_clock: FakeClock
):
    """As one who waited for the answer stands where one stands who had written before it."""
    before = fake_clock.now()
    fake_clock.step(timedelta(milliseconds=10))
    await accept(store, "came first", source=BOB)
    fake_clock.step(timedelta(milliseconds=10))
    here = LocalLane(since=lambda: before)
    await queue_of(store).enqueue(said("came later"), APART, here=here)
    assert [key for key, _ in await queue_of(store).ready_lanes()] == [LANE, OTHER_LANE]


async def test_a_burst_is_waited_for_since_whenever_its_turn_stands_in_line(
    store: SessionStore, fake_clock: FakeClock
):
    before = fake_clock.now()
    fake_clock.step(timedelta(milliseconds=10))
    here = LocalLane(since=lambda: before)
    await queue_of(store).enqueue(said("more will come"), COLLECTING, here=here)
    assert await queue_of(store).ready_lanes() == []
