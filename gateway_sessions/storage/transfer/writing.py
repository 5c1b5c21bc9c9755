"""Writing sessions to a file, page by page: memory does not grow with the store or with a session."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from gateway_sessions.core.export.rendering import Renderer
from gateway_sessions.core.export.reports import ExportReport, Progress, TransferProgress
from gateway_sessions.ports import Reader
from gateway_sessions.storage.in_thread import in_thread
from gateway_sessions.storage.verbs import exporting
from gateway_sessions.storage.verbs.exporting import BEGINNING, Beginning, Wanted

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
    _pieces: list[Callable[[], bytes]] = field(default_factory=list[Callable[[], bytes]], init=False)
    """What is to be written next: of bounded size, as one read has brought it."""

    async def write_all(self, session_id: str | None, *, logical: bool) -> ExportReport:
        """One session or all, each alone or with the line that it stands in."""
        self._pieces.append(self.renderer.begin_file)
        if session_id is not None:
            # Whoever may not see it is told so, also when the line around it could be seen.
            await self.reader.read(partial(exporting.head, session_id, self.wanted.scope))
            await self._sessions_of(await self._line(session_id) if logical else [session_id])
        else:
            self._total = await self.reader.read(partial(exporting.count, self.wanted))
            some: list[str] = []
            async for one in self._all(logical=logical):
                some.append(one)
                if len(some) == PAGE:
                    await self._sessions_of(some)
                    some = []
            await self._sessions_of(some)
        self._pieces.append(self.renderer.end_file)
        await self._write_down()
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

    async def _sessions_of(self, session_ids: Sequence[str]) -> None:
        """Short sessions are read and written many at a time: each has little to say, and there are many."""
        left = session_ids
        while left:
            found = await self.reader.read(partial(exporting.beginnings, left, self.wanted))
            for one in found:
                await self._session(one)
            await self._write_down()
            left = left[len(found) :]

    async def _session(self, first: Beginning) -> None:
        self._pieces.append(partial(self.renderer.begin_session, first.head.members))
        page, is_last = first.messages, first.whole
        while page:
            self._pieces.append(partial(self.renderer.messages, page))
            self._messages += len(page)
            if is_last:
                break
            await self._write_down()
            more = partial(exporting.messages, first.session_id, first.head, page[-1]["seq"], self.wanted)
            page = await self.reader.read(more)
        self._pieces.append(self.renderer.end_session)
        self._sessions += 1

    async def _write_down(self) -> None:
        """Render and write what has come together, both off the loop."""
        pieces, self._pieces = self._pieces, []
        self._bytes += await in_thread(partial(_written, self.write, pieces))
        if self.progress is not None:
            self.progress(
                TransferProgress(sessions=self._sessions, messages=self._messages, total_sessions=self._total)
            )


def _written(write: Callable[[bytes], object], renders: Sequence[Callable[[], bytes]]) -> int:
    written = b"".join(render() for render in renders)
    if written:
        write(written)
    return len(written)
