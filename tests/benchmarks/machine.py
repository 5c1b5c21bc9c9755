"""What the machine under the benchmarks is, and how long it takes to make bytes durable."""

from __future__ import annotations

import os
import platform
import sqlite3
import statistics
import time
from pathlib import Path

BLOCK = b"\x5a" * 4096


def fsync_ms(folder: Path, times: int = 200) -> float:
    """The median time to write 4 KiB at the end of a file and make them durable."""
    path = folder / "fsync-probe"
    measured = []
    with path.open("wb", buffering=0) as file:
        for _ in range(times):
            start = time.perf_counter()
            file.write(BLOCK)
            os.fsync(file.fileno())
            measured.append(time.perf_counter() - start)
    path.unlink()
    return statistics.median(measured) * 1000


def description() -> dict[str, str | int]:
    """Facts without which the figures of two runs cannot be compared."""
    return {
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "system": f"{platform.system()} {platform.machine()}",
        "processors": os.cpu_count() or 0,
    }


def flushed() -> None:
    """Let the machine finish what was written before: its debts must not fall into a measured moment."""
    os.sync()


def cache_folder() -> Path:
    """Where things stay that are made once: on a real disk, which the temporary folder may not be."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gateway-sessions-benchmarks"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
