"""A message as a row of the database, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, cast

import msgspec

from gateway_sessions.core.instants import from_micros, to_micros
from gateway_sessions.core.messages import (
    MICROS,
    NO_EXTRA,
    Content,
    Hidden,
    Message,
    Role,
    Spoken,
    preview_of,
    text_of,
)
from gateway_sessions.core.session import check_tokens
from gateway_sessions.core.storable import Intake, check_choice, check_word
from gateway_sessions.errors import InvalidInputError, StorageCorruptError
from gateway_sessions.ports import Row

MAX_ROLE: Final = 64
PLAIN: Final = 15
"""So many columns of a row, as queries give it, are values of the message as they stand."""
RARE: Final = (None,) * 9
SPOKEN_PLAIN: Final = 12
"""The same for what matters to a model."""
SPOKEN_RARE: Final = (None,) * 6
_HIDDEN: Final = {str(reason): reason for reason in Hidden}
_DAMAGE: Final = (KeyError, TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError)
_read_json = msgspec.json.Decoder().decode
_make_message: Callable[..., Message] = Message
_make_spoken: Callable[..., Spoken] = Spoken


@dataclass(frozen=True, slots=True)
class Stored:
    """What a message comes to in the database."""

    columns: tuple[object, ...]
    """From `role` on, in the order of the statement that adds it."""
    sent_at: int
    active: bool
    calls: int
    size: int
    preview: str | None
    replaced: bool
    """Whether it held characters that no database can."""


def encode(message: Message, now: datetime) -> Stored:
    """The message as it will be stored; `InvalidInputError` for what cannot be."""
    intake = Intake()
    text, parts = content_columns(intake, message.content)
    calls = _calls(message.tool_calls)
    sent_at = to_micros(message.sent_at or now)
    hidden = message.hidden_because
    columns = (
        check_word("role", message.role, MAX_ROLE),
        text,
        parts,
        intake.text("tool_call_id", message.tool_call_id),
        intake.json("tool_calls", calls),
        intake.text("tool_name", message.tool_name),
        intake.text("effect_disposition", message.effect_disposition),
        sent_at,
        None if message.token_count is None else check_tokens("token_count", message.token_count),
        intake.text("finish_reason", message.finish_reason),
        intake.text("reasoning", message.reasoning),
        intake.text("reasoning_content", message.reasoning_content),
        intake.json("reasoning_details", message.reasoning_details),
        intake.json("codex_reasoning_items", message.codex_reasoning_items),
        intake.json("codex_message_items", message.codex_message_items),
        intake.json("api_content", message.api_content),
        intake.text("platform_message_id", message.platform_message_id),
        int(message.observed),
        None if hidden is None else str(check_choice("hidden_because", hidden, Hidden)),
        None if message.edited_at is None else to_micros(message.edited_at),
        intake.json("extra", dict(message.extra) or None),
    )
    return Stored(
        columns,
        sent_at=sent_at,
        active=hidden is None,
        calls=len(calls or ()),
        size=intake.size,
        preview=preview_of(text) if text and message.role == Role.USER and hidden is None else None,
        replaced=intake.replaced,
    )


def _calls(calls: object) -> list[object] | None:
    """The calls as a list; one that is not in a list is a list of one."""
    match calls:
        case None:
            return None
        case list() | tuple():
            return list(cast("Sequence[object]", calls)) or None
        case dict():
            return [cast("object", calls)]
        case _:
            raise InvalidInputError("tool_calls must be a list")  # noqa: TRY003 -- there is nothing to add


def content_columns(intake: Intake, content: Content) -> tuple[str | None, str | None]:
    """Plain text as it is; of anything else the text in it and the whole of it as JSON."""
    if content is None or isinstance(content, str):
        return intake.text("content", content), None
    if not isinstance(content, (list, tuple, dict)):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers exist
        problem = f"content must be text, a list or a mapping, not {type(content).__name__}"
        raise InvalidInputError(problem)
    parts = intake.json("content", content)
    return intake.text("content", text_of(content)), parts


def decode_all(rows: Iterable[Row]) -> list[Message]:
    """The messages in rows; `StorageCorruptError` if one holds what no version of this program writes."""
    return [decode(row) for row in rows]


def decode(row: Row) -> Message:
    """The message in a row of the columns that all queries for messages ask for."""
    try:
        return _message(row)
    except _DAMAGE as error:
        raise _damaged(row, error) from error


def decode_spoken(rows: Iterable[Row]) -> list[Spoken]:
    """What of the messages in rows matters to a model; `StorageCorruptError` as for the whole of them."""
    return [_decode_spoken(row) for row in rows]


def _decode_spoken(row: Row) -> Spoken:
    try:
        return _spoken(row)
    except _DAMAGE as error:
        raise _damaged(row, error) from error


def _message(row: Row) -> Message:
    observed, sent_at = row[6] != 0, from_micros(row[5])
    rare = row[PLAIN:]
    if rare == RARE:
        return _make_message(*row[:5], sent_at, observed, *row[7:PLAIN])
    *members, parts, hidden, edited_at, extra = rare
    return _make_message(
        row[0],
        row[1] if parts is None else _read_json(parts),
        *row[2:5],
        sent_at,
        observed,
        *row[7:PLAIN],
        *[one if one is None else _read_json(one) for one in members],
        hidden if hidden is None else _HIDDEN[hidden],
        edited_at if edited_at is None else from_micros(edited_at),
        NO_EXTRA if extra is None else _read_json(extra),
    )


def _spoken(row: Row) -> Spoken:
    seconds, observed = row[3] / MICROS, row[4] != 0
    calls = row[SPOKEN_PLAIN]
    if calls is not None:
        calls = _read_json(calls)
    rare = row[SPOKEN_PLAIN + 1 :]
    if rare == SPOKEN_RARE:
        return _make_spoken(*row[:3], seconds, observed, *row[5:SPOKEN_PLAIN], calls)
    *members, extra, parts = rare
    return _make_spoken(
        row[0],
        row[1] if parts is None else _read_json(parts),
        row[2],
        seconds,
        observed,
        *row[5:SPOKEN_PLAIN],
        calls,
        *[one if one is None else _read_json(one) for one in members],
        NO_EXTRA if extra is None else _read_json(extra),
    )


def _damaged(row: Row, error: Exception) -> StorageCorruptError:
    problem = f"it is damaged ({type(error).__name__}: {error}); it was left as it is"
    return StorageCorruptError(f"message {row[2]}", problem)
