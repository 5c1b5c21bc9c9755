"""A warm process that lets a bot live again and again: its arguments are a module, and those of its `main`.

Starting Python and importing a bot takes longer than most of its lives, so it is done once. Each line of the
input asks for a life, in a fork; its process id is told, and its end.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import traceback
from collections.abc import Callable, Coroutine
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

from gateway_sessions import SessionStore


def serve(main: Callable[..., Coroutine[object, object, None]], *arguments: str) -> None:
    """Start a bot whenever one is asked for, and the one before has ended."""
    with TemporaryDirectory() as home:
        asyncio.run(warm_up(Path(home)))
    gc.freeze()
    for _ in sys.stdin:
        pid = os.fork()
        if not pid:
            live(main, *arguments)
        tell(str(pid))
        os.waitpid(pid, 0)
        tell("ended")


async def warm_up(home: Path) -> None:
    """Load what is loaded when a store is opened first."""
    async with SessionStore.open(home):
        pass


def live(main: Callable[..., Coroutine[object, object, None]], *arguments: str) -> None:
    """Run a bot to its end, and end this process."""
    os.dup2(2, 1)  # only the warm process tells anything
    try:
        asyncio.run(main(*arguments))
    except BaseException:  # noqa: BLE001 -- nothing may run behind a fork's back
        traceback.print_exc()
    os._exit(1)


def tell(word: str) -> None:
    os.write(1, f"{word}\n".encode())


if __name__ == "__main__":
    serve(import_module(sys.argv[1]).main, *sys.argv[2:])
