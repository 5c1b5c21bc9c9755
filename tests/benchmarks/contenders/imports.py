"""How long an import takes in a fresh interpreter, and a command from its start to its end."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

from tests.benchmarks.child import Figures, answer
from tests.benchmarks.contenders.ours import seed

PROGRAM = "import time; start = time.perf_counter(); {}; print(time.perf_counter() - start)"


def imported(folder: str, statement: str) -> Figures:
    """The second of two interpreters: the first one may have had to compile."""
    command = [sys.executable, "-c", PROGRAM.format(statement)]
    for _ in range(2):
        output = subprocess.run(command, cwd=folder, capture_output=True, check=True, text=True).stdout
    return {"import ms": float(output) * 1000}


def commanded(folder: str, command: str) -> Figures:
    """The second of two runs of a command to its end, in a store where nothing was said yet."""
    program, *words = command.split()
    arguments = [str(Path(sys.executable).with_name(program)), *words]
    environment = os.environ | {"GATEWAY_SESSIONS_HOME": str(Path(folder, "state"))}
    asyncio.run(seed(folder, lanes=20))
    for _ in range(2):
        start = time.perf_counter()
        subprocess.run(arguments, cwd=folder, env=environment, capture_output=True, check=True)
        elapsed = time.perf_counter() - start
    return {"import ms": elapsed * 1000}


if __name__ == "__main__":
    answer({"imported": imported, "commanded": commanded})
