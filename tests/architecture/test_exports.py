"""`__all__` is the public surface, complete and true. Its order is ruff's business (RUF022)."""

import ast
from collections.abc import Iterator
from types import ModuleType

import gateway_sessions
from tests.architecture.sources import modules


def exported(package: ModuleType) -> list[str]:
    return list(getattr(package, "__all__", []))


def imported_names(tree: ast.Module) -> Iterator[str]:
    """Yield the public names that the module's top-level imports bind."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module != "__future__":
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                if not name.startswith("_"):
                    yield name


def test_every_public_name_can_be_imported():
    missing = [name for name in exported(gateway_sessions) if not hasattr(gateway_sessions, name)]
    assert missing == []


def test_no_public_name_is_listed_twice():
    names = exported(gateway_sessions)
    assert sorted(names) == sorted(set(names))


def test_everything_that_the_package_imports_is_public():
    init = next(module for module in modules() if module.name == "public.py")
    assert sorted(set(imported_names(init.tree)) - set(exported(gateway_sessions))) == []
