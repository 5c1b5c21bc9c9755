"""Writes the tree of packages and modules into ARCHITECTURE.md: run it after adding, moving or removing one.

python docs/reference/make_architecture.py
"""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "ARCHITECTURE.md"
PACKAGE = ROOT / "gateway_sessions"
BEGIN, END = "<!-- tree -->\n", "<!-- /tree -->\n"


def sentence_of(path: Path) -> str:
    """Return the first paragraph of a module's docstring on one line."""
    docstring = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    return " ".join(docstring.partition("\n\n")[0].split()).replace("|", "\\|")


def row_of(folder: Path) -> str:
    """Return the row of a package: its name, its sentence, and links to its modules."""
    modules = sorted(one for one in folder.glob("*.py") if one.name != "__init__.py")
    links = " · ".join(f"[`{one.stem}`]({one.relative_to(ROOT).as_posix()})" for one in modules)
    return f"| `{folder.relative_to(ROOT).as_posix()}/` | {sentence_of(folder / '__init__.py')} | {links} |"


def tree() -> str:
    """Return the table of all packages, each before the packages inside it."""
    folders = sorted(one.parent for one in PACKAGE.rglob("__init__.py"))
    return "\n".join(["| Package | What it holds | Modules |", "|---|---|---|", *map(row_of, folders)]) + "\n"


def page() -> str:
    """Return ARCHITECTURE.md with the tree as it is now."""
    text = PAGE.read_text("utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    return before + BEGIN + tree() + END + after


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
