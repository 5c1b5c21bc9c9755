"""Where a file goes that cannot be the search index any more. Everything here blocks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from gateway_sessions.storage.atomic_file import QUARANTINE
from gateway_sessions.storage.private_files import make_private_directory, replace_file
from gateway_sessions.storage.search_index.file import Fault

ASIDE: Final = ".aside"
"""The last index that was given up, for whoever wants to know what had happened to it."""
SIDECARS: Final = ("", "-wal", "-shm")


def put_aside(path: Path, fault: Fault, stamp: str) -> Path | None:
    """Move the file out of the way. An index is kept until the next one, what is not ours for ever."""
    if fault is Fault.FOREIGN:
        place = path.parent / QUARANTINE / f"{path.name}.{stamp}"
        make_private_directory(place.parent)
    else:
        place = path.with_name(path.name + ASIDE)
        _remove(place)
    moved = False
    for sidecar in reversed(SIDECARS):
        source = path.with_name(path.name + sidecar)
        if os.path.lexists(source):
            replace_file(source, place.with_name(place.name + sidecar))
            moved = True
    return place if moved else None


def remove_index(path: Path) -> None:
    """Leave nothing of an index, nor of one that was put aside."""
    _remove(path)
    _remove(path.with_name(path.name + ASIDE))


def _remove(path: Path) -> None:
    for sidecar in SIDECARS:
        path.with_name(path.name + sidecar).unlink(missing_ok=True)
