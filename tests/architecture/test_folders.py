"""The shape of the tree: sizes of folders, imports of a module, names of classes, tables of contents."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

from tests.architecture.sources import Module, modules

FOLDER_MODULES = 15
TESTS = Path(__file__).parents[1]
PRESCRIBED = {"__init__.py", "__main__.py", "conftest.py"}
"""Names of files that Python and pytest prescribe; they do not count."""
MODULE_IMPORTS = 25
GATHERS = {
    "_public.py",
    "blocking/_generated_database.py",
    "blocking/_generated_store.py",
    "testing/inside.py",
}
"""They hand out names of others, or are made from what is public."""


def folder_of(name: str) -> str:
    return str(PurePosixPath(name).parent)


def is_package(name: str) -> bool:
    return PurePosixPath(name).name == "__init__.py"


def known_modules(module: Module) -> set[str]:
    """Return the modules of the package that *module* imports, wherever the import stands."""
    names = {one.name for one in modules()}
    return {
        found
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "gateway_sessions"
        for found in imported(node, names)
    }


def imported(node: ast.ImportFrom, names: set[str]) -> Iterator[str]:
    base = (node.module or "").replace(".", "/").removeprefix("gateway_sessions").strip("/")
    for alias in node.names:
        candidates = (f"{base}/{alias.name}.py", f"{base}/{alias.name}/__init__.py", f"{base}.py")
        known = next((one.lstrip("/") for one in candidates if one.lstrip("/") in names), None)
        yield known or f"{base}/__init__.py".lstrip("/")


def test_no_folder_has_more_than_fifteen_modules():
    sizes = Counter(folder_of(one.name) for one in modules() if not is_package(one.name))
    assert {folder: size for folder, size in sizes.items() if size > FOLDER_MODULES} == {}


def test_no_folder_of_tests_has_more_than_fifteen_files():
    files = [one for one in TESTS.rglob("*.py") if one.name not in PRESCRIBED]
    sizes = Counter(one.parent.relative_to(TESTS).as_posix() for one in files)
    assert {folder: size for folder, size in sizes.items() if size > FOLDER_MODULES} == {}


def test_no_module_knows_more_than_twenty_five_others():
    counts = {one.name: len(known_modules(one)) for one in modules() if one.name not in GATHERS}
    above = {name: count for name, count in counts.items() if count > MODULE_IMPORTS}
    assert above == {}


def test_no_two_modules_have_a_class_of_one_name():
    found: dict[str, list[str]] = {}
    for module in modules():
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(module.name)
    assert {name: homes for name, homes in found.items() if len(homes) > 1} == {}


def sentence_of(module: Module) -> str:
    """Return the first paragraph of a module's docstring, on one line."""
    docstring = ast.get_docstring(module.tree) or ""
    return " ".join(docstring.partition("\n\n")[0].split())


def contents_of(package: Module) -> dict[str, str]:
    """Return what the table of contents of a package says of each of its modules."""
    docstring = " ".join((ast.get_docstring(package.tree) or "").split())
    entries = docstring.split("- ``")[1:]
    return {name: sentence.strip() for name, _, sentence in (one.partition("``: ") for one in entries)}


def expected_contents(package: Module) -> dict[str, str]:
    folder = folder_of(package.name)
    found: dict[str, str] = {}
    for one in modules():
        path = PurePosixPath(one.name)
        inner = path.parent if is_package(one.name) else path
        if one is not package and str(inner.parent) == folder:
            found[inner.stem] = sentence_of(one)
    return found


PACKAGES = [one for one in modules() if is_package(one.name) and folder_of(one.name) != "."]


@pytest.mark.parametrize("package", PACKAGES, ids=lambda one: folder_of(one.name))
def test_the_table_of_contents_of_a_package_has_the_sentence_of_each_module(package: Module):
    assert contents_of(package) == expected_contents(package)
