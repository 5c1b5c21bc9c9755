"""Columns are read by their names, and never by their places, as in `row[2]`."""

import ast

from tests.architecture.sources import Module, modules

FOLDERS = ("storage/transactions/", "storage/tables/")
ROWS = {"row", "rows", "found", "one", "last", "item", "items"}
"""How the variables are called that hold rows."""


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


def test_no_module_reads_columns_by_their_places():
    counts = {one.name: columns_by_place(one) for one in modules() if one.name.startswith(FOLDERS)}
    assert {name: count for name, count in counts.items() if count} == {}


def test_a_column_is_told_from_a_row():
    found = ast.parse(
        "row[2], rows[0][1], rows[-1][0], totals[0][0], rows[0], row.owner, rows[0].owner, parts[1], row[1:]"
    )
    assert sum(map(reads_a_column, ast.walk(found))) == 5
