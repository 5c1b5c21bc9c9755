"""The writer of the snapshot: one task that writes the newest state of sessions.json for all callers.

Callers wait for the writer and make no writes of their own. A snapshot has every change that was committed
before the snapshot began, so many callers share one. Entries are read in pages from one view of the database
and encoded in a thread; neither their number nor a slow disk blocks the event loop.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta, tzinfo
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Final

import anyio

from gateway_sessions._process.failpoints import failpoint
from gateway_sessions._process.retry import Backoff
from gateway_sessions.core.identity.hermes_keys import spell_for_hermes
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.core.sessions_json.entries import Dialect
from gateway_sessions.core.sessions_json.file_format import SnapshotEncoder, parse_snapshot
from gateway_sessions.errors import GatewaySessionsError, SnapshotError, StoreStoppedError
from gateway_sessions.ports import Clock, Reader
from gateway_sessions.storage.database import SessionDB
from gateway_sessions.storage.files.atomic_file import AtomicFile, FileCalls, read_whole_file
from gateway_sessions.storage.files.threads import in_thread
from gateway_sessions.storage.tables import meta
from gateway_sessions.storage.tables.column_decoding import log_skipped_row
from gateway_sessions.storage.transactions.sessions import expire
from gateway_sessions.storage.transactions.sessions.expire import KeyPage

logger: Final = logging.getLogger(__name__)

FILE_NAME: Final = "sessions.json"
PAGE: Final = 50
"""The number of entries per page: so few that no thread holds the interpreter for long with them."""
KEYS: Final = 1000
"""The number of keys per page; a key is little work."""
SHARE_OF_TIME: Final = 0.01
"""The largest share of time spent on writing: large files are written less often."""
LONGEST_PAUSE: Final = timedelta(minutes=5)
"""The longest pause between two writes, also while writing fails: then the snapshot is old, not lost."""
BYTES_PER_SECOND: Final = 20_000_000
"""The assumed speed of writing, until the first file has been timed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotForm:
    """The form of the file."""

    dialect: Dialect = Dialect.NATIVE
    zone: tzinfo
    interval: timedelta = timedelta(seconds=1)


class SnapshotWriter:
    """Keeps the file a complete, recent copy of the index."""

    def __init__(
        self,
        home: Path,
        db: SessionDB,
        clock: Clock,
        form: SnapshotForm,
        files: FileCalls | None = None,
        on_taken: Callable[[str], object] = lambda _: None,
    ) -> None:
        """Call *on_taken* once for each lane whose key in Hermes belongs to another lane."""
        self.path: Path = home / FILE_NAME
        self._db = db
        self._clock = clock
        self._form = form
        self._files = files or FileCalls()
        self._on_taken = on_taken
        self._reported_keys: set[str] = set()
        self._written = -1
        """The generation on disk, as far as this process knows."""
        self._waiters: list[asyncio.Future[None]] = []
        self._served: list[asyncio.Future[None]] = []
        """The callers that wait for the running write."""
        self._last_known: dict[str, SessionEntry | None] = {}
        """The entries in the file of lanes whose rows are damaged."""
        self._stopped = False
        self._urgent = anyio.Event()
        self._pause = form.interval
        self._failures = 0
        """The number of writes that failed since the last one that did not."""

    async def accept_generation(self, generation: int) -> None:
        """Accept that the file shows that generation; its size tells how long the next write will take."""
        self._written = generation
        with suppress(OSError):
            size = (await in_thread(self.path.stat)).st_size
            self._pause = self._pause_after(timedelta(seconds=size / BYTES_PER_SECOND))

    async def run(self) -> None:
        """Write after changes, several in one file; at once when a caller waits."""
        try:
            while True:
                await self._wait_for_changes()
                self._db.generation.changed.clear()
                self._served, self._waiters = self._waiters, []
                self._urgent = anyio.Event()
                self._wake_waiters(await self._write_or_report())
        finally:
            self._stopped = True
            self._served += self._waiters
            self._wake_waiters(StoreStoppedError("store"))

    async def flush(self) -> None:
        """Return when the file has all changes made before; raise `SnapshotError` if it cannot be written."""
        if self._written == self._db.generation.current and await in_thread(self.path.exists):
            return
        if self._stopped:
            raise StoreStoppedError("store")
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        self._urgent.set()
        await waiter

    async def _wait_for_changes(self) -> None:
        """Wait for a change, and for others to join it, unless a caller waits for the file."""
        async with anyio.create_task_group() as tasks:

            async def gather() -> None:
                while self._written == self._db.generation.current:
                    self._db.generation.changed.clear()
                    await self._db.generation.changed.wait()
                await self._clock.sleep(
                    Backoff(self._pause, LONGEST_PAUSE).after(self._failures).total_seconds()
                )
                tasks.cancel_scope.cancel()

            tasks.start_soon(gather)
            await self._urgent.wait()
            tasks.cancel_scope.cancel()

    async def _write_or_report(self) -> SnapshotError | None:
        problem: SnapshotError | None = None
        started = asyncio.get_running_loop().time()
        try:
            self._written = await self._write_generation()
        except (OSError, GatewaySessionsError) as error:
            problem = SnapshotError(str(self.path), str(error), committed=True)
            problem.__cause__ = error
            logger.exception("sessions.json could not be written", extra={"action": "snapshot_failed"})
        took = timedelta(seconds=asyncio.get_running_loop().time() - started)
        self._failures = 0 if problem is None else self._failures + 1
        if problem is None:
            self._pause = self._pause_after(took)
        return problem

    def _pause_after(self, took: timedelta) -> timedelta:
        """Return how long to pause after a write of that duration."""
        return min(max(self._form.interval, took / SHARE_OF_TIME), LONGEST_PAUSE)

    def _wake_waiters(self, problem: GatewaySessionsError | None) -> None:
        """Wake the callers that wait for this write; some may have been cancelled meanwhile."""
        for waiter in self._served:
            if waiter.done():
                continue
            if problem is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(problem)
        self._served = []

    async def _write_generation(self) -> int:
        """Write one generation, whole; at any failure the file is the old or the new one."""
        generation = (
            self._db.generation.current
        )  # read before the view opens, which then has at least this generation
        async with self._db.view() as reader, self._new_file() as file:
            encoder = SnapshotEncoder(self._form.dialect, self._form.zone, await self._hermes_keys(reader))
            await self._db.write(partial(meta.set_fact, meta.GENERATION, generation))
            await in_thread(lambda: file.write(encoder.encode_header()))
            after: str | None = ""
            damaged: list[str] = []
            while after is not None:
                page = await reader.read(partial(expire.load_key_page, after, PAGE))
                entries = await self._complete_damaged(page) if page.damaged else page.entries
                await in_thread(partial(_append_lines, file, encoder, entries))
                failpoint("snapshot_page")
                damaged += page.damaged
                after = page.after
            tail = encoder.encode_tail(generation, self._clock.now())
            await in_thread(lambda: file.write(tail))
            failpoint("snapshot_complete")
        failpoint("snapshot_replaced")
        self._last_known = {key: self._last_known[key] for key in damaged}
        return generation

    async def _complete_damaged(self, page: KeyPage) -> list[SessionEntry]:
        """Return the entries of a page; a damaged one stays as in the file, where a repair finds it."""
        new = [key for key in page.damaged if key not in self._last_known]
        if new:
            shown = await in_thread(partial(_entries_in, self.path))
            self._last_known |= {key: shown.get(key) for key in new}
        for session_key in new:  # logged once for each lane, because the file is written often
            log_skipped_row(f"the entry of lane {session_key}", session_key=session_key)
        kept = [entry for key in page.damaged if (entry := self._last_known[key]) is not None]
        return sorted((*page.entries, *kept), key=attrgetter("session_key"))

    async def _hermes_keys(self, reader: Reader) -> Mapping[str, str]:
        """Return the names of lanes that Hermes knows under another key."""
        if self._form.dialect is not Dialect.HERMES:
            return {}
        keys: list[str] = []
        while page := await reader.read(partial(expire.load_keys_after, keys[-1] if keys else "", KEYS)):
            keys += page
        spelling = await in_thread(partial(spell_for_hermes, keys))
        for key in spelling.taken:
            if key not in self._reported_keys:
                self._reported_keys.add(key)
                self._on_taken(key)
        return spelling.keys

    @asynccontextmanager
    async def _new_file(self) -> AsyncGenerator[AtomicFile]:
        """Return an atomic file that does every step in a thread."""
        steps = ExitStack()
        try:
            yield await in_thread(
                partial(steps.enter_context, AtomicFile(self.path, files=self._files, keep_backup=True))
            )
        except BaseException:
            await in_thread(partial(steps.__exit__, *sys.exc_info()))
            raise
        await in_thread(steps.close)


def _entries_in(path: Path) -> dict[str, SessionEntry]:
    """Return the entries of a file, as far as they can be decoded."""
    try:
        content = parse_snapshot(read_whole_file(path) or b"")
    except (OSError, GatewaySessionsError):
        return {}
    return {entry.session_key: entry for entry in content.entries}


def _append_lines(file: AtomicFile, encoder: SnapshotEncoder, page: list[SessionEntry]) -> None:
    file.write(encoder.encode_entries(page))
