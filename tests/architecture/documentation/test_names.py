"""The page of names: each row leads to something that is there, and no name of Hermes is missing."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import gateway_sessions
from gateway_sessions.cli.app import command_line
from tests.architecture.sources import PUBLIC_MODULES

ROOT = Path(__file__).parents[3]
REFERENCE = ROOT / "docs" / "reference"
NONE = "—"
KNOWN = (ROOT / "tests" / "data" / "names_of_hermes.txt").read_text("utf-8").splitlines()


@cache
def rows() -> list[tuple[str, str, str]]:
    """Return the cells of all tables of the page, without the marks of code."""
    lines = (REFERENCE / "names.md").read_text("utf-8").splitlines()
    cells = [
        tuple(one.strip() for one in line.strip("|").split("|")) for line in lines if line.startswith("| ")
    ]
    return [(cell[0].strip("`"), cell[1], cell[2]) for cell in cells if len(cell) == 3 and cell[0] != "There"]


@cache
def page(name: str) -> str:
    return (REFERENCE / name).read_text("utf-8")


def commands() -> set[str]:
    """Return all commands of the command line, as they are typed."""
    found: set[str] = set()
    for name, command in command_line().commands.items():
        found.add(f"gsess {name}")
        found |= {f"gsess {name} {inner}" for inner in getattr(command, "commands", {})}
    return found


def there(target: str) -> bool:
    """Return whether a name of this package leads to anything."""
    if target.startswith("gsess "):
        return target in commands()
    if target.startswith("/"):
        return re.search(rf"`{re.escape(target)}[ `]", page("commands.md")) is not None
    if target.startswith("gateway_sessions."):
        return import_module(target) is not None
    documented = f"| `{target}`" in page("config.md") or f"| `{target}` |" in page("files.md")
    return documented or is_public(target)


def is_public(target: str) -> bool:
    """Return whether a public class, function or member is called so."""
    first, *rest = target.split(".")
    home = next((one for one in (gateway_sessions, *PUBLIC_MODULES) if first in one.__all__), None)
    found: Any = getattr(home, first, None)
    for name in rest:
        fields = {
            *dir(found),
            *getattr(found, "__annotations__", ()),
            *getattr(found, "__struct_fields__", ()),
        }
        if name not in fields:
            return False
        found = getattr(found, name, None)
    return home is not None


@pytest.mark.parametrize(("name", "here", "remark"), rows(), ids=[row[0] for row in rows()])
def test_each_row_leads_to_something_or_says_why_there_is_nothing(name: str, here: str, remark: str) -> None:
    if here == NONE:
        assert remark, name
        return
    assert re.fullmatch(r"`[^`]+`", here), name
    assert there(here.strip("`")), f"{name}: nothing here is called {here}"
    for mentioned in re.findall(r"`([A-Z]\w+(?:\.\w+)?)`", remark):
        assert there(mentioned) or mentioned.isupper(), f"{name}: nothing here is called {mentioned}"


def test_every_name_of_hermes_documents_stands_once_on_the_page() -> None:
    on_the_page = [row[0] for row in rows()]
    assert sorted(on_the_page) == sorted(set(on_the_page))
    assert set(KNOWN) - set(on_the_page) == set()
    assert set(on_the_page) - set(KNOWN) == set()


@pytest.mark.parametrize(
    "target", ["SessionStore.nowhere", "nowhere", "gsess nowhere", "/nowhere", "nowhere.json"]
)
def test_what_is_not_there_is_noticed(target: str) -> None:
    assert not there(target)
