"""What Telegram makes of a text: its HTML, parsed as strictly as the Bot API does, and what it finds."""

from __future__ import annotations

import html
import re
from typing import Any, Final

from gateway_sessions.testing.fakes.telegram.refusals import bad_request

MOST_ENTITIES: Final = 100

_KINDS: Final = {
    **{"b": "bold", "strong": "bold", "i": "italic", "em": "italic", "u": "underline", "ins": "underline"},
    **{"s": "strikethrough", "strike": "strikethrough", "del": "strikethrough", "tg-spoiler": "spoiler"},
    **{"span": "spoiler", "a": "text_link", "code": "code", "pre": "pre", "blockquote": "blockquote"},
}
_TAG: Final = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9-]*)([^<>]*)>")
_ATTRIBUTE: Final = re.compile(r"\s*([a-z-]+)(?:=(?:\"([^\"]*)\"|'([^']*)'))?")
_CHARACTER: Final = re.compile(r"&(?:lt|gt|amp|quot|#\d+|#x[0-9a-fA-F]+);")
_FOUND: Final = re.compile(
    r"(?P<bot_command>(?<![\w/])/[a-zA-Z0-9_]{1,32}(?:@\w{3,32})?)"
    r"|(?P<mention>(?<!\w)@\w{4,32})"
    r"|(?P<url>https?://[^\s<>]+)"
)


def utf16_length(text: str) -> int:
    """Return the length in which Telegram counts."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def found_entities(text: str) -> list[dict[str, Any]]:
    """Return the commands, mentions and addresses that Telegram finds in a text."""
    return [
        {
            "type": found.lastgroup,
            "offset": utf16_length(text[: found.start()]),
            "length": utf16_length(found[0]),
        }
        for found in _FOUND.finditer(text)
    ]


def parse_html(markup: str) -> tuple[str, list[dict[str, Any]]]:
    """Return the text and the entities of HTML; a refusal in Telegram's words if it cannot be parsed."""
    parser = _HtmlParser(markup)
    parser.parse()
    return parser.text, parser.entities[:MOST_ENTITIES]


class _HtmlParser:
    """The text and the entities of some HTML, as far as it was read."""

    def __init__(self, markup: str) -> None:
        self._markup = markup
        self._open: list[tuple[str, dict[str, Any]]] = []
        self.text = ""
        self.entities: list[dict[str, Any]] = []

    def parse(self) -> None:
        """Read it all."""
        at = 0
        while at < len(self._markup):
            if self._markup[at] == "<":
                at = self._read_tag(at)
            elif character := _CHARACTER.match(self._markup, at):
                self.text += html.unescape(character[0])
                at = character.end()
            else:
                self.text += self._markup[at]
                at += 1
        if self._open:
            raise self._unparsed(f'Can\'t find end tag corresponding to start tag "{self._open[-1][0]}"')
        self.entities.sort(key=lambda one: (one["offset"], -one["length"]))

    def _read_tag(self, at: int) -> int:
        offset = len(self._markup[:at].encode())
        tag = _TAG.match(self._markup, at)
        if tag is None:
            raise self._unparsed(f"Unclosed start tag at byte offset {offset}")
        name = tag[2].lower()
        if tag[1]:
            self._close(name, offset)
        else:
            self._begin(name, tag[3], offset)
        return tag.end()

    def _begin(self, name: str, rest: str, offset: int) -> None:
        attributes = {one[1]: html.unescape(one[2] or one[3] or "") for one in _ATTRIBUTE.finditer(rest)}
        if name not in _KINDS or (name == "span" and attributes.get("class") != "tg-spoiler"):
            raise self._unparsed(f'Unsupported start tag "{name}" at byte offset {offset}')
        if name == "blockquote" and any(one == "blockquote" for one, _ in self._open):
            raise self._unparsed(f"Blockquote entity can't be nested at byte offset {offset}")
        entity: dict[str, Any] = {"type": _KINDS[name], "offset": utf16_length(self.text)}
        if name == "a":
            entity["url"] = attributes.get("href", "")
        if name == "code" and self._open and self._open[-1][0] == "pre" and "class" in attributes:
            self._open[-1][1]["language"] = attributes["class"].removeprefix("language-")
        self._open.append((name, entity))

    def _close(self, name: str, offset: int) -> None:
        if not self._open:
            raise self._unparsed(f"Unexpected end tag at byte offset {offset}")
        opened, entity = self._open.pop()
        if opened != name:
            problem = f'Unmatched end tag at byte offset {offset}, expected "</{opened}>", found "</{name}>"'
            raise self._unparsed(problem)
        length = utf16_length(self.text) - entity["offset"]
        within_pre = name == "code" and self._open and self._open[-1][0] == "pre"
        if length and not within_pre:
            self.entities.append({**entity, "length": length})

    @staticmethod
    def _unparsed(problem: str) -> Exception:
        return bad_request(f"can't parse entities: {problem}")
