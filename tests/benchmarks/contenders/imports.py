"""How long an import takes in a fresh interpreter."""

from __future__ import annotations

import subprocess
import sys

from tests.benchmarks.child import Figures, answer

PROGRAM = "import time; start = time.perf_counter(); import {}; print(time.perf_counter() - start)"


def imported(folder: str, names: str) -> Figures:
    """The second of two interpreters: the first one may have had to compile."""
    command = [sys.executable, "-c", PROGRAM.format(names)]
    for _ in range(2):
        output = subprocess.run(command, cwd=folder, capture_output=True, check=True, text=True).stdout
    return {"import ms": float(output) * 1000}


if __name__ == "__main__":
    answer({"imported": imported})
