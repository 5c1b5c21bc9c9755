"""Writing sessions to a file, page by page: memory does not grow with the store or with a session."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from gateway_sessions.core.export.rendering import Renderer
from gateway_sessions.core.export.reports import ExportReport, Progress, TransferProgress
from gateway_sessions.ports import Reader
from gateway_sessions.storage.in_thread import in_thread
from gateway_sessions.storage.verbs import exporting
from gateway_sessions.storage.verbs.exporting import BEGINNING, Wanted

PAGE: Final = 200


@dataclass(slots=True, kw_only=True)
class SessionWriter:
    """Writes the sessions that a reader sees."""

    reader: Reader
    renderer: Renderer
    write: Callable[[bytes], object]
    wanted: Wanted
    progress: Progress | None = None
    _sessions: int = field(default=0, init=False)
    _messages: int = field(default=0, init=False)
    _bytes: int = field(default=0, init=False)
    _total: int | None = field(default=None, init=False)

    async def write_all(self, session_id: str | None, *, logical: bool) -> ExportReport:
        """One session or all, each alone or with the line that it stands in."""
        await self._put(self.renderer.begin_file)
        if session_id is not None:
            # Whoever may not see it is told so, also when the line around it could be seen.
            await self.reader.read(partial(exporting.head, session_id, self.wanted.scope))
            for one in await self._line(session_id) if logical else [session_id]:
                await self._session(one)
        else:
            self._total = await self.reader.read(partial(exporting.count, self.wanted))
            async for one in self._all(logical=logical):
                await self._session(one)
        await self._put(self.renderer.end_file)
        return ExportReport(sessions=self._sessions, messages=self._messages, bytes=self._bytes)

    async def _all(self, *, logical: bool) -> AsyncIterator[str]:
        """Every session; with *logical* those that continue another one stand behind it."""
        after = BEGINNING
        while page := await self.reader.read(partial(exporting.ids, self.wanted, after, PAGE)):
            for position, continues in page:
                after = position
                if not logical:
                    yield position[1]
                    continue
                line = await self._line(position[1])
                if not continues or line[0] == position[1]:
                    for one in line:
                        yield one

    async def _line(self, session_id: str) -> list[str]:
        return await self.reader.read(partial(exporting.logical_line, session_id, self.wanted.scope))

    async def _session(self, session_id: str) -> None:
        head = await self.reader.read(partial(exporting.head, session_id, self.wanted.scope))
        await self._put(partial(self.renderer.begin_session, head.members))
        after = 0
        while page := await self.reader.read(
            partial(exporting.messages, session_id, head, after, self.wanted)
        ):
            await self._put(partial(self.renderer.messages, page))
            after = page[-1]["seq"]
            self._messages += len(page)
            self._tell()
        await self._put(self.renderer.end_session)
        self._sessions += 1
        self._tell()

    async def _put(self, render: Callable[[], bytes]) -> None:
        """Render and write a piece, both off the loop."""
        self._bytes += await in_thread(partial(_written, self.write, render))

    def _tell(self) -> None:
        if self.progress is not None:
            self.progress(
                TransferProgress(sessions=self._sessions, messages=self._messages, total_sessions=self._total)
            )


def _written(write: Callable[[bytes], object], render: Callable[[], bytes]) -> int:
    piece = render()
    if piece:
        write(piece)
    return len(piece)
