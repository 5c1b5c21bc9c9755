"""Contents of the HTML and Markdown exports: speakers, times, tool calls and attachments as text.

An exported session is a dict as `SessionDB.export_session` returns it. Strangers and models wrote its values,
so this module trusts no type.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final, NamedTuple, cast

from gateway_sessions.core.display_text import shorten_text
from gateway_sessions.core.instants import EPOCH

Exported = Mapping[str, Any]

ROLES: Final[Mapping[str, str]] = {
    "user": "User",
    "assistant": "Assistant",
    "tool": "Tool",
    "system": "System",
    "session_meta": "Setting",
}
HIDDEN: Final[Mapping[str, str]] = {
    "rewound": "taken back",
    "compacted": "compacted into a summary",
    "retracted": "deleted on its platform",
}
RELATIONS: Final[Mapping[str, str]] = {
    "succession": "after",
    "continuation": "continues",
    "branch": "branched from",
    "delegate": "on behalf of",
}
MAX_GLIMPSE: Final = 80

_TEXT_TYPES: Final = frozenset({"text", "input_text", "output_text"})
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_LINE_END = re.compile("\r\n?")


class PieceKind(StrEnum):
    """The kind of a piece of a message."""

    TEXT = "text"
    DATA = "data"  # JSON, shown as it is
    MEDIA = "media"  # a picture, a recording, a file: named, not shown


class Piece(NamedTuple):
    """A piece of a message's content."""

    kind: PieceKind
    text: str


class ToolCallText(NamedTuple):
    """A call of a tool, as far as it can be read."""

    name: str
    arguments: str
    brief_arguments: str
    """The arguments on one short line."""


def content_pieces(content: object) -> Iterator[Piece]:
    """Yield the content piece by piece; nothing for a message without content."""
    if isinstance(content, str):
        if content:
            yield Piece(PieceKind.TEXT, printable_text(content))
    elif isinstance(content, list):
        for part in cast("list[object]", content):
            yield _content_piece(part)
    elif content is not None:
        yield Piece(PieceKind.DATA, pretty_json(content))


def readable_tool_calls(tool_calls: object) -> Iterator[ToolCallText]:
    """Yield the calls in a message, in the form of any provider."""
    for one in cast("list[object]", tool_calls) if isinstance(tool_calls, list) else ():
        call = cast("dict[str, Any]", one) if isinstance(one, dict) else {"arguments": one}
        inner = call.get("function")
        if isinstance(inner, dict):
            call = cast("dict[str, Any]", inner)
        raw = next((call[name] for name in ("arguments", "input", "args") if name in call), None)
        arguments = _parse_arguments(raw)
        shown = "" if arguments is None else pretty_json(arguments)
        yield ToolCallText(on_one_line(call.get("name") or "tool"), shown, _brief_arguments(arguments))


def session_heading(session: Exported) -> str:
    """Return the name of the session: its title, its first words, or its id."""
    return next(
        (on_one_line(text) for key in ("title", "preview", "id") if (text := session.get(key))), "session"
    )


def speaker_name(message: Exported) -> str:
    """Return the name of the message's role, and of its tool."""
    role = str(message.get("role") or "?")
    name = ROLES.get(role) or on_one_line(role)
    tool = message.get("tool_name")
    return f"{name} {on_one_line(tool)}" if role == "tool" and tool else name


def message_remarks(message: Exported) -> list[str]:
    """Return the remarks about a message: hidden, overheard, edited, cut off."""
    found: list[str] = []
    if hidden := message.get("hidden_because"):
        found.append(HIDDEN.get(str(hidden), on_one_line(hidden)))
    if message.get("observed"):
        found.append("overheard")
    if (edited_at := message.get("edited_at")) is not None:
        found.append(f"edited {readable_time(edited_at)}")
    if disposition := message.get("effect_disposition"):
        found.append(f"effect: {on_one_line(disposition)}")
    if message.get("finish_reason") in ("length", "interrupted", "content_filter"):
        found.append(f"ended: {on_one_line(message['finish_reason'])}")
    return found


def reasoning_text(message: Exported) -> str:
    """Return the reasoning of the model."""
    return next(
        (
            printable_text(text)
            for key in ("reasoning", "reasoning_content")
            if isinstance(text := message.get(key), str)
        ),
        "",
    )


def session_facts(session: Exported) -> Iterator[tuple[str, str]]:
    """Yield the facts above a session: a name and a value each."""
    yield "Session", on_one_line(session.get("id") or "?")
    yield "Source", on_one_line(session.get("source") or "?")
    if user := session.get("user_id"):
        yield "User", on_one_line(user)
    yield "Began", readable_time(session.get("started_at"))
    if (ended_at := session.get("ended_at")) is not None:
        reason = session.get("end_reason")
        yield "Ended", readable_time(ended_at) + (f" ({on_one_line(reason)})" if reason else "")
    if parent := session.get("parent_session_id"):
        relation = RELATIONS.get(str(session.get("relation")), "after")
        yield relation.capitalize(), on_one_line(parent)
    if model := session.get("model"):
        yield "Model", on_one_line(model)
    yield from _session_totals(session)


def readable_time(seconds: object) -> str:
    """Return the time in UTC, for people."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return "unknown"
    try:
        return f"{EPOCH + timedelta(seconds=seconds):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError):
        return "unknown"


def iso_time(seconds: object) -> str:
    """Return the time in UTC, for programs; empty for a value that is no time."""
    text = readable_time(seconds)
    return "" if text == "unknown" else text.removesuffix(" UTC").replace(" ", "T") + "Z"


def on_one_line(value: object, limit: int = 200) -> str:
    """Return any value on one line of bounded length."""
    return shorten_text(" ".join(printable_text(str(value)).split()), limit)


def printable_text(text: str) -> str:
    """Return the text with one kind of line end, and with marks for characters that no page can show."""
    return _UNPRINTABLE.sub("\ufffd", _LINE_END.sub("\n", text))


def pretty_json(value: object) -> str:
    """Return a value as JSON for people."""
    if isinstance(value, str):
        return printable_text(value)
    return printable_text(json.dumps(value, ensure_ascii=False, indent=2, default=str))


def _content_piece(part: object) -> Piece:
    if isinstance(part, str):
        return Piece(PieceKind.TEXT, printable_text(part))
    if not isinstance(part, dict):
        return Piece(PieceKind.DATA, pretty_json(part))
    members = cast("dict[str, Any]", part)
    kind = str(members.get("type") or "")
    text = members.get("text")
    if isinstance(text, str) and (kind in _TEXT_TYPES or not kind):
        return Piece(PieceKind.TEXT, printable_text(text))
    if kind and kind not in ("tool_use", "tool_result"):
        return Piece(PieceKind.MEDIA, _describe_attachment(kind, members))
    return Piece(PieceKind.DATA, pretty_json(members))


def _describe_attachment(kind: str, members: dict[str, Any]) -> str:
    """Return the kind of an attachment and its address; its bytes are nothing to read."""
    inner = cast("object", members.get(kind))
    place = (
        cast("dict[str, object]", inner) if isinstance(inner, dict) else cast("dict[str, object]", members)
    )
    names = ("url", "file_id", "path", "name", "filename")
    where = next((place[name] for name in names if place.get(name)), None)
    where = inner if where is None and isinstance(inner, str) else where
    shown = "" if where is None or str(where).startswith("data:") else f": {on_one_line(where, 300)}"
    return f"{on_one_line(kind).removesuffix('_url').removeprefix('input_')}{shown}"


def _session_totals(session: Exported) -> Iterator[tuple[str, str]]:
    if count := session.get("message_count"):
        called = session.get("tool_call_count")
        plural = "" if called == 1 else "s"
        yield "Messages", f"{count}" + (f", {called} tool call{plural}" if called else "")
    read, written = session.get("input_tokens") or 0, session.get("output_tokens") or 0
    if read or written:
        yield "Tokens", f"{read:,} in, {written:,} out"
    cost = session.get("actual_cost_usd")
    cost = session.get("estimated_cost_usd") if cost is None else cost
    if isinstance(cost, int | float) and cost:
        yield "Cost", f"${cost:.4f}"


def _brief_arguments(arguments: object) -> str:
    """Return a call's arguments on a short line, without the signs of JSON."""
    if isinstance(arguments, dict):
        members = cast("dict[str, object]", arguments).items()
        return on_one_line(
            ", ".join(f"{name}: {on_one_line(pretty_json(value), MAX_GLIMPSE)}" for name, value in members),
            MAX_GLIMPSE,
        )
    return "" if arguments is None else on_one_line(pretty_json(arguments), MAX_GLIMPSE)


def _parse_arguments(arguments: object) -> object:
    if isinstance(arguments, str):
        try:
            return json.loads(arguments)
        except (ValueError, RecursionError):
            return arguments
    return arguments
