"""A small C library that makes system calls of a child fail, or take their time."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping
from enum import IntEnum
from pathlib import Path
from typing import Final

SOURCE: Final = Path(__file__).with_name("faults.c")


class Mode(IntEnum):
    """How a system call fails; the numbers are those of `faults.c`."""

    COUNT = 0
    KILL = 1
    EIO = 2
    FULL_ONCE = 3
    TORN = 4
    FULL_FROM = 5
    SLOW_SYNC = 6
    SLOW_DISK = 7


def build_shim_library(folder: Path) -> Path | None:
    """The library to preload; None where it cannot be built."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not sys.platform.startswith("linux") or compiler is None:
        return None
    library = folder / "faults.so"
    flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run([compiler, *flags, "-o", str(library), str(SOURCE), "-ldl"], check=True)
    return library


def faulty_environment(shim: Path, below: Path, mode: Mode, at: int) -> Mapping[str, str]:
    """What the environment of a child adds, so that its calls below a folder fail from the first on."""
    return {
        "LD_PRELOAD": str(shim),
        "FAULTS_PATH": str(below),
        "FAULTS_AT": str(at),
        "FAULTS_MODE": str(int(mode)),
    }
