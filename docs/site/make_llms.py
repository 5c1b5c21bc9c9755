"""Write llms.txt, the list of the documentation for models: `python docs/site/make_llms.py`."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from navigation import ROOT, Section, sections

PROJECT = (
    ("README.md", "What the package is, a first program, and what is promised."),
    ("ARCHITECTURE.md", "The tree with a sentence for each package, and where a change belongs."),
    ("CONTRIBUTING.md", "How to set up, test and hand in a change."),
    ("SECURITY.md", "How to report a weakness, and what counts as one."),
    ("CHANGELOG.md", "What changed for users, version by version."),
    ("config.example.yaml", "Every setting with its default."),
)
EXAMPLES = "examples"


def llms(prefix: str = "docs/", *, with_project: bool = True) -> str:
    """Return the list, with the pages of the documentation below *prefix*."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    parts = ["# gateway_sessions", f"> {project['description']}"]
    if with_project:
        parts.append("\n".join(_project()))
    parts += ["\n".join(_lines(section, prefix)) for section in sections()]
    return "\n\n".join(parts) + "\n"


def _project() -> list[str]:
    lines = ["## Project", ""]
    lines += [f"- [{name}]({name}): {told}" for name, told in PROJECT if (ROOT / name).exists()]
    for path in sorted((ROOT / EXAMPLES).glob("*.py")):
        told = path.read_text(encoding="utf-8").split('"""')[1].split("\n\n")[0]
        lines.append(f"- [{EXAMPLES}/{path.name}]({EXAMPLES}/{path.name}): {' '.join(told.split())}")
    return lines


def _lines(section: Section, prefix: str) -> list[str]:
    pages = [f"- [{page.title}]({prefix}{page.path}): {page.sentence}" for page in section.all_pages()]
    return [f"## {section.title}", "", *pages]


if __name__ == "__main__":
    (ROOT / "llms.txt").write_text(llms(), encoding="utf-8")
