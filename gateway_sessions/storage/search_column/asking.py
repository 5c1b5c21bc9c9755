"""Asking an index that stands in the database beside the messages: all of it as of one moment."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from operator import itemgetter
from typing import Final

from gateway_sessions.core.search_certain import certain_of
from gateway_sessions.core.search_documents import Position
from gateway_sessions.core.search_lexemes import Asked
from gateway_sessions.ports import Reader, Row, Rows, Statement, Verb
from gateway_sessions.storage.catching import (
    NOT_ALL_CHANGED,
    Catch,
    Request,
    look_at,
    scan,
    select,
)
from gateway_sessions.storage.search_column.languages import Language
from gateway_sessions.storage.verbs import searching
from gateway_sessions.storage.verbs.search_hits import Order
from gateway_sessions.storage.verbs.searching import BEYOND, Scanned

PAGE: Final = 2_000
SOME: Final = 10_000
"""So many answers are put in order by us; more of them are asked for page by page in their order."""
_ALL: Final = Position(BEYOND, -1)


async def ask(truth: Reader, request: Request, language: Language) -> Catch:
    """What the index has, and what it does not know. All of this has to see one moment."""
    query = language.query(certain_of(request.wanted), request.shown)
    if query is None:
        return await scan(truth, request)
    catch = Catch()
    await _look_at_unknown(truth, catch, request)
    some = await truth.read(partial(_some, query.text))
    if len(some) <= SOME:
        in_order = sorted(some, key=itemgetter(0), reverse=request.order is not Order.OLDEST)
        await _select(truth, catch, in_order, request, query)
    else:
        await _leaf(truth, catch, query, request)
    return catch


async def _look_at_unknown(truth: Reader, catch: Catch, request: Request) -> None:
    changed = await truth.read(partial(searching.changed, _ALL, request.wanted, request.shown))
    catch.add(changed.candidates)

    def look(before: int, size: int) -> Verb[Scanned]:
        return searching.scan_without_tokens(before, request.wanted, request.shown, size)

    await look_at(truth, catch, look)
    if not changed.complete:
        catch.problem = NOT_ALL_CHANGED


async def _leaf(truth: Reader, catch: Catch, query: Asked, request: Request) -> None:
    """Go through very many answers in their order, until there are enough of them."""
    checked, at = 0, -1 if request.order is Order.OLDEST else BEYOND
    while len(catch.candidates) < request.enough:
        rows = await truth.read(partial(_page, query.text, request.order, at))
        await _select(truth, catch, rows, request, query)
        checked += len(rows)
        if len(rows) < PAGE:
            return
        if checked >= request.most:
            catch.problem = request.end_at(checked)
            return
        at = rows[-1][0]


async def _select(truth: Reader, catch: Catch, rows: Sequence[Row], request: Request, query: Asked) -> None:
    """Let the truth decide about answers, in their order, until there are enough of them."""
    for start in range(0, len(rows), PAGE):
        if len(catch.candidates) >= request.enough:
            return
        page = rows[start : start + PAGE]
        sure = [row[0] for row in page if query.is_exact and not row[1]]
        await select(truth, catch, sure, request)
        unsure = [row[0] for row in page if row[1] or not query.is_exact]
        await select(truth, catch, unsure, request, sure=False)


def _some(query: str) -> Verb[Rows]:
    return (yield Statement("some_with_tokens", (query, SOME + 1)))


def _page(query: str, order: Order, at: int) -> Verb[Rows]:
    name = "oldest_with_tokens" if order is Order.OLDEST else "newest_with_tokens"
    return (yield Statement(name, (query, at, PAGE)))
