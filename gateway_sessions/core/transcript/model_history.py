"""The conversation that a provider accepts, made of a transcript that may break off anywhere.

A transcript may break off anywhere, be cut to a limit, be rewound, or be written by several programs.
Providers refuse a history in which a tool call lacks its result, a result its call, or one side speaks twice.
So one pass over the messages ensures:

- hidden messages, and messages of any role but user, assistant and tool, are left out;
- exactly the results of an assistant row's calls follow that row, up to the next assistant row; a missing
  result is replaced by a note that the effect is unknown, for a model must not repeat the call blindly; other
  results are left out;
- a turn without an answer is followed by an assistant row that says so, and never joins the next turn;
- successive assistant rows become one, and the first row is always a user's;
- a message that was steered into a running turn stands where it was said, and interrupts nothing;
- what the gateway said by itself while calls ran stands behind their results;
- a message that was only observed in a room becomes a quotation in the next turn addressed to the agent.

A conversation that is valid already comes out unchanged.

Its rows have more members than models know: times, names, reasoning, the text shown to people. Strict
endpoints refuse unknown members, so `model_rows` passes only members of the chat completions protocol on. An
attachment is named in words: a model could not open it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

import msgspec

from gateway_sessions.core.display_text import prefix_with_name
from gateway_sessions.core.transcript.messages import (
    STEERED,
    UNPROMPTED,
    Content,
    Message,
    ModelMessage,
    Role,
    text_of,
)

Chat: TypeAlias = dict[str, Any]
"""One row of a conversation, as chat programs and providers pass it on."""
StoredMessage: TypeAlias = Message | ModelMessage

UNANSWERED: Final = "[This was not answered: the turn was cut off.]"
INTERRUPTED: Final = (
    "[Interrupted: this call has no recorded result. Its effect is unknown. "
    "Check before you do it again; do not repeat it blindly.]"
)
BEGINNING: Final = "[The beginning of this conversation is not shown.]"
EMPTY: Final = "[empty message]"
OVERHEARD: Final = "[Said in the room before this, and not to you:]"
MAX_OVERHEARD: Final = 20_000
"""The characters of observed messages that one turn quotes, the latest ones: about 5,000 tokens."""

MEDIA: Final = frozenset({"image_url", "input_audio", "file"})
"""The parts that some models take as they are; a program that puts them into a transcript knows its model."""
UNNAMED: Final = "unnamed"

_ASSISTANT, _TOOL = str(Role.ASSISTANT), str(Role.TOOL)
_SPEAKING: Final = frozenset({str(Role.USER), _ASSISTANT, _TOOL})


def conversation_of(messages: Iterable[StoredMessage], *, limit: int | None = None) -> list[Chat]:
    """Return the conversation in *messages*, which are in order; *limit* keeps the last so many of them."""
    if limit is not None:
        spoken = [one for one in messages if one.hidden_because is None and one.role in _SPEAKING]
        messages = spoken[max(len(spoken) - limit, 0) :]
    replay = _HistoryBuilder()
    for message in messages:
        if message.hidden_because is None and message.role in _SPEAKING:
            replay.add_message(message)
    return replay.finish()


def prepend_overheard(overheard: Sequence[StoredMessage], content: Content) -> Content:
    """Return the content of a turn after a quotation of the messages observed before it."""
    if not overheard:
        return content
    quotation = _quote_overheard(overheard)
    match content:
        case None | "":
            return quotation
        case str():
            return f"{quotation}\n\n{content}"
        case list():
            return [{"type": "text", "text": quotation}, *content]
        case _:
            return [{"type": "text", "text": quotation}, content]


class _HistoryBuilder:
    """A conversation in the making."""

    __slots__ = ("_at", "_held", "_overheard", "_rows", "_unanswered", "_unnamed")

    def __init__(self) -> None:
        self._rows: list[Chat] = []
        self._unanswered: dict[str, str | None] = {}
        """The calls of the last assistant row that have no result yet, by id, with the names of their tools.
        """
        self._unnamed: list[str] = []
        """The ids given to calls that came without one: results without an id belong to these calls, in
        order."""
        self._at = 0
        """The position of their next result."""
        self._overheard: list[StoredMessage] = []
        self._held: list[StoredMessage] = []
        """What was said unprompted while calls ran: it waits for their results."""

    def add_message(self, message: StoredMessage) -> None:
        role = message.role
        if role == _TOOL:
            self._add_tool_result(message)
        elif role == _ASSISTANT:
            self._add_assistant_row(message)
        elif message.observed:
            self._overheard.append(message)
        else:
            self._add_user_row(message)

    def finish(self) -> list[Chat]:
        self._replace_missing_results()
        return self._rows

    def _add_user_row(self, message: StoredMessage) -> None:
        rows = self._rows
        if rows and message.extra and message.extra.get(STEERED):
            if rows[-1]["role"] == "user":
                rows.append(_merge_rows(rows.pop(), _row_of_message(message)))
                return
        elif rows and (rows[-1]["role"] != "assistant" or "tool_calls" in rows[-1]):
            rows.append({"role": "assistant", "content": UNANSWERED})
        row = _row_of_message(message)
        if _is_blank(row["content"]):
            row["content"] = EMPTY
        if self._overheard:
            row.setdefault("display_content", message.content)
            row["content"] = prepend_overheard(self._overheard, row["content"])
            self._overheard = []
        rows.append(row)

    def _add_assistant_row(self, message: StoredMessage) -> None:
        if self._unanswered:
            if message.extra and message.extra.get(UNPROMPTED):
                self._held.append(message)
                return
            self._replace_missing_results()
        row = _assistant_row(message)
        calls = row.get("tool_calls")
        if calls is None and _is_blank(row["content"]) and not message.codex_message_items:
            return
        rows = self._rows
        if not rows:
            rows.append({"role": "user", "content": BEGINNING})
        if rows[-1]["role"] == "assistant":
            row = _merge_rows(rows.pop(), row)
        rows.append(row)
        if calls is not None:
            self._expect_results(calls, message)

    def _expect_results(self, calls: list[Any], message: StoredMessage) -> None:
        self._unanswered = {call["id"]: _tool_name(call) for call in calls}
        self._at = len(self._rows)
        if calls is not message.tool_calls:
            own_ids = {_call_id(call) for call in message.tool_calls or ()}
            self._unnamed = [one for one in self._unanswered if one not in own_ids]

    def _add_tool_result(self, message: StoredMessage) -> None:
        call_id = message.tool_call_id
        if not call_id and self._unnamed:
            call_id = self._unnamed[0]
        if call_id is None or call_id not in self._unanswered:
            return
        del self._unanswered[call_id]
        if call_id in self._unnamed:
            self._unnamed.remove(call_id)
        row = _row_of_message(message)
        if row["content"] is None:
            row["content"] = ""
        row["tool_call_id"] = call_id
        if message.tool_name is not None:
            row["tool_name"] = message.tool_name
        self._rows.insert(self._at, row)
        self._at += 1
        if not self._unanswered:
            self._add_held()

    def _add_held(self) -> None:
        held, self._held = self._held, []
        for message in held:
            self._add_assistant_row(message)

    def _replace_missing_results(self) -> None:
        for call_id, tool in self._unanswered.items():
            row = {"role": "tool", "content": INTERRUPTED, "tool_call_id": call_id}
            if tool is not None:
                row["tool_name"] = tool
            self._rows.insert(self._at, row)
            self._at += 1
        self._unanswered = {}
        self._unnamed = []
        self._add_held()


def _row_of_message(message: StoredMessage) -> Chat:
    """Return the members of a row that all roles have in common."""
    row: Chat = {"role": message.role, "content": message.content}
    if message.api_content is not None:
        row["content"], row["display_content"] = message.api_content, message.content
    if (timestamp := message.timestamp) is not None:
        row["timestamp"] = timestamp
    if message.platform_message_id is not None:
        row["message_id"] = message.platform_message_id
    if message.effect_disposition is not None:
        row["effect_disposition"] = message.effect_disposition
    if message.extra:
        row.update((name, one) for name, one in message.extra.items() if name not in row)
    return row


def _assistant_row(message: StoredMessage) -> Chat:
    row = _row_of_message(message)
    if message.tool_calls and (calls := _calls_with_ids(message)):
        row["tool_calls"] = calls
    if message.finish_reason is not None:
        row["finish_reason"] = message.finish_reason
    if message.reasoning:
        row["reasoning"] = message.reasoning
    if message.reasoning_content is not None:
        row["reasoning_content"] = message.reasoning_content
    if message.reasoning_details is not None:
        row["reasoning_details"] = message.reasoning_details
    if message.codex_reasoning_items is not None:
        row["codex_reasoning_items"] = message.codex_reasoning_items
    if message.codex_message_items is not None:
        row["codex_message_items"] = message.codex_message_items
    return row


def _calls_with_ids(message: StoredMessage) -> list[Any]:
    """Return the calls of an assistant row, each with an id of its own; unchanged if all have one already."""
    calls = message.tool_calls or []
    ids = {_id_member(one) for one in calls}
    if len(ids) == len(calls) and None not in ids:
        return calls
    named: dict[str, Any] = {}
    for number, call in enumerate(calls):
        if isinstance(call, dict):
            call_id = _call_id(cast("Chat", call)) or f"call_{message.message_id}_{number}"
            named.setdefault(call_id, {**cast("Chat", call), "id": call_id})
    return list(named.values())


def _id_member(call: object) -> str | None:
    return _text_member(call, "id")


def _call_id(call: object) -> str | None:
    """Return the id that a call came with, under either of its names."""
    return _id_member(call) or _text_member(call, "call_id")


def _tool_name(call: Chat) -> str | None:
    return _text_member(call.get("function"), "name") or _text_member(call, "name")


def _text_member(mapping: object, name: str) -> str | None:
    """Return the text under that name in a mapping; None without one."""
    if not isinstance(mapping, dict):
        return None
    found = cast("dict[str, object]", mapping).get(name)
    return found if isinstance(found, str) and found else None


def _merge_rows(first: Chat, second: Chat) -> Chat:
    """Return two rows of a role as one: the texts follow each other, the second's other members prevail."""
    texts = [one for one in (first["content"], second["content"]) if not _is_blank(one)]
    row = {**first, **second}
    row.pop("display_content", None)
    if all(isinstance(one, str) for one in texts):
        row["content"] = "\n\n".join(texts) if texts else second["content"]
    else:
        row["content"] = [part for one in texts for part in _content_parts(one)]
    return row


def _content_parts(content: Content) -> list[Any]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content} if isinstance(content, str) else content]


def _is_blank(content: Content) -> bool:
    return not (content.strip() if isinstance(content, str) else content)


def _quote_overheard(overheard: Sequence[StoredMessage]) -> str:
    """Return the latest observed messages, each line marked so that none can pose as the turn's own."""
    lines: list[str] = []
    room = MAX_OVERHEARD
    for message in reversed(overheard):
        name, text = message.extra.get("name"), text_of(message.content) or "(no text)"
        spoken = prefix_with_name(name, text) if isinstance(name, str) else text
        room -= len(spoken)
        if room < 0 and lines:
            lines.append("> (earlier messages are left out)")
            break
        lines.append("\n".join(f"> {line}" for line in spoken[:MAX_OVERHEARD].splitlines() or [""]))
    return "\n".join([OVERHEARD, *reversed(lines)])


def model_rows(history: Iterable[Chat]) -> list[Chat]:
    """Return the conversation as a model accepts it; rows of that form are returned unchanged."""
    return [_model_row(one) for one in history]


def _model_row(chat_row: Chat) -> Chat:
    role, content = chat_row["role"], chat_row.get("content")
    match role:
        case "assistant":
            calls = [_model_call(one) for one in chat_row.get("tool_calls") or ()]
            text = _content_in_words(content)
            empty = None if calls else EMPTY
            row: Chat = {"role": role, "content": text or empty}
            return row | {"tool_calls": calls} if calls else row
        case "tool":
            return {
                "role": role,
                "content": _content_in_words(content),
                "tool_call_id": chat_row["tool_call_id"],
            }
        case _:
            return {"role": role, "content": _user_content(content) or EMPTY}


def _content_in_words(content: object) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(filter(None, map(_part_in_words, _as_list(content))))


def _user_content(content: object) -> str | list[object]:
    """Return a person's words as one text, or as parts if some of them go to the model as they are."""
    if isinstance(content, str):
        return content
    parts = _as_list(content)
    if not any(_part_type(one) in MEDIA for one in parts):
        return _content_in_words(content)
    found: list[object] = []
    for one in parts:
        if _part_type(one) in MEDIA:
            found.append(one)
        elif text := _part_in_words(one):
            found.append({"type": "text", "text": text})
    return found


def _as_list(content: object) -> list[object]:
    return cast("list[object]", content) if isinstance(content, list) else [content]


def _part_in_words(part: Any) -> str:
    """Return the text of a part, or the name of an attachment.

    The attachment's address stays out: it may hold credentials, and a model cannot open it.
    """
    if _part_type(part) != "attachment":
        return text_of(part)
    return f"[{part.get('kind', 'attachment')}: {part.get('name') or UNNAMED}]"


def _part_type(part: object) -> str | None:
    return cast("Mapping[str, Any]", part).get("type") if isinstance(part, dict) else None


def _model_call(call: Any) -> dict[str, Any]:
    members: Mapping[str, Any] = cast("Mapping[str, Any]", call) if isinstance(call, dict) else {}
    function: Mapping[str, Any] = members.get("function") or members
    arguments = function.get("arguments", {})
    if not isinstance(arguments, str):
        arguments = msgspec.json.encode(arguments).decode()
    name = function.get("name") or UNNAMED
    return {"id": members.get("id"), "type": "function", "function": {"name": name, "arguments": arguments}}
