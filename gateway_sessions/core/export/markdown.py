"""Sessions as Markdown in which nothing that was said can pose as a heading of ours.

Texts of people and models keep their own markup, except markup that could pose as ours: headings and HTML are
escaped, and an open code block is closed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from gateway_sessions.core.export.page_texts import (
    Exported,
    Piece,
    PieceKind,
    calls,
    facts,
    line,
    marks,
    moment,
    name_of,
    pieces,
    pretty,
    speaker,
    thoughts,
)

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_POSES = re.compile(r"( {0,3})(#{1,6}(?=[ \t]|$)|=+[ \t]*$|-{3,}[ \t]*$|\*{3,}[ \t]*$|_{3,}[ \t]*$)")
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_TICKS = re.compile("`+")
_SPECIAL = re.compile(r"([\\`*_\[\]<>#|!~&])")
_QUOTED: Final = "> "


class Markdown:
    """Writes sessions one under another."""

    def __init__(self) -> None:
        self._first = True

    def begin_file(self) -> bytes:
        """Return the beginning of the file, which is empty."""
        return b""

    def begin_session(self, session: Exported) -> bytes:
        """Return a heading and the facts of the session."""
        rule = "" if self._first else "\n---\n\n"
        self._first = False
        table = "\n".join(f"- {name}: {_value(value)}" for name, value in facts(session))
        prompt = session.get("system_prompt")
        prompt_block = f"\n{_folded('System prompt', prompt)}" if isinstance(prompt, str) and prompt else ""
        return f"{rule}# {escaped(name_of(session))}\n\n{table}\n{prompt_block}".encode()

    def messages(self, page: Sequence[Exported]) -> bytes:
        """Return some of the session's messages."""
        return "".join(map(_message, page)).encode()

    def end_session(self) -> bytes:
        """Return the end of the session, which is empty."""
        return b""

    def end_file(self) -> bytes:
        """Return the end of the file, which is empty."""
        return b""


def escaped(text: str) -> str:
    """Return the text on one line without any markup."""
    return _SPECIAL.sub(r"\\\1", line(text))


def fenced(text: str, language: str = "") -> str:
    """Return the text as a code block that no line of it can end."""
    longest = max((len(run) for run in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}\n"


def contained(text: str) -> str:
    """Return the text with its markup, but unable to begin a section of its own."""
    lines: list[str] = []
    fence = ""
    for one in text.split("\n"):
        found = _FENCE.fullmatch(one)
        if fence:
            closes = found and found[1].startswith(fence) and not found[2].strip()
            fence = "" if closes else fence
            lines.append(one)
        elif found and not (found[1][0] == "`" and "`" in found[2]):
            fence = found[1]
            lines.append(one)
        else:
            lines.append(_POSES.sub(r"\1\\\2", _TAG.sub("&lt;", one)))
    return "\n".join([*lines, fence] if fence else lines)


def _value(text: str) -> str:
    """Return an id or a number in a form that is easily copied."""
    plain = escaped(text)
    return plain if plain == text or "`" in text else f"`{text}`"


def _message(message: Exported) -> str:
    known = [moment(message.get("timestamp")), *marks(message)]
    head = f"\n### {escaped(speaker(message))} · {escaped(' · '.join(known))}\n"
    body = "".join(f"\n{block}" for block in _blocks(message))
    return head + body


def _blocks(message: Exported) -> Iterator[str]:
    if reasoning := thoughts(message):
        yield _folded("Reasoning", reasoning)
    for piece in pieces(message.get("content")):
        yield _block(piece, tool=message.get("role") == "tool")
    for call in calls(message.get("tool_calls")):
        yield f"Calls **{escaped(call.name)}**\n\n{fenced(call.arguments, 'json')}"
    for number, version in enumerate(message.get("versions") or (), 1):
        before = "\n".join(piece.text for piece in pieces(version.get("content")))
        yield _folded(f"Version {number}, until {moment(version.get('replaced_at'))}", before)


def _block(piece: Piece, *, tool: bool) -> str:
    if piece.kind is PieceKind.MEDIA:
        return f"*[{escaped(piece.text)}]*\n"
    if piece.kind is PieceKind.DATA:
        return fenced(piece.text, "json")
    return fenced(piece.text) if tool else f"{contained(piece.text)}\n"


def _folded(title: str, text: str) -> str:
    """Return a text of lesser interest as a quotation."""
    quoted = "\n".join(f"{_QUOTED}{one}".rstrip() for one in contained(pretty(text)).split("\n"))
    return f"{_QUOTED}**{escaped(title)}**\n>\n{quoted}\n"
