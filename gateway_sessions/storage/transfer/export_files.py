"""Export of sessions to a file page by page, whole or not at all, and the lines of an import file.

Memory does not grow with the store or with a session.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias

from gateway_sessions.core.export.formats import Renderer
from gateway_sessions.core.export.transfer_reports import ExportReport, Progress, TransferProgress
from gateway_sessions.errors import InvalidInputError, StorageFullError, StorageUnavailableError
from gateway_sessions.ports import Reader
from gateway_sessions.storage.files.atomic_file import AtomicFile, follow_named_path
from gateway_sessions.storage.files.threads import in_thread
from gateway_sessions.storage.transactions.transfer import export
from gateway_sessions.storage.transactions.transfer.export import BEGINNING, ExportQuery, SessionBeginning

MAX_LINE_BYTES: Final = 256 << 20
"""Longer lines are not read: their decoded value would not fit into memory."""
_SKIPPED: Final = 1 << 20
"""Bytes of a line that is too long are passed over in pieces of that size."""
MOST_LINES: Final = 32
MOST_BYTES: Final = 1 << 20
"""The most lines and bytes that one call of a thread reads: many short lines, or a long one."""
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"

Target: TypeAlias = str | Path | BinaryIO
Line: TypeAlias = str | bytes | Mapping[str, Any]
Lines: TypeAlias = str | Path | Iterable[Line] | AsyncIterable[Line]
"""A path, or lines or objects from any source."""
TOO_LONG: Final = object()
"""Stands for a line that was not read."""


@asynccontextmanager
async def open_target(target: Target, forbidden: Iterable[Path]) -> AsyncGenerator[Callable[[bytes], object]]:
    """Yield a function that writes the target: a private file, whole or not at all, or a stream."""
    if not isinstance(target, str | Path):
        yield target.write
        return
    path = _absolute_path(target)
    steps = ExitStack()
    with _translating_errors(path):
        await in_thread(partial(_refuse_store_file, path, tuple(forbidden)))
        try:
            yield (await in_thread(lambda: steps.enter_context(AtomicFile(follow_named_path(path))))).write
        except BaseException:
            await in_thread(partial(steps.__exit__, *sys.exc_info()))
            raise
        await in_thread(steps.close)


async def read_lines(source: Lines) -> AsyncGenerator[tuple[int, object]]:
    """Yield every line that is not empty, with its number."""
    if isinstance(source, str | Path):
        path = _absolute_path(source)
        with _translating_errors(path), ExitStack() as steps:
            # Entered within the thread, so that the file is closed even after a cancellation.
            file = await in_thread(lambda: steps.enter_context(_open_source(path)))
            numbered = enumerate(_lines_of_file(file), 1)
            while some := await in_thread(partial(_next_lines, numbered)):
                for one in some:
                    if one[1]:
                        yield one
    elif isinstance(source, AsyncIterable):
        number = 0
        async for line in source:
            number += 1
            yield number, line
    else:
        for number, line in enumerate(source, 1):
            yield number, line


def _absolute_path(path: str | Path) -> Path:
    return Path(path).expanduser().absolute()


def _open_source(path: Path) -> io.BufferedReader:
    # Without O_NONBLOCK the open of a named pipe would wait for ever.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    return os.fdopen(descriptor, "rb")


def _lines_of_file(file: BinaryIO) -> Iterator[object]:
    """Yield the lines without their ends; lines that are too long are passed over."""
    first = True
    while line := file.readline(MAX_LINE_BYTES + 1):
        if len(line) > MAX_LINE_BYTES:
            while not line.endswith(b"\n") and (line := file.readline(_SKIPPED)):
                pass
            yield TOO_LONG
        else:
            yield line.removeprefix(_BYTE_ORDER_MARK if first else b"").strip()
        first = False


def _next_lines(numbered: Iterator[tuple[int, object]]) -> list[tuple[int, object]]:
    """Return the next lines, up to a number and a size."""
    some: list[tuple[int, object]] = []
    size = 0
    for number, line in numbered:
        some.append((number, line))
        size += len(line) if isinstance(line, bytes) else 0
        if len(some) == MOST_LINES or size >= MOST_BYTES:
            break
    return some


def _refuse_store_file(path: Path, forbidden: tuple[Path, ...]) -> None:
    """Raise an error if an export would replace a file of the store."""
    if path.resolve() in {one.resolve() for one in forbidden}:
        problem = f"{path} is a file of the store itself; write the export somewhere else"
        raise InvalidInputError(problem)


@contextmanager
def _translating_errors(path: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        problem = os.strerror(error.errno) if error.errno is not None else str(error)
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise (StorageFullError if full else StorageUnavailableError)(str(path), problem) from error


PAGE: Final = 200
"""Sessions that are read at once."""


@dataclass(slots=True, kw_only=True)
class SessionWriter:
    """Writes the sessions that a reader sees."""

    reader: Reader
    renderer: Renderer
    write: Callable[[bytes], object]
    wanted: ExportQuery
    progress: Progress | None = None
    _sessions: int = field(default=0, init=False)
    _messages: int = field(default=0, init=False)
    _bytes: int = field(default=0, init=False)
    _total: int | None = field(default=None, init=False)
    _pieces: list[Callable[[], bytes]] = field(default_factory=list[Callable[[], bytes]], init=False)
    """Calls that render the next bytes. They hold the rows of one read, so their size is bounded."""

    async def write_all(self, session_id: str | None, *, logical: bool) -> ExportReport:
        """Write one session or all; with *logical*, each with its whole conversation."""
        self._pieces.append(self.renderer.begin_file)
        if session_id is not None:
            # A session outside the scope is an error, even if the rest of its conversation is inside.
            await self.reader.read(partial(export.load_head, session_id, self.wanted.scope))
            await self._write_sessions(await self._conversation_of(session_id) if logical else [session_id])
        else:
            self._total = await self.reader.read(partial(export.count_exportable, self.wanted))
            some: list[str] = []
            async for one in self._session_ids(logical=logical):
                some.append(one)
                if len(some) == PAGE:
                    await self._write_sessions(some)
                    some = []
            await self._write_sessions(some)
        self._pieces.append(self.renderer.end_file)
        await self._flush_pieces()
        return ExportReport(sessions=self._sessions, messages=self._messages, bytes=self._bytes)

    async def _session_ids(self, *, logical: bool) -> AsyncIterator[str]:
        """Yield the ids of all sessions; with *logical*, conversations one after another."""
        after = BEGINNING
        while page := await self.reader.read(partial(export.list_exportable, self.wanted, after, PAGE)):
            for position, continues in page:
                after = position
                if not logical:
                    yield position[1]
                    continue
                line = await self._conversation_of(position[1])
                if not continues or line[0] == position[1]:
                    for one in line:
                        yield one

    async def _conversation_of(self, session_id: str) -> list[str]:
        return await self.reader.read(partial(export.visible_line, session_id, self.wanted.scope))

    async def _write_sessions(self, session_ids: Sequence[str]) -> None:
        """Write sessions. Short ones are read many at a time, as each costs a query otherwise."""
        left = session_ids
        while left:
            found = await self.reader.read(partial(export.load_beginnings, left, self.wanted))
            for one in found:
                await self._write_long_session(one)
            await self._flush_pieces()
            left = left[len(found) :]

    async def _write_long_session(self, first: SessionBeginning) -> None:
        self._pieces.append(partial(self.renderer.begin_session, first.head.members))
        page, is_last = first.messages, first.whole
        while page:
            self._pieces.append(partial(self.renderer.messages, page))
            self._messages += len(page)
            if is_last:
                break
            await self._flush_pieces()
            more = partial(export.load_messages, first.session_id, first.head, page[-1]["seq"], self.wanted)
            page = await self.reader.read(more)
        self._pieces.append(self.renderer.end_session)
        self._sessions += 1

    async def _flush_pieces(self) -> None:
        """Render and write the collected pieces, both in a thread."""
        pieces, self._pieces = self._pieces, []
        self._bytes += await in_thread(partial(_render_and_write, self.write, pieces))
        if self.progress is not None:
            self.progress(
                TransferProgress(sessions=self._sessions, messages=self._messages, total_sessions=self._total)
            )


def _render_and_write(write: Callable[[bytes], object], renders: Sequence[Callable[[], bytes]]) -> int:
    written = b"".join(render() for render in renders)
    if written:
        write(written)
    return len(written)
