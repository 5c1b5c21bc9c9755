"""Lines of JSON, written to the standard output or to a file that appears only when it is complete."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from gateway_sessions.core.identity.row_ids import ids_to_text
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.storage.files.atomic_file import AtomicFile


def check_target(target: str, *, force: bool) -> None:
    """Raise if the target cannot be written, or if it exists and may not be replaced."""
    path = Path(target).expanduser()
    if target == "-":
        return
    if path.is_dir():
        problem = f"{target} is a directory; name a file in it"
    elif not path.parent.is_dir():
        problem = f"{path.parent} is no directory; make it first, or name another"
    elif path.exists() and not force:
        problem = f"{target} is there already; --force replaces it"
    else:
        return
    raise InvalidInputError(problem)


@contextmanager
def open_json_lines(target: str) -> Generator[Callable[[object], None]]:
    """Yield a function that writes a value as a line of JSON."""
    if target == "-":
        yield lambda value: _write_json_line(sys.stdout.buffer.write, value)
        sys.stdout.flush()
        return
    with AtomicFile(Path(target).expanduser().absolute()) as file:
        yield lambda value: _write_json_line(file.write, value)


def _write_json_line(write: Callable[[bytes], object], value: object) -> None:
    write(msgspec.json.encode(ids_to_text(value, outside=True), enc_hook=str) + b"\n")
