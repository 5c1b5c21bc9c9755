"""Where the files of tests are: in memory, where there is plenty. A disk takes as long as all else together.

No test needs a disk: the crashes are those of processes, and whatever a power cut would lose, a fake loses.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

IN_MEMORY = Path("/dev/shm")  # noqa: S108 -- pytest makes a directory of its own there
ENOUGH_BYTES = 2 << 30
"""More than all tests leave, should all of them fail."""


def keep_in_memory() -> None:
    """Let temporary files be made in memory, unless somebody named another place, or there is little room."""
    if "TMPDIR" not in os.environ and has_room(IN_MEMORY):
        os.environ["TMPDIR"] = tempfile.tempdir = str(IN_MEMORY)


def has_room(folder: Path) -> bool:
    """Whether files and programs can be kept there."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return False
    free = found.f_bavail * found.f_frsize
    return free >= ENOUGH_BYTES and not found.f_flag & os.ST_NOEXEC and os.access(folder, os.W_OK)
