"""`__all__` is the public surface, complete and true. Its order is ruff's business (RUF022)."""

import ast
import subprocess
import sys
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
    init = next(module for module in modules() if module.name == "_public.py")
    assert sorted(set(imported_names(init.tree)) - set(exported(gateway_sessions))) == []


def test_a_part_that_is_imported_by_its_module_brings_along_what_it_needs_only():
    """`from gateway_sessions import errors` means a module, not a reason to load all public names."""
    code = "import gateway_sessions.runtime.store.control, sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert "gateway_sessions.errors" in loaded.split()
    assert "gateway_sessions._public" not in loaded.split()
