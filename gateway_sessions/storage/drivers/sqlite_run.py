"""One verb on a SQLite connection, among others that share its transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import TypeVar

from gateway_sessions.core.news import News
from gateway_sessions.ports import Row, Statement, Verb
from gateway_sessions.storage.queries import Query

T = TypeVar("T")


class Run:
    """Runs one verb to its end.

    *Saving*, a savepoint of its own lets it be undone alone. That costs more than many a statement: each page
    that the verb changes is copied first.
    """

    __slots__ = ("_connection", "_queries", "_saved", "_saving", "changed_index", "news", "wrote")

    def __init__(
        self, connection: sqlite3.Connection, queries: Mapping[str, Query], *, saving: bool = False
    ) -> None:
        self._connection = connection
        self._queries = queries
        self._saving = saving
        self._saved = False
        self.changed_index = False
        """Whether it has changed what sessions.json shows."""
        self.wrote = False
        """Whether it may have left something that only the end of the transaction can undo."""
        self.news: Sequence[News] = ()

    def drive(self, verb: Verb[T]) -> T:
        """Run the verb; if it fails, it is undone where that can be done."""
        connection, queries = self._connection, self._queries
        try:
            statement = next(verb)
            while True:
                if statement.parts:
                    statement = verb.send([self._execute(part) for part in statement.parts])
                    continue
                query = queries[statement.name]
                if query.reads:
                    rows = connection.execute(query.sql, statement.params).fetchall()
                    statement = verb.send(rows)
                else:
                    statement = verb.send(self._change(query, statement))
        except StopIteration as stop:
            result: T = stop.value
        except Exception:
            self._undo()
            raise
        finally:
            verb.close()
        if self._saved:
            connection.execute("RELEASE verb")
        return result

    def _execute(self, statement: Statement) -> Sequence[Row]:
        query = self._queries[statement.name]
        if query.reads:
            return self._connection.execute(query.sql, statement.params).fetchall()
        return self._change(query, statement)

    def _change(self, query: Query, statement: Statement) -> Sequence[Row]:
        if not statement.alone:  # one that stands alone undoes itself
            if self._saving:
                self._save()
            else:
                self.wrote = True
        if statement.many is None:
            changed = self._connection.execute(query.sql, statement.params).rowcount
        else:
            changed = self._connection.executemany(query.sql, statement.many).rowcount
        if changed > 0:
            self.changed_index |= query.changes_index
            if statement.news is not None:
                self.news = (*self.news, statement.news)
        return ((changed,),)

    def _save(self) -> None:
        if not self._saved:
            self._connection.execute("SAVEPOINT verb")
            self._saved = True

    def _undo(self) -> None:
        if self._saved and self._connection.in_transaction:
            self._connection.execute("ROLLBACK TO verb")
            self._connection.execute("RELEASE verb")


def drive(connection: sqlite3.Connection, queries: Mapping[str, Query], verb: Verb[T]) -> T:
    """Run a verb to its end on a connection that somebody else looks after."""
    return Run(connection, queries, saving=True).drive(verb)
