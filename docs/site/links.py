"""Links of a page, which lead to files of the repository, become links between pages of the site.

A code host shows every file where it lies. The site has pages for docs/, for the pages in the root and for
the files that they link to, and for nothing else.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

PROJECT_PAGES = (
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
)
"""The pages in the root that the site shows beside README.md, which is its first page."""

LLMS = "llms.txt"
PARTS = re.compile(
    r"(?P<code>^(?P<fence>`{3,}|~{3,}).*?^(?P=fence)[ \t]*$|(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`))"
    r"|(?P<before>\]\(\s*|^\[[^\]\n]+\]:[ \t]+|\b(?:src|href)=\")(?P<link>[^)\s\"]+)",
    re.DOTALL | re.MULTILINE,
)
SCHEME = re.compile(r"^[a-z][a-z0-9+.-]*:", re.IGNORECASE)


def target_of(link: str, origin: str) -> str | None:
    """Return the path in the repository that *link* on the page *origin* leads to; None if it leaves it."""
    path = link.partition("#")[0]
    if not path or SCHEME.match(link) or link.startswith("/"):
        return None
    return posixpath.normpath(posixpath.join(posixpath.dirname(origin), path))


def place_on_site(path: str) -> str:
    """Return where the site has what lies at *path* in the repository."""
    docs, _, below = path.partition("/")
    if path == "README.md":
        return "index.md"
    if path == LLMS:
        return LLMS
    if path in PROJECT_PAGES:
        return f"project/{path.lower()}"
    if docs == "docs" and PurePosixPath(path).suffix != ".py":
        return below
    return f"source/{path}.md"


def links_in(text: str, origin: str) -> Iterator[str]:
    """Yield the paths in the repository that the page *origin* with that *text* links to."""
    for part in PARTS.finditer(text):
        if part["link"] is not None and (target := target_of(part["link"], origin)) is not None:
            yield target


def rewritten(text: str, origin: str, place: str) -> str:
    """Return the text of the page *origin* for its *place* on the site, with links between places there."""
    folder = posixpath.dirname(place) or "."

    def replace(part: re.Match[str]) -> str:
        target = None if part["link"] is None else target_of(part["link"], origin)
        if target is None:
            return part[0]
        hash_and_anchor = part["link"][len(part["link"].partition("#")[0]) :]
        return part["before"] + posixpath.relpath(place_on_site(target), folder) + hash_and_anchor

    replacement: Callable[[re.Match[str]], str] = replace
    return PARTS.sub(replacement, text)
