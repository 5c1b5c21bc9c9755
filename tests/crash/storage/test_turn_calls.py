"""Whatever a turn does: a failing statement changes nothing, and what is cancelled is done or not done."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

import pytest

from gateway_sessions import GatewaySessionsError, StorageError
from gateway_sessions.core.delivery.outbound_messages import Growing, OutboundMessage, ReplyTarget
from gateway_sessions.core.sessions.recovery import ResumeReason
from gateway_sessions.errors import FencedError
from gateway_sessions.queue import Owed
from gateway_sessions.runtime.queue.turn import GatewayTurn
from tests.crash.kills.store_workload import key
from tests.crash.storage.faulty_driver import FAULTS, FaultyDriver, fault
from tests.crash.storage.test_cancellation import cancel_this_task, nothing_stays_held, run
from tests.crash.storage.test_failing_storage import snapshot
from tests.crash.store_calls import APART, message
from tests.crash.stores import DrivenStore, SteppedClock
from tests.crash.suspensions import Suspensions

SAID: Final = {"role": "assistant", "content": "hi"}


def owed(turn: GatewayTurn) -> Owed:
    target = ReplyTarget.answering(turn.messages[0])
    return Owed(target=target, message=OutboundMessage(text="hi"), owner=turn.entry.owner)


CALLS: Final[dict[str, Callable[[GatewayTurn], Awaitable[object]]]] = {
    "transcript": lambda turn: turn.transcript(),
    "append": lambda turn: turn.append(SAID),
    "steer": lambda turn: turn.steer(turn.seq + 1),
    "take_in_message": lambda turn: turn.take_in_message(turn.seq + 1),
    "note_growing": lambda turn: turn.note_growing(Growing(number=1, message_id="7")),
    "owe": lambda turn: turn.owe(owed(turn)),
    "commit": lambda turn: turn.commit([SAID], replies=[owed(turn)]),
    "fail": lambda turn: turn.fail("no power"),
    "interrupt": lambda turn: turn.interrupt("somebody", [SAID]),
    "roll_back": lambda turn: turn.roll_back("somebody"),
    "release": lambda turn: turn.release(counted=True),
    "cut_short": lambda turn: turn.cut_short(ResumeReason.SHUTDOWN_TIMEOUT, [owed(turn)]),
}
ENDS: Final = {"commit", "fail", "interrupt", "roll_back", "release", "cut_short"}
INFORMS: Final = {"release", "cut_short"}
"""What they have done is told in a file in the end: that it could not be brought up to date is no failure."""
each_call: Final = pytest.mark.parametrize("name", CALLS)


def test_every_method_of_a_turn_is_called_here():
    public = {
        name
        for name, method in inspect.getmembers(GatewayTurn, inspect.iscoroutinefunction)
        if not name.startswith("_")
    }
    assert set(CALLS) == public


async def begin(store: DrivenStore, clock: SteppedClock, *, known: bool) -> GatewayTurn:
    """A turn on a lane of which nothing else is left; unless *known*, it has written something already."""
    clock.advance(minutes=1)
    await store.stop_turn(key("q"))
    await store.clear_queue(key("q"))
    for _ in range(2):
        await store.enqueue(message("q"), rules=APART)
    turn = await store.claim(key("q"))
    assert turn is not None
    if not known:
        await turn.append({"role": "assistant", "content": "let me see"})
    return turn


def visible_rows(home: Path, turn: GatewayTurn) -> int:
    """How often what the turn is about can be seen in transcripts."""
    with closing(sqlite3.connect(home / "sessions.db")) as connection:
        question = "SELECT count(*) FROM messages WHERE platform_message_id = ? AND hidden_because IS NULL"
        return int(connection.execute(question, (turn.messages[0].message_id,)).fetchone()[0])


@each_call
@pytest.mark.parametrize("known", [True, False], ids=["as_it_began", "with_something_written"])
async def test_a_statement_that_fails_is_a_typed_error_and_the_call_can_be_repeated(
    faulty_store: tuple[DrivenStore, FaultyDriver, SteppedClock], tmp_path: Path, name: str, known: bool
):
    store, driver, clock = faulty_store
    for nth, kind in zip(itertools.count(1), itertools.cycle(FAULTS), strict=False):
        turn = await begin(store, clock, known=known)
        before = snapshot(tmp_path)
        driver.arm(nth, fault(kind))
        try:
            await CALLS[name](turn)
        except StorageError as error:
            assert type(error) is FAULTS[kind][2]  # noqa: PT017 -- without an error it is over
        else:
            fired = driver.fired
            driver.arm(0, fault(kind))
            if not fired:
                break
            assert name in INFORMS, "the failure was swallowed"
            assert turn.ended
            continue
        driver.arm(0, fault(kind))
        assert driver.fired
        assert snapshot(tmp_path) == before
        assert not turn.ended
        await CALLS[name](turn)
        assert turn.ended == (name in ENDS)
        assert visible_rows(tmp_path, turn) <= 1
        snapshot(tmp_path)
    assert nth > 1


@each_call
@pytest.mark.parametrize("known", [True, False], ids=["as_it_began", "with_something_written"])
@pytest.mark.parametrize("later", [False, True], ids=["at_once", "a_turn_later"])
async def test_a_cancelled_call_is_done_or_not_and_the_lane_goes_on(
    faulty_store: tuple[DrivenStore, FaultyDriver, SteppedClock],
    tmp_path: Path,
    name: str,
    known: bool,
    later: bool,
):
    store, _, clock = faulty_store
    for at in itertools.count(1):
        turn = await begin(store, clock, known=known)
        suspensions = Suspensions(at, lambda: cancel_this_task(later=later))
        call = asyncio.create_task(run(suspensions.watch(CALLS[name](turn))))
        await asyncio.wait({call})
        if not suspensions.reached:
            call.result()
            break
        with suppress(asyncio.CancelledError, GatewaySessionsError):
            call.result()
        await nothing_stays_held(tmp_path)
        # Whether it was done nobody knows; the database does, and lets nothing be done twice.
        if not turn.ended:
            with suppress(FencedError):
                await turn.commit([SAID])
        assert visible_rows(tmp_path, turn) <= 1
        snapshot(tmp_path)
    assert at > 1
