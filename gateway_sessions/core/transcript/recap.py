"""The last exchanges of a conversation in brief, for people who resume it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, cast

from gateway_sessions.core.text import shortened, visible
from gateway_sessions.core.transcript.messages import Message, Role

MOST: Final = 20
"""Entries: about ten exchanges."""
USER: Final = 300
ASSISTANT: Final = 200
"""Characters that are shown."""
LINES: Final = 3
TOOLS: Final = 4
"""Names of tools that are shown."""
_THOUGHTS = re.compile(
    r"<(think|thinking|thought|reasoning|reflection)\b[^>]*>.*?(?:</\1\s*>|\Z)", re.DOTALL | re.IGNORECASE
)


class RecapForm(StrEnum):
    """How much is shown when a session is resumed."""

    FULL = "full"
    MINIMAL = "minimal"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class RecapLine:
    """What one of the two has said."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class Recap:
    """The end of a conversation."""

    lines: tuple[RecapLine, ...]
    earlier: int
    """How many messages of the two are not shown."""


def recap(messages: Sequence[Message]) -> Recap:
    """The last that a person and an agent have said, without results of tools, instructions and thoughts."""
    said = [one for one in map(_line, messages) if one is not None]
    shown = said[-MOST:]
    last = max((place for place, one in enumerate(shown) if one.role is Role.ASSISTANT), default=-1)
    lines = (one if place == last else _brief(one) for place, one in enumerate(shown))
    return Recap(tuple(lines), len(said) - len(shown))


def _line(message: Message) -> RecapLine | None:
    if not message.active or message.role not in (Role.USER, Role.ASSISTANT):
        return None
    text = visible(_THOUGHTS.sub("", _text(message.content)))
    names = list(_names(message.tool_calls or ()))
    if names:
        distinct = list(dict.fromkeys(names))
        more = "…" if len(distinct) > TOOLS else ""
        calls = (
            f"[{len(names)} tool call{'s' if len(names) > 1 else ''}: {', '.join(distinct[:TOOLS])}{more}]"
        )
        text = f"{text} {calls}".strip()
    return RecapLine(Role(message.role), text) if text else None


def _brief(line: RecapLine) -> RecapLine:
    if line.role is Role.USER:
        return RecapLine(line.role, shortened(line.text, USER))
    few = "\n".join(line.text.split("\n")[:LINES])
    cut = shortened(few, ASSISTANT)
    return RecapLine(line.role, cut if cut == line.text or cut.endswith("...") else f"{cut}...")


def _text(content: object) -> str:
    match content:
        case str():
            return content
        case {"type": "image" | "image_url" | "input_image"}:
            return "[image]"
        case {"text": str(text)}:
            return text
        case list():
            return " ".join(filter(None, map(_text, cast("list[object]", content))))
        case _:
            return ""


def _names(calls: Iterable[object]) -> Iterable[str]:
    for call in calls:
        match call:
            case {"function": {"name": str(name)}} | {"name": str(name)}:
                yield " ".join(visible(name).split())
            case _:
                yield "?"
