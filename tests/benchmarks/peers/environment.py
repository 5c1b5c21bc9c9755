"""Finds or makes the environment that a peer runs in: its dependencies never meet ours."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.benchmarks.frame import UnavailableError
from tests.benchmarks.machine import cache_folder

HERMES: Final = "hermes-agent==0.19.0"
VARIABLE: Final = "GATEWAY_SESSIONS_BENCH_HERMES"


@functools.cache
def hermes_python() -> str:
    """The interpreter of an environment with the peer: the one that is named, or one made on demand."""
    named = os.environ.get(VARIABLE)
    folder = Path(named) if named else cache_folder() / HERMES.replace("==", "-")
    python = folder / "bin" / "python"
    if not named and not python.exists():
        print(f"making an environment for {HERMES}, once …", file=sys.stderr)
        _make(folder)
    if _run([str(python), "-c", "import gateway.session"], "import") is not None:
        raise UnavailableError(f"{folder.name} cannot import the peer; unset {VARIABLE} or remove the folder")
    return str(python)


def _make(folder: Path) -> None:
    python = folder.with_name(folder.name + ".new") / "bin" / "python"
    for command, step in (
        ([sys.executable, "-m", "venv", "--clear", str(python.parents[1])], "venv"),
        (
            [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", HERMES],
            "pip install",
        ),
    ):
        if (problem := _run(command, step)) is not None:
            raise UnavailableError(problem)
    python.parents[1].rename(folder)


def _run(command: list[str], step: str) -> str | None:
    """Why the step failed, in a line; None if it did not."""
    try:
        done = subprocess.run(command, capture_output=True, check=False, text=True)
    except OSError as problem:
        return f"{step}: {problem.strerror}"
    return None if done.returncode == 0 else f"{step} failed: {(done.stderr.strip() or '?').splitlines()[-1]}"
