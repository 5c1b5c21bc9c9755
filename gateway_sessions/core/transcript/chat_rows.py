"""Transcript rows reduced to the members of the chat completions protocol.

Rows of a transcript say more than models are told: times, names, reasoning, what is shown to people. Strict
endpoints refuse a member that they do not know, so only those that belong to the protocol are passed on. What
came with a message is named in words: a model could not open it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

import msgspec

from gateway_sessions.core.transcript.messages import text_of
from gateway_sessions.core.transcript.replay import EMPTY, Chat

MEDIA: Final = frozenset({"image_url", "input_audio", "file"})
"""Parts that some models take; whoever puts them into a transcript knows his model."""
UNNAMED: Final = "unnamed"


def model_rows(history: Iterable[Chat]) -> list[Chat]:
    """Return the conversation as a model accepts it; rows that are in that form already stay as they are."""
    return [_row(one) for one in history]


def _row(said: Chat) -> Chat:
    role, content = said["role"], said.get("content")
    match role:
        case "assistant":
            calls = [_call(one) for one in said.get("tool_calls") or ()]
            text = _text(content)
            said_nothing = None if calls else EMPTY
            return {"role": role, "content": text or said_nothing, **_if_any("tool_calls", calls)}
        case "tool":
            return {"role": role, "content": _text(content), "tool_call_id": said["tool_call_id"]}
        case _:
            return {"role": role, "content": _parts(content) or EMPTY}


def _if_any(name: str, several: list[Any]) -> Chat:
    return {name: several} if several else {}


def _text(content: object) -> str:
    return "\n".join(filter(None, map(_worded, _several(content))))


def _parts(content: object) -> str | list[object]:
    """A person's words: one text, unless something came with them that goes to the model as it is."""
    parts = _several(content)
    if not any(_kind(one) in MEDIA for one in parts):
        return _text(content)
    worded = ((one, "" if _kind(one) in MEDIA else _worded(one)) for one in parts)
    return [
        {"type": "text", "text": text} if text else one for one, text in worded if text or _kind(one) in MEDIA
    ]


def _several(content: object) -> list[object]:
    return cast("list[object]", content) if isinstance(content, list) else [content]


def _worded(part: Any) -> str:
    """What is said, or the name of what came along: where it lies is nobody's business but the platform's."""
    if _kind(part) != "attachment":
        return text_of(part)
    return f"[{part.get('kind', 'attachment')}: {part.get('name') or UNNAMED}]"


def _kind(part: object) -> str | None:
    return cast("Mapping[str, Any]", part).get("type") if isinstance(part, dict) else None


def _call(call: Any) -> dict[str, Any]:
    given: Mapping[str, Any] = cast("Mapping[str, Any]", call) if isinstance(call, dict) else {}
    function: Mapping[str, Any] = given.get("function") or given
    arguments = function.get("arguments", {})
    if not isinstance(arguments, str):
        arguments = msgspec.json.encode(arguments).decode()
    name = function.get("name") or UNNAMED
    return {"id": given.get("id"), "type": "function", "function": {"name": name, "arguments": arguments}}
