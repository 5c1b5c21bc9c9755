"""Whoever runs a statement that changes the state of a message or of a reply names the move that it makes."""

import ast
from collections.abc import Iterator

from gateway_sessions.storage.tables.statements import AS_THEY_WERE, FROM_NO_STATE, KEEPS_ITS_STATE, MOVES
from tests.architecture.sources import Module, modules

DECLARED = "storage/tables/statements.py"
NAMING = {"move_statement", "move_items", "_run_moving"}


def statements_in(module: Module, *, named: bool) -> Iterator[str]:
    """The statements that a module runs, within the calls that name a move, or anywhere else."""
    inside, columns = arguments_of(module, NAMING), arguments_of(module, {"record_of"})
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Constant) or node.value not in MOVES or id(node) in columns:
            continue
        if (id(node) in inside) == named:
            yield f"{module.name}: {node.value}"


def arguments_of(module: Module, functions: set[str]) -> set[int]:
    """The nodes within the first argument of each call of these functions."""
    return {
        id(part)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in functions
        for argument in node.args[:1]
        for part in ast.walk(argument)
    }


def runs_statements(module: Module) -> bool:
    """Whether a module makes statements: others may use the same words, as in their log records."""
    names = {node.id for node in ast.walk(module.tree) if isinstance(node, ast.Name)}
    return module.name != DECLARED and bool(names & {"Statement", *NAMING})


def test_no_statement_that_moves_anything_is_run_without_naming_the_move():
    running = filter(runs_statements, modules())
    found = [one for module in running for one in statements_in(module, named=False)]
    assert found == []


def test_each_of_these_statements_is_run_somewhere():
    run = {one.partition(": ")[2] for module in modules() for one in statements_in(module, named=True)}
    assert run == set(MOVES)


def test_a_statement_is_declared_once():
    assert sum(map(len, (MOVES, AS_THEY_WERE, FROM_NO_STATE, KEEPS_ITS_STATE))) == len(
        {*MOVES, *AS_THEY_WERE, *FROM_NO_STATE, *KEEPS_ITS_STATE}
    )
