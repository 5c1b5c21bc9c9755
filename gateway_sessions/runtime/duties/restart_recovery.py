"""Recovery when a store is opened, and the two files that tell operators how the last run ended.

The database alone decides which turns were cut off: those whose lane is still leased to a process that is
gone. The files `.clean_shutdown` and `restart_counts.json` tell operators about that, and are never needed.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final

import anyio

from gateway_sessions._process.failpoints import failpoint
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.core.sessions.recovery import (
    CLEAN_SHUTDOWN_FILE,
    RESTART_COUNTS_FILE,
    CleanShutdown,
    clean_end_time,
    decode_starts,
    encode_restart_counts,
    encode_starts,
    is_clean_end_of,
    plan_crash_loop_hold,
    recent_unclean_starts,
)
from gateway_sessions.errors import UnsupportedStorageError
from gateway_sessions.runtime.context import StoreContext
from gateway_sessions.storage.files.atomic_file import (
    read_whole_file,
    remove_file,
    remove_temporaries_of,
    write_atomically,
)
from gateway_sessions.storage.files.threads import in_thread
from gateway_sessions.storage.tables import meta
from gateway_sessions.storage.tables.change import Actor
from gateway_sessions.storage.transactions.queue import clock_set_back, recover
from gateway_sessions.storage.transactions.queue.recover import AbandonedCommand, CutOffTurn
from gateway_sessions.storage.transactions.sessions import expire, lists

logger: Final = logging.getLogger(__name__)

UNCLEAN_STARTS: Final = "unclean_starts"
"""The key of the instants of late starts that followed an unclean end."""


@dataclass(frozen=True, slots=True)
class StartReport:
    """The state in which the store was found when it was opened."""

    epoch: int
    """The number of times that the store has been opened, this one included."""
    clean: bool
    """Whether the process before this one has left the marker of a clean end, or there was none."""
    resumed: tuple[str, ...] = ()
    """Lanes whose cut-off turns are continued."""
    suspended: tuple[str, ...] = ()
    """Lanes that were suspended because their turns were cut off too often in a row."""
    held_until: datetime | None = None
    """The time before which resumed turns do not begin, as the process has crashed too often lately."""
    given_up: tuple[CutOffTurn, ...] = ()
    """The messages of the suspended lanes' turns, which are dead letters now."""
    abandoned: tuple[AbandonedCommand, ...] = ()
    """Commands of which it is unknown whether they were carried out."""
    doubted: int = 0
    """The number of replies of which it is unknown whether they were sent."""


class RestartRecords:
    """Recovers after a start, and writes the two files."""

    def __init__(self, context: StoreContext, home: Path) -> None:
        self._context = context
        self._marker = home / CLEAN_SHUTDOWN_FILE
        self._counts = home / RESTART_COUNTS_FILE
        self._written: dict[str, int] | None = None
        self.noted: Collection[str] = ()
        """The lanes of which `restart_counts.json` says something."""
        self._refreshing = anyio.Lock()

    async def recover(self) -> StartReport:
        """Free the leases of the process before, and decide about the turns that it left behind."""
        epoch = self._context.db.ownership.opening.epoch
        marker = await in_thread(self._read_marker)
        clean = is_clean_end_of(marker, epoch - 1) or await self._is_new_store()
        await self._correct_clock_ahead(clean_end_time(marker))
        alone = self._context.db.ownership.membership is None  # several nodes start one after another anyway
        held_until = await self._plan_hold_after_crashes() if alone and not clean else None
        cut_off, abandoned, doubted = await self._free_leases(held_until)
        await in_thread(partial(_replace_file, self._marker, None))
        failpoint("recovered")
        await self.refresh()
        marked = [one for one in cut_off if one.interrupted]
        report = StartReport(
            epoch=epoch,
            clean=clean,
            resumed=tuple(one.session_key for one in marked if one.entry and one.entry.resume_pending),
            suspended=tuple(one.session_key for one in marked if one.entry and one.entry.suspended),
            held_until=held_until if cut_off else None,
            given_up=tuple(one for one in cut_off if one.given_up),
            abandoned=tuple(abandoned),
            doubted=doubted,
        )
        _log_cut_off_turns(report.resumed, report.suspended)
        return report

    async def take_over(self) -> int:
        """Free the leases of dead nodes, and decide about their turns; return the number of lanes."""
        cut_off, *_ = await self._free_leases(None)
        await self.refresh()
        marked = [one for one in cut_off if one.interrupted and one.entry is not None]
        _log_cut_off_turns(
            [one.session_key for one in marked if one.entry and one.entry.resume_pending],
            [one.session_key for one in marked if one.entry and one.entry.suspended],
        )
        return len(cut_off)

    async def _free_leases(
        self, hold_until: datetime | None
    ) -> tuple[list[CutOffTurn], list[AbandonedCommand], int]:
        """Free leases in several transactions, between which others may write."""
        context, cut_off = self._context, list[CutOffTurn]()
        limit, census = context.restart_limit, context.db.ownership.living_nodes
        adopt = partial(recover.take_over_lanes, census=census, limit=limit, hold_until=hold_until)
        while page := await context.apply(Actor.RECOVERY, adopt):
            cut_off += page
        abandon = partial(recover.abandon_commands, census=census)
        abandoned = await context.apply(Actor.RECOVERY, abandon)
        return cut_off, abandoned, await context.db.write(partial(recover.mark_replies_unclear, census))

    async def _correct_clock_ahead(self, last_ended_at: datetime | None) -> None:
        """Shorten all waits if the clock of an earlier process was ahead."""
        now = self._context.clock.now()
        if await self._context.db.read(partial(clock_set_back.was_clock_ahead, now, last_ended_at)):
            logger.warning("the clock was ahead", extra={"action": "clock_was_ahead"})
            debounce = self._context.longest_debounce
            await self._context.db.write(partial(clock_set_back.pull_all_forward, now, debounce))

    async def _plan_hold_after_crashes(self) -> datetime | None:
        """Return until when resumed turns wait after too many crashes, which one of them may cause."""
        now, limits = self._context.clock.now(), self._context.crash_loop
        noted = await self._context.db.read(partial(meta.get_fact, UNCLEAN_STARTS))
        starts = recent_unclean_starts(decode_starts(noted), now, limits.window)
        await self._context.db.write(partial(meta.set_fact, UNCLEAN_STARTS, encode_starts(starts)))
        return plan_crash_loop_hold(starts, now, limits)

    def _read_marker(self) -> bytes | None:
        """Remove what interrupted writes have left; return the marker of the process before."""
        try:
            remove_temporaries_of(self._marker)
            remove_temporaries_of(self._counts)
            return read_whole_file(self._marker)
        except (OSError, UnsupportedStorageError) as error:
            _log_file_problem(error)
            return None

    async def _is_new_store(self) -> bool:
        """Return whether the store is new: no process before, and no imported session."""
        new = self._context.db.ownership.opening.epoch == 1
        return new and not await self._context.db.read(lists.any_session)

    async def suspend_recently_active(self, max_age: timedelta) -> list[SessionEntry]:
        """Treat every session used within *max_age* as cut off, for callers who do not lease lanes."""
        since = self._context.clock.now() - max_age
        marked: list[SessionEntry] = []
        after: int | None = 0
        while after is not None:
            mark = partial(
                expire.mark_recent_interrupted, since=since, after=after, limit=self._context.restart_limit
            )
            page, after = await self._context.apply(Actor.RECOVERY, mark)
            marked += page
        await self.refresh()
        return marked

    async def refresh(self) -> None:
        """Bring `restart_counts.json` up to date; under a lock, or an earlier write might land later."""
        async with self._refreshing:
            counts = await self._context.db.read(expire.count_cut_off_tries)
            if counts == self._written:
                return
            content = encode_restart_counts(counts) if counts else None
            await in_thread(partial(_replace_file, self._counts, content))
            self._written = self.noted = counts

    async def leave_marker(self) -> None:
        """Write the marker that this process ends in order."""
        marker = CleanShutdown(self._context.db.ownership.opening.epoch, self._context.clock.now())
        await in_thread(partial(_replace_file, self._marker, marker.encode()))


def _replace_file(path: Path, content: bytes | None) -> None:
    """Write or remove a file that only informs, so a disk that refuses it stops nothing."""
    try:
        if content is None:
            remove_file(path)
        else:
            write_atomically(path, content)
    except (OSError, UnsupportedStorageError) as error:
        _log_file_problem(error)


def _log_cut_off_turns(resumed: Sequence[str], suspended: Sequence[str]) -> None:
    if resumed or suspended:
        facts = {"action": "recovered", "resumed": len(resumed), "suspended": len(suspended)}
        logger.warning("turns were cut off by the end of a process", extra=facts)


def _log_file_problem(error: Exception) -> None:
    logger.warning("a file could not be used", extra={"action": "file_failed", "problem": str(error)})
