"""The last exchanges of a conversation in brief, for people who resume it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, cast

from gateway_sessions.core.display_text import shorten_text, visible_text
from gateway_sessions.core.transcript.messages import Message, Role

MOST: Final = 20
"""The most entries of a recap: about ten exchanges, which fit on one screen."""
USER: Final = 300
ASSISTANT: Final = 200
"""The characters that are shown of a person's message, and of an agent's."""
LINES: Final = 3
TOOLS: Final = 4
"""The lines of an agent's message, and the names of tools, that are shown."""
_THOUGHTS = re.compile(
    r"<(think|thinking|thought|reasoning|reflection)\b[^>]*>.*?(?:</\1\s*>|\Z)", re.DOTALL | re.IGNORECASE
)


class RecapForm(StrEnum):
    """The length of the recap when a session is resumed."""

    FULL = "full"
    MINIMAL = "minimal"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class RecapLine:
    """A message of the person or the agent, shortened."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class Recap:
    """The end of a conversation, for people."""

    lines: tuple[RecapLine, ...]
    earlier: int
    """The number of earlier messages of both that are not shown."""


def make_recap(messages: Sequence[Message]) -> Recap:
    """Return the last messages of person and agent, without results of tools, instructions and thoughts.

    The agent's last message is shown whole, because the person goes on from it.
    """
    exchanged = [one for one in map(_recap_line, messages) if one is not None]
    shown = exchanged[-MOST:]
    last = max((place for place, one in enumerate(shown) if one.role is Role.ASSISTANT), default=-1)
    lines = (one if place == last else _shorten_line(one) for place, one in enumerate(shown))
    return Recap(tuple(lines), len(exchanged) - len(shown))


def _recap_line(message: Message) -> RecapLine | None:
    if not message.active or message.role not in (Role.USER, Role.ASSISTANT):
        return None
    text = visible_text(_THOUGHTS.sub("", _readable_content(message.content)))
    names = list(_tool_names(message.tool_calls or ()))
    if names:
        distinct = list(dict.fromkeys(names))
        more = "…" if len(distinct) > TOOLS else ""
        calls = (
            f"[{len(names)} tool call{'s' if len(names) > 1 else ''}: {', '.join(distinct[:TOOLS])}{more}]"
        )
        text = f"{text} {calls}".strip()
    return RecapLine(Role(message.role), text) if text else None


def _shorten_line(line: RecapLine) -> RecapLine:
    if line.role is Role.USER:
        return RecapLine(line.role, shorten_text(line.text, USER))
    few = "\n".join(line.text.split("\n")[:LINES])
    cut = shorten_text(few, ASSISTANT)
    return RecapLine(line.role, cut if cut == line.text or cut.endswith("...") else f"{cut}...")


def _readable_content(content: object) -> str:
    match content:
        case str():
            return content
        case {"type": "image" | "image_url" | "input_image"}:
            return "[image]"
        case {"text": str(text)}:
            return text
        case list():
            return " ".join(filter(None, map(_readable_content, cast("list[object]", content))))
        case _:
            return ""


def _tool_names(calls: Iterable[object]) -> Iterable[str]:
    for call in calls:
        match call:
            case {"function": {"name": str(name)}} | {"name": str(name)}:
                yield " ".join(visible_text(name).split())
            case _:
                yield "?"
