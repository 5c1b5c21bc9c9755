"""Asking an index in a file, which may be behind the truth, and may be made anew at any moment."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Protocol

from gateway_sessions.core.search_certain import certain_of
from gateway_sessions.core.search_documents import Position
from gateway_sessions.ports import Reader
from gateway_sessions.storage.catching import NOT_ALL_CHANGED, STEP, Catch, Request, look_behind, scan, select
from gateway_sessions.storage.search_index.file import Found
from gateway_sessions.storage.search_index.match import Match, match_of
from gateway_sessions.storage.verbs import searching
from gateway_sessions.storage.verbs.search_hits import Order

PAGE: Final = 2_000
"""Answers that are taken from the index at once."""


class Answering(Protocol):
    """What answers."""

    async def find(
        self, match: Match, after: int | None, limit: int, *, oldest_first: bool = False
    ) -> Found | None:
        """A page of what matches; None if it cannot be asked now."""
        ...


@dataclass(frozen=True, slots=True)
class _Question:
    """What is asked of the index."""

    match: Match
    request: Request
    seen: Catch | None = None
    """What the newest messages have of it, if the index was of no help at first."""

    async def page(self, index: Answering, after: int | None) -> Found | None:
        """The next page of answers."""
        oldest_first = self.request.order is Order.OLDEST
        return await index.find(self.match, after, PAGE, oldest_first=oldest_first)


async def ask(truth: Reader, index: Answering, request: Request) -> Catch | None:
    """What the index and its tail say; None if there is no index, or they do not fit together."""
    match = match_of(certain_of(request.wanted), request.shown)
    if match is None:
        return await scan(truth, request)
    return await _ask(truth, index, _Question(match, request))


async def _ask(truth: Reader, index: Answering, question: _Question) -> Catch | None:
    found, request = await question.page(index, None), question.request
    if found is None:
        return None
    if not found.is_answer:
        return question.seen or await _look_instead(truth, index, question)
    start = found.position
    catch, stale = await _tail(truth, start, request)
    checked = 0
    while found.position.changes == start.changes:
        known = [one for one in found.message_ids if one not in stale]
        await select(truth, catch, known, request, enough=request.enough_of_newest)
        checked += len(found.message_ids)
        if found.last_document is None or len(catch.candidates) >= request.enough:
            break
        if checked >= request.most:
            catch.problem = request.end_at(checked)
            break
        found = await question.page(index, found.last_document)
        if found is None or not found.is_answer:
            return None
    limits = await truth.read(searching.limits)
    fits = found.position.changes == start.changes and limits.cleared <= start.changes
    return catch if fits else None


async def _tail(truth: Reader, position: Position, request: Request) -> tuple[Catch, frozenset[int]]:
    """What the index does not know yet, and of which messages it tells what is not true any more."""
    catch = Catch()
    fresh = await truth.read(partial(searching.fresh, position, request.wanted, request.shown, STEP))
    catch.add([*fresh.changed.candidates, *fresh.later.candidates])
    if not fresh.changed.complete:
        catch.problem = NOT_ALL_CHANGED
    if fresh.later.last is not None:
        await look_behind(truth, catch, request, position.watermark, fresh.later)
    return catch, fresh.changed.stale


async def _look_instead(truth: Reader, index: Answering, question: _Question) -> Catch | None:
    """Look at messages; if the newest are not enough, let the index look for more words than is quick."""
    seen = await scan(truth, question.request)
    if seen.problem is None:
        return seen
    return await _ask(truth, index, replace(question, match=replace(question.match, patient=True), seen=seen))
