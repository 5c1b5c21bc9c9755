"""Repair of due times that a clock wrote while it was ahead, after it was set back."""

from __future__ import annotations

from datetime import datetime, timedelta

from gateway_sessions.core.instants import to_micros
from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.storage.tables import meta


def was_clock_ahead(now: datetime, ended_at: datetime | None) -> Transaction[bool]:
    """Return whether a row was written, or a process ended at *ended_at*, at a time that has yet to come."""
    ((stamp,),) = yield Statement("latest_stamp")
    latest = max(stamp or 0, (yield from meta.get_number(meta.LIVED_AT)))
    return latest > to_micros(now) or (ended_at is not None and ended_at > now)


def pull_all_forward(now: datetime, longest_debounce: timedelta) -> Transaction[None]:
    """Let turns, replies and hook calls that wait for a time yet to come be due at once, except for bursts.

    No row tells which of these times a correct clock wrote. So a pause may end sooner than it should, and
    nothing waits for as long as the clock was ahead.
    """
    yield from pull_turns_forward(now, longest_debounce)
    yield from pull_replies_forward(now)
    yield from pull_hook_calls_forward(now)


def pull_turns_forward(now: datetime, longest_debounce: timedelta) -> Transaction[None]:
    """Let turns that wait for a time yet to come begin at once, unless their burst may still go on.

    People may have written since the clock was set back, and each node repairs when it notices. So a turn
    that waits no longer than a burst may pause keeps its time, however often the repair runs. A turn that
    waits for longer was put off either since then or by a clock that was ahead: no row tells which, so it
    begins. Tombstones are pulled forward as well, so that messages which people send from now on are
    accepted.
    """
    moment = to_micros(now)
    latest = to_micros(now + longest_debounce)
    yield Statement("pull_items_forward", (moment, latest))
    yield Statement("pull_lanes_forward", (moment, latest))
    yield Statement("pull_tombstones_forward", (moment, moment))


def pull_replies_forward(now: datetime) -> Transaction[None]:
    """Let replies that wait for a try at a time yet to come be sent at once."""
    moment = to_micros(now)
    yield Statement("pull_replies_forward", (moment, moment))


def pull_hook_calls_forward(now: datetime) -> Transaction[None]:
    """Let hook calls that wait for a try at a time yet to come be made at once."""
    moment = to_micros(now)
    yield Statement("pull_hook_calls_forward", (moment, moment))
