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
    content_pieces,
    message_remarks,
    on_one_line,
    pretty_json,
    readable_time,
    readable_tool_calls,
    reasoning_text,
    session_facts,
    session_heading,
    speaker_name,
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
        table = "\n".join(f"- {name}: {_copyable_value(value)}" for name, value in session_facts(session))
        prompt = session.get("system_prompt")
        prompt_block = (
            f"\n{_quoted_block('System prompt', prompt)}" if isinstance(prompt, str) and prompt else ""
        )
        return f"{rule}# {escape_markup(session_heading(session))}\n\n{table}\n{prompt_block}".encode()

    def messages(self, page: Sequence[Exported]) -> bytes:
        """Return some of the session's messages."""
        return "".join(map(_message_markdown, page)).encode()

    def end_session(self) -> bytes:
        """Return the end of the session, which is empty."""
        return b""

    def end_file(self) -> bytes:
        """Return the end of the file, which is empty."""
        return b""


def escape_markup(text: str) -> str:
    """Return the text on one line without any markup."""
    return _SPECIAL.sub(r"\\\1", on_one_line(text))


def code_block(text: str, language: str = "") -> str:
    """Return the text as a code block that no line of it can end."""
    longest = max((len(run) for run in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}\n"


def escape_headings(text: str) -> str:
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


def _copyable_value(text: str) -> str:
    plain = escape_markup(text)
    return plain if plain == text or "`" in text else f"`{text}`"


def _message_markdown(message: Exported) -> str:
    known = [readable_time(message.get("timestamp")), *message_remarks(message)]
    head = f"\n### {escape_markup(speaker_name(message))} · {escape_markup(' · '.join(known))}\n"
    body = "".join(f"\n{block}" for block in _message_blocks(message))
    return head + body


def _message_blocks(message: Exported) -> Iterator[str]:
    if reasoning := reasoning_text(message):
        yield _quoted_block("Reasoning", reasoning)
    for piece in content_pieces(message.get("content")):
        yield _piece_markdown(piece, tool=message.get("role") == "tool")
    for call in readable_tool_calls(message.get("tool_calls")):
        yield f"Calls **{escape_markup(call.name)}**\n\n{code_block(call.arguments, 'json')}"
    for number, version in enumerate(message.get("versions") or (), 1):
        before = "\n".join(piece.text for piece in content_pieces(version.get("content")))
        yield _quoted_block(f"Version {number}, until {readable_time(version.get('replaced_at'))}", before)


def _piece_markdown(piece: Piece, *, tool: bool) -> str:
    if piece.kind is PieceKind.MEDIA:
        return f"*[{escape_markup(piece.text)}]*\n"
    if piece.kind is PieceKind.DATA:
        return code_block(piece.text, "json")
    return code_block(piece.text) if tool else f"{escape_headings(piece.text)}\n"


def _quoted_block(title: str, text: str) -> str:
    quoted = "\n".join(f"{_QUOTED}{one}".rstrip() for one in escape_headings(pretty_json(text)).split("\n"))
    return f"{_QUOTED}**{escape_markup(title)}**\n>\n{quoted}\n"
