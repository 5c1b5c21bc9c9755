"""Ending or failing a program at a named point: what a test of crash recovery needs.

with crash_at("before_commit", nth=3):       # in a child process: SIGKILL at the third pass
asyncio.run(work())

with crash_at("before_commit", action=raising(OSError("disk"))):   # here: the commit fails
...
"""

from __future__ import annotations

import itertools
import os
import signal
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from gateway_sessions.errors import InvalidInputError
from gateway_sessions.failpoints import arm

FAILPOINTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "home_owned": "the lock is taken, nobody can see yet by whom",
        "backed_up": "the copy is made, no migration has begun",
        "during_migration": "a step is taken, its transaction is open",
        "recovered": "cut-off turns are dealt with, their counts are not in the file",
        "index_set_aside": "a damaged sessions.json is in the quarantine",
        "import_page": "a page of an index is stored, the next one is not",
        "import_done": "all of an index is stored, and not noted as taken in",
        "within_batch": "one verb of a batch has run, the next one has not",
        "before_commit": "a batch has run in an open transaction",
        "after_commit": "a batch is durable, nobody has been told",
        "change_committed": "a change is durable, neither sessions.json nor the hooks know",
        "snapshot_page": "a page of the new sessions.json is written",
        "snapshot_complete": "the new sessions.json is written, and still has another name",
        "snapshot_replaced": "the new sessions.json is in place, nobody has been told",
        "hook_call_counted": "an attempt is counted, the hook has not been called",
        "hook_called": "the hook has returned, its outcome is not stored",
        "message_admitted": "a message is durable, its receipt is not given",
        "turn_claimed": "a lane is leased, nobody works on its turn",
        "turn_working": "an agent is about to begin",
        "turn_appended": "rows of a running turn are durable, its agent has not been told",
        "growing_sent": "the beginning of a growing reply is shown, its id is not noted",
        "growing_noted": "the id of a growing reply is noted, its agent has not been told",
        "turn_answered": "an agent has answered, nothing of it is stored",
        "turn_ended": "a turn is committed, nobody has been told",
        "after_commit_before_deliver": "a reply is committed as being sent, and is not sent",
        "before_deliver": "a reply is about to be handed to the platform",
        "after_deliver": "the platform has a reply, which is not noted",
        "command_noted": "a command is written down, and not carried out",
        "command_carried_out": "a command is carried out, and not noted as done",
        "before_marker": "all work is done, the marker of an orderly end is not written",
    }
)
"""Every point, and what has happened when it is passed."""


@dataclass(slots=True)
class Crash:
    """What became of an armed point."""

    fired: bool = False


def die() -> None:
    """End this process as a power cut would: nothing is flushed, closed or cleaned up."""
    if hasattr(signal, "SIGKILL"):
        os.kill(os.getpid(), signal.SIGKILL)
    os._exit(137)


def raising(error: BaseException) -> Callable[[], object]:
    """An action for `crash_at` that lets the call at the point fail."""

    def fail() -> None:
        raise error

    return fail


@contextmanager
def crash_at(name: str, *, nth: int = 1, action: Callable[[], object] = die) -> Generator[Crash]:
    """Perform *action*, by default `die`, at the *nth* pass of a point within the block."""
    if name not in FAILPOINTS:
        problem = f"there is no failpoint {name!r}; there are: {', '.join(FAILPOINTS)}"
        raise InvalidInputError(problem)
    crash, passes = Crash(), itertools.count(1)

    def passed(point: str) -> None:
        if point == name and next(passes) == nth:
            crash.fired = True
            action()

    arm(passed)
    try:
        yield crash
    finally:
        arm(None)


@contextmanager
def count_passes() -> Generator[Counter[str]]:
    """How often each point is passed within the block."""
    passes: Counter[str] = Counter()
    arm(lambda point: passes.update((point,)))
    try:
        yield passes
    finally:
        arm(None)
