"""The search index of a SQLite store: the duty that fills and rebuilds it, and queries against it.

The index is filled in the background, behind the transactions that write messages, and made anew when it is
lost. A fault of the index never touches the database: a search goes on without the index, scans messages,
and says so.

The index may lack the newest messages, and may be made anew at any moment. So a search scans the messages
behind it, and asks again if the index changed in between.
"""

from __future__ import annotations

import asyncio
import logging
import math
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, NoReturn, Protocol

import anyio
from anyio.abc import TaskGroup

from gateway_sessions.core.search.criteria import certain_terms_of
from gateway_sessions.core.search.documents import IndexPosition
from gateway_sessions.core.search.stems import NO_STEMS, Stems
from gateway_sessions.errors import StorageError, StorageUnavailableError, StoreStoppedError
from gateway_sessions.ports import Clock, Driver, Reader
from gateway_sessions.storage.files.atomic_file import file_name_time
from gateway_sessions.storage.files.threads import in_thread
from gateway_sessions.storage.search.protocol import (
    INDEXING_BACKOFF,
    NAME,
    READ_ONLY,
    IndexReport,
    IndexState,
)
from gateway_sessions.storage.search.search import (
    NOT_ALL_CHANGED,
    STEP,
    SearchProgress,
    SearchRequest,
    check_candidates,
    scan_messages,
    scan_newer_than_index,
)
from gateway_sessions.storage.search.sqlite_file import (
    IndexFault,
    IndexFile,
    IndexMatches,
    UnusableIndexError,
    remove_index,
    set_index_aside,
)
from gateway_sessions.storage.search.sqlite_match import Fts5Match, fts5_match_of
from gateway_sessions.storage.transactions.search import scan as message_scan
from gateway_sessions.storage.transactions.search.hits import Order
from gateway_sessions.storage.transactions.search.scan import ScanLimits

PAGE: Final = 2_000
"""Candidates that are read from the index at once."""


class CandidateSource(Protocol):
    """Answers queries about the words of messages."""

    async def find_candidates(
        self, match: Fts5Match, after: int | None, limit: int, *, oldest_first: bool = False
    ) -> IndexMatches | None:
        """Return a page of candidates; None if the index cannot be used now."""
        ...


@dataclass(frozen=True, slots=True)
class _IndexQuery:
    """Holds a query to the index."""

    match: Fts5Match
    request: SearchRequest
    seen: SearchProgress | None = None
    """The matches of a scan, if the index could not narrow the query at first."""

    async def next_page(self, index: CandidateSource, after: int | None) -> IndexMatches | None:
        """Return the next page of candidates."""
        oldest_first = self.request.order is Order.OLDEST
        return await index.find_candidates(self.match, after, PAGE, oldest_first=oldest_first)


async def search_index_and_rest(
    truth: Reader, index: CandidateSource, request: SearchRequest
) -> SearchProgress | None:
    """Return the matches of the index and of messages behind it; None if it is missing or has changed."""
    match = fts5_match_of(certain_terms_of(request.wanted), request.shown)
    if match is None:
        return await scan_messages(truth, request)
    return await _search_by_index(truth, index, _IndexQuery(match, request))


async def _search_by_index(
    truth: Reader, index: CandidateSource, question: _IndexQuery
) -> SearchProgress | None:
    found, request = await question.next_page(index, None), question.request
    if found is None:
        return None
    if not found.is_answer:
        return question.seen or await _scan_then_search_again(truth, index, question)
    start = found.position
    progress, stale = await _scan_unindexed(truth, start, request)
    checked = 0
    while found.position.changes == start.changes:
        known = [one for one in found.message_ids if one not in stale]
        await check_candidates(truth, progress, known, request, enough=request.enough_of_newest)
        checked += len(found.message_ids)
        if found.last_document is None or len(progress.matches) >= request.enough:
            break
        if checked >= request.most_checked:
            progress.problem = request.early_end_notice(checked)
            break
        found = await question.next_page(index, found.last_document)
        if found is None or not found.is_answer:
            return None
    # Notes of changes that were cleared meanwhile are missing in the tail: then all is asked again.
    limits = await truth.read(message_scan.load_scan_limits)
    fits = found.position.changes == start.changes and limits.cleared <= start.changes
    return progress if fits else None


async def _scan_unindexed(
    truth: Reader, position: IndexPosition, request: SearchRequest
) -> tuple[SearchProgress, frozenset[int]]:
    """Return the matches that the index lacks, and the messages in it that have changed since."""
    progress = SearchProgress()
    fresh = await truth.read(
        partial(message_scan.matches_not_indexed, position, request.wanted, request.shown, STEP)
    )
    progress.add_matches([*fresh.changed.candidates, *fresh.later.candidates])
    if not fresh.changed.complete:
        progress.problem = NOT_ALL_CHANGED
    if fresh.later.last is not None:
        await scan_newer_than_index(truth, progress, request, position.watermark, fresh.later)
    return progress, fresh.changed.stale


async def _scan_then_search_again(
    truth: Reader, index: CandidateSource, question: _IndexQuery
) -> SearchProgress | None:
    """Scan messages; if the newest are not enough, let the index look for more words."""
    seen = await scan_messages(truth, question.request)
    if seen.problem is None:
        return seen
    return await _search_by_index(
        truth, index, replace(question, match=replace(question.match, patient=True), seen=seen)
    )


logger: Final = logging.getLogger(__name__)

INDEX_FILE: Final = "search.db"
GATHER_SECONDS: Final = 0.25
"""The pause in which messages gather that come one after another."""
STEP_SECONDS: Final = 0.02
"""The time that one step should take; a search waits for one step at most. A step that took longer makes the
next one smaller."""
POLITE_SECONDS: Final = 0.25
"""The time for which a step waits for running searches: side by side, both would take twice as long."""
SMALLEST_STEP, FIRST_STEP, LARGEST_STEP = 10, 200, 500
"""Messages in one step: the size adapts to `STEP_SECONDS`."""
SAMPLES: Final = 50
"""Messages that a check looks up in the index."""
CHECK_SECONDS: Final = 24 * 3600.0
"""The interval in which the whole index is verified."""
SOON_SECONDS: Final = 300.0
"""The time after a crash at which the index is first verified; a start has other things to do."""
MOST_DEAD: Final = 0.4
"""The share of dead documents above which the index is made anew."""


class SqliteSearchIndex:
    """Owns `search.db` of a store."""

    def __init__(
        self, path: Path, truth: Driver, clock: Clock, on_fault: Callable[[str, Path | None], object]
    ) -> None:
        """*on_fault* is called when the index was damaged, foreign or misplaced, not when it was outdated."""
        self.path = path
        self._truth = truth
        self._clock = clock
        self._file: IndexFile | None = None
        self._report = IndexReport(IndexState.EMPTY)
        self._fault: UnusableIndexError | None = None
        """The fault that a search has met in the file."""
        self._stems = NO_STEMS
        self._size = FIRST_STEP
        self._step_seconds = 0.0
        """The time of the last step, and of the pause after it: half of the time is for other work."""
        self._cleared = 0
        self._searches = 0
        """The number of running searches."""
        self._calm = asyncio.Event()
        """Set while no search runs."""
        self._calm.set()
        self.woken: asyncio.Event = asyncio.Event()
        self._hurried = asyncio.Event()
        self._opening_tried = asyncio.Event()
        """Set once the file was opened, or could not be."""
        self._catch_up_waiters: list[asyncio.Future[None]] = []
        self._rebuild_waiters: list[asyncio.Future[None]] = []
        self._serving = False
        self._highest: int | None = 0
        self._check_at = math.inf
        self._on_fault = on_fault

    @property
    def report(self) -> IndexReport:
        """Return the state of the index."""
        return self._report

    def stem_with(self, stems: Stems) -> None:
        """Use these stems for new documents from now on."""
        self._stems = stems

    def start(self, tasks: TaskGroup, highest: int, *, orderly: bool = True) -> None:
        """Begin to index new messages in the background.

        *highest* is the largest row id of earlier owners; *orderly* is True if the last of them has closed
        the store.
        """
        self._highest = highest
        self._check_at = asyncio.get_running_loop().time() + (CHECK_SECONDS if orderly else SOON_SECONDS)
        self._serving = True
        tasks.start_soon(self._run_duty)

    async def _run_duty(self) -> None:
        failures = 0
        try:
            while True:
                try:
                    await self._index_and_wait()
                    failures = 0
                except StoreStoppedError:
                    return
                except Exception as error:  # noqa: BLE001 -- reported; what is wrong with the index stops nobody
                    self._report_failure(error)
                    await self._pause(INDEXING_BACKOFF.after(failures).total_seconds())
                    failures += 1
        finally:
            self._serving = False
            self._opening_tried.set()
            self._fail_waiters(StoreStoppedError(NAME))
            await self._close_file()

    async def run_query(self, request: SearchRequest) -> SearchProgress | None:
        """Return the matches of the index and of messages behind it; None if it cannot be used now."""
        self._searches += 1
        self._calm.clear()
        try:
            return await search_index_and_rest(self._truth, self, request)
        finally:
            self._searches -= 1
            if not self._searches:
                self._calm.set()

    async def find_candidates(
        self, match: Fts5Match, after: int | None, limit: int, *, oldest_first: bool = False
    ) -> IndexMatches | None:
        """Return a page of candidates; None if the index cannot be used now."""
        await self._wait_until_opened()
        file = self._file
        if self._fault is not None or (file is None and self._report.state is IndexState.UNAVAILABLE):
            return None
        if file is None:
            return IndexMatches(IndexPosition(), (), None)
        try:
            return await in_thread(
                partial(file.find_candidates, match, after, limit, oldest_first=oldest_first)
            )
        except UnusableIndexError as error:
            self._report_fault(file, error)
        except sqlite3.Error as error:
            self._report_failure(error)
        return None

    async def catch_up(self) -> None:
        """Wait until all messages that were stored before are in the index; raise what prevents that."""
        await self._wait_for_duty(self._catch_up_waiters)

    async def rebuild(self) -> None:
        """Remove the index from the disk, and make it anew in the background."""
        await self._wait_for_duty(self._rebuild_waiters)

    async def forget_removed(self) -> None:
        """Make the index anew: its file keeps words of deleted messages."""
        await self.rebuild()

    async def check(self) -> IndexReport:
        """Verify the index, and look up messages that it must have; a bad one is made anew."""
        await self._wait_until_opened()
        if (file := self._file) is not None:
            watermark = file.position.watermark
            sample = await self._truth.read(partial(message_scan.sample_messages, watermark, SAMPLES))
            if problem := await in_thread(partial(file.find_fault, sample)):
                self._report_fault(file, UnusableIndexError(IndexFault.DAMAGED, problem))
        return self._report

    async def _wait_for_duty(self, queue: list[asyncio.Future[None]]) -> None:
        """Join a queue of the duty, and wait until it was served."""
        self._check_serving()
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(waiter)
        self._wake_at_once()
        await waiter

    async def _wait_until_opened(self) -> None:
        """Wait until the duty has tried to open the file."""
        self._check_serving()
        await self._opening_tried.wait()
        self._check_serving()

    def _check_serving(self) -> None:
        if not self._serving:
            raise StoreStoppedError(NAME)

    def _wake_at_once(self) -> None:
        self._hurried.set()
        self.woken.set()

    async def _index_and_wait(self) -> None:
        """Index all new messages, then wait until there may be more."""
        waiting = len(self._catch_up_waiters)
        self.woken.clear()
        self._hurried.clear()
        while not await self._take_step():
            await self._pause(self._step_seconds)
            await self._wait_for_searches()
        _wake_first(self._catch_up_waiters, waiting)
        if not self._catch_up_waiters:
            with anyio.move_on_after(self._check_at - asyncio.get_running_loop().time()):
                await self.woken.wait()
            await self._pause(GATHER_SECONDS)
            await self._check_if_due()

    async def _check_if_due(self) -> None:
        now = asyncio.get_running_loop().time()
        if now >= self._check_at:
            self._check_at = now + CHECK_SECONDS
            await self.check()

    async def _take_step(self) -> bool:
        """Take one step; return True if nothing is left to do."""
        try:
            if self._rebuild_waiters:
                await self._remove_for_rebuild()
            return await self._index_some_messages(self._file or await self._open_file())
        except UnusableIndexError as error:
            await self._set_file_aside(error)
            return False
        finally:
            self._opening_tried.set()

    async def _remove_for_rebuild(self) -> None:
        waiting = len(self._rebuild_waiters)
        await self._close_file()
        await in_thread(partial(remove_index, self.path))
        self._fault = None
        self._report = replace(self._report, state=IndexState.BUILDING, watermark=0)
        _wake_first(self._rebuild_waiters, waiting)

    async def _open_file(self) -> IndexFile | None:
        """Open the index, or create it; return None while there is no message."""
        limits = await self._truth.read(message_scan.load_scan_limits)
        if not limits.highest and not await in_thread(self.path.exists):
            return None
        file = IndexFile(self.path, stems=self._stems)
        identity = await self._truth.read(message_scan.index_identity)
        await in_thread(partial(file.connect, identity, IndexPosition(changes=limits.last_change)))
        if not file.is_new and (fault := self._mismatch_with_database(file.position, limits)):
            await in_thread(file.close)
            raise UnusableIndexError(IndexFault.MISPLACED, fault)
        self._highest = None
        self._file = file
        self._report = replace(self._report, state=IndexState.BUILDING, watermark=file.position.watermark)
        return file

    def _mismatch_with_database(self, position: IndexPosition, limits: ScanLimits) -> str | None:
        """Return the reason why the index does not belong to the database; None if it does."""
        highest = limits.highest if self._highest is None else self._highest
        if max(position.watermark, position.changes) > highest:
            return "it has seen what the database does not have"
        if position.changes < limits.cleared:
            return "it has missed changes of messages"
        return None

    async def _index_some_messages(self, file: IndexFile | None) -> bool:
        if file is None:
            return True
        if self._fault is not None:
            raise self._fault
        started = asyncio.get_running_loop().time()
        work = await self._truth.read(partial(message_scan.load_index_work, file.position, self._size))
        if work.position != file.position:
            await in_thread(partial(file.apply_work, work))
            self._step_seconds = asyncio.get_running_loop().time() - started
            self._adapt_step_size(self._step_seconds)
        if work.complete and work.position.changes > self._cleared:
            await self._clear_change_notes(file)
        state = IndexState.READY if work.complete else IndexState.BUILDING
        self._report = replace(self._report, state=state, watermark=file.position.watermark)
        return work.complete

    async def _clear_change_notes(self, file: IndexFile) -> None:
        """Remove the notes of indexed changes, or make the index anew if most of it is dead."""
        if await in_thread(file.dead_share) > MOST_DEAD:
            raise UnusableIndexError(
                IndexFault.OUTDATED, "most of it stands for text that is not there any more"
            )
        changes = file.position.changes
        await self._truth.write(partial(message_scan.clear_index_notes, changes))
        self._cleared = changes

    async def _set_file_aside(self, error: UnusableIndexError) -> None:
        await self._close_file()
        self._fault = None
        stamp = file_name_time(self._clock.now())
        place = await in_thread(partial(set_index_aside, self.path, error.fault, stamp))
        self._report = IndexReport(IndexState.BUILDING, problem=str(error), rebuilt=self._report.rebuilt + 1)
        logger.warning(
            "the search index cannot be used and is made anew",
            extra={"action": "search_index_set_aside", "problem": str(error), "path": str(place)},
        )
        if error.fault is not IndexFault.OUTDATED:
            self._on_fault(str(error), place)

    def _report_fault(self, file: IndexFile, error: UnusableIndexError) -> None:
        """Let the duty set the file aside, unless it has done so already."""
        if self._file is file:
            self._fault = error
            self._report = replace(self._report, state=IndexState.UNAVAILABLE, problem=str(error))
            self._wake_at_once()

    def _report_failure(self, error: Exception) -> None:
        self._report = replace(self._report, state=IndexState.UNAVAILABLE, problem=str(error))
        logger.warning(
            "the search index cannot be used now",
            extra={"action": "search_index_failed", "problem": str(error)},
        )
        failed = StorageUnavailableError(str(self.path), str(error))
        failed.__cause__ = error
        self._fail_waiters(failed)

    async def _close_file(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            with anyio.CancelScope(shield=True):
                await in_thread(file.close)

    async def _pause(self, seconds: float) -> None:
        """Pause, unless a caller waits for the index."""
        if not self._catch_up_waiters and not self._rebuild_waiters:
            with anyio.move_on_after(seconds):
                await self._hurried.wait()

    async def _wait_for_searches(self) -> None:
        """Wait for the end of running searches, for a short time and if no caller waits."""
        if not self._catch_up_waiters and not self._rebuild_waiters:
            with anyio.move_on_after(POLITE_SECONDS):
                await self._calm.wait()

    def _adapt_step_size(self, took: float) -> None:
        wanted = int(self._size * STEP_SECONDS / max(took, STEP_SECONDS / 2))
        self._size = min(max(wanted, SMALLEST_STEP), LARGEST_STEP)

    def _fail_waiters(self, problem: StorageError) -> None:
        for queue in (self._catch_up_waiters, self._rebuild_waiters):
            for waiter in queue:
                if not waiter.done():
                    waiter.set_exception(problem)
            queue.clear()


def _wake_first(queue: list[asyncio.Future[None]], count: int) -> None:
    """Wake the first *count* callers of a queue."""
    served, queue[:] = queue[:count], queue[count:]
    for waiter in served:
        if not waiter.done():
            waiter.set_result(None)


class SqliteIndexReader(SqliteSearchIndex):
    """Opens the file for each query: its owner may have made it anew since the last one."""

    async def find_candidates(
        self, match: Fts5Match, after: int | None, limit: int, *, oldest_first: bool = False
    ) -> IndexMatches | None:
        """Return a page of candidates; None if the index cannot be used now."""
        identity = await self._truth.read(message_scan.index_identity)

        def ask() -> IndexMatches:
            file = IndexFile(self.path, read_only=True)
            file.connect(identity, IndexPosition())
            try:
                return file.find_candidates(match, after, limit, oldest_first=oldest_first)
            finally:
                file.close()

        try:
            found = await in_thread(ask)
        except (UnusableIndexError, sqlite3.Error) as error:
            self._report = IndexReport(IndexState.UNAVAILABLE, problem=str(error))
            return None
        self._report = IndexReport(IndexState.READY, watermark=found.position.watermark)
        return found

    async def catch_up(self) -> None:
        """Do nothing: a search scans messages that are not in the index yet."""

    async def rebuild(self) -> None:
        """Raise `StorageError`: the owner makes the index anew."""
        self._refuse()

    async def check(self) -> IndexReport:
        """Raise `StorageError`: the owner verifies the index."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise StorageError(str(self.path), READ_ONLY)
