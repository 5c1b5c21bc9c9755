"""Read docs/README.md: the one list of pages, of which the navigation of the site and llms.txt are made."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]
ROOT = DOCS.parent
INDEX = "README.md"
DECISIONS = "explanation/decisions/README.md"

PACKAGE = "gateway_sessions"
ERRORS = f"{PACKAGE}.errors"
MODULES = (
    ERRORS,
    f"{PACKAGE}.config",
    f"{PACKAGE}.sessions",
    f"{PACKAGE}.transcripts",
    f"{PACKAGE}.search",
    f"{PACKAGE}.queue",
    f"{PACKAGE}.events",
    f"{PACKAGE}.usage",
    f"{PACKAGE}.budgets",
    f"{PACKAGE}.operator",
    f"{PACKAGE}.adapters",
    f"{PACKAGE}.adapters.console",
    f"{PACKAGE}.adapters.webhook",
    f"{PACKAGE}.agents",
    f"{PACKAGE}.agents.openai",
    f"{PACKAGE}.blocking",
    f"{PACKAGE}.providers",
    f"{PACKAGE}.testing",
    f"{PACKAGE}.testing.contract",
    f"{PACKAGE}.pytest_plugin",
)
"""The public modules below the package, in the order of the navigation."""

HEADING = re.compile(r"^(##|###) (.+)$")
ENTRY = re.compile(r"^- \[(?P<title>[^\]]+)\]\((?P<path>[^)]+)\): (?P<sentence>.+)$")
DECISION = re.compile(r"^\| \[(?P<number>\d+)\]\((?P<path>[^)]+)\) \| (?P<title>.+) \|$", re.MULTILINE)


@dataclass(frozen=True)
class Page:
    """One page: its title in the navigation, its path below docs/, and what it is for."""

    title: str
    path: str
    sentence: str = ""


@dataclass(frozen=True)
class Section:
    """A heading of the index with its pages, and the headings below it."""

    title: str
    pages: list[Page] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)

    def all_pages(self) -> Iterator[Page]:
        """Yield the pages of this section and of those below it, in order."""
        yield from self.pages
        for section in self.sections:
            yield from section.all_pages()


class IndexFormatError(ValueError):
    """A line of the index is neither a heading nor a page with a sentence."""

    def __init__(self, line: str) -> None:
        super().__init__(f"docs/README.md: {line!r} should be `- [Title](page.md): A sentence.`")


def read_index(text: str) -> list[Section]:
    """Return the sections of the index, in order. Every list item names one page and says what it is for."""
    sections: list[Section] = []
    current = Section("")
    for line in text.splitlines():
        if heading := HEADING.match(line):
            current = Section(heading[2])
            (sections if heading[1] == "##" else sections[-1].sections).append(current)
        elif entry := ENTRY.match(line):
            current.pages.append(Page(entry["title"], entry["path"], entry["sentence"]))
        elif line.lstrip().startswith(("-", "*")):
            raise IndexFormatError(line)
    return sections


def sections() -> list[Section]:
    """Return the sections of docs/README.md."""
    return read_index((DOCS / INDEX).read_text(encoding="utf-8"))


def decisions() -> list[Page]:
    """Return the pages that the index of the decisions lists."""
    folder = DECISIONS.rpartition("/")[0]
    return [
        Page(f"{row['number']}. {row['title']}", f"{folder}/{row['path']}")
        for row in DECISION.finditer((DOCS / DECISIONS).read_text(encoding="utf-8"))
    ]
