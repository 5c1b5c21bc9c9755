"""A kind of database as another package would bring it along: a file of its own name, opened as `notebook://…`."""

from __future__ import annotations

from dataclasses import replace

from gateway_sessions.providers import CONTRACT, Engine, SessionDBProvider, Wanted
from gateway_sessions.storage.engines.sqlite.engine import SqliteEngine, SqliteReadingEngine

FILE = "notebook.db"
PLACE = "notebook://…"


class Notebook(SqliteEngine):
    """The database for whoever owns it."""

    place = PLACE


class NotebookReader(SqliteReadingEngine):
    """The same for those that only read."""

    place = PLACE


def engine(wanted: Wanted) -> Engine:
    """The file in the directory that this machine keeps for the database."""
    return Notebook(wanted.home / FILE, allow_network=wanted.allow_network)


def reader(wanted: Wanted) -> Engine:
    """The same file."""
    return NotebookReader(wanted.home / FILE)


PROVIDER = SessionDBProvider(
    name="notebook", contract=CONTRACT, usual="notebook://name", engine=engine, reader=reader
)
OLDER = replace(PROVIDER, name="older", contract=CONTRACT - 1)
NEWER = replace(PROVIDER, name="newer", contract=CONTRACT + 1)
SOMETHING = object()
