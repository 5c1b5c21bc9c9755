"""Look through a built site for what a visitor would stumble over: `python docs/site/check.py build/site`.

Links and anchors that lead nowhere are errors, and so is whatever a page would load from another host.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED_BY_LINK = {"stylesheet", "icon", "preload", "preconnect", "dns-prefetch", "modulepreload", "manifest"}
FROM_ELSEWHERE = re.compile(r"url\(\s*['\"]?((?:https?:)?//[^)'\"]+)|@import\s+['\"]((?:https?:)?//[^'\"]+)")


@dataclass
class Document(HTMLParser):
    """One page: the anchors that it has, where its links lead, and what a browser loads for it."""

    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take note of an element."""
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if "src" in found:
            self.loads.append(found["src"])
        if "mermaid" in found.get("class", "").split():
            self.loads.append("https:// (Material for MkDocs fetches Mermaid when a page has a diagram)")
        if "href" in found:
            loaded = tag == "link" and LOADED_BY_LINK & set(found.get("rel", "").split())
            (self.loads if loaded else self.links).append(found["href"])


def problems(site: Path) -> Iterator[str]:
    """Yield a line for each link that leads nowhere, and for each thing that is loaded from elsewhere."""
    documents = {path: _read(path) for path in sorted(site.rglob("*.html"))}
    for path, document in documents.items():
        name = path.relative_to(site)
        for link in [*document.links, *document.loads]:
            if trouble := _trouble(link, path, site, documents):
                yield f"{name}: {link}: {trouble}"
        yield from (
            f"{name}: {link}: loaded from elsewhere" for link in document.loads if _is_elsewhere(link)
        )
    for path in sorted(site.rglob("*.css")):
        for found in FROM_ELSEWHERE.finditer(path.read_text(encoding="utf-8")):
            yield f"{path.relative_to(site)}: {found[1] or found[2]}: loaded from elsewhere"


def _read(path: Path) -> Document:
    document = Document()
    document.feed(path.read_text(encoding="utf-8"))
    return document


def _is_elsewhere(link: str) -> bool:
    parts = urlsplit(link)
    return parts.scheme in ("http", "https") or bool(parts.netloc)


def _trouble(link: str, page: Path, site: Path, documents: dict[Path, Document]) -> str | None:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return None
    target = page
    if parts.path:
        start = site if parts.path.startswith("/") else page.parent
        target = (start / unquote(parts.path).lstrip("/")).resolve()
        target = target / "index.html" if target.is_dir() else target
    if not target.is_relative_to(site):
        return "leads out of the site"
    if not target.is_file():
        return "no such page"
    if parts.fragment and target in documents and unquote(parts.fragment) not in documents[target].anchors:
        return "no such anchor"
    return None


def main(folder: str) -> int:
    """Print what is wrong with the site in *folder*; return 1 if anything is."""
    site = Path(folder).resolve()
    pages = len(list(site.rglob("*.html")))
    found = list(problems(site))
    sys.stdout.writelines(f"{line}\n" for line in found)
    sys.stdout.write(f"{pages} pages, {len(found)} problems; {folder}/index.html is the first page\n")
    return 1 if found or not pages else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
