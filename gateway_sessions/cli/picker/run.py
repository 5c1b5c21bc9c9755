"""A picker at work: what is pressed and what the database answers become what the terminal shows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from rich.console import Console

from gateway_sessions.adapters.protocol import in_background
from gateway_sessions.cli.context import everything
from gateway_sessions.cli.picker.model import (
    Ask,
    Picker,
    Press,
    answered,
    deleted,
    pressed,
    resized,
)
from gateway_sessions.cli.picker.terminal import Terminal
from gateway_sessions.cli.picker.view import picture, rows_in
from gateway_sessions.clock import SystemClock
from gateway_sessions.errors import GatewaySessionsError

if TYPE_CHECKING:
    import gateway_sessions as gs

PAGE: Final = 100
"""Rows that the database is asked for at a time."""
HIDDEN: Final = ("tool",)
"""Sources whose conversations are shown to those only who ask for them."""

Change = Callable[[Picker], Picker]


class Browser:
    """Lets somebody choose one of the conversations of a store."""

    def __init__(self, seat: gs.Seat, console: Console, *, source: str | None, archived: bool) -> None:
        self._seat = seat
        self._terminal = Terminal(console)
        self._source = source
        self._archived = archived
        self._clock = SystemClock()
        self._changes: asyncio.Queue[Change] = asyncio.Queue()
        self._changed = asyncio.Event()
        self._picker = Picker()
        self._size = self._terminal.size
        self._anew = True

    async def choose(self) -> Picker:
        """What somebody has left it at."""
        self._resize()
        with self._terminal.taken(self._press, self._resize):
            async with in_background(self._work):
                while not self._picker.over:
                    await self._next()
        return self._picker

    # What happens, in the order in which it does

    def _press(self, press: Press) -> None:
        self._changes.put_nowait(partial(pressed, press=press))

    def _resize(self) -> None:
        self._changes.put_nowait(self._resized)

    def _resized(self, picker: Picker) -> Picker:
        self._size = self._terminal.size
        self._anew = True
        return resized(picker, rows_in(self._size[1]))

    async def _next(self) -> None:
        """Take in what has happened meanwhile, and show it."""
        self._anew = False
        self._picker = (await self._changes.get())(self._picker)
        while not self._changes.empty() and not self._picker.over:
            self._picker = self._changes.get_nowait()(self._picker)
        self._changed.set()
        lines = picture(self._picker, self._clock.now(), *self._size, of=self._source)
        self._terminal.draw(lines, anew=self._anew)

    # What takes time: one thing after the other, and always what is wanted now

    async def _work(self) -> None:
        while True:
            self._changed.clear()
            if self._picker.deleting is not None:
                await self._settled(await self._deleted(self._picker.deleting))
            elif (ask := self._picker.ask) is not None:
                await self._settled(await self._answered(ask))
            else:
                await self._changed.wait()

    async def _settled(self, change: Change) -> None:
        """Hand it over, and wait until it is taken in: only then is it known what is wanted next."""
        self._changes.put_nowait(change)
        self._changed.clear()
        await self._changed.wait()

    async def _answered(self, ask: Ask) -> Change:
        rows = await self._seat.db.list_sessions_rich(
            scope=everything(),
            source=self._source,
            exclude_sources=None if self._source else HIDDEN,
            archived=self._archived,
            limit=PAGE,
            after=ask.after,
            search_query=ask.text or None,
        )
        return partial(answered, ask=ask, rows=rows, whole=len(rows) < PAGE)

    async def _deleted(self, one: gs.SessionSummary) -> Change:
        try:
            await self._seat.do("delete_session", session_id=one.session_id)
        except GatewaySessionsError as error:
            return partial(deleted, one=one, problem=str(error))
        return partial(deleted, one=one, problem=None)
