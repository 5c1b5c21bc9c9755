"""Repair of due times that a clock wrote while it was ahead, after it was set back."""

from __future__ import annotations

from datetime import datetime, timedelta

from gateway_sessions.core.instants import to_micros
from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.storage.tables import meta


def was_ahead(now: datetime, ended_at: datetime | None) -> Transaction[bool]:
    """Whether anything was written, or a process has *ended_at*, at a time that has yet to come."""
    rows = yield Statement("latest_stamp")
    latest = max(rows[0][0] or 0, (yield from meta.number(meta.LIVED_AT)))
    return latest > to_micros(now) or (ended_at is not None and ended_at > now)


def pull_forward(now: datetime, longest_debounce: timedelta) -> Transaction[None]:
    """Let whatever waits for a time that has yet to come be due at once, but for the rest of a burst.

    Nobody knows which of these times were meant on a clock that was right. So a pause may end sooner than it
    was to, and nothing waits for as long as the clock was ahead.
    """
    yield from pull_turns_forward(now, longest_debounce)
    yield from pull_replies_forward(now)
    yield from pull_hook_calls_forward(now)


def pull_turns_forward(now: datetime, longest_debounce: timedelta) -> Transaction[None]:
    """Let turns that wait for a time that has yet to come begin at once, but for the rest of a burst.

    People may have written since the clock was set back, which each node notices when it wakes. So a turn
    that waits no longer than a burst may pause keeps its time, however often this is done. Nobody knows of a
    turn that waits for longer whether it was put off since then, or by a clock that was ahead: it begins.
    What people say from now on is taken, too, whenever they were erased.
    """
    moment = to_micros(now)
    latest = to_micros(now + longest_debounce)
    yield Statement("pull_items_forward", (moment, latest))
    yield Statement("pull_lanes_forward", (moment, latest))
    yield Statement("pull_tombstones_forward", (moment, moment))


def pull_replies_forward(now: datetime) -> Transaction[None]:
    """Let replies that are tried again at a time that has yet to come be tried at once."""
    moment = to_micros(now)
    yield Statement("pull_replies_forward", (moment, moment))


def pull_hook_calls_forward(now: datetime) -> Transaction[None]:
    """Let calls of hooks that are made again at a time that has yet to come be made at once."""
    moment = to_micros(now)
    yield Statement("pull_hook_calls_forward", (moment, moment))
