"""Who calls whom: collaborators are given to constructors, and nobody sets them later from outside."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.architecture.sources import Module, modules

VALUES = {
    ("runtime/duties/cluster.py", "self.membership.lost"),
    ("runtime/gateway/execution.py", "running.context"),
    ("runtime/gateway/running_turn.py", "self.context.messages"),
    ("runtime/gateway/scheduler.py", "running.successor"),
}
"""What somebody knows of a turn or of other nodes, and writes down there: nobody is called by it."""


def declared_in(module: Module) -> set[str]:
    """Return the attributes that the classes of a module declare, in their bodies or of themselves."""
    found: set[str] = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
        elif isinstance(node, ast.Attribute) and is_of_self(node):
            found.add(node.attr)
    return found


def is_of_self(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"}


def set_from_outside(module: Module) -> Iterator[str]:
    """Yield the public attributes that a module sets on objects of other modules."""
    own = declared_in(module)
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Store) or is_of_self(node):
            continue
        if not node.attr.startswith("_") and node.attr not in own:
            yield ast.unparse(node)


def test_nobody_in_the_runtime_sets_a_public_attribute_of_an_object_of_another_module():
    of_runtime = [one for one in modules() if one.name.startswith("runtime/")]
    found = {(one.name, target) for one in of_runtime for target in set_from_outside(one)}
    assert found == VALUES
