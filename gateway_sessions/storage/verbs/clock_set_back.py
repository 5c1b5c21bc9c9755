"""What a clock that was ahead has left behind: instants that were soon, and are far away since."""

from __future__ import annotations

from datetime import datetime

from gateway_sessions.core.instants import to_micros
from gateway_sessions.ports import Statement, Verb
from gateway_sessions.storage.verbs import meta


def was_ahead(now: datetime, ended_at: datetime | None) -> Verb[bool]:
    """Whether anything was written, or a process has *ended_at*, at a time that has yet to come."""
    rows = yield Statement("latest_stamp")
    latest = max(rows[0][0] or 0, (yield from meta.number(meta.LIVED_AT)))
    return latest > to_micros(now) or (ended_at is not None and ended_at > now)


def pull_forward(now: datetime) -> Verb[None]:
    """Let whatever waits for a time that has yet to come be due at once.

    Nobody knows which of these times were meant on a clock that was right. So a pause may end sooner than it
    was to, and nothing waits for as long as the clock was ahead.
    """
    moment = to_micros(now)
    yield Statement("pull_items_forward", (moment, moment))
    yield Statement("pull_lanes_forward", (moment, moment))
    yield Statement("pull_replies_forward", (moment, moment))
    yield Statement("pull_hook_calls_forward", (moment, moment))
    yield Statement("pull_tombstones_forward", (moment, moment))
