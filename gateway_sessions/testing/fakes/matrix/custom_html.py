"""The rules of `org.matrix.custom.html`, as the specification lists them for clients."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Final
from urllib.parse import urlsplit

DEEPEST: Final = 100
"""Clients may cut off what is nested deeper."""
_VOID: Final = frozenset({"hr", "br", "img"})
_TAGS: Final = _VOID.union(
    ("del", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "p", "a", "ul", "ol", "sup", "sub", "li"),
    ("b", "i", "u", "strong", "em", "s", "code", "div", "table", "thead", "tbody", "tr", "th", "td"),
    ("caption", "pre", "span", "details", "summary"),
)
_ATTRIBUTES: Final = {
    "span": {"data-mx-bg-color", "data-mx-color", "data-mx-spoiler", "data-mx-maths"},
    "a": {"href", "target"},
    "img": {"width", "height", "alt", "title", "src"},
    "ol": {"start"},
    "code": {"class"},
    "div": {"data-mx-maths"},
}
_SCHEMES: Final = frozenset({"https", "http", "ftp", "mailto", "magnet"})


def html_problems(formatted_body: str) -> list[str]:
    """Return what clients would not show of a text as its author meant it; none if all is well."""
    check = _HtmlCheck()
    check.feed(formatted_body)
    check.close()
    return [*check.problems, *(f"<{tag}> is not closed" for tag in check.open_tags)]


class _HtmlCheck(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.problems: list[str] = []
        self.open_tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _TAGS:
            self.problems.append(f"<{tag}> is not allowed")
        for name, value in attrs:
            self._check_attribute(tag, name, value or "")
        if tag not in _VOID:
            self.open_tags.append(tag)
        if len(self.open_tags) > DEEPEST:
            self.problems.append(f"<{tag}> is nested too deep")

    def handle_endtag(self, tag: str) -> None:
        if not self.open_tags or self.open_tags[-1] != tag:
            self.problems.append(f"</{tag}> closes nothing")
        else:
            self.open_tags.pop()

    def handle_data(self, data: str) -> None:
        if any(sign in data for sign in "<&"):
            self.problems.append(f"{data[:40]!r} is not escaped")

    def _check_attribute(self, tag: str, name: str, value: str) -> None:
        if name not in _ATTRIBUTES.get(tag, ()):
            self.problems.append(f"<{tag} {name}> is not allowed")
        elif name == "href" and urlsplit(value).scheme not in _SCHEMES:
            self.problems.append(f"an address with {urlsplit(value).scheme!r} is not allowed")
        elif name == "src" and not value.startswith("mxc://"):
            self.problems.append("an image from outside of Matrix is not allowed")
        elif name == "class" and not all(one.startswith("language-") for one in value.split()):
            self.problems.append(f"the class {value!r} is not allowed")
