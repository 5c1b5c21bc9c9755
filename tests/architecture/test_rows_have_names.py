"""Columns are read by their names: what is left of `row[2]` in the storage, per module."""

import ast
from collections import Counter

from tests.architecture.sources import Module, modules

FOLDERS = ("storage/transactions/", "storage/tables/")
ROWS = {"row", "rows", "found", "one", "last", "item", "items"}
"""How the variables are called that hold rows."""
STILL_BY_PLACE = {
    "storage/tables/entries.py": 1,
    "storage/tables/inbox.py": 2,
    "storage/tables/lanes.py": 4,
    "storage/tables/meta.py": 2,
    "storage/tables/moves.py": 1,
    "storage/tables/tombstones.py": 1,
    "storage/transactions/queue/admit.py": 2,
    "storage/transactions/queue/lane_and_queue_lookup.py": 3,
    "storage/transactions/queue/clock_set_back.py": 1,
    "storage/transactions/queue/slash_commands.py": 8,
    "storage/transactions/queue/edits.py": 2,
    "storage/transactions/queue/erasure.py": 7,
    "storage/transactions/queue/outbox.py": 15,
    "storage/transactions/queue/recover.py": 3,
    "storage/transactions/queue/settle.py": 2,
    "storage/transactions/queue/turn_rows.py": 4,
    "storage/transactions/queue/waiting.py": 19,
    "storage/transactions/search/hits.py": 6,
    "storage/transactions/search/scan.py": 32,
    "storage/transactions/sessions/find_or_create.py": 1,
    "storage/transactions/sessions/session_rows.py": 18,
    "storage/transactions/sessions/split.py": 1,
    "storage/transactions/transcripts/messages.py": 2,
    "storage/transactions/transcripts/rewind.py": 1,
    "storage/transactions/transfer/import_entries.py": 3,
    "storage/transactions/transfer/import_session.py": 25,
    "storage/transactions/upkeep/copy_store.py": 1,
    "storage/transactions/upkeep/unreadable_rows.py": 1,
}
"""Columns that are read by their places. None may be added."""


def is_place(node: ast.expr) -> bool:
    """Whether a subscript is a number, or a part that begins or ends at a number."""
    if isinstance(node, ast.Slice):
        return any(is_place(end) for end in (node.lower, node.upper) if end is not None)
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


def reads_a_column(node: ast.AST) -> bool:
    """Whether an expression is `row[2]` or `rows[0][2]`, and not `rows[0]`, which is a row."""
    if not (isinstance(node, ast.Subscript) and is_place(node.slice)):
        return False
    of = node.value
    if isinstance(of, ast.Name):
        return of.id in ROWS - {"rows", "found", "items"}
    return isinstance(of, ast.Subscript) and is_place(of.slice) and isinstance(of.value, ast.Name)


def columns_by_place(module: Module) -> int:
    return sum(reads_a_column(node) for node in ast.walk(module.tree))


def test_no_module_reads_more_columns_by_their_places():
    counts = Counter({one.name: columns_by_place(one) for one in modules() if one.name.startswith(FOLDERS)})
    assert {name: count for name, count in counts.items() if count} == STILL_BY_PLACE


def test_a_column_is_told_from_a_row():
    found = ast.parse(
        "row[2], rows[0][1], rows[-1][0], totals[0][0], rows[0], row.owner, rows[0].owner, parts[1], row[1:]"
    )
    assert sum(map(reads_a_column, ast.walk(found))) == 5
