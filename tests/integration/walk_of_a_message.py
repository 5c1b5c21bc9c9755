"""The modules that one message visits on its way from a webhook to the reply that is marked as sent."""

from __future__ import annotations

import asyncio
import itertools
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from gateway_sessions import Gateway, SessionStore, TurnContext
from tests.contract.webhook_bench import WebhookBench

PACKAGE = "gateway_sessions."
LAYERS = {
    "errors": 0, "core": 1, "ports": 2, "_process": 3, "storage": 3, "adapters": 3, "config": 3, "runtime": 4,
}  # fmt: skip
"""The rank of a layer: a call from a lower one into a higher one turns back.

What `_process.background` runs for an adapter belongs to the adapter, so both have the same rank."""
UNNAMED = {"<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>"}
WARM = 2
"""So many messages come first: the first opens the lane, the second finds everything in its caches."""


class Call(NamedTuple):
    """A call of a function of the package."""

    thread: int
    caller: str
    """The module of the package that called, maybe by way of a library; empty at the bottom of a stack."""
    module: str
    function: str


class Walk:
    """Records calls while it is `recording`, in every thread that begins after `watching`."""

    def __init__(self) -> None:
        self.recording = False
        self.calls: list[Call] = []
        self._duties: set[asyncio.Task[object]] = set()

    @contextmanager
    def watching(self) -> Iterator[None]:
        before = sys.getprofile()
        threading.setprofile(self._note)
        try:
            yield
        finally:
            threading.setprofile(None)  # type: ignore[arg-type]  # that is how it is taken back
            sys.setprofile(before)

    def begin(self) -> None:
        """Record what is called from now on, except in tasks that run duties: those are no part of a walk."""
        self._duties = {task for task in asyncio.all_tasks() if _is_duty(task)}
        self.recording = True
        sys.setprofile(self._note)

    def end(self) -> None:
        self.recording = False
        sys.setprofile(None)

    @property
    def modules(self) -> set[str]:
        return {call.module for call in self.calls}

    @property
    def functions(self) -> set[tuple[str, str]]:
        return {(call.module, call.function) for call in self.calls}

    @property
    def changes(self) -> int:
        """How often the next call is in another module than the one before."""
        return len(list(itertools.groupby(call.module for call in self.calls))) - 1

    @property
    def turnings(self) -> list[Call]:
        """The calls from a layer into one above it."""
        return [call for call in self.calls if call.caller and _rank(call.module) > _rank(call.caller)]

    def elsewhere(self, thread: int) -> list[Call]:
        """The calls in other threads than that one."""
        return [call for call in self.calls if call.thread != thread]

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        if not self.recording or event != "call" or frame.f_code.co_name in UNNAMED:
            return
        module = str(frame.f_globals.get("__name__"))
        if module.startswith(PACKAGE) and not self._is_in_a_duty():
            name = f"{frame.f_code.co_filename}:{frame.f_code.co_name}"
            self.calls.append(Call(threading.get_ident(), _caller(frame), module[len(PACKAGE) :], name))

    def _is_in_a_duty(self) -> bool:
        try:
            return asyncio.current_task() in self._duties
        except RuntimeError:  # a thread without a loop
            return False


async def walk_of_a_warm_message(home: Path) -> Walk:
    """Send a message into a lane that has had some, and return the walk of that message to its reply."""
    walk, bench, replied = Walk(), WebhookBench(), 0
    with walk.watching():
        async with (
            bench.listening(),
            SessionStore.open(home) as store,
            Gateway(store, adapters=[bench.adapter], agent=_counts) as gateway,
        ):
            for n in range(WARM + 1):
                if n == WARM:
                    walk.begin()
                assert await bench.says("hello")
                await gateway.settled()
            walk.end()
            replied = len(bench.received)
    assert replied == WARM + 1
    return walk


async def _counts(turn: TurnContext) -> str:
    return f"{len(await turn.history())} messages"


def _rank(module: str) -> int:
    return LAYERS.get(module.partition(".")[0], 0)


def _caller(frame: FrameType) -> str:
    before = frame.f_back
    while before is not None:
        name = str(before.f_globals.get("__name__"))
        if name.startswith(PACKAGE):
            return name[len(PACKAGE) :]
        before = before.f_back
    return ""


def _is_duty(task: asyncio.Task[object]) -> bool:
    """Return whether a task runs a duty, or fills the search index."""
    awaited = task.get_coro()
    while awaited is not None:
        frame = getattr(awaited, "cr_frame", None)
        if frame is not None and str(frame.f_globals.get("__name__")).startswith(
            (f"{PACKAGE}runtime.duties", f"{PACKAGE}storage.search", f"{PACKAGE}storage.sessions_json")
        ):
            return True
        awaited = getattr(awaited, "cr_await", None)
    return False
