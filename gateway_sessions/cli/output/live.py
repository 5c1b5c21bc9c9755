"""The overview of a store, printed once or redrawn until Ctrl-C."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING

import anyio
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from gateway_sessions.cli.output.terminal import Column, facts_table, rows_table
from gateway_sessions.core.notices.human_units import AT_START, ago, counted, short_duration

if TYPE_CHECKING:
    from gateway_sessions.runtime.operator.overview import NextReset, Overview
    from gateway_sessions.storage.transactions.upkeep.status import LaneInUse


async def show_live(screen: Console, look: Callable[[], Awaitable[RenderableType]], pause: float) -> None:
    """Show what *look* returns again and again until cancelled, and restore the terminal."""
    with Live(await look(), console=screen, screen=True, auto_refresh=False) as live:
        while True:
            live.refresh()
            await anyio.sleep(pause)
            live.update(await look())


def overview_page(overview: Overview) -> RenderableType:
    """Return the page of one overview."""
    parts: list[RenderableType] = [facts_table(_overview_facts(overview))]
    if overview.lanes:
        parts += [Text(), _lanes_table(overview)]
    if overview.resets:
        parts += [Text(), _resets_table(overview.resets, overview.now)]
    return Group(*parts)


def _overview_facts(overview: Overview) -> list[tuple[str, object]]:
    work, now = overview.work, overview.now
    alone = overview.owner is None and overview.owner_problem is None and not overview.elsewhere
    waiting = counted(work.waiting, "turn")
    oldest = f", the oldest since {_time_since(work.oldest_waiting, now)}" if work.oldest_waiting else ""
    cut_off = f"{counted(work.cut_off, 'turn')}, tried again {_when_retried(overview)}"
    not_sent_yet = f", sent {AT_START}" if alone and work.owed_replies else ""
    given_up = f"{counted(work.dead_messages, 'message')}, {_count_replies(work.dead_replies)}"
    return [
        ("Now", f"{now:%Y-%m-%d %H:%M:%S} UTC"),
        ("Owner", _owner_text(overview)),
        ("Agents", _agents_text(overview)),
        ("Event loop", _event_loop_text(overview)),
        ("Sessions", f"on {counted(overview.sessions, 'lane')}"),
        ("Running", counted(work.running, "turn")),
        ("Cut off", cut_off if work.cut_off else None),
        ("Waiting", f"{waiting}{oldest}"),
        ("Owed", f"{_count_replies(work.owed_replies)}{not_sent_yet}"),
        ("Given up", given_up if work.dead_messages or work.dead_replies else "nothing"),
    ]


def _owner_text(overview: Overview) -> str:
    owner = overview.owner
    if owner is None:
        if overview.owner_problem or not overview.elsewhere:
            return overview.owner_problem or "nobody has the store open"
        others = counted(overview.elsewhere, "process has it open", "processes have it open")
        return f"nobody has the store open in this directory; elsewhere {others}"
    up = short_duration(overview.now - owner.opened_at)
    handing_over = ", asked to hand over" if owner.draining else ""
    return f"process {owner.pid}, version {owner.program}, for {up}, opening {owner.epoch}{handing_over}"


def _agents_text(overview: Overview) -> str:
    if overview.owner is None:
        return _text_without_owner(overview)
    if (counts := overview.owner.agents) is None:
        return "no gateway runs there"
    # A plain function is not in the cache, so more agents may work than the cache has lent.
    there = f"{counts.idle:,} of {counts.room:,} warm, {max(counts.lent, overview.at_work):,} at work"
    if not (asked := counts.hits + counts.misses):
        return there
    return f"{there}; {counts.hits:,} of {counted(asked, 'turn')} found theirs ({counts.hits / asked:.0%})"


def _event_loop_text(overview: Overview) -> str:
    if overview.owner is None:
        return _text_without_owner(overview)
    if (lag := overview.owner.loop) is None:
        return "not measured yet"
    return f"{lag.usual_ms:.1f} ms late, at most {lag.worst_ms:,.0f} ms in the last minute"


def _text_without_owner(overview: Overview) -> str:
    return "unknown, for the owner does not answer" if overview.owner_problem else "not running"


def _lanes_table(overview: Overview) -> RenderableType:
    columns = (
        Column("Lane", whole=True),
        Column("State"),
        Column("For", right=True, leaves=1),
        Column("Lease", leaves=5),
        Column("Try", right=True, leaves=4),
        Column("Waiting", right=True, leaves=2),
        Column("Oldest", right=True, leaves=3),
    )
    return rows_table(columns, [_lane_row(one, overview) for one in overview.lanes])


def _lane_row(one: LaneInUse, overview: Overview) -> tuple[object, ...]:
    now, running = overview.now, one.epoch is not None and not one.cut_off
    return (
        one.session_key,
        _lane_state(one, overview),
        _time_since(one.running_since, now) if running else None,
        f"{one.epoch}.{one.token}" if running else None,
        str(one.attempts + 1 + one.cut_off),
        f"{one.waiting:,}",
        _time_since(one.oldest_waiting, now),
    )


def _lane_state(one: LaneInUse, overview: Overview) -> Text:
    if one.cut_off:
        return Text("cut off", "yellow")
    return Text("running", "green") if one.epoch is not None else _waiting_text(one.ready_at, overview.now)


def _when_retried(overview: Overview) -> str:
    served = overview.owner is not None and overview.owner.agents is not None
    return "soon" if served or overview.elsewhere else AT_START


def _waiting_text(ready_at: datetime | None, now: datetime) -> Text:
    if ready_at is None or ready_at <= now:
        return Text("waiting", "yellow")
    return Text(f"again {ago(ready_at, now).replace('just now', 'at once')}", "yellow")


def _resets_table(resets: tuple[NextReset, ...], now: datetime) -> RenderableType:
    columns = (
        Column("Next reset of", whole=True),
        Column("Session", leaves=2),
        Column("When"),
        Column("Why", leaves=1),
    )
    rows = [
        (
            one.session_key,
            one.session_id,
            f"in {short_duration(one.at - now)}" if one.at > now else "due",
            one.reason,
        )
        for one in resets
    ]
    return rows_table(columns, rows)


def _count_replies(number: int) -> str:
    return counted(number, "reply", "replies")


def _time_since(since: datetime | None, now: datetime) -> str | None:
    return None if since is None else short_duration(now - since)
