"""JSON, line by line, to a file that is whole or not there, or to whoever reads the standard output."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from gateway_sessions.storage.atomic_file import AtomicFile


@contextmanager
def open_lines(target: str) -> Generator[Callable[[object], None]]:
    """Writes each value as a line."""
    if target == "-":
        yield lambda value: _write(sys.stdout.buffer.write, value)
        sys.stdout.flush()
        return
    with AtomicFile(Path(target).expanduser().absolute()) as file:
        yield lambda value: _write(file.write, value)


def _write(write: Callable[[bytes], object], value: object) -> None:
    write(msgspec.json.encode(value, enc_hook=str) + b"\n")
