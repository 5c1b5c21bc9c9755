"""ARCHITECTURE.md names every package and module that there is, and no other."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "ARCHITECTURE.md"
SCRIPT = ROOT / "docs" / "reference" / "make_architecture.py"
LINK = re.compile(r"\]\((gateway_sessions/[\w/]+\.py)\)")


def test_the_tree_on_the_page_is_the_tree():
    made = runpy.run_path(str(SCRIPT))["page"]()
    assert made == PAGE.read_text("utf-8"), "run: python docs/reference/make_architecture.py"


def test_every_module_is_named_once_in_the_tree():
    tree = PAGE.read_text("utf-8").split("<!-- tree -->")[1]
    modules = {
        one.relative_to(ROOT).as_posix()
        for one in (ROOT / "gateway_sessions").rglob("*.py")
        if one.name != "__init__.py"
    }
    assert sorted(LINK.findall(tree)) == sorted(modules)
