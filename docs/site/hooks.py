"""What MkDocs asks while it builds the site: which pages there are beside docs/, and where links lead.

The first page is the repository's README.md, docs/README.md is the table of contents, other pages of the root
stand under "Project", and a file that any page links to has a page that shows it.
"""

from __future__ import annotations

import logging
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import links
import navigation
from api_pages import api_pages
from make_llms import llms
from markdown_it import MarkdownIt
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

log = logging.getLogger("mkdocs.hooks.site")
"""A warning here ends a build with `--strict`."""

ROOT = navigation.ROOT
CONTENTS = "contents.html"
LANGUAGES = {".py": "python", ".yaml": "yaml", ".yml": "yaml", ".toml": "toml", ".sql": "sql"}
COUNTED = ("h1", "h2", "h3", "h4", "li", "tr", "td", "pre", "img", "a", "em", "strong")

_origins: dict[str, str] = {}
"""Where the pages come from that do not stand in docs/: place on the site → path in the repository."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Make the navigation: the sections of the index, the code, the project."""
    sections = [{section.title: _entries(section)} for section in navigation.sections()]
    # The pages about the code and the project are known once the files are: see `on_files`.
    config.nav = [{"Home": "index.md"}, {"Contents": navigation.INDEX}, *sections]
    return config


def _entries(section: navigation.Section) -> list[Any]:
    entries: list[Any] = []
    for page in section.pages:
        if page.path == navigation.DECISIONS:
            decisions = [{one.title: one.path} for one in navigation.decisions()]
            entries.append({page.title: [page.path, *decisions]})
        else:
            entries.append({page.title: page.path})
    return entries + [{one.title: _entries(one)} for one in section.sections]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that do not stand in docs/, and finish the navigation with them."""
    contents = files.src_uris[navigation.INDEX]
    contents.name, contents.dest_uri, contents.url = "contents", CONTENTS, CONTENTS  # README.md is index.html
    api = api_pages(ROOT)
    for place, (_, text) in api.items():
        files.append(File.generated(config, place, content=text))
    config.nav.append({"API": [{title: place} for place, (title, _) in api.items()]})
    _add(files, config, "README.md")
    for page in list(files.documentation_pages()):
        if not page.src_uri.startswith("api/"):
            _follow(files, config, page.content_string, _origins.get(page.src_uri, f"docs/{page.src_uri}"))
    for name in links.PROJECT_PAGES:
        if (ROOT / name).exists():
            _add(files, config, name)
    project = [place for place, origin in _origins.items() if origin in links.PROJECT_PAGES]
    config.nav.append({"Project": sorted(project)})
    files.append(File.generated(config, links.LLMS, content=llms("", with_project=False)))
    return files


def _follow(files: Files, config: MkDocsConfig, text: str, origin: str) -> None:
    for target in links.links_in(text, origin):
        outside = not target.startswith("docs/") or target.endswith(".py")
        if outside and target != links.LLMS and (ROOT / target).exists():
            _add(files, config, target)


def _add(files: Files, config: MkDocsConfig, origin: str) -> None:
    """Show a file or folder of the repository, and what it links to itself."""
    place = links.place_on_site(origin)
    if place in _origins and files.get_file_from_path(place) is not None:
        return
    _origins[place] = origin
    path = ROOT / origin
    if place.startswith("source/"):
        text = _folder(path) if path.is_dir() else _source(path)
        files.append(File.generated(config, place, content=f"---\nsearch:\n  exclude: true\n---\n{text}"))
    else:
        text = path.read_text(encoding="utf-8")
        files.append(File.generated(config, place, content=text))
        _follow(files, config, text, origin)


def _source(path: Path) -> str:
    language = LANGUAGES.get(path.suffix, "text")
    content = path.read_text(encoding="utf-8")
    return f"# `{path.relative_to(ROOT).as_posix()}`\n\n``````{language}\n{content}\n``````\n"


def _folder(path: Path) -> str:
    names = sorted(
        f"{one.name}/" if one.is_dir() else one.name for one in path.iterdir() if one.name[0] != "_"
    )
    return f"# `{path.relative_to(ROOT).as_posix()}/`\n\n" + "\n".join(f"- `{name}`" for name in names) + "\n"


def on_page_markdown(markdown: str, *, page: Page, **_: Any) -> str:
    """Let links lead to where the site shows what they mean."""
    place = page.file.src_uri
    if place in ("index.md", navigation.INDEX):
        page.meta["hide"] = ["navigation"]  # it would have one line
    if place.startswith(("api/", "source/")):
        return markdown
    return links.rewritten(markdown, _origins.get(place, f"docs/{place}"), place)


def on_page_content(html: str, *, page: Page, **_: Any) -> str:
    """Warn of a page that reads differently here and on a code host."""
    if not page.file.src_uri.startswith(("api/", "source/")):
        elsewhere = MarkdownIt("commonmark").enable("table").render(page.markdown or "")
        ours, theirs = counted(html), counted(elsewhere)
        if ours != theirs:
            log.warning("%s: %s here, %s on a code host", page.file.src_uri, ours - theirs, theirs - ours)
    return html


def on_post_build(*, config: MkDocsConfig) -> None:
    """Put the source of each page beside it, where llms.txt says that it is."""
    for section in navigation.sections():
        for page in section.all_pages():
            target = Path(config.site_dir, page.path)
            target.write_bytes((navigation.DOCS / page.path).read_bytes())


class _Counter(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: Counter[str] = Counter()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        to_itself = (dict(attrs).get("href") or "").startswith("#__") or dict(attrs).get(
            "class"
        ) == "headerlink"
        if tag in COUNTED and not to_itself:
            self.found[tag] += 1


def counted(html: str) -> Counter[str]:
    """Return how many there are of each element that a reader would miss."""
    counter = _Counter()
    counter.feed(html)
    return counter.found
