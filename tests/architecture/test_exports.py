"""`__all__` is the public surface, complete and true. Its order is ruff's business (RUF022)."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import gateway_sessions
from gateway_sessions import SessionStore, Turn
from tests.architecture.sources import PUBLIC_MODULES, Module, modules

ROOT_NAMES = 50
"""What a reader of the first page can still look through."""

PLATFORM_LIBRARIES = {"aiogram", "aiohttp", "discord", "httpx2", "jwt", "nio", "slack_bolt", "telegram"}


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


@pytest.mark.parametrize("package", [gateway_sessions, *PUBLIC_MODULES], ids=lambda one: one.__name__)
def test_every_public_name_can_be_imported(package: ModuleType):
    missing = [name for name in exported(package) if not hasattr(package, name)]
    assert missing == []
    assert exported(package) != []


@pytest.mark.parametrize("package", [gateway_sessions, *PUBLIC_MODULES], ids=lambda one: one.__name__)
def test_no_public_name_is_listed_twice(package: ModuleType):
    names = exported(package)
    assert sorted(names) == sorted(set(names))


def test_the_package_itself_hands_out_few_names():
    assert len(exported(gateway_sessions)) <= ROOT_NAMES


def test_a_name_means_one_thing_wherever_it_is_public():
    found: dict[str, object] = {}
    for package in (gateway_sessions, *PUBLIC_MODULES):
        for name in exported(package):
            assert found.setdefault(name, getattr(package, name)) is getattr(package, name), name


@pytest.mark.parametrize(
    "name",
    ["_public", "budgets", "events", "operator", "queue", "search", "sessions", "transcripts", "usage"],
)
def test_everything_that_a_list_of_names_imports_is_public(name: str):
    listed = import_module(f"gateway_sessions.{name}")
    tree = next(module.tree for module in modules() if module.name == f"{name}.py")
    assert sorted(imported_names(tree)) == sorted(exported(listed))


@pytest.mark.parametrize("kind", [SessionStore, Turn], ids=lambda one: one.__name__)
def test_what_users_can_see_of_a_class_is_on_the_page_of_the_api(kind: type):
    page = (Path(__file__).parents[2] / "docs/reference/api.md").read_text("utf-8")
    members = {name for name in dir(kind) if not name.startswith("_")}
    assert {name for name in members if not re.search(rf"`{name}\b", page)} == set()


CONTRACTS = [one for one in modules() if one.name.startswith("testing/contract/")]


@pytest.mark.parametrize("module", CONTRACTS, ids=lambda one: one.name)
def test_a_contract_that_others_inherit_imports_public_names_only(module: Module):
    public = {package.__name__: exported(package) for package in (gateway_sessions, *PUBLIC_MODULES)}
    nodes = [node for node in ast.walk(module.tree) if isinstance(node, ast.ImportFrom)]
    ours = [node for node in nodes if str(node.module).partition(".")[0] == "gateway_sessions"]
    for node in ours:
        if not str(node.module).startswith("gateway_sessions.testing."):
            assert {alias.name for alias in node.names} <= set(public.get(str(node.module), [])), node.module


def test_a_part_that_is_imported_by_its_module_brings_along_what_it_needs_only():
    """`from gateway_sessions import errors` means a module, not a reason to load all public names."""
    code = "import gateway_sessions.runtime.store.control, sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert "gateway_sessions.errors" in loaded.split()
    assert "gateway_sessions._public" not in loaded.split()


NOT_FOR_A_GATEWAY = {
    "croniter",
    "filelock",
    "gateway_sessions.cli",
    "gateway_sessions.core.markdown",
    "gateway_sessions.integrations",
    "gateway_sessions.testing",
    "markdown_it",
    "rich",
    "typer",
    "yaml",
}
"""What a program needs only if it asks for it: each is a part of a second if a computer has much to do."""
AT_FIRST = 330
"""Modules of ours that a gateway and a store bring along. Each takes about a millisecond to load."""


def loaded_with(code: str) -> set[str]:
    """Return the modules that a program has loaded at its end."""
    told = subprocess.run(
        [sys.executable, "-c", f"{code}; import sys; print(*sys.modules)"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return set(told.split())


def test_a_store_and_a_gateway_do_not_bring_along_what_few_programs_use():
    loaded = loaded_with("from gateway_sessions import Gateway, SessionStore")
    assert loaded & NOT_FOR_A_GATEWAY == set()
    assert len({one for one in loaded if one.startswith("gateway_sessions")}) <= AT_FIRST


def test_the_renderer_of_markdown_is_there_before_the_first_message_with_a_dialect():
    """Loading it takes longer than an event loop may stand still."""
    loaded = loaded_with("import gateway_sessions.core.markdown.dialects")
    assert {"gateway_sessions.core.markdown.rendering", "markdown_it"} <= loaded


def test_no_public_name_brings_the_library_of_a_platform_along():
    loaded = loaded_with("import gateway_sessions as gs; [getattr(gs, one) for one in gs.__all__]")
    assert PLATFORM_LIBRARIES & loaded == set()
    assert "gateway_sessions.runtime.gateway.gateway" in loaded
