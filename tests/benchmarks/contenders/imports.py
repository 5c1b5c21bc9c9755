"""How long an import takes in a fresh interpreter."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from tests.benchmarks.child import Figures, answer

PROGRAM = "import time; start = time.perf_counter(); import {}; print(time.perf_counter() - start)"


def imported(folder: str, names: str) -> Figures:
    """The second of two interpreters: the first one may have had to compile."""
    command = [sys.executable, "-c", PROGRAM.format(names)]
    for _ in range(2):
        output = subprocess.run(command, cwd=folder, capture_output=True, check=True, text=True).stdout
    return {"import ms": float(output) * 1000}


def helped(folder: str) -> Figures:
    """The second of two runs of a command that only tells what there is, to its end."""
    command = [str(Path(sys.executable).with_name("gsess")), "--help"]
    for _ in range(2):
        start = time.perf_counter()
        subprocess.run(command, cwd=folder, capture_output=True, check=True)
    return {"import ms": (time.perf_counter() - start) * 1000}


if __name__ == "__main__":
    answer({"imported": imported, "helped": helped})
