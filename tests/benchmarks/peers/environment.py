"""Finds or makes the environment that a peer runs in: its dependencies never meet ours."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.benchmarks.machine import cache_folder
from tests.benchmarks.runner import UnavailableError

HERMES: Final = "hermes-agent==0.19.0"
PROCRASTINATE: Final = "procrastinate==3.10.0"
ALSO: Final = {PROCRASTINATE: ["psycopg[binary]>=3.2"]}
"""What a peer recommends to be installed beside it."""


def hermes_python() -> str:
    """The interpreter of an environment with the gateway whose keys and files we read."""
    return _python(HERMES, "gateway.session", "GATEWAY_SESSIONS_BENCH_HERMES")


def procrastinate_python() -> str:
    """The interpreter of an environment with a queue of jobs on PostgreSQL."""
    return _python(PROCRASTINATE, "procrastinate, psycopg_binary", "GATEWAY_SESSIONS_BENCH_PROCRASTINATE")


@functools.cache
def _python(requirement: str, modules: str, variable: str) -> str:
    """The interpreter of an environment with a peer: the one that a variable names, or one made on demand."""
    named = os.environ.get(variable)
    folder = Path(named) if named else cache_folder() / requirement.replace("==", "-")
    python = folder / "bin" / "python"
    if not named and not python.exists():
        print(f"making an environment for {requirement}, once …", file=sys.stderr)
        _make(folder, requirement)
    if _run([str(python), "-c", f"import {modules}"], "import") is not None:
        raise UnavailableError(f"{folder.name} cannot import the peer; unset {variable} or remove the folder")
    return str(python)


def _make(folder: Path, requirement: str) -> None:
    python = folder.with_name(folder.name + ".new") / "bin" / "python"
    for command, step in (
        ([sys.executable, "-m", "venv", "--clear", str(python.parents[1])], "venv"),
        (
            [
                str(python),
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                *ALSO.get(requirement, ()),
                requirement,
            ],
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
