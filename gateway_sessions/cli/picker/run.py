"""The loop that brings keys, the database's answers and the terminal together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from rich.console import Console

from gateway_sessions._process.background import in_background
from gateway_sessions._process.clock import SystemClock
from gateway_sessions.cli.picker.model import (
    PageRequest,
    Picker,
    Press,
    after_deletion,
    after_page,
    after_press,
    after_resize,
)
from gateway_sessions.cli.picker.terminal import RawTerminal
from gateway_sessions.cli.picker.view import picker_lines, rows_that_fit
from gateway_sessions.core.identity.scope import Scope
from gateway_sessions.errors import GatewaySessionsError

if TYPE_CHECKING:
    from gateway_sessions.operator import StoreClient
    from gateway_sessions.sessions import SessionSummary

PAGE: Final = 100
"""The rows in one request to the database."""
HIDDEN: Final = ("tool",)
"""Sources whose conversations are shown only if `--source` names them."""

Change = Callable[[Picker], Picker]


class SessionBrowser:
    """A picker for the conversations of a store, at a terminal."""

    def __init__(self, client: StoreClient, console: Console, *, source: str | None, archived: bool) -> None:
        self._client = client
        self._terminal = RawTerminal(console)
        self._source = source
        self._archived = archived
        self._clock = SystemClock()
        self._changes: asyncio.Queue[Change] = asyncio.Queue()
        self._changed = asyncio.Event()
        self._picker = Picker()
        self._size = self._terminal.size
        self._anew = True

    async def choose(self) -> Picker:
        """Let a person choose, and return the picker at its end."""
        self._queue_resize()
        with self._terminal.raw_mode(self._queue_press, self._queue_resize):
            async with in_background(self._fetch_and_delete):
                while not self._picker.is_over:
                    await self._apply_and_draw()
        return self._picker

    # Changes of the picker, applied in the order in which they come

    def _queue_press(self, press: Press) -> None:
        self._changes.put_nowait(partial(after_press, press=press))

    def _queue_resize(self) -> None:
        self._changes.put_nowait(self._apply_resize)

    def _apply_resize(self, picker: Picker) -> Picker:
        self._size = self._terminal.size
        self._anew = True
        return after_resize(picker, rows_that_fit(self._size[1]))

    async def _apply_and_draw(self) -> None:
        self._anew = False
        self._picker = (await self._changes.get())(self._picker)
        while not self._changes.empty() and not self._picker.is_over:
            self._picker = self._changes.get_nowait()(self._picker)
        self._changed.set()
        lines = picker_lines(self._picker, self._clock.now(), *self._size, of=self._source)
        self._terminal.draw(lines, anew=self._anew)

    # Requests to the database, one at a time, and always the one that is wanted now

    async def _fetch_and_delete(self) -> None:
        while True:
            self._changed.clear()
            if self._picker.deleting is not None:
                await self._apply_and_wait(await self._delete_session(self._picker.deleting))
            elif (ask := self._picker.next_page) is not None:
                await self._apply_and_wait(await self._fetch_page(ask))
            else:
                await self._changed.wait()

    async def _apply_and_wait(self, change: Change) -> None:
        """Queue a change and wait until it is applied, because it decides which request comes next."""
        self._changes.put_nowait(change)
        self._changed.clear()
        await self._changed.wait()

    async def _fetch_page(self, ask: PageRequest) -> Change:
        rows = await self._client.db.list_sessions_rich(
            scope=Scope.operator(),
            source=self._source,
            exclude_sources=None if self._source else HIDDEN,
            archived=self._archived,
            limit=PAGE,
            after=ask.after,
            search_query=ask.text or None,
        )
        return partial(after_page, request=ask, rows=rows, whole=len(rows) < PAGE)

    async def _delete_session(self, one: SessionSummary) -> Change:
        try:
            await self._client.do("delete_session", session_id=one.session_id)
        except GatewaySessionsError as error:
            return partial(after_deletion, one=one, problem=str(error))
        return partial(after_deletion, one=one, problem=None)
