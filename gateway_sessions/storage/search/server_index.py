"""The search index in a server database: queries, and the duty that fills in missing messages.

A transaction that writes a message writes its search tokens as well. So the duty only fills in messages of
earlier versions, and those that were changed since. Until then, a search scans these messages itself.

A search reads the index and the messages in one snapshot of the database.
"""

from __future__ import annotations

import asyncio
import logging
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from typing import Final

import anyio
import msgspec
from anyio.abc import TaskGroup

from gateway_sessions.core.search.criteria import certain_terms_of
from gateway_sessions.core.search.documents import (
    LONGEST_INDEXED,
    DatabaseCondition,
    IndexPosition,
    Searchable,
)
from gateway_sessions.core.search.stems import NO_STEMS, Stems
from gateway_sessions.core.search.tokenizer import TOKENISER
from gateway_sessions.errors import StorageError, StorageUnavailableError, StoreStoppedError
from gateway_sessions.ports import Driver, Reader, Row, Rows, Statement, Transaction
from gateway_sessions.storage.engines.search_column import TokenLanguage
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
    SearchProgress,
    SearchRequest,
    check_candidates,
    scan_messages,
    scan_newest_first,
)
from gateway_sessions.storage.tables import meta
from gateway_sessions.storage.tables.statements import INDEX_LOCK
from gateway_sessions.storage.transactions.search import scan as message_scan
from gateway_sessions.storage.transactions.search import stemming
from gateway_sessions.storage.transactions.search.hits import Order
from gateway_sessions.storage.transactions.search.scan import BEYOND, ScanResult

PAGE: Final = 2_000
"""Candidates that are read from the index at once."""
SOME: Final = 10_000
"""Up to that many candidates are sorted here; more are read page by page in their order, which the server
needs an index for."""
_ALL: Final = IndexPosition(BEYOND, -1)


async def search_index_and_rest(
    truth: Reader, request: SearchRequest, language: TokenLanguage
) -> SearchProgress:
    """Return the matches, from the index and from messages that are not indexed; both in one snapshot."""
    query = language.query(certain_terms_of(request.wanted), request.shown)
    if query is None:
        return await scan_messages(truth, request)
    progress = SearchProgress()
    await _scan_unindexed(truth, progress, request)
    some = await truth.read(partial(_some_candidates, query.text))
    if len(some) <= SOME:
        in_order = sorted(some, key=itemgetter(0), reverse=request.order is not Order.OLDEST)
        await _check_rows(truth, progress, in_order, request, query)
    else:
        await _check_page_by_page(truth, progress, query, request)
    return progress


async def _scan_unindexed(truth: Reader, progress: SearchProgress, request: SearchRequest) -> None:
    changed = await truth.read(partial(message_scan.changed_matches, _ALL, request.wanted, request.shown))
    progress.add_matches(changed.candidates)

    def look(before: int, size: int) -> Transaction[ScanResult]:
        return message_scan.scan_without_tokens(before, request.wanted, request.shown, size)

    await scan_newest_first(truth, progress, look)
    if not changed.complete:
        progress.problem = NOT_ALL_CHANGED


async def _check_page_by_page(
    truth: Reader, progress: SearchProgress, query: DatabaseCondition, request: SearchRequest
) -> None:
    """Read very many candidates in their order, until there are enough matches."""
    checked, at = 0, -1 if request.order is Order.OLDEST else BEYOND
    while len(progress.matches) < request.enough:
        rows = await truth.read(partial(_page_of_candidates, query.text, request.order, at))
        await _check_rows(truth, progress, rows, request, query)
        checked += len(rows)
        if len(rows) < PAGE:
            return
        if checked >= request.most_checked:
            progress.problem = request.early_end_notice(checked)
            return
        at = rows[-1][0]


async def _check_rows(
    truth: Reader,
    progress: SearchProgress,
    rows: Sequence[Row],
    request: SearchRequest,
    query: DatabaseCondition,
) -> None:
    """Check candidates in the database, in their order, until there are enough matches."""
    for start in range(0, len(rows), PAGE):
        if len(progress.matches) >= request.enough:
            return
        page = rows[start : start + PAGE]
        sure = [row[0] for row in page if query.is_exact and not row[1]]
        await check_candidates(truth, progress, sure, request)
        unsure = [row[0] for row in page if row[1] or not query.is_exact]
        await check_candidates(truth, progress, unsure, request, sure=False)


def _some_candidates(query: str) -> Transaction[Rows]:
    return (yield Statement("some_with_tokens", (query, SOME + 1)))


def _page_of_candidates(query: str, order: Order, at: int) -> Transaction[Rows]:
    name = "oldest_with_tokens" if order is Order.OLDEST else "newest_with_tokens"
    return (yield Statement(name, (query, at, PAGE)))


MADE_BY: Final = "tokens_made_by"
"""The fact that names the tokeniser of the tokens in the database."""
RETELLINGS: Final = "tokens_told_again"
"""The fact that counts changes of tokens that were in the index."""
OURS: Final = f"{TOKENISER} {unicodedata.unidata_version}"


@dataclass(frozen=True, slots=True)
class MissingTokens:
    """Messages whose tokens are missing or out of date."""

    messages: tuple[tuple[int, Searchable], ...] = ()
    notes: tuple[int, ...] = ()
    """Notes of changes that these messages settle, or whose messages are gone."""

    @property
    def size(self) -> int:
        """Return the number of messages and notes."""
        return len(self.messages) + len(self.notes)


@dataclass(frozen=True, slots=True)
class ColumnIndexState:
    """States how far the index can be relied on."""

    rewrites: int
    """The number of changes and removals of tokens that were in the index."""
    being_forgotten: bool
    stemmed_by: str

    def can_answer(self, language: TokenLanguage) -> bool:
        """Return True if the index finds all messages that it has, by all forms of their words.

        An index that does not follow snapshots loses a message before the transaction that removes its
        tokens is visible.
        """
        if self.being_forgotten and not language.keeps_moments:
            return False
        return language.stems.are_off or self.stemmed_by == language.stems.made_by


def read_index_state() -> Transaction[ColumnIndexState]:
    """Return how far the index can be relied on."""
    rows = yield Statement("index_standing")
    told = {str(row[0]): row[1] for row in rows}
    return ColumnIndexState(
        rewrites=int(told.get(RETELLINGS) or 0),
        being_forgotten=stemming.BEING_FORGOTTEN in told,
        stemmed_by=str(told.get(stemming.IN_THE_DATABASE) or NO_STEMS.made_by),
    )


@dataclass(frozen=True, slots=True)
class ColumnIndexProgress:
    """States how complete the index is."""

    highest: int
    """The id of the newest message; 0 if there is none."""
    complete: bool


def read_index_progress() -> Transaction[ColumnIndexProgress]:
    """Return how complete the index is."""
    ((highest, behind),) = yield Statement("index_progress")
    return ColumnIndexProgress(int(highest or 0), complete=not behind)


def read_missing_and_progress(size: int) -> Transaction[tuple[MissingTokens, ColumnIndexProgress]]:
    """Return some of the messages without current tokens, and how complete the index is."""
    work = yield from read_missing_tokens(size)
    return work, (yield from read_index_progress())


def read_missing_tokens(size: int) -> Transaction[MissingTokens]:
    """Return some of the messages without current tokens: changed ones first, then the newest."""
    changes = yield Statement("index_changes_after", (-1, size))
    notes = tuple(row[0] for row in changes)
    if notes:
        ids = _ids_as_json(sorted({row[1] for row in changes}))
        rows = yield Statement("messages_to_tell_of_again", (LONGEST_INDEXED, ids))
    else:
        rows = yield Statement("messages_to_tell_of", (LONGEST_INDEXED, size))
    return MissingTokens(tuple((row[0], Searchable(*row[1:])) for row in rows), notes)


def token_rows(work: MissingTokens, language: TokenLanguage) -> list[tuple[str | int, ...]]:
    """Return the rows with the tokens of these messages. Large messages take a while."""
    return [(*language.token_values(one), message_id) for message_id, one in work.messages]


def write_tokens(work: MissingTokens, rows: Sequence[tuple[str | int, ...]]) -> Transaction[None]:
    """Write the tokens of these messages.

    A message that changes while its tokens are made is noted again, and so is one whose session gets another
    lane: a note is removed only if it was there before the text was read.
    """
    yield Statement("put_tokens", many=rows, lock=INDEX_LOCK)
    if work.notes:
        yield Statement("forget_notes", (_ids_as_json(work.notes),))
        yield from _note_rewrite()


def begin_to_remove_tokens() -> Transaction[None]:
    """Note that tokens are about to be removed, in a transaction of its own; see `ColumnIndexState`."""
    yield from meta.set_fact(stemming.BEING_FORGOTTEN, 1)


def remove_page_of_tokens(after: int, size: int) -> Transaction[int | None]:
    """Remove the tokens of a page of messages; return the last id of the page, None at the end."""
    rows = yield Statement("end_of_page", (after, size), lock=INDEX_LOCK)
    if (last := rows[0][0]) is None:
        return None
    yield Statement("forget_tokens", (after, last))
    yield from _note_rewrite()
    return int(last)


def count_rewrites() -> Transaction[int]:
    """Return how often tokens that were in the index were changed or removed."""
    return (yield from meta.get_number(RETELLINGS))


def _note_rewrite() -> Transaction[None]:
    """Count one more change. The lock of the index is held, or two counts could become one."""
    yield from meta.set_fact(RETELLINGS, (yield from count_rewrites()) + 1)


def are_tokens_current(stems: Stems) -> Transaction[bool]:
    """Return True if all tokens are as this program makes them with these stems."""
    if (yield from meta.get_fact(MADE_BY)) != OURS or (
        yield from meta.get_fact(stemming.BEING_FORGOTTEN)
    ) is not None:
        return False
    return (yield from stemming.database_stems()) == stems.made_by


def note_tokens_current(stems: Stems) -> Transaction[None]:
    """Note that all tokens are as this program makes them."""
    yield from meta.set_fact(MADE_BY, OURS)
    yield from stemming.set_database_stems(stems)
    yield Statement("forget_meta", (stemming.BEING_FORGOTTEN,))


def _ids_as_json(numbers: Sequence[int]) -> str:
    return msgspec.json.encode(numbers).decode()


logger: Final = logging.getLogger(__name__)

TOO_LONG: Final = "the search index did not answer in time"
STEP: Final = 200
"""Messages whose tokens are written in one transaction, which holds the lock of the index."""
FORGOTTEN: Final = 1_000
"""Messages whose tokens are removed in one transaction."""
GATHER_SECONDS: Final = 0.25
"""The pause in which changes gather that come one after another."""
TRIES: Final = 3
"""The most tries of a search in an index that does not follow snapshots, if tokens change meanwhile."""


class ServerSearchIndex:
    """Queries the index in the database, and writes missing tokens."""

    def __init__(self, truth: Driver, language: TokenLanguage) -> None:
        self._truth = truth
        self._language = language
        self._report = IndexReport(IndexState.EMPTY)
        self.woken: asyncio.Event = asyncio.Event()
        # Removing all tokens and writing some must not mix: `is_made_by_us` would be untrue.
        self._one_at_a_time = asyncio.Lock()
        self._serving = False

    def stem_with(self, stems: Stems) -> None:
        """Use these stems for tokens and queries from now on."""
        self._language = replace(self._language, stems=stems)

    @property
    def report(self) -> IndexReport:
        """Return the state of the index."""
        return self._report

    def start(self, tasks: TaskGroup, highest: int, *, orderly: bool) -> None:
        """Begin to write missing tokens in the background."""
        del highest, orderly
        self._serving = True
        tasks.start_soon(self._run_duty)

    async def run_query(self, request: SearchRequest) -> SearchProgress | None:
        """Return the matches in one snapshot; scan messages if the index does not answer in time."""
        try:
            for _ in range(TRIES):
                async with self._truth.view() as truth:
                    before = await truth.read(read_index_state)
                    if not before.can_answer(self._language):
                        return await scan_messages(truth, request)
                    progress = await search_index_and_rest(truth, request, self._language)
                if self._language.keeps_moments or await self._truth.read(read_index_state) == before:
                    return progress
            return await scan_messages(self._truth, request)
        except StorageUnavailableError:
            progress = await scan_messages(self._truth, request)
            progress.problem = progress.problem or TOO_LONG
            return progress

    async def catch_up(self) -> None:
        """Wait until all messages that were stored before are in the index."""
        self._check_serving()
        await self._remove_outdated_tokens()
        while not await self._write_some_tokens():
            pass

    async def rebuild(self) -> None:
        """Remove all tokens, and make them anew in the background; searches scan meanwhile."""
        self._check_serving()
        async with self._one_at_a_time:
            await self._remove_all_tokens()
        self.woken.set()

    async def forget_removed(self) -> None:
        """Do nothing: the tokens of a message were removed with its row."""

    async def check(self) -> IndexReport:
        """Return the state of the index. Damage is found by the server's own means."""
        self._check_serving()
        self._report_progress(await self._truth.read(read_index_progress))
        return self._report

    async def _run_duty(self) -> None:
        failures = 0
        try:
            while True:
                try:
                    await self._remove_outdated_tokens()
                    while True:
                        await self._fill_and_wait()
                        failures = 0
                except StoreStoppedError:
                    return
                except StorageError as error:
                    self._report_failure(error)
                    await anyio.sleep(INDEXING_BACKOFF.after(failures).total_seconds())
                    failures += 1
        finally:
            self._serving = False

    async def _fill_and_wait(self) -> None:
        """Write all missing tokens, then wait until messages may have changed."""
        self.woken.clear()
        loop = asyncio.get_running_loop()
        began = loop.time()
        while not await self._write_some_tokens():
            await anyio.sleep(
                loop.time() - began
            )  # as long as the step took: half of the time is for other work
            began = loop.time()
        await self.woken.wait()
        await anyio.sleep(GATHER_SECONDS)

    async def _write_some_tokens(self) -> bool:
        """Write some missing tokens; return True if none were missing."""
        async with self._one_at_a_time:
            work, now = await self._truth.read(partial(read_missing_and_progress, STEP))
            self._report_progress(now)
            if work.size:
                rows = await in_thread(partial(token_rows, work, self._language))
                await self._truth.write(partial(write_tokens, work, rows))
        return not work.size

    def _report_progress(self, now: ColumnIndexProgress) -> None:
        state = IndexState.READY if now.complete else IndexState.BUILDING
        if not now.highest:
            state = IndexState.EMPTY
        watermark = now.highest if now.complete else 0
        self._report = replace(self._report, state=state, watermark=watermark, problem=None)

    async def _remove_outdated_tokens(self) -> None:
        """Remove all tokens if another tokeniser made them, or other stems are wanted now."""
        async with self._one_at_a_time:
            if not await self._truth.read(partial(are_tokens_current, self._language.stems)):
                await self._remove_all_tokens()

    async def _remove_all_tokens(self) -> None:
        """Remove all tokens. Those of messages that are stored meanwhile may be made twice."""
        await self._truth.write(begin_to_remove_tokens)
        after: int | None = -1
        while after is not None:
            after = await self._truth.write(partial(remove_page_of_tokens, after, FORGOTTEN))
        await self._truth.write(partial(note_tokens_current, self._language.stems))

    def _report_failure(self, error: StorageError) -> None:
        self._report = replace(self._report, state=IndexState.UNAVAILABLE, problem=str(error))
        logger.warning(
            "the search index cannot be used now",
            extra={"action": "search_index_failed", "problem": str(error)},
        )

    def _check_serving(self) -> None:
        if not self._serving:
            raise StoreStoppedError(NAME)


class ServerIndexReader(ServerSearchIndex):
    """Queries the index in a database that another process owns, and writes no tokens."""

    async def catch_up(self) -> None:
        """Do nothing: a search scans messages that are not in the index yet."""

    async def rebuild(self) -> None:
        """Raise `StorageError`: the owner makes the index anew."""
        raise StorageError(NAME, READ_ONLY)

    async def check(self) -> IndexReport:
        """Return the state of the index."""
        self._report_progress(await self._truth.read(read_index_progress))
        return self._report
