"""Transcript rows reduced to the members of the chat completions protocol.

Rows of a transcript have more members than models know: times, names, reasoning, the text shown to people.
Strict endpoints refuse unknown members, so only members of the protocol are passed on. An attachment is named
in words: a model could not open it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

import msgspec

from gateway_sessions.core.transcript.messages import text_of
from gateway_sessions.core.transcript.replay import EMPTY, Chat

MEDIA: Final = frozenset({"image_url", "input_audio", "file"})
"""The parts that some models take as they are; a program that puts them into a transcript knows its model."""
UNNAMED: Final = "unnamed"


def model_rows(history: Iterable[Chat]) -> list[Chat]:
    """Return the conversation as a model accepts it; rows of that form are returned unchanged."""
    return [_row(one) for one in history]


def _row(chat_row: Chat) -> Chat:
    role, content = chat_row["role"], chat_row.get("content")
    match role:
        case "assistant":
            calls = [_call(one) for one in chat_row.get("tool_calls") or ()]
            text = _text(content)
            empty = None if calls else EMPTY
            return {"role": role, "content": text or empty, **_if_any("tool_calls", calls)}
        case "tool":
            return {"role": role, "content": _text(content), "tool_call_id": chat_row["tool_call_id"]}
        case _:
            return {"role": role, "content": _parts(content) or EMPTY}


def _if_any(name: str, several: list[Any]) -> Chat:
    return {name: several} if several else {}


def _text(content: object) -> str:
    return "\n".join(filter(None, map(_in_words, _as_list(content))))


def _parts(content: object) -> str | list[object]:
    """Return a person's words as one text, or as parts if some of them go to the model as they are."""
    parts = _as_list(content)
    if not any(_kind(one) in MEDIA for one in parts):
        return _text(content)
    worded = ((one, "" if _kind(one) in MEDIA else _in_words(one)) for one in parts)
    return [
        {"type": "text", "text": text} if text else one for one, text in worded if text or _kind(one) in MEDIA
    ]


def _as_list(content: object) -> list[object]:
    return cast("list[object]", content) if isinstance(content, list) else [content]


def _in_words(part: Any) -> str:
    """Return the text of a part, or the name of an attachment.

    The attachment's address stays out: it may hold credentials, and a model cannot open it.
    """
    if _kind(part) != "attachment":
        return text_of(part)
    return f"[{part.get('kind', 'attachment')}: {part.get('name') or UNNAMED}]"


def _kind(part: object) -> str | None:
    return cast("Mapping[str, Any]", part).get("type") if isinstance(part, dict) else None


def _call(call: Any) -> dict[str, Any]:
    members: Mapping[str, Any] = cast("Mapping[str, Any]", call) if isinstance(call, dict) else {}
    function: Mapping[str, Any] = members.get("function") or members
    arguments = function.get("arguments", {})
    if not isinstance(arguments, str):
        arguments = msgspec.json.encode(arguments).decode()
    name = function.get("name") or UNNAMED
    return {"id": members.get("id"), "type": "function", "function": {"name": name, "arguments": arguments}}
