"""Our command line, as an operator uses it, without the time in which it starts."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from gateway_sessions import Scope, SystemClock
from gateway_sessions.cli.app import main
from gateway_sessions.cli.picker.model import PageRequest, Picker, after_page, after_resize
from gateway_sessions.cli.picker.run import PAGE
from gateway_sessions.cli.picker.view import picker_lines, rows_that_fit
from gateway_sessions.operator import connect
from gateway_sessions.sessions import SessionSummary
from tests.benchmarks.child import Figures, answer, latencies
from tests.benchmarks.runner import figure_of
from tests.benchmarks.seeding import RARE, id_of, seed_sessions

COLUMNS, LINES = 100, 30


def seed(folder: str, sessions: int) -> Figures:
    """Leave a store with that many sessions for other processes to look at."""
    seed_sessions(Path(folder, "state"), sessions)
    return {}


def commands(folder: str, sessions: int, times: int) -> Figures:
    """Whole commands: open the store, ask it, write the answer."""
    home = str(Path(folder, "state"))
    figures: Figures = {}
    for kind, words in {
        "list": ["list"],
        "list --find": ["list", "--find", RARE],
        "show": ["show", id_of(sessions // 3)],
        "stats": ["stats"],
    }.items():
        measured = [_taken(["--home", home, "sessions", *words]) for _ in range(times + 1)]
        figures |= _of(kind, measured[1:])
    return figures


def _taken(words: list[str]) -> int:
    begun = time.perf_counter_ns()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        code = main(words)
    taken = time.perf_counter_ns() - begun
    if code:
        raise SystemExit(f"{words}: ended with {code}")
    return taken


async def browsing(folder: str, sessions: int, times: int) -> Figures:
    """What `browse` asks for and draws: its first page, later ones, and one for each letter typed."""
    del sessions
    clock = SystemClock()

    async def first_page() -> None:
        async with connect(Path(folder, "state")) as seat:
            rows = await seat.db.list_sessions_rich(scope=Scope.operator(), limit=PAGE)
            draw(PageRequest("", None), rows)

    def draw(ask: PageRequest, rows: list[SessionSummary]) -> None:
        picker = after_page(
            after_resize(Picker(typed_text=ask.text or None), rows_that_fit(LINES)), ask, rows, whole=False
        )
        picker_lines(picker, clock.now(), COLUMNS, LINES)

    figures = _of("browse", await _times(first_page, times))
    async with connect(Path(folder, "state")) as seat:
        here: SessionSummary | None = None

        async def next_page() -> None:
            nonlocal here
            rows = await seat.db.list_sessions_rich(scope=Scope.operator(), limit=PAGE, after=here)
            here = rows[-1] if rows else None  # from the beginning again

        figures |= _of("browse, next page", await _times(next_page, times))
        for kind, text in (
            ("common", "train"),
            ("rare", RARE),
            ("none", "nowhere to be found"),
            ("id", "0001"),
        ):

            async def typed(text: str = text) -> None:
                rows = await seat.db.list_sessions_rich(
                    scope=Scope.operator(), limit=PAGE, exclude_sources=("tool",), search_query=text
                )
                draw(PageRequest(text, None), rows)

            figures |= _of(f"browse, typed {kind}", await _times(typed, times))
    return figures


async def _times(work: Callable[[], Awaitable[None]], times: int) -> list[int]:
    measured = []
    for _ in range(times + 1):
        begun = time.perf_counter_ns()
        await work()
        measured.append(time.perf_counter_ns() - begun)
    return measured[1:]


def start(folder: str, sessions: int, times: int) -> Figures:
    """What a process uses of the processor for one command, from its first instruction on."""
    del sessions
    home = str(Path(folder, "state"))
    figures: Figures = {}
    for kind, words in {"--help": ["--help"], "list, whole": ["--home", home, "sessions", "list"]}.items():
        command = [str(Path(sys.executable).with_name("gsess")), *words]
        figures |= _of(kind, [_used(command) for _ in range(times + 1)][1:])
    return figures


def _used(command: list[str]) -> int:
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        _, ended, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(ended)
    if process.returncode:
        raise SystemExit(f"{command}: ended with {process.returncode}")
    return int((used.ru_utime + used.ru_stime) * 1e9)


def _of(kind: str, measured: list[int]) -> Figures:
    return {figure_of(kind, name): value for name, value in latencies(measured).items()}


def look(folder: str, sessions: int, times: int) -> Figures:
    """All of it."""
    return {
        **commands(folder, sessions, times),
        **asyncio.run(browsing(folder, sessions, times)),
        **start(folder, sessions, max(times // 4, 3)),
    }


if __name__ == "__main__":
    answer({"seed": seed, "look": look})
