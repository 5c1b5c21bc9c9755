"""The columns that are looked at are those of the statements, and nothing is lost that need not be."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest

from gateway_sessions.core.instants import to_micros
from gateway_sessions.storage.tables.column_decoding import DAMAGE
from gateway_sessions.storage.tables.sql_files import load_queries
from gateway_sessions.storage.transactions.upkeep import unreadable_rows
from gateway_sessions.storage.transactions.upkeep.copy_store import BEGINNINGS

NOW = datetime(2026, 3, 1, tzinfo=UTC)
CIRCUMSTANCES = unreadable_rows.RepairContext(now=NOW)
EXAMPLES: dict[str, Any] = {
    "outcome": None, "kind": "message", "state": "owed", "platform": "telegram", "account": "",
    "session_key": "lane", "session_id": "s",
}  # fmt: skip
NO_LONGER_OF_THIS_KIND = ("nonsense", 1 << 62)
WITHOUT_FORMS = {"index_changes"}
"""Tables of numbers that may be any."""


@pytest.mark.parametrize("engine", ["sqlite", "postgresql", "mysql"])
@pytest.mark.parametrize("table", unreadable_rows.TABLES)
def test_statements_ask_for_the_columns_in_their_order(table: str, engine: str):
    asked = re.match(r"SELECT (.*?)\s+FROM", load_queries(engine)[f"forms_of_{table}"].sql, re.DOTALL)
    assert asked is not None
    assert tuple(re.split(r",\s+", asked[1])) == unreadable_rows.TABLES[table].columns


def test_every_table_is_looked_at():
    assert set(unreadable_rows.TABLES) == set(BEGINNINGS) - WITHOUT_FORMS


@pytest.mark.parametrize(
    ("table", "column"),
    [(name, column) for name, table in unreadable_rows.TABLES.items() for column in table.forms],
)
def test_what_takes_the_place_of_damage_can_be_read(table: str, column: str):
    columns, known = unreadable_rows.TABLES[table]
    values = {name: EXAMPLES.get(name, 1) for name in columns} | {column: "?"}
    remedy = unreadable_rows.Unreadable(table, (1,), values, (column,)).remedy(CIRCUMSTANCES)
    assert column in remedy.values
    new = remedy.values[column]
    assert new is None or known[column].read(new) is not None


@pytest.mark.parametrize(
    ("table", "column"),
    [(name, column) for name, table in unreadable_rows.TABLES.items() for column in table.forms],
)
def test_every_form_tells_what_it_cannot_read(table: str, column: str):
    read = unreadable_rows.TABLES[table].forms[column].read
    told = 0
    for value in NO_LONGER_OF_THIS_KIND:
        try:
            read(value)
        except DAMAGE:
            told += 1
    assert told


@pytest.mark.parametrize(
    ("kind", "outcome", "becomes"),
    [("message", None, "dead"), ("internal", None, "dead"), ("command", None, "cancelled")],
)
def test_what_waits_and_cannot_be_read_is_settled(kind: str, outcome: str | None, becomes: str):
    values = {"item_id": 1, "kind": kind, "outcome": outcome, "payload": "["}
    remedy = unreadable_rows.Unreadable("inbox", (1,), values, ("payload",)).remedy(CIRCUMSTANCES)
    assert remedy.values["outcome"] == becomes
    assert remedy.values["settled_at"] == to_micros(NOW)


@pytest.mark.parametrize(
    ("table", "values", "column"),
    [
        ("inbox", {"item_id": 1, "kind": "message", "outcome": "turned", "payload": "["}, "payload"),
        (
            "outbox",
            {"reply_id": 1, "platform": "p", "account": "", "state": "sent", "content": "["},
            "content",
        ),
    ],
)
def test_what_is_settled_already_stays_so(table: str, values: dict[str, Any], column: str):
    remedy = unreadable_rows.Unreadable(table, (1,), values, (column,)).remedy(CIRCUMSTANCES)
    assert remedy.values == {column: None}


def test_a_message_keeps_what_can_be_read():
    values = {"message_id": 7, "parts": "[", "extra": "{"}
    one = unreadable_rows.Unreadable("messages", (7,), values, ("parts", "extra"))
    assert one.remedy(CIRCUMSTANCES) == unreadable_rows.Remedy({"parts": None, "extra": None})
    assert one.name == "7"
