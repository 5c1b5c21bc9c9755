"""Every change of a state in a database is compared with the tables: its statement has named that move."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar
from weakref import WeakSet

import pytest

from gateway_sessions import SessionDB
from gateway_sessions.core.queue.state_machine import (
    ITEM_MOVES,
    REPLY_MOVES,
    ItemColumns,
    ItemState,
    ReplyState,
    item_state,
    reply_state,
)
from gateway_sessions.ports import Statement, Transaction, TransactionFactory
from gateway_sessions.storage.tables.sql_files import load_queries

T = TypeVar("T")

QUERIES: Final = load_queries("sqlite")
MOST: Final = 64
"""Rows: a database with a longer table is not watched any more, for each transaction would read it whole."""
EVERYTHING: Final = 1 << 20


class States(NamedTuple):
    """The state of every row, by its id; None of one that a test has damaged."""

    items: dict[int, ItemState | None]
    replies: dict[int, ReplyState | None]


class Place(NamedTuple):
    """Where a message is."""

    session_key: str
    seq: int
    state: ItemState | None


def read_places() -> Transaction[list[Place]]:
    """Read where every message of a database is."""
    return [
        Place(row["session_key"], row["seq"], _item(row)) for row in (yield from _table("inbox", EVERYTHING))
    ]


def read_states(most: int) -> Transaction[States | None]:
    """Read the states of all messages and replies; None if there are too many."""
    items = {row["item_id"]: _item(row) for row in (yield from _table("inbox", most))}
    replies = yield from _table("outbox", most)
    if most in (len(items), len(replies)):
        return None
    return States(items, {row["reply_id"]: reply_state(row["state"], row["settled_at"]) for row in replies})


def _item(row: dict[str, Any]) -> ItemState | None:
    return item_state(ItemColumns(*(row[name] for name in ItemColumns._fields)))


def _table(name: str, most: int) -> Transaction[list[dict[str, Any]]]:
    """Read the rows of a table as the query gives them that moves them to another database."""
    query = f"move_out_{name}"
    listed = QUERIES[query].sql.removeprefix("SELECT").partition("FROM")[0]
    columns = [one.strip() for one in listed.split(",")]
    rows = yield Statement(query, (-1, most))
    return [dict(zip(columns, row, strict=True)) for row in rows]


class Watch:
    """Watches the transactions of some databases, and counts the moves that they make."""

    def __init__(self, most: int) -> None:
        self.made = Counter[str]()
        self._most = most
        self._too_long = WeakSet[SessionDB]()

    def watch_transaction(self, db: SessionDB, transaction: Transaction[T]) -> Transaction[T]:
        """Return the same transaction; it fails once a statement moves a row as it has not named."""
        before: States | None = None
        try:
            statement = next(transaction)
            while True:
                parts = statement.parts or (statement,)
                if before is None and not all(QUERIES[one.name].reads for one in parts):
                    before = yield from self._states(db)
                rows = yield statement
                if before is not None and any(one.moves for one in parts):
                    after = yield from self._states(db)
                    before = after and _compared(before, after, parts, self.made)
                statement = transaction.send(rows)
        except StopIteration as stop:
            if before is not None:  # whatever names no move has moved nothing
                assert (yield from self._states(db)) in (before, None)
            return stop.value
        finally:
            transaction.close()

    def _states(self, db: SessionDB) -> Transaction[States | None]:
        if db in self._too_long:
            return None
        found = yield from read_states(self._most)
        if found is None:
            self._too_long.add(db)
        return found


def _compared(before: States, after: States, parts: Sequence[Statement], made: Counter[str]) -> States:
    moves = [move for one in parts for move in one.moves]
    names = ", ".join(one.name for one in parts)
    for old, new, table, none in (
        (before.items, after.items, ITEM_MOVES, ItemState),
        (before.replies, after.replies, REPLY_MOVES, ReplyState),
    ):
        for row_id in old.keys() | new.keys():
            was, now = old.get(row_id, none.NEW), new.get(row_id, none.FORGOTTEN)
            if was is now or was is None:
                continue
            named = [one for one in moves if table.get((was, one)) is now]
            assert named, f"{names} has moved a row from {was} to {now}, and named {moves}"
            made[f"{was} {named[0]}"] += 1
    return after


@contextmanager
def watching_moves(most: int = MOST) -> Iterator[Watch]:
    """Watch every transaction that any database writes with."""
    watch, write, begin_write = Watch(most), SessionDB.write, SessionDB.begin_write

    def begun(db: SessionDB, transaction: TransactionFactory[T]) -> Transaction[T]:
        return watch.watch_transaction(db, transaction())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SessionDB, "write", lambda db, transaction: write(db, partial(begun, db, transaction)))
        patch.setattr(
            SessionDB, "begin_write", lambda db, transaction: begin_write(db, partial(begun, db, transaction))
        )
        yield watch
