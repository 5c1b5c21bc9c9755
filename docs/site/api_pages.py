"""The pages about the code: which names have one, and which names stand on it. The text is the code's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import griffe
from navigation import ERRORS, MODULES, PACKAGE

LARGE = 8
"""Whatever has as many public methods gets a page of its own: a reader looks for them, not for it."""


def api_pages(root: Path) -> dict[str, tuple[str, str]]:
    """Return path → (title, text) of each page; *root* is the folder that has the package."""
    package = griffe.load(PACKAGE, search_paths=[root], allow_inspection=False)
    names = sorted(_root_names(package), key=str.lower)
    errors = [name for name in names if _is_error(package[name])]
    large = [name for name in names if name not in errors and len(_methods(package[name])) >= LARGE]
    small = [name for name in names if name not in errors and name not in large]
    pages = {f"api/{PACKAGE}.md": (PACKAGE, _root_page(package, large, small))}
    for name in large:
        pages[f"api/{name}.md"] = (name, _shown(f"{PACKAGE}.{name}", 1))
    for path in MODULES:
        module = package[path.removeprefix(f"{PACKAGE}.")]
        text = _errors_page(module, errors) if path == ERRORS else _shown(path, 1)
        pages[f"api/{path}.md"] = (path.removeprefix(f"{PACKAGE}."), text)
    return pages


def _root_names(package: griffe.Module) -> list[str]:
    listed = package.exports or package["_public"].exports or []
    return [str(name) for name in listed]


def _is_error(shown: griffe.Object) -> bool:
    return shown.is_class and shown.name.endswith("Error")


def _methods(shown: griffe.Object) -> list[str]:
    if not shown.is_class:
        return []
    return [
        name for name, member in shown.all_members.items() if member.is_function and not name.startswith("_")
    ]


def _shown(path: str, level: int) -> str:
    # The tests of a contract are inherited, and far too many for a page.
    inherited = "false" if path.startswith(f"{PACKAGE}.testing.contract") else "true"
    return f"::: {path}\n    options:\n      heading_level: {level}\n      inherited_members: {inherited}\n"


def _root_page(package: griffe.Module, large: list[str], small: list[str]) -> str:
    said = package.docstring.value if package.docstring else ""
    parts = [f"# `{PACKAGE}`", said, "All of these are imported from `gateway_sessions`.", "| | |\n|---|---|"]
    rows = [_row(package, name) for name in (*large, *small)]
    parts[-1] += "\n" + "\n".join(rows)
    parts.append(f"The errors have [a page of their own][{ERRORS}].")
    parts += [_shown(f"{PACKAGE}.{name}", 2) for name in small]
    return "\n\n".join(parts)


def _row(package: griffe.Module, name: str) -> str:
    docstring = package[name].docstring
    first = docstring.value.split("\n\n")[0] if docstring else ""
    return f"| [`{name}`][{PACKAGE}.{name}] | {' '.join(first.split()).replace('|', '&#124;')} |"


def _errors_page(module: griffe.Module, errors: list[str]) -> str:
    here = [name for name, member in module.members.items() if not member.is_alias and member.is_class]
    return "\n\n".join(
        [f"::: {ERRORS}\n    options:\n      heading_level: 1\n      members: false\n", *_each(here, errors)]
    )


def _each(here: list[str], errors: list[str]) -> Iterator[str]:
    for name in here:
        yield _shown(f"{ERRORS}.{name}", 2)
    for name in errors:
        if name not in here:
            yield _shown(f"{PACKAGE}.{name}", 2)
