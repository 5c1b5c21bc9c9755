"""Ctrl-C in a conversation: the first one ends the turn that runs, the next one leaves."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

import anyio

import gateway_sessions as gs
from gateway_sessions._process.background import in_background
from gateway_sessions.cli.context import CommandContext
from gateway_sessions.cli.exit_codes import Exit
from gateway_sessions.core.notices.command_replies import NOTHING_TO_STOP

AGAIN: Final = "Ctrl-C again leaves."
THREAD_NAME: Final = "asyncio_"
"""The names of an event loop's worker threads begin with this."""
IDLE: Final = "_worker"
"""The function in which an idle worker thread waits for work."""


class CtrlC:
    """The handler of Ctrl-C during a whole command, so that none becomes a traceback."""

    def __init__(self, context: CommandContext, opening: anyio.CancelScope) -> None:
        self._context = context
        self._opening: anyio.CancelScope | None = opening
        self._gateway: gs.Gateway | None = None
        self._source: gs.SessionSource | None = None
        self._stopped: object = None
        self._noted = False
        self.left: asyncio.Event = asyncio.Event()
        """Set when the person wants to leave."""

    def stop_turns_of(self, gateway: gs.Gateway, source: gs.SessionSource) -> None:
        """Let Ctrl-C stop turns of this gateway from now on; before, it cancels the preparations."""
        self._opening, self._gateway, self._source = None, gateway, source

    async def listen(self) -> None:
        """Handle each Ctrl-C, until cancelled."""
        with anyio.open_signal_receiver(signal.SIGINT) as signals:
            async for _ in signals:
                await self._handle_ctrl_c()

    async def _handle_ctrl_c(self) -> None:
        if self.left.is_set():
            if not self._noted:
                self._context.note("Leaving; an agent that resists has a few seconds.")
            self._noted = True
        elif (answer := await self._stop_turns()) is not None:
            self._context.note(f"{answer} {AGAIN}")
        else:
            self._leave()

    async def _stop_turns(self) -> str | None:
        """Stop running and waiting turns, and return the answer; None if there are none to stop."""
        gateway, source = self._gateway, self._source
        if gateway is None or source is None:
            return None
        running = gateway.running_turn(gateway.store.key_for(source))
        if running is not None and running is self._stopped:
            return None
        self._stopped = running
        answer = await gateway.command(source, "/stop")
        return None if answer == NOTHING_TO_STOP else answer

    def _leave(self) -> None:
        self.left.set()
        self._context.exit_code = Exit.INTERRUPTED
        if self._opening is not None:
            self._opening.cancel()


@asynccontextmanager
async def handling_ctrl_c(context: CommandContext) -> AsyncGenerator[CtrlC]:
    """Let Ctrl-C end a turn or the conversation in the block, and never interrupt the closing of a store."""
    with anyio.CancelScope() as opening:
        ctrl_c = CtrlC(context, opening)
        async with in_background(ctrl_c.listen):
            yield ctrl_c
        if ctrl_c.left.is_set() and _has_busy_worker_thread():
            _exit_process_now(context.exit_code)
    if opening.cancelled_caught:
        context.note("Interrupted before the conversation began.")


def _has_busy_worker_thread() -> bool:
    """Return whether a worker thread of the loop is busy: Python would wait for it before it exits."""
    # Documented, and the only way to see it.
    frames = sys._current_frames()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    threads = (one for one in threading.enumerate() if one.name.startswith(THREAD_NAME))
    found = (frames.get(one.ident or 0) for one in threads)
    return any(one is not None and one.f_code.co_name != IDLE for one in found)


def _exit_process_now(code: Exit) -> None:
    """End the process although a thread of an agent still runs: the store is closed already."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
