"""The files that sessions are written to and read from. None of them is ever a database."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias

from gateway_sessions.errors import InvalidInputError, StorageFullError, StorageUnavailableError
from gateway_sessions.storage.atomic_file import AtomicFile, followed
from gateway_sessions.storage.in_thread import in_thread

MAX_LINE_BYTES: Final = 256 << 20
"""No longer line is read: what it decodes to would have to fit into memory."""
_SKIPPED: Final = 1 << 20
MOST_LINES: Final = 32
MOST_BYTES: Final = 1 << 20
"""Read in one go: many short lines, or a long one."""
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"

Target: TypeAlias = str | Path | BinaryIO
Line: TypeAlias = str | bytes | Mapping[str, Any]
Lines: TypeAlias = str | Path | Iterable[Line] | AsyncIterable[Line]
"""A path, or lines or objects from anywhere."""
TOO_LONG: Final = object()
"""Stands for a line that was not read."""


@asynccontextmanager
async def writing(target: Target, forbidden: Iterable[Path]) -> AsyncGenerator[Callable[[bytes], object]]:
    """Writes a file whole or not at all, readable for its owner only; a stream is written as it comes."""
    if not isinstance(target, str | Path):
        yield target.write
        return
    path = _absolute(target)
    steps = ExitStack()
    with _our_errors(path):
        await in_thread(partial(_refuse, path, tuple(forbidden)))
        try:
            yield (await in_thread(lambda: steps.enter_context(AtomicFile(followed(path))))).write
        except BaseException:
            await in_thread(partial(steps.__exit__, *sys.exc_info()))
            raise
        await in_thread(steps.close)


async def reading(source: Lines) -> AsyncGenerator[tuple[int, object]]:
    """Every line that is not empty, with its number."""
    if isinstance(source, str | Path):
        path = _absolute(source)
        with _our_errors(path), ExitStack() as steps:
            # Entered within the thread: whoever is cancelled meanwhile still closes it.
            file = await in_thread(lambda: steps.enter_context(_opened(path)))
            numbered = enumerate(_lines(file), 1)
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


def _absolute(path: str | Path) -> Path:
    return Path(path).expanduser().absolute()


def _opened(path: Path) -> io.BufferedReader:
    # Without O_NONBLOCK the open of a named pipe would wait for ever.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    return os.fdopen(descriptor, "rb")


def _lines(file: BinaryIO) -> Iterator[object]:
    """The lines without their ends; what is longer than allowed is passed over."""
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
    """The next line, and those behind it for as long as they are short."""
    some: list[tuple[int, object]] = []
    size = 0
    for number, line in numbered:
        some.append((number, line))
        size += len(line) if isinstance(line, bytes) else 0
        if len(some) == MOST_LINES or size >= MOST_BYTES:
            break
    return some


def _refuse(path: Path, forbidden: tuple[Path, ...]) -> None:
    """An export must not take the place of the database."""
    if path.resolve() in {one.resolve() for one in forbidden}:
        problem = f"{path} is a file of the store itself; write the export somewhere else"
        raise InvalidInputError(problem)


@contextmanager
def _our_errors(path: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        problem = os.strerror(error.errno) if error.errno is not None else str(error)
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise (StorageFullError if full else StorageUnavailableError)(str(path), problem) from error
