"""Find and mend rows that cannot be decoded; the originals go to the quarantine."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec

from gateway_sessions.core.notices.human_units import counted_with_example
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.core.sessions_json.file_format import parse_snapshot
from gateway_sessions.errors import GatewaySessionsError
from gateway_sessions.ports import Transaction
from gateway_sessions.storage.engines.sqlite.backup import BACKUPS, backups_in, open_read_only
from gateway_sessions.storage.engines.sqlite.salvage import (
    DamagedTextRow,
    mend_text,
    quote_name,
    rows_with_damaged_text,
    tables_of,
)
from gateway_sessions.storage.engines.sqlite.worker import run_transaction
from gateway_sessions.storage.files.atomic_file import read_whole_file, write_atomically
from gateway_sessions.storage.files.private_files import make_private_directory
from gateway_sessions.storage.sessions_json import FILE_NAME
from gateway_sessions.storage.tables import meta
from gateway_sessions.storage.tables.sql_files import Query
from gateway_sessions.storage.transactions.upkeep import unreadable_rows

FACTS: Final = "meta"
TABLES: Final = (FACTS, *unreadable_rows.TABLES)
"""All tables that are checked."""
Queries: TypeAlias = Mapping[str, Query]


@dataclass(frozen=True, slots=True)
class MendingReport:
    """Collects the faults, the repairs, the losses, and the original rows."""

    found: list[str] = field(default_factory=list[str])
    done: list[str] = field(default_factory=list[str])
    lost: list[str] = field(default_factory=list[str])
    rows: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def write_originals(self, quarantine: Path, stamp: str) -> Path | None:
        """Write the original rows to the quarantine; return the file, or None if there are no rows."""
        if not self.rows:
            return None
        make_private_directory(quarantine)
        place = quarantine / f"rows.{stamp}.jsonl"
        lines = [msgspec.json.encode(row) for row in self.rows]
        write_atomically(place, b"\n".join(lines) + b"\n")
        return place


def find_unreadable_rows(table: str) -> Transaction[list[str]]:
    """Return the rows of a table that cannot be decoded, on any engine."""
    if table == FACTS:
        return [_describe_fact(name) for name in (yield from unreadable_rows.damaged_facts())]
    return _describe_bad_rows((yield from unreadable_rows.find_unreadable(table)))


def find_damaged_text(connection: sqlite3.Connection) -> list[str]:
    """Return the columns of a file with text that is no UTF-8."""
    return [
        one
        for table in tables_of(connection)
        for one in _describe_damaged_texts(rows_with_damaged_text(connection, table))
    ]


def mend_unreadable_rows(
    connection: sqlite3.Connection, queries: Queries, home: Path, now: datetime
) -> MendingReport:
    """Mend all unreadable rows, in the open transaction of the connection."""
    mended, guessed = MendingReport(), set[str]()
    for table in tables_of(connection):
        texts = rows_with_damaged_text(connection, table)
        _mend_texts(connection, texts, mended)
        guessed |= {one.name for one in texts if table == FACTS}
    _mend_facts(connection, queries, home, guessed, mended)
    circumstances: unreadable_rows.RepairContext | None = None
    for table in unreadable_rows.TABLES:
        bad = run_transaction(connection, queries, unreadable_rows.find_unreadable(table))
        if bad and circumstances is None:
            circumstances = unreadable_rows.RepairContext(
                now=now, entries=_read_snapshot_entries(home / FILE_NAME)
            )
        if circumstances is not None:
            _mend_rows(connection, bad, circumstances, mended)
    return mended


def _mend_texts(connection: sqlite3.Connection, bad: Sequence[DamagedTextRow], mended: MendingReport) -> None:
    told = _describe_damaged_texts(bad)
    mended.found.extend(told)
    mended.done.extend(f"mended: {one}" for one in told)
    for one in bad:
        mended.rows.append({"table": one.table, "unreadable": one.columns, "row": one.row})
        if not mend_text(connection, one):
            mended.lost.append(f"a row of {one.table}: as it can be read, there is another like it")


def _mend_facts(
    connection: sqlite3.Connection, queries: Queries, home: Path, guessed: set[str], mended: MendingReport
) -> None:
    for name, value in run_transaction(connection, queries, unreadable_rows.damaged_facts(guessed)).items():
        mended.rows.append({"table": FACTS, "unreadable": ["value"], "row": {"name": name, "value": value}})
        mended.found.append(_describe_fact(name))
        secret = _read_secret_from_backups(home / BACKUPS, queries) if name == meta.OWN_SECRET else None
        loss = run_transaction(connection, queries, unreadable_rows.mend_fact(name, secret))
        if loss is None:
            mended.done.append(f"mended: {_describe_fact(name)}")
        else:
            mended.lost.append(f"{_describe_fact(name)}, and {loss}")


def _mend_rows(
    connection: sqlite3.Connection,
    bad: Sequence[unreadable_rows.Unreadable],
    circumstances: unreadable_rows.RepairContext,
    mended: MendingReport,
) -> None:
    lost: list[unreadable_rows.Unreadable] = []
    for one in bad:
        remedy = one.remedy(circumstances)
        mended.rows.append({"table": one.table, "unreadable": one.columns, "row": one.values})
        lost += [one] if remedy.lost else []
        _change_row(connection, one, remedy.values)
    told = _describe_bad_rows(bad)
    mended.found.extend(told)
    mended.done.extend(f"mended: {one}" for one in told)
    mended.lost.extend(_describe_bad_rows(lost))


def _change_row(
    connection: sqlite3.Connection, one: unreadable_rows.Unreadable, values: Mapping[str, Any]
) -> None:
    assigned = ", ".join(f"{quote_name(name)} = ?" for name in values)
    where = " AND ".join(f"{quote_name(name)} = ?" for name in unreadable_rows.key_columns(one.table))
    connection.execute(
        f"UPDATE {quote_name(one.table)} SET {assigned} WHERE {where}",  # noqa: S608 -- names of our schema
        (*values.values(), *one.key),
    )


def _read_snapshot_entries(path: Path) -> dict[str, SessionEntry]:
    """Return the entries of sessions.json, as far as it can be read."""
    try:
        content = parse_snapshot(read_whole_file(path) or b"")
    except (OSError, GatewaySessionsError):
        return {}
    return {entry.session_key: entry for entry in content.entries}


def _read_secret_from_backups(folder: Path, queries: Queries) -> bytes | None:
    for path in backups_in(folder):
        try:
            with closing(open_read_only(path)) as copy:
                if secret := run_transaction(copy, queries, meta.install_secret()):
                    return secret
        except (sqlite3.Error, GatewaySessionsError):
            continue
    return None


def _describe_fact(name: str) -> str:
    return f"the fact {name!r} about the store cannot be read"


def _describe_bad_rows(bad: Iterable[unreadable_rows.Unreadable]) -> list[str]:
    return _one_line_per_column((one.table, column, one.name) for one in bad for column in one.columns)


def _describe_damaged_texts(bad: Iterable[DamagedTextRow]) -> list[str]:
    return _one_line_per_column(
        (one.table, f"{column} as text", one.name) for one in bad for column in one.columns
    )


def _one_line_per_column(bad: Iterable[tuple[str, str, str]]) -> list[str]:
    """Return one line for each column, with an example."""
    names: defaultdict[str, list[str]] = defaultdict(list)
    for table, column, name in bad:
        names[f"of {table} of which {column} cannot be read"].append(name)
    return [
        counted_with_example(len(found), f"row {what}", f"rows {what}", found[0])
        for what, found in names.items()
    ]
