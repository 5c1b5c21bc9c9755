"""A warm process that runs a workload over and over, each time in a fork that dies somewhere else.

Starting Python and importing the package takes longer than the script itself, so it is done once. The server
reads jobs as lines of JSON and answers with lines of JSON; a few jobs run beside each other.
"""

from __future__ import annotations

import asyncio
import ctypes
import faulthandler
import gc
import json
import os
import select
import shutil
import signal
import sys
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from gateway_sessions import GatewaySessionsError
from gateway_sessions.storage.tables.sql_files import load_migrations, load_queries
from gateway_sessions.testing.faults import count_passes, crash_at, die
from tests.crash.kills.invariants import check_everything
from tests.crash.kills.store_workload import SCENARIOS, Journal, StoreWorkload, lay_out, prepare
from tests.faulty_system import Mode

PATIENCE: Final = 15
REFUSED, FAILED = 3, 4


@dataclass(frozen=True, slots=True)
class Job:
    """One child: what it runs, and where it dies."""

    scenario: int
    point: str = ""
    """A failpoint at whose *nth* pass the child is killed."""
    call: int = 0
    """The system call that fails in the way of *mode*."""
    mode: int = Mode.COUNT
    turn: int = 0
    """The turn of the event loop before which the child is killed."""
    nth: int = 1

    def __str__(self) -> str:
        where = f"{self.point} #{self.nth}" if self.point else ""
        where = where or (f"call {self.call} {Mode(self.mode).name}" if self.mode else "")
        return f"{SCENARIOS[self.scenario]}: {where or f'turn {self.turn}'}"


@dataclass(slots=True)
class Outcome:
    """What became of one job."""

    job: Job
    error: str = ""
    """A broken promise, or a failure that is none of ours; empty: all is well."""
    died: bool = False
    failures: list[str] = field(default_factory=list)
    """The errors that calls of the script met."""
    passes: dict[str, int] = field(default_factory=dict)
    calls: int = 0
    turns: int = 0


class CountingLoop(asyncio.SelectorEventLoop):
    """Counts its turns, and ends the process before one of them."""

    turns = 0
    last = 0

    def _run_once(self) -> None:
        CountingLoop.turns += 1
        if CountingLoop.turns == CountingLoop.last:
            die()
        super()._run_once()  # type: ignore[misc]  # not public, and the only place to count at


def serve_jobs(base: Path, slots: int) -> None:
    """Answer jobs until the input ends."""
    load_queries("sqlite")
    load_migrations("sqlite")
    asyncio.run(_warm_up(base / "warm"))
    gc.freeze()
    for number, scenario in enumerate(SCENARIOS):
        in_fork(lambda n=number, s=scenario: asyncio.run(prepare(base / f"template-{n}", s)))
    waiting: list[tuple[int, dict[str, Any]]] = []
    running: set[int] = set()
    buffer, ended = b"", False
    os.write(1, json.dumps({"ready": True}).encode() + b"\n")
    while not ended or waiting or running:
        while waiting and len(running) < slots:
            running.add(_start(base, *waiting.pop(0)))
        while running and (done := os.waitpid(-1, os.WNOHANG)[0]):
            running.discard(done)
        if ended:
            waiting.clear()
            time.sleep(0.002)
            continue
        if select.select([sys.stdin], [], [], 0.002 if running else 1)[0]:
            chunk = os.read(sys.stdin.fileno(), 1 << 16)
            ended = not chunk
            *lines, buffer = (buffer + chunk).split(b"\n")
            waiting += [(one["id"], one["job"]) for one in map(json.loads, lines)]


async def _warm_up(home: Path) -> None:
    """Load whatever is loaded when it is first needed, so that no fork has to."""
    journal = home.with_name("warm-journal")
    await StoreWorkload(home, Journal(journal), SCENARIOS[0]).run()
    await check_everything(home, journal, SCENARIOS[0])


def _start(base: Path, number: int, fields: dict[str, Any]) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        answer = _supervise(base, number, Job(**fields))
    except BaseException:  # noqa: BLE001 -- whatever it was, the test has to see it
        answer = {"error": traceback.format_exc()}
    os.write(1, json.dumps({"id": number, **answer}).encode() + b"\n")
    os._exit(0)


def _supervise(base: Path, number: int, job: Job) -> dict[str, Any]:
    """Let a child run and die, then look at what it left behind."""
    end_after_seconds(3 * PATIENCE)
    home, journal, notes = (base / f"{kind}-{number}" for kind in ("home", "journal", "notes"))
    lay_out(base / f"template-{job.scenario}", home)
    status = in_fork(lambda: _run_script(job, home, journal, notes))
    died = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    text = notes.read_text() if notes.exists() else ""
    if not died and os.waitstatus_to_exitcode(status) not in (0, REFUSED):
        return {"error": f"the script failed ({status}):\n{text}", "died": died}
    told = asyncio.run(check_everything(home, journal, SCENARIOS[job.scenario]))
    shutil.rmtree(home)
    facts = json.loads(text.splitlines()[-1]) if text and not died else {}
    return {"died": died, "failures": told.failures, **facts}


def end_after_seconds(seconds: int) -> None:
    """End this process, with its stacks on stderr, should it hang."""
    faulthandler.register(signal.SIGALRM, chain=True)
    signal.alarm(seconds)


def in_fork(work: Any) -> int:
    pid = os.fork()
    if not pid:
        try:
            work()
        except BaseException:  # noqa: BLE001 -- nothing may run behind a fork's back
            traceback.print_exc()
            os._exit(FAILED)
        os._exit(0)
    return os.waitpid(pid, 0)[1]


def _run_script(job: Job, home: Path, journal: Path, notes: Path) -> None:
    descriptor = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(descriptor, 2)
    end_after_seconds(PATIENCE)
    script = StoreWorkload(home, Journal(journal), SCENARIOS[job.scenario])
    CountingLoop.turns, CountingLoop.last = 0, job.turn
    shim = ctypes.CDLL(None) if "faults" in os.environ.get("LD_PRELOAD", "") else None
    if shim is not None:
        shim.faults_arm(str(home).encode(), ctypes.c_long(job.call), int(job.mode))
    passes: Counter[str] = Counter()
    try:
        with crash_at(job.point, nth=job.nth) if job.point else count_passes() as counted:
            with asyncio.Runner(loop_factory=CountingLoop) as runner:
                runner.run(script.run())
            passes = counted if isinstance(counted, Counter) else passes
    except GatewaySessionsError:
        traceback.print_exc()
    calls = ctypes.c_long(shim.faults_calls()).value if shim is not None else 0
    facts = {"passes": dict(passes), "calls": calls, "turns": CountingLoop.turns}
    os.write(2, b"\n" + json.dumps(facts).encode())


if __name__ == "__main__":
    serve_jobs(Path(sys.argv[1]), int(sys.argv[2]))
