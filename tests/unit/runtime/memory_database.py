"""A database without a disk, for the duties of the runtime: the real schema and statements, in memory."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
from types import SimpleNamespace
from typing import Any, TypeVar

from gateway_sessions.core.instants import to_micros
from gateway_sessions.errors import StorageError
from gateway_sessions.ports import Rows, Statement, Transaction, TransactionFactory
from gateway_sessions.storage.tables.sql_files import load_queries
from tests.raw_sql import migrated_in_memory

T = TypeVar("T")


class MemoryDatabase:
    """Runs each transaction at once, in a transaction of its own; fails when `failure` is set."""

    def __init__(self) -> None:
        self.ownership = SimpleNamespace(
            change_ids=itertools.count(1), entry_ids=itertools.count(1), epoch=1, shared=None, membership=None
        )
        self.failure: StorageError | None = None
        self.reads = 0
        self.writes = 0
        self._queries = load_queries("sqlite")
        self._turn = threading.Lock()
        self._raw = migrated_in_memory()

    @property
    def writes_begun(self) -> int:
        return self.writes

    async def read(self, transaction: TransactionFactory[T]) -> T:
        self.reads += 1
        return await asyncio.to_thread(self._run, transaction)

    async def write(self, transaction: TransactionFactory[T]) -> T:
        self.writes += 1
        return await asyncio.to_thread(self._run, transaction)

    def rows(self, sql: str, *params: object) -> list[Any]:
        """What a statement finds; for assertions, and for states that no transaction makes yet."""
        with self._turn:
            return self._raw.execute(sql, params).fetchall()

    def owe(self, hook: str, session_id: str, at: Any) -> None:
        """Owe a call, as the end of a session does."""
        payload = json.dumps(
            {"reason": "idle", "platform": "irc", "chat_type": "dm", "ended_at": to_micros(at)}
        )
        where = (f"{session_id}:1:{hook}", hook, f"lane of {session_id}", session_id, "session_finalized")
        with self._turn:
            sql = self._queries["add_hook_call"].sql
            self._raw.execute(sql, (*where, payload, to_micros(at), to_micros(at)))

    def _run(self, transaction: TransactionFactory[T]) -> T:
        with self._turn:
            if self.failure is not None:
                raise self.failure
            self._raw.execute("BEGIN IMMEDIATE")
            try:
                outcome = self._drive(transaction())
            except BaseException:
                self._raw.execute("ROLLBACK")
                raise
            self._raw.execute("COMMIT")
            return outcome

    def _drive(self, transaction: Transaction[T]) -> T:
        try:
            statement = next(transaction)
            while True:
                statement = transaction.send(self._execute(statement))
        except StopIteration as stop:
            outcome: T = stop.value
            return outcome

    def _execute(self, statement: Statement) -> Rows:
        if statement.parts:
            return [self._execute(part) for part in statement.parts]
        query = self._queries[statement.name]
        if statement.many is not None:
            return ((self._raw.executemany(query.sql, statement.many).rowcount,),)
        cursor = self._raw.execute(query.sql, statement.params)
        return cursor.fetchall() if query.sql.startswith("SELECT") else ((cursor.rowcount,),)
