"""Encoding of a `Message` as a row and decoding of rows as messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar, cast

import msgspec

from gateway_sessions.core.instants import from_micros, to_micros
from gateway_sessions.core.search.documents import Searchable
from gateway_sessions.core.sessions.entry import check_tokens
from gateway_sessions.core.storable_text import StorableEncoder, check_choice, check_word
from gateway_sessions.core.transcript.messages import (
    MICROS,
    SEVERAL_IDS,
    Content,
    Hidden,
    Message,
    ModelMessage,
    Role,
    preview_of,
    text_of,
)
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.ports import Row
from gateway_sessions.storage.tables.column_decoding import DAMAGE, raise_damaged
from gateway_sessions.storage.tables.sql_files import record_of, row_of

T = TypeVar("T")

MAX_ROLE: Final = 64
"""The longest role: a foreign transcript may have any word as a role, but no text."""
MAX_OWNER: Final = 2560
"""The longest name of a person or a lane: MySQL can index no longer one."""
_HIDDEN: Final = {str(reason): reason for reason in Hidden}
_read_json = msgspec.json.Decoder().decode
_Text: TypeAlias = str | None
_read_list = msgspec.json.Decoder(list[Any]).decode
_read_brief = msgspec.json.Decoder(
    tuple[str, int, str, _Text, _Text, _Text, _Text, _Text, int | None, _Text, _Text, list[Any] | None]
).decode
"""Reads the short members of a message, and a list of the members that few messages have."""
_read_spoken_brief = msgspec.json.Decoder(
    tuple[str, _Text, _Text, _Text, _Text, _Text, list[Any] | None]
).decode
"""Reads the short members that matter to a model, and a list of the members that few messages have."""
_read_people = msgspec.json.Decoder(tuple[str, ...]).decode
RARE: Final = ("reasoning_details", "codex_reasoning_items", "codex_message_items", "api_content", "extra")
"""Members that few messages have; all of them are JSON."""
_READ_RARE: Final = dict.fromkeys(RARE, _read_json) | {"extra": msgspec.json.Decoder(dict[str, Any]).decode}


_ROLES: Final = frozenset(map(str, Role))
_TEXT: Final = frozenset({str, type(None)})
_NOTHING: Final = {type(None)}
_CALL_ID: Final = Message.__struct_fields__.index("tool_call_id")
_PLATFORM_ID: Final = Message.__struct_fields__.index("platform_message_id")
"""The members from `tool_call_id` on, except `platform_message_id` and `extra`, are empty in a plain text."""


@row_of(
    "messages_after",
    "messages_before",
    "conversation_of_session",
    "end_of_conversation",
    "visible_messages_from",
    "visible_messages_until",
    "first_texts_before",
    "last_texts_behind",
    "rows_of_platform_message",
    "rows_of_several",
    "message_by_id",
    "words_in_session",
)
class MessageRow(NamedTuple):
    """A message as it is read in pages, or as a part of a conversation."""

    message_id: int
    sent_at: int
    brief: str
    """The short members as one JSON text, for each value of a row takes its time."""
    content: Any
    tool_calls: str | None
    reasoning: str | None
    reasoning_content: str | None


@record_of("add_text", in_front=("message_id", "session_id"))
class TextColumns(NamedTuple):
    """The columns of a message that is nothing but text."""

    role: str
    content: str | None
    sent_at: int
    platform_message_id: str | None
    observed: int
    author: str | None
    from_lane: str | None


@row_of("messages_as_imported", in_front=("seq", "hidden_by"))
@record_of("add_imported_message", in_front=("message_id", "session_id", "seq", "hidden_by"))
@record_of("add_message", in_front=("message_id", "session_id"))
class MessageColumns(NamedTuple):
    """The columns of a message, without its place in its session."""

    role: str
    content: str | None
    parts: str | None = None
    tool_call_id: str | None = None
    tool_calls: str | None = None
    tool_name: str | None = None
    effect_disposition: str | None = None
    sent_at: int = 0
    token_count: int | None = None
    finish_reason: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    reasoning_details: str | None = None
    codex_reasoning_items: str | None = None
    codex_message_items: str | None = None
    api_content: str | None = None
    platform_message_id: str | None = None
    observed: int = 0
    hidden_because: str | None = None
    edited_at: int | None = None
    platform_messages: str | None = None
    extra: str | None = None
    author: str | None = None
    from_lane: str | None = None
    people: str | None = None

    def as_searchable(self, session_id: str) -> Searchable:
        """Return the searchable text of the message as one of that session."""
        return Searchable(
            session_id,
            self.role,
            self.sent_at,
            self.content,
            self.tool_name,
            self.tool_calls,
            self.author,
            self.from_lane,
        )


class EncodedMessage(msgspec.Struct, frozen=True, gc=False):
    """A message as it is written to the database, with its share of the session's totals."""

    stored: TextColumns | MessageColumns
    """The columns that are written: few of a message that is nothing but text, else all."""
    active: bool
    calls: int
    size: int
    preview: str | None
    replaced: bool
    """True if the message held characters that no database can store."""

    @property
    def columns(self) -> MessageColumns:
        """Return the columns of the message, whether or not it is nothing but text."""
        if isinstance(self.stored, MessageColumns):
            return self.stored
        return MessageColumns(**self.stored._asdict())


def encode_message(message: Message, now: datetime) -> EncodedMessage:
    """Return the message as it is stored; `InvalidInputError` if it cannot be."""
    fields = msgspec.structs.astuple(message)
    others = {*map(type, fields[_CALL_ID:_PLATFORM_ID]), *map(type, fields[_PLATFORM_ID + 1 : -1])}
    if others == _NOTHING and not message.extra and type(message.content) in _TEXT:
        return _encode_plain_text(message, now)
    return _encode_any_message(message, now)


def _encode_plain_text(message: Message, now: datetime) -> EncodedMessage:
    """Encode a plain text with its author and time, as nearly every message is: the quick way."""
    intake = StorableEncoder()
    text = intake.text("content", message.content)
    sent_at = to_micros(message.sent_at or now)
    role = message.role
    if type(role) is not str or role not in _ROLES:
        role = check_word("role", role, MAX_ROLE)
    platform_message_id = intake.text("platform_message_id", message.platform_message_id)
    return EncodedMessage(
        TextColumns(
            role, text, sent_at, platform_message_id, int(message.observed), *_author_columns(message)
        ),
        active=True,
        calls=0,
        size=intake.size,
        preview=preview_of(text) if text and role == Role.USER else None,
        replaced=intake.replaced,
    )


def _encode_any_message(message: Message, now: datetime) -> EncodedMessage:
    intake = StorableEncoder()
    text, parts = content_columns(intake, message.content)
    calls, hidden = _calls_as_list(message.tool_calls), message.hidden_because
    author, from_lane = _author_columns(message)
    columns = MessageColumns(
        role=check_word("role", message.role, MAX_ROLE),
        content=text,
        parts=parts,
        tool_call_id=intake.text("tool_call_id", message.tool_call_id),
        tool_calls=intake.json("tool_calls", calls),
        tool_name=intake.text("tool_name", message.tool_name),
        effect_disposition=intake.text("effect_disposition", message.effect_disposition),
        sent_at=to_micros(message.sent_at or now),
        token_count=None if message.token_count is None else check_tokens("token_count", message.token_count),
        finish_reason=intake.text("finish_reason", message.finish_reason),
        reasoning=intake.text("reasoning", message.reasoning),
        reasoning_content=intake.text("reasoning_content", message.reasoning_content),
        reasoning_details=intake.json("reasoning_details", message.reasoning_details),
        codex_reasoning_items=intake.json("codex_reasoning_items", message.codex_reasoning_items),
        codex_message_items=intake.json("codex_message_items", message.codex_message_items),
        api_content=intake.json("api_content", message.api_content),
        platform_message_id=intake.text("platform_message_id", message.platform_message_id),
        observed=int(message.observed),
        hidden_because=None if hidden is None else str(check_choice("hidden_because", hidden, Hidden)),
        edited_at=None if message.edited_at is None else to_micros(message.edited_at),
        platform_messages=intake.json("platform_messages", platform_messages_to_store(message)),
        extra=intake.json("extra", dict(message.extra) or None),
        author=author,
        from_lane=from_lane,
        people=_people_as_json(message.people),
    )
    return EncodedMessage(
        columns,
        active=hidden is None,
        calls=len(calls or ()),
        size=intake.size,
        preview=preview_of(text) if text and message.role == Role.USER and hidden is None else None,
        replaced=intake.replaced,
    )


def _author_columns(message: Message) -> tuple[str | None, str | None]:
    author, from_lane = message.author, message.from_lane
    return (
        author if author is None else _check_name("author", author),
        from_lane if from_lane is None else _check_name("from_lane", from_lane),
    )


def _people_as_json(people: Sequence[str] | None) -> str | None:
    return None if people is None else StorableEncoder().json("people", list(people))


@lru_cache(maxsize=4096)
def _check_name(name: str, value: str) -> str:
    """Check the name of a person or a lane; the cache answers for nearly every message."""
    return check_word(name, value, MAX_OWNER)


def _calls_as_list(calls: object) -> list[object] | None:
    """Return the calls as a list; a single call becomes a list of one."""
    match calls:
        case None:
            return None
        case list() | tuple():
            return list(cast("Sequence[object]", calls)) or None
        case dict():
            return [cast("object", calls)]
        case _:
            raise InvalidInputError("tool_calls must be a list")  # noqa: TRY003 -- there is nothing to add


def platform_messages_to_store(message: Message) -> list[Any] | None:
    """Return the list of platform messages that the row keeps; empty if there are several without details."""
    kept = message.platform_messages
    if kept is not None and not isinstance(kept, list):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers exist
        problem = f"platform_messages must be a list, not {type(kept).__name__}"
        raise InvalidInputError(problem)
    return kept or ([] if SEVERAL_IDS in message.extra else None)


def content_columns(intake: StorableEncoder, content: Content) -> tuple[str | None, str | None]:
    """Return plain text as it is; for any other content, the text in it and all of it as JSON."""
    if content is None or isinstance(content, str):
        return intake.text("content", content), None
    if not isinstance(content, (list, tuple, dict)):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers exist
        problem = f"content must be text, a list or a mapping, not {type(content).__name__}"
        raise InvalidInputError(problem)
    parts = intake.json("content", content)
    return intake.text("content", text_of(content)), parts


def decode_messages(rows: Iterable[Row]) -> list[Message]:
    """Return the messages in rows; `StorageCorruptError` for a row that no version of this program writes."""
    return _decode_rows(rows, _message_from_row)


def decode_model_messages(rows: Iterable[Row]) -> list[ModelMessage]:
    """Return of the messages in rows what a model is given; `StorageCorruptError` as in `decode_messages`."""
    return _decode_rows(rows, _model_message_from_row)


def _decode_rows(rows: Iterable[Row], made_of: Callable[[MessageRow], T]) -> list[T]:
    found: list[T] = []
    for row in map(MessageRow._make, rows):
        try:
            found.append(made_of(row))
        except DAMAGE as error:
            raise_damaged(f"message {row.message_id}", error)
    return found


def _message_from_row(row: MessageRow) -> Message:
    message_id, sent_at, brief, content, calls, reasoning, reasoning_content = row
    told = _read_brief(brief)
    session_id, seq, role, call_id, tool, effect, finish_reason, platform_id = told[:8]
    tokens, author, from_lane, rare = told[8:]
    message = Message(
        role,
        content,
        message_id,
        session_id,
        seq,
        from_micros(sent_at),
        False,  # noqa: FBT003 -- by its name it takes longer
        author,
        from_lane,
        call_id,
        tool,
        effect,
        tokens,
        finish_reason,
        reasoning,
        reasoning_content,
        platform_id,
        calls if calls is None else _read_json(calls),
    )
    if rare is None:
        return message
    *others, platform_messages, hidden, edited_at, people = rare
    return message.altered(
        platform_messages=platform_messages if platform_messages is None else _read_list(platform_messages),
        people=people if people is None else _read_people(people),
        hidden_because=hidden if hidden is None else _HIDDEN[hidden],
        edited_at=edited_at if edited_at is None else from_micros(edited_at),
        **_rare_members(others, content),
    )


def _model_message_from_row(row: MessageRow) -> ModelMessage:
    message_id, sent_at, brief, content, calls, reasoning, reasoning_content = row
    role, call_id, tool, effect, finish_reason, platform_id, rare = _read_spoken_brief(brief)
    spoken = ModelMessage(
        role,
        content,
        message_id,
        sent_at / MICROS,
        False,  # noqa: FBT003 -- by its name it takes longer
        call_id,
        tool,
        effect,
        finish_reason,
        reasoning,
        reasoning_content,
        platform_id,
        calls if calls is None else _read_json(calls),
    )
    return spoken if rare is None else msgspec.structs.replace(spoken, **_rare_members(rare, content))


def _rare_members(rare: Sequence[Any], content: str) -> dict[str, Any]:
    """Return the members that few messages have, by their names."""
    observed, is_json, *texts = rare
    members = {
        name: read(text)
        for (name, read), text in zip(_READ_RARE.items(), texts, strict=True)
        if text is not None
    }
    return {**members, "observed": observed != 0, "content": _read_json(content) if is_json else content}
