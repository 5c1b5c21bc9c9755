"""Schedules and unprompted messages: saved under a name, run once by one node, said and remembered together.

An unprompted message is owed in the transaction that makes it part of the conversation, so that an agent
knows what people were told. A schedule that comes to its time is compared and set in the same transaction:
whoever is first runs it, and nobody else does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec

from gateway_sessions.core.delivery.schedules import (
    RunPlan,
    SayTask,
    Schedule,
    ScheduledTask,
    ScheduleKind,
    ScheduleState,
    Timing,
    TurnTask,
)
from gateway_sessions.core.instants import clamp_to_calendar, to_micros
from gateway_sessions.core.queue.inbound import encode_message
from gateway_sessions.core.sessions.entry import SessionEntry, SessionState
from gateway_sessions.core.storable_text import record_as_json, truncated_text
from gateway_sessions.core.transcript.messages import UNPROMPTED, Message
from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.storage.tables.change import Change
from gateway_sessions.storage.tables.column_decoding import DAMAGE
from gateway_sessions.storage.tables.entries import load_readable
from gateway_sessions.storage.tables.lanes import lane_lease
from gateway_sessions.storage.tables.sql_files import record_of, row_of
from gateway_sessions.storage.transactions.queue.outbox import MAX_PROBLEM, Owed, owe_replies
from gateway_sessions.storage.transactions.transcripts import messages as transcripts
from gateway_sessions.storage.transactions.transcripts.rewind import adjust_totals

_GOES_ON: Final = frozenset({SessionState.ACTIVE, SessionState.RESUME_PENDING})
"""The states of sessions that the next message goes on with: only these remember what was said."""
UNREADABLE: Final = "its task cannot be read"
_SAY: Final = msgspec.json.Decoder(SayTask)
_TURN: Final = msgspec.json.Decoder(TurnTask)
_TIMING: Final = msgspec.json.Decoder(Timing)


@row_of("schedule_named", "schedules_by_name", "due_schedules", "schedules_of_person")
@record_of("add_schedule")
class ScheduleRow(NamedTuple):
    """The row of a schedule."""

    name: str
    kind: str
    session_key: str
    owner: str
    platform: str
    account: str
    task: str | None
    timing: str | None
    state: str
    due_at: int | None
    last_at: int | None
    runs: int
    version: int
    created_at: int
    settled_at: int | None
    problem: str | None


class Said(NamedTuple):
    """The replies that an unprompted message became, and the session that remembers it."""

    reply_ids: tuple[int, ...]
    session_id: str | None
    is_new: bool = True
    """False if it was said before, under the same idempotency key: nothing is said again."""


class Saved(NamedTuple):
    """A schedule as it is stored, and whether it was added or replaced just now."""

    schedule: Schedule
    is_new: bool
    was_changed: bool = False


# What is said


def say(
    memory: Schedule | None, session_key: str, owed: Sequence[Owed], row: Message | None, change: Change
) -> Transaction[Said]:
    """Owe a lane an unprompted message; *row* is its row in the transcript.

    With a *memory*, a row under the name of the message, nothing is said again that has such a row already.
    """
    if memory is not None:
        if (yield Statement("schedule_named", (memory.name,))):
            return Said((), None, is_new=False)
        yield _add_statement(memory, settled_at=change.now)
    return (yield from owe_unprompted(session_key, owed, row, change))


def add_said(wanted: Schedule) -> Transaction[Saved]:
    """Store a message that waits for its time; one that is known under its name stays as it is."""
    known = yield from load_schedule(wanted.name)
    if known is not None:
        return Saved(known, is_new=False)
    yield _add_statement(wanted)
    return Saved(wanted, is_new=True)


def owe_unprompted(
    session_key: str, owed: Sequence[Owed], row: Message | None, change: Change
) -> Transaction[Said]:
    """Owe a lane a message that answers nothing; its conversation shows the message from now on."""
    entry = yield from load_readable(session_key)
    if entry is not None and entry.state in _GOES_ON:
        yield from _remember(entry, row, change)
    else:
        entry = None
    ids = yield from owe_replies(owed, entry, session_key, change)
    return Said(ids, None if entry is None else entry.session_id)


def _remember(entry: SessionEntry, row: Message | None, change: Change) -> Transaction[None]:
    if row is None:
        return
    shown = row.altered(from_lane=entry.session_key, extra={UNPROMPTED: True})
    yield from transcripts.append_messages(entry.session_id, [shown], change.now, change.ids)
    lane = yield from lane_lease(entry.session_key)
    if lane is not None and lane.lease_epoch is not None:
        # The agent of the running turn has not seen it: it must read the conversation anew before the next.
        yield from adjust_totals(entry.session_id, edits=1)


# Schedules


def load_schedule(name: str) -> Transaction[Schedule | None]:
    """Return the schedule of that name; None if there is none."""
    rows = yield Statement("schedule_named", (name,))
    return schedule_from_row(ScheduleRow._make(rows[0])) if rows else None


def list_schedules(after: str, limit: int) -> Transaction[list[Schedule]]:
    """Return schedules in the order of their names, from behind one on."""
    rows = yield Statement("schedules_by_name", (after, limit))
    return [schedule_from_row(ScheduleRow._make(row)) for row in rows]


def save_schedule(wanted: Schedule) -> Transaction[Saved]:
    """Store a schedule, or change the one of that name; a schedule that says the same already stays as it is.

    Another timing begins anew; with the same one the next time stays, and so does a pause.
    """
    known = yield from load_schedule(wanted.name)
    if known is None:
        yield _add_statement(wanted)
        return Saved(wanted, is_new=True)
    if _is_same(known, wanted):
        return Saved(known, is_new=False)
    if known.timing == wanted.timing and wanted.timing is not None:
        wanted = replace(wanted, state=known.state, due_at=known.due_at)
    row = _row_of(wanted)
    columns = (row.kind, row.session_key, row.owner, row.platform, row.account, row.task, row.timing)
    yield Statement("replace_schedule", (*columns, row.state, row.due_at, row.name))
    return Saved(replace(wanted, version=known.version + 1), is_new=False, was_changed=True)


def remove_schedule(name: str) -> Transaction[bool]:
    """Remove a schedule; return whether there was one."""
    ((removed,),) = yield Statement("remove_schedule", (name,))
    return bool(removed)


def cancel_schedule(name: str) -> Transaction[bool]:
    """Remove a schedule that waits for its time; return False if it has come, or there is none."""
    ((removed,),) = yield Statement("cancel_schedule", (name,))
    return bool(removed)


def pause_schedule(name: str) -> Transaction[Schedule | None]:
    """Let a schedule rest; return it, or None if there is none. One that is done stays done."""
    known = yield from load_schedule(name)
    if known is None or known.state is not ScheduleState.WAITING:
        return known
    yield Statement(
        "set_schedule_state", (str(ScheduleState.PAUSED), _micros(known.due_at), name, known.version)
    )
    return replace(known, state=ScheduleState.PAUSED)


def resume_schedule(name: str, now: datetime) -> Transaction[Schedule | None]:
    """Let a paused schedule go on with its next time; the times of the pause do not count as missed."""
    known = yield from load_schedule(name)
    if known is None or known.state is not ScheduleState.PAUSED:
        return known
    due_at = known.due_at if known.timing is None else known.timing.next_after(now)
    yield Statement("set_schedule_state", (str(ScheduleState.WAITING), _micros(due_at), name, known.version))
    return replace(known, state=ScheduleState.WAITING, due_at=due_at)


class DueSchedules(NamedTuple):
    """The schedules whose time has come, and the time of the next one."""

    schedules: list[Schedule]
    next_at: datetime | None


def due_schedules(
    kind: ScheduleKind, now: datetime, limit: int, after: tuple[datetime, str] | None = None
) -> Transaction[DueSchedules]:
    """Return the schedules of a kind whose time has come, the earliest first, from behind one on."""
    behind = (-1, "") if after is None else (to_micros(after[0]), after[1])
    rows = yield Statement("due_schedules", (str(kind), to_micros(now), *behind, limit))
    ((next_at,),) = yield Statement("next_schedule_due", (str(kind), to_micros(now)))
    found = [schedule_from_row(ScheduleRow._make(row)) for row in rows]
    return DueSchedules(found, None if next_at is None else clamp_to_calendar(next_at))


def advance_schedule(schedule: Schedule, plan: RunPlan, now: datetime) -> Transaction[bool]:
    """Note that a schedule has come to its time, with its next one; return False if somebody was first."""
    problem = UNREADABLE if schedule.task is None else None
    done = plan.next_at is None or problem is not None
    state = ScheduleState.DONE if done else ScheduleState.WAITING
    task = None if done and problem is None else _task_as_json(schedule.task)
    columns = (str(state), None if done else _micros(plan.next_at), to_micros(now), int(plan.runs), task)
    settled_at = to_micros(now) if done else None
    compared = (schedule.name, schedule.version)
    ((changed,),) = yield Statement("run_schedule", (*columns, settled_at, problem, *compared))
    return bool(changed)


def end_schedule(schedule: Schedule, problem: str, now: datetime) -> Transaction[bool]:
    """End a schedule that cannot run, and keep the reason."""
    columns = (str(ScheduleState.DONE), None, to_micros(now), 0, _task_as_json(schedule.task), to_micros(now))
    compared = (truncated_text(problem, MAX_PROBLEM), schedule.name, schedule.version)
    ((changed,),) = yield Statement("run_schedule", (*columns, *compared))
    return bool(changed)


def run_say(
    schedule: Schedule, plan: RunPlan, owed: Sequence[Owed], row: Message | None, change: Change
) -> Transaction[Said | None]:
    """Say what a schedule says, and note its next time; None if somebody else has said it."""
    if not (yield from advance_schedule(schedule, plan, change.now)):
        return None
    if not plan.runs or not owed:
        return Said((), None)
    return (yield from owe_unprompted(schedule.session_key, owed, row, change))


def export_schedules_of_person(
    owner: str, lanes: Sequence[str]
) -> Transaction[dict[str, list[dict[str, Any]]]]:
    """Return, by lane, what the gateway says to a person by itself, and when."""
    listed = msgspec.json.encode(list(lanes)).decode()
    found: dict[str, list[dict[str, Any]]] = {}
    for row in map(ScheduleRow._make, (yield Statement("schedules_of_person", (owner, listed)))):
        one = schedule_from_row(row)
        found.setdefault(one.session_key, []).append(
            {
                "name": one.name,
                "kind": str(one.kind),
                "text": one.text,
                "timing": None if one.timing is None else msgspec.to_builtins(one.timing),
                "due_at": None if one.due_at is None else one.due_at.isoformat(),
            }
        )
    return found


# Rows


def schedule_from_row(row: ScheduleRow) -> Schedule:
    """Return the schedule in a row; without its task, if that cannot be read."""
    problem = row.problem
    task, timing = _decoded_task(row), _decoded_timing(row)
    if problem is None and row.state != ScheduleState.DONE and (task is None or (row.timing and not timing)):
        problem, task = UNREADABLE, None
    return Schedule(
        name=row.name,
        kind=ScheduleKind.TURN if row.kind == ScheduleKind.TURN else ScheduleKind.SAY,
        session_key=row.session_key,
        owner=row.owner,
        platform=row.platform,
        account=row.account,
        task=task,
        timing=timing,
        state=ScheduleState(row.state) if row.state in set(ScheduleState) else ScheduleState.DONE,
        due_at=_instant(row.due_at),
        last_at=_instant(row.last_at),
        runs=row.runs,
        version=row.version,
        created_at=clamp_to_calendar(row.created_at),
        problem=problem,
    )


def _decoded_task(row: ScheduleRow) -> ScheduledTask | None:
    if row.task is None:
        return None
    try:
        return _TURN.decode(row.task) if row.kind == ScheduleKind.TURN else _SAY.decode(row.task)
    except DAMAGE:
        return None


def _decoded_timing(row: ScheduleRow) -> Timing | None:
    try:
        return None if row.timing is None else _TIMING.decode(row.timing)
    except DAMAGE:
        return None


def _row_of(one: Schedule, settled_at: datetime | None = None) -> ScheduleRow:
    return ScheduleRow(
        name=one.name,
        kind=str(one.kind),
        session_key=one.session_key,
        owner=one.owner,
        platform=one.platform,
        account=one.account,
        task=_task_as_json(one.task),
        timing=None if one.timing is None else record_as_json("timing", one.timing, {}),
        state=str(one.state),
        due_at=_micros(one.due_at),
        last_at=_micros(one.last_at),
        runs=one.runs,
        version=one.version,
        created_at=to_micros(one.created_at),
        settled_at=_micros(settled_at),
        problem=one.problem,
    )


def _add_statement(one: Schedule, settled_at: datetime | None = None) -> Statement:
    return Statement("add_schedule", _row_of(one, settled_at))


def _task_as_json(task: ScheduledTask | None) -> str | None:
    match task:
        case None:
            return None
        case SayTask():
            return record_as_json("task", task, task.target.metadata)
        case TurnTask():
            encode_message(task.message)  # refuses what no database holds, by the name of the message
            return record_as_json("task", task, task.message.metadata)


def _is_same(known: Schedule, wanted: Schedule) -> bool:
    """Return whether a schedule says what is wanted already; one that is done once is not done again."""
    if known.timing is None and wanted.timing is None and known.state is ScheduleState.DONE:
        return True
    what = (known.kind, known.session_key, known.platform, known.account, _task_as_json(known.task))
    if what != (wanted.kind, wanted.session_key, wanted.platform, wanted.account, _task_as_json(wanted.task)):
        return False
    if known.timing is None and wanted.timing is None:
        return known.due_at == wanted.due_at
    return known.timing == wanted.timing


def _instant(micros: int | None) -> datetime | None:
    return None if micros is None else clamp_to_calendar(micros)


def _micros(instant: datetime | None) -> int | None:
    return None if instant is None else to_micros(instant)
