"""New databases for tests: the first takes all migrations, and the others are copies of what came out."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Sequence

import pytest

from gateway_sessions.storage.engines.sqlite import schema
from gateway_sessions.storage.engines.sqlite.engine import ENGINE
from gateway_sessions.storage.tables.sql_files import Migration, load_migrations


class MigratedOnce:
    """Takes the place of the migrations of a new file, which take longer than most tests run.

    Whoever brings migrations of their own, or an older file, gets the real ones.
    """

    def __init__(self) -> None:
        self._migrate = schema._run_migrations  # noqa: SLF001 -- what this stands in for
        self._one_at_a_time = threading.Lock()
        self._made: sqlite3.Connection | None = None

    def __call__(self, connection: sqlite3.Connection, due: Sequence[Migration]) -> None:
        if tuple(due) != load_migrations(ENGINE):
            self._migrate(connection, due)
            return
        with self._one_at_a_time:
            if self._made is None:
                self._made = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
                self._migrate(self._made, due)
            self._made.backup(connection)

    def close(self) -> None:
        if self._made is not None:
            self._made.close()


def copy_migrated_databases(patch: pytest.MonkeyPatch) -> MigratedOnce:
    migrated = MigratedOnce()
    patch.setattr(schema, "_run_migrations", migrated)
    return migrated
