"""The search index in the database, and the duty that sees to what nobody else has told it.

Whoever writes a message writes what it is found by with it. What is left are messages of earlier versions and
those that were changed since; a search looks at these themselves.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import anyio
from anyio.abc import TaskGroup

from gateway_sessions.core.search_stems import Stems
from gateway_sessions.errors import StorageError, StorageUnavailableError, StoreStoppedError
from gateway_sessions.ports import Driver
from gateway_sessions.storage.catching import Catch, Request, scan
from gateway_sessions.storage.in_thread import in_thread
from gateway_sessions.storage.index_port import NAME, READ_ONLY, IndexReport, IndexState
from gateway_sessions.storage.search_column import filling
from gateway_sessions.storage.search_column.asking import ask
from gateway_sessions.storage.search_column.languages import Language

logger = logging.getLogger(__name__)

TOO_LONG: Final = "the search index did not answer in time"
STEP: Final = 200
"""So many messages are told of in one transaction."""
FORGOTTEN: Final = 1_000
GATHER_SECONDS: Final = 0.25
"""Changes that come one after another are taken in together."""
TRIES: Final = 3
"""An index that does not keep moments is asked again if it was told otherwise meanwhile, but not for ever."""
RETRY_SECONDS: Final = 5.0
MOST_DOUBLINGS: Final = 6


class ColumnIndex:
    """Asks the index in the database, and tells it of messages that it does not know."""

    def __init__(self, truth: Driver, language: Language) -> None:
        self._truth = truth
        self._language = language
        self._report = IndexReport(IndexState.EMPTY)
        self._woken = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()
        self._serving = False
        self.on_fault: Callable[[str, Path | None], object] = lambda _problem, _place: None
        """Never called: what is wrong with the database itself, its operator has to know."""

    def stem_with(self, stems: Stems) -> None:
        """Words are told of, and looked for, with these stems from now on."""
        self._language = replace(self._language, stems=stems)

    @property
    def report(self) -> IndexReport:
        """How it is."""
        return self._report

    def wake(self) -> None:
        """Something may have been said."""
        self._woken.set()

    def start(self, tasks: TaskGroup, highest: int, *, orderly: bool) -> None:
        """Begin to tell of what the index does not know, in the background."""
        del highest, orderly
        self._serving = True
        tasks.start_soon(self._run)

    async def catch(self, request: Request) -> Catch | None:
        """What is wanted, as of one moment; without an answer in time, messages are looked at instead."""
        try:
            for _ in range(TRIES):
                async with self._truth.view() as truth:
                    before = await truth.read(filling.standing)
                    if not before.helps(self._language):
                        return await scan(truth, request)
                    catch = await ask(truth, request, self._language)
                if self._language.keeps_moments or await self._truth.read(filling.standing) == before:
                    return catch
            return await scan(self._truth, request)
        except StorageUnavailableError:
            catch = await scan(self._truth, request)
            catch.problem = catch.problem or TOO_LONG
            return catch

    async def catch_up(self) -> None:
        """Return when all that was said before is in the index."""
        self._check_serving()
        await self._forget_strange()
        while not await self._step():
            pass

    async def rebuild(self) -> None:
        """Forget all of it; it is made anew in the background, and a search looks at messages meanwhile."""
        self._check_serving()
        async with self._one_at_a_time:
            await self._forget_all()
        self.wake()

    async def forget_removed(self) -> None:
        """What it knew of a message went with the message."""

    async def check(self) -> IndexReport:
        """See how far it is. The server's own means tell whether an index is damaged."""
        self._check_serving()
        self._tell_of(await self._truth.read(filling.progress))
        return self._report

    async def _run(self) -> None:
        failures = 0
        try:
            while True:
                try:
                    await self._forget_strange()
                    while True:
                        await self._round()
                        failures = 0
                except StoreStoppedError:
                    return
                except StorageError as error:
                    self._fail(error)
                    await anyio.sleep(RETRY_SECONDS * 2**failures)
                    failures = min(failures + 1, MOST_DOUBLINGS)
        finally:
            self._serving = False

    async def _round(self) -> None:
        """Tell of all there is, then wait until something may have been changed."""
        self._woken.clear()
        loop = asyncio.get_running_loop()
        began = loop.time()
        while not await self._step():
            await anyio.sleep(loop.time() - began)  # as long as it took, others may have the machine
            began = loop.time()
        await self._woken.wait()
        await anyio.sleep(GATHER_SECONDS)

    async def _step(self) -> bool:
        """Tell of some messages; whether nothing is left to tell of."""
        async with self._one_at_a_time:
            work, now = await self._truth.read(partial(filling.survey, STEP))
            self._tell_of(now)
            if work.size:
                rows = await in_thread(partial(filling.told, work, self._language))
                await self._truth.write(partial(filling.tell, work, rows))
        return not work.size

    def _tell_of(self, now: filling.Progress) -> None:
        state = IndexState.READY if now.complete else IndexState.BUILDING
        if not now.highest:
            state = IndexState.EMPTY
        watermark = now.highest if now.complete else 0
        self._report = replace(self._report, state=state, watermark=watermark, problem=None)

    async def _forget_strange(self) -> None:
        """Another tokeniser may have been at work, or other stems are wanted by now."""
        async with self._one_at_a_time:
            if not await self._truth.read(partial(filling.was_made_by_us, self._language.stems)):
                await self._forget_all()

    async def _forget_all(self) -> None:
        """Messages that come in meanwhile are told of once more, which does no harm."""
        await self._truth.write(filling.begin_to_forget)
        after: int | None = -1
        while after is not None:
            after = await self._truth.write(partial(filling.forget, after, FORGOTTEN))
        await self._truth.write(partial(filling.is_made_by_us, self._language.stems))

    def _fail(self, error: StorageError) -> None:
        self._report = replace(self._report, state=IndexState.UNAVAILABLE, problem=str(error))
        logger.warning(
            "the search index cannot be used now",
            extra={"action": "search_index_failed", "problem": str(error)},
        )

    def _check_serving(self) -> None:
        if not self._serving:
            raise StoreStoppedError(NAME)


class ColumnReader(ColumnIndex):
    """The same in a database that another process keeps: asked, and otherwise left alone."""

    async def catch_up(self) -> None:
        """A search looks at what the index does not know yet, so there is nothing to wait for."""

    async def rebuild(self) -> None:
        """Its owner does that."""
        raise StorageError(NAME, READ_ONLY)

    async def check(self) -> IndexReport:
        """See how far it is."""
        self._tell_of(await self._truth.read(filling.progress))
        return self._report
