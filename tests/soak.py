"""The long runs, one after another: `python -m tests.soak [PART ...] [--list] [--logs DIR]`.

Each part runs in a process group of its own and within its own limit: what hangs is ended and counts as
failed. What a part prints is kept in a file. The summary says what ran, how long, and what was found; it
ends with status 1 if anything was. Parts need PostgreSQL and MariaDB where they say so, and fail without.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
LOGS: Final = ROOT / "build" / "soak"
SHOWN_LINES: Final = 12
"""Of what a failed part printed last: enough for a failing example's reproduction."""
GRACE_SECONDS: Final = 15
"""A part that is told to end shows its stacks first."""
PYTEST: Final = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "soak", "--timeout", "0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One long run."""

    name: str
    command: tuple[str, ...]
    """What follows the interpreter."""
    minutes: int
    """Its limit, about twice what it takes on two quiet processors."""


def soak_command(*tests: str) -> tuple[str, ...]:
    """Return the command that runs the long tests of some files."""
    return (*PYTEST, *tests)


PARTS: Final = (
    Part(name="mutations", command=("-m", "tests.mutations"), minutes=10),
    Part(name="kills", command=("-m", "tests.crash.kills.matrix"), minutes=60),
    Part(
        name="kills-postgresql", command=("-m", "tests.crash.kills.server_matrix", "postgresql"), minutes=60
    ),
    Part(name="kills-mysql", command=("-m", "tests.crash.kills.server_matrix", "mysql"), minutes=60),
    Part(name="platforms", command=soak_command("tests/crash/platforms"), minutes=120),
    Part(name="ledger", command=soak_command("tests/property/database/test_ledger_model.py"), minutes=60),
    Part(name="gateway", command=soak_command("tests/property/gateway/test_gateway_model.py"), minutes=60),
    Part(name="store", command=soak_command("tests/property/store/test_store_model.py"), minutes=90),
    Part(name="database", command=soak_command("tests/property/database/test_database_model.py"), minutes=60),
    Part(
        name="ledger-and-database-postgresql",
        command=soak_command("tests/property/database/test_on_postgresql.py"),
        minutes=180,
    ),
    Part(
        name="ledger-and-database-mysql",
        command=soak_command("tests/property/database/test_on_mysql.py"),
        minutes=180,
    ),
    Part(
        name="three-engines",
        command=soak_command("tests/property/database/test_three_engines.py"),
        minutes=120,
    ),
    Part(
        name="properties",
        command=(
            *soak_command("tests/property"),
            "--ignore=tests/property/database",
            "--ignore=tests/property/gateway/test_gateway_model.py",
            "--ignore=tests/property/store/test_store_model.py",
        ),
        minutes=120,
    ),
    Part(
        name="crashes",
        command=(*soak_command("tests/crash"), "--ignore=tests/crash/platforms"),
        minutes=120,
    ),
    Part(name="cluster-postgresql", command=("-m", "tests.cluster", "--engine", "postgresql"), minutes=15),
    Part(name="cluster-mysql", command=("-m", "tests.cluster", "--engine", "mysql"), minutes=15),
    Part(name="load", command=soak_command("tests/integration"), minutes=120),
    Part(name="time", command=soak_command("tests/time_travel", "tests/unit"), minutes=60),
)


class Result(StrEnum):
    """How a part ended."""

    PASSED = "passed"
    FAILED = "failed"
    HUNG = "hung"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What came of one part."""

    part: str
    result: Result
    seconds: float
    said: tuple[str, ...]
    """The last lines that it printed."""
    log: Path


def run_part(part: Part, logs: Path) -> Finding:
    """Run a part to its end, or to its limit."""
    logs.mkdir(parents=True, exist_ok=True)
    log = logs / f"{part.name}.log"
    began = time.monotonic()
    with log.open("wb") as out:
        child = subprocess.Popen(
            [sys.executable, *part.command],
            cwd=ROOT,
            env={**os.environ, "CI": "true", "PYTHONUNBUFFERED": "1"},  # a missing server fails
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # its children end with it
        )
        try:
            code = child.wait(part.minutes * 60)
            result = Result.PASSED if code == 0 else Result.FAILED
        except subprocess.TimeoutExpired:
            result = Result.HUNG
        finally:
            end_group(child)
    lines = log.read_text("utf-8", "replace").splitlines()
    said = tuple(line for line in lines if line.strip())[-SHOWN_LINES:]
    return Finding(part=part.name, result=result, seconds=time.monotonic() - began, said=said, log=log)


def end_group(child: subprocess.Popen[bytes]) -> None:
    """End whatever is left of a part."""
    for number, patience in ((signal.SIGTERM, GRACE_SECONDS), (signal.SIGKILL, GRACE_SECONDS)):
        try:
            os.killpg(child.pid, number)
        except ProcessLookupError:
            return
        try:
            child.wait(patience)
        except subprocess.TimeoutExpired:
            continue


def summary(findings: Sequence[Finding], left: Sequence[str]) -> str:
    """Return the table of what ran, the last words of what failed, and what did not run."""
    lines = ["| part | result | minutes | it said |", "| --- | --- | ---: | --- |"]
    for one in findings:
        last = one.said[-1].strip("= ") if one.said else "nothing"
        lines.append(f"| {one.part} | {one.result} | {one.seconds / 60:.1f} | {last.replace('|', '/')} |")
    for one in findings:
        if one.result is not Result.PASSED:
            lines += [
                "",
                f"{one.part} {one.result}; all of it is in {one.log}:",
                *(f"    {said}" for said in one.said),
            ]
    bad = sum(one.result is not Result.PASSED for one in findings)
    total = sum(one.seconds for one in findings) / 60
    lines += ["", f"{len(findings) - bad} passed, {bad} failed in {total:.1f} minutes"]
    if left:
        lines.append(f"did not run: {', '.join(left)}")
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Run the parts that were named, or all, and print the summary, also after Ctrl-C."""
    known = {part.name: part for part in PARTS}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("part", nargs="*", metavar="PART", help=f"default: all of {', '.join(known)}")
    parser.add_argument("--list", action="store_true", help="say what there is, and how long it may take")
    parser.add_argument("--logs", type=Path, default=LOGS, help="where what they print is kept")
    asked = parser.parse_args(arguments)
    if unknown := [name for name in asked.part if name not in known]:
        parser.error(f"there is no part {', '.join(unknown)}; there are {', '.join(known)}")
    if asked.list:
        for part in PARTS:
            print(f"{part.name:32} at most {part.minutes:3} minutes")
        return 0
    parts = [known[name] for name in asked.part] or list(PARTS)
    findings: list[Finding] = []
    try:
        for part in parts:
            print(f"{part.name} ...", flush=True)
            findings.append(run_part(part, asked.logs))
            print(
                f"{part.name} {findings[-1].result} after {findings[-1].seconds / 60:.1f} minutes", flush=True
            )
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
    left = [part.name for part in parts[len(findings) :]]
    print(f"\n{summary(findings, left)}")
    return int(bool(left) or any(one.result is not Result.PASSED for one in findings))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
