"""`SessionDB`: the one truth. It owns its directory and runs verbs on the database that its URL names."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import unquote, urlsplit

from anyio.abc import TaskGroup

from gateway_sessions.clock import SystemClock
from gateway_sessions.core.instants import first_change_id
from gateway_sessions.core.news import News
from gateway_sessions.errors import UnsupportedStorageError
from gateway_sessions.ports import Clock, Reader, Statement, VerbFactory
from gateway_sessions.resource import Resource
from gateway_sessions.storage.drivers.sqlite import SqliteDriver, Synchronous
from gateway_sessions.storage.drivers.sqlite_backup import BACKUPS, back_up, keep_newest, newest_backup
from gateway_sessions.storage.drivers.sqlite_reader import SqliteReader
from gateway_sessions.storage.drivers.sqlite_upkeep import (
    VacuumReport,
    empty_log,
    optimise,
    overwrite_deleted,
    vacuum,
)
from gateway_sessions.storage.home import owned, prepare_home, refuse_unfinished_repair
from gateway_sessions.storage.in_thread import in_thread
from gateway_sessions.storage.index import INDEX_FILE, SearchIndex
from gateway_sessions.storage.index_reader import IndexReader
from gateway_sessions.storage.methods.erasure import ErasureMethods
from gateway_sessions.storage.methods.lineage import LineageMethods
from gateway_sessions.storage.methods.listing import ListingMethods
from gateway_sessions.storage.methods.retention import RetentionMethods
from gateway_sessions.storage.methods.searching import SearchMethods
from gateway_sessions.storage.methods.session_rows import SessionRowMethods
from gateway_sessions.storage.methods.titles import TitleMethods
from gateway_sessions.storage.methods.transcripts import TranscriptMethods
from gateway_sessions.storage.methods.transfer import TransferMethods
from gateway_sessions.storage.methods.usage import UsageMethods
from gateway_sessions.storage.search import Search
from gateway_sessions.storage.verbs import meta

T = TypeVar("T")

SECRET_BYTES: Final = 32
EPOCH_BITS: Final = 32
"""Room for the entries that one owner can make before its epoch ends."""
LARGEST_GENERATION: Final = 1 << 62
"""No more than this is believed of a file: there must be room to count on."""


class SessionDB(
    SessionRowMethods,
    TranscriptMethods,
    LineageMethods,
    TitleMethods,
    ListingMethods,
    UsageMethods,
    ErasureMethods,
    SearchMethods,
    TransferMethods,
    RetentionMethods,
    Resource,
):
    """Runs verbs in transactions. Open it with `async with SessionDB.open(path)`."""

    def __init__(
        self, path: Path, driver: SqliteDriver, clock: Clock, *, wait: float, allow_network: bool
    ) -> None:
        super().__init__("database")
        self.path = path
        self._driver = driver
        self._clock = clock
        self._wait = wait
        self._allow_network = allow_network
        self.changed = asyncio.Event()
        """Set whenever a commit has changed what sessions.json shows."""
        self._driver.on_change = self.changed.set
        self.on_news: Callable[[Sequence[News]], object] = _nobody
        """Called after each commit with what it has brought about."""
        self.on_index_fault: Callable[[str, Path | None], object] = lambda _problem, _place: None
        """Called when the search index was not as it should be, and is made anew."""
        self._driver.on_news = self._pass_on
        self.opening = meta.Opening(0, last_change_id=0, install_secret=b"", generation=0, settled=False)
        self.change_ids: Iterator[int] = itertools.count()
        self.entry_ids: Iterator[int] = itertools.count()
        self._counted_from = 0
        self._erasing, self._copying = asyncio.Lock(), asyncio.Lock()
        self._index = SearchIndex(path.with_name(INDEX_FILE), driver, self._clock)
        self._search = Search(driver, self._index)

    @classmethod
    def open(
        cls,
        url_or_path: str | Path,
        *,
        clock: Clock | None = None,
        wait: float = 0.0,
        survives_power_cut: bool = True,
        allow_network: bool = False,
    ) -> SessionDB:
        """A database at a path or `sqlite:///path`. Another owner is waited for up to *wait* seconds."""
        path = database_path(url_or_path)
        driver = SqliteDriver(
            path, synchronous=Synchronous.FULL if survives_power_cut else Synchronous.NORMAL
        )
        return cls(path, driver, clock or SystemClock(), wait=wait, allow_network=allow_network)

    @classmethod
    def open_reader(cls, url_or_path: str | Path, *, clock: Clock | None = None) -> SessionDB:
        """The same database, which another process may own, for reading only: whatever writes is refused."""
        path = database_path(url_or_path)
        return _ReadingDB(path, SqliteReader(path), clock or SystemClock())

    async def write(self, verb: VerbFactory[T]) -> T:
        """Run a verb in a transaction; when this returns, the outcome is durable."""
        self._check_running()
        outcome = await self._driver.write(verb)
        self._index.wake()
        return outcome

    def change(self, statement: Statement) -> Awaitable[int]:
        """Run one changing statement, durably; how many rows it has changed."""
        self._check_running()
        return self._driver.change(statement)

    async def read(self, verb: VerbFactory[T]) -> T:
        """Run a verb that changes nothing; it sees everything acknowledged before."""
        self._check_running()
        return await self._driver.read(verb)

    @asynccontextmanager
    async def view(self) -> AsyncGenerator[Reader]:
        """A reader of its own whose verbs all see the same moment."""
        self._check_running()
        async with self._driver.view() as reader:
            yield reader

    async def vacuum(self) -> VacuumReport:
        """Write the file anew without gaps. Writers wait meanwhile, and the disk needs room for both."""
        self._check_running()
        return await self._driver.attend(vacuum)

    async def optimise(self) -> None:
        """Let the database learn what its tables hold by now; `vacuum` does so as well."""
        self._check_running()
        await self._driver.attend(optimise)

    async def empty_log(self) -> bool:
        """Cut the write-ahead log to nothing; False if somebody reads an old moment."""
        self._check_running()
        return await self._driver.attend(empty_log)

    async def overwrite_deleted(self, *, overwrite: bool) -> None:
        """Whether the room of deleted rows is overwritten with zeros from now on."""
        self._check_running()
        await self._driver.attend(partial(overwrite_deleted, overwrite=overwrite))

    def newest_backup(self) -> datetime | None:
        """When the newest copy was taken. Looks at the disk: call it from a thread."""
        return newest_backup(self.path.parent / BACKUPS)

    async def back_up(self, *, keep: int | None = None) -> Path:
        """Copy the database as it is now, read the copy back, and remove all but the newest *keep*."""
        self._check_running()
        folder = self.path.parent / BACKUPS
        async with self._copying:
            copy = await in_thread(partial(back_up, self.path, folder, self._clock.now()))
            if keep is not None:
                await in_thread(partial(keep_newest, folder, keep))
        return copy

    @property
    def generation(self) -> int:
        """Rises with every change of what sessions.json shows, also across restarts."""
        return self._counted_from + self._driver.changes

    def outdo(self, generation: int) -> None:
        """Count on above the generation of a file that was found."""
        self._counted_from = max(self._counted_from, min(generation, LARGEST_GENERATION) + 1)

    def _pass_on(self, news: Sequence[News]) -> None:
        self.on_news(news)

    async def _start(self, tasks: TaskGroup, cleanup: AsyncExitStack) -> None:
        home = self.path.parent
        await in_thread(partial(prepare_home, home, allow_network=self._allow_network))
        await cleanup.enter_async_context(owned(home, self._clock, wait=self._wait))
        await in_thread(partial(refuse_unfinished_repair, self.path))
        await self._driver.start(tasks, cleanup)
        secret = os.urandom(SECRET_BYTES)
        self.opening = await self._driver.write(partial(meta.open_store, secret))
        self.change_ids = itertools.count(first_change_id(self._clock.now(), self.opening.last_change_id))
        self.entry_ids = itertools.count(self.opening.epoch << EPOCH_BITS)
        self._counted_from = self.opening.generation + (not self.opening.settled)
        self._driver.end_with(lambda: meta.settle(self.generation, self.opening.epoch))
        self._index.on_fault = self.on_index_fault
        self._index.start(tasks, self.opening.last_change_id, orderly=self.opening.settled)


class _ReadingDB(SessionDB):
    """Owns nothing, and leaves everything as it is."""

    def __init__(self, path: Path, driver: SqliteReader, clock: Clock) -> None:
        super().__init__(path, driver, clock, wait=0, allow_network=True)
        self._index = IndexReader(path.with_name(INDEX_FILE), driver, clock)
        self._search = Search(driver, self._index)

    async def _start(self, tasks: TaskGroup, cleanup: AsyncExitStack) -> None:
        await self._driver.start(tasks, cleanup)


def _nobody(_: Sequence[News]) -> None:
    """Nobody listens."""


def database_path(url_or_path: str | Path) -> Path:
    """The file that a URL or path names; other engines are refused by name."""
    text = str(url_or_path)
    if "://" not in text:
        return Path(text).expanduser().absolute()
    parts = urlsplit(text)
    if parts.scheme != "sqlite" or parts.netloc:
        raise UnsupportedStorageError(
            f"{parts.scheme}://…", "is no database that this version can use; give a path or sqlite:///path"
        )
    return Path(unquote(parts.path.removeprefix("/"))).absolute()
