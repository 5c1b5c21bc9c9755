"""`Message`: one stored message of a session, and windows, versions and previews made of messages.

A message comes from a person, a model, a tool or the runtime. Its content is text or, where a platform or a
model speaks in parts, JSON; both come back exactly as they were given.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypedDict, cast

import msgspec

from gateway_sessions.core.display_text import shorten_text
from gateway_sessions.core.instants import parse_instant, to_micros
from gateway_sessions.errors import InvalidInputError

Content: TypeAlias = str | list[Any] | dict[str, Any] | None

NO_EXTRA: Final[Mapping[str, Any]] = MappingProxyType({})
STEERED: Final = "steered"
"""The extra member of a message that was steered into a running turn."""
UNPROMPTED: Final = "unprompted"
"""The extra member of a message that the gateway said by itself, in answer to nothing."""
SEVERAL_IDS: Final = "platform_message_ids"
"""The extra member with the platform's ids of the messages that the row was made of, if there are several."""
MICROS: Final = 1_000_000
# Three quarters of a terminal's line, which also shows a time.
MAX_PREVIEW: Final = 60
# A terminal's line.
MAX_BRIEF: Final = 80
PREVIEW_READS: Final = 1000
"""The characters of a text that its preview may read, so that a preview of a long text stays cheap."""


class Role(StrEnum):
    """The roles with a meaning to this package; messages of other roles are never sent to a model."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    SYSTEM = "system"
    SESSION_META = "session_meta"  # what a session began with, for people who look; never sent to a model


class Hidden(StrEnum):
    """The reason why a message is no longer part of the conversation."""

    REWOUND = "rewound"  # a person took it back; can be undone
    COMPACTED = "compacted"  # a summary stands for it; still found by a search
    RETRACTED = "retracted"  # deleted on its platform


class Message(msgspec.Struct, frozen=True, gc=False, repr_omit_defaults=True):
    """One message of a session, as stored.

    The fields that few messages have stand last, so that most messages are made quickly.
    """

    role: str
    content: Content = None
    message_id: int = 0
    """The id, which rises over the whole store in the order of commits; 0: not stored yet."""
    session_id: str = ""
    seq: int = 0
    """The place in the session, counted from 1 without gaps; 0: not stored yet."""
    sent_at: datetime | None = None
    observed: bool = False
    """Whether the message was seen in a room and not addressed to the agent."""
    author: str | None = None
    """The author, as an owner: the person who said it, or the person to whom an agent said it in private.

    None: the message belongs to the owner of its session.
    """
    from_lane: str | None = None
    """The key of the lane that the message was said on, even if its session has moved since."""
    tool_call_id: str | None = None
    tool_name: str | None = None
    effect_disposition: str | None = None
    """The fate of the effects of a tool call, as the agent has noted it."""
    token_count: int | None = None
    finish_reason: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    """The reasoning as some endpoints return it beside the answer."""
    platform_message_id: str | None = None
    tool_calls: list[Any] | None = None
    reasoning_details: Any = None
    """The parts of the reasoning as some endpoints return them."""
    codex_reasoning_items: Any = None
    """The reasoning items of an agent that works with Codex."""
    codex_message_items: Any = None
    """The message items of an agent that works with Codex."""
    api_content: Content = None
    """The content that the model gets in place of `content`, where the two differ."""
    hidden_because: Hidden | None = None
    """The reason why the message is hidden; None: it is not hidden."""
    edited_at: datetime | None = None
    platform_messages: list[Any] | None = None
    """The platform messages that the row was made of, if the row alone does not tell them."""
    people: tuple[str, ...] | None = None
    """The other people whose words a summary sums up; None for other messages."""
    extra: Mapping[str, Any] = NO_EXTRA
    """The members that this version does not know; they are given back unchanged."""

    @property
    def active(self) -> bool:
        """Whether the message is part of the conversation."""
        return self.hidden_because is None

    @property
    def text(self) -> str:
        """The part of the content that a person can read."""
        return text_of(self.content)

    @property
    def timestamp(self) -> float | None:
        """The instant of sending, in seconds since the epoch."""
        return None if self.sent_at is None else to_micros(self.sent_at) / MICROS

    def altered(self, **changes: Any) -> Message:
        """Return the message with other values in some fields."""
        return msgspec.structs.replace(self, **changes)


class ModelMessage(msgspec.Struct, frozen=True, gc=False):
    """The fields of a message that may matter to a model: much faster to make than the whole message."""

    role: str
    content: Content = None
    message_id: int = 0
    timestamp: float | None = None
    observed: bool = False
    tool_call_id: str | None = None
    tool_name: str | None = None
    effect_disposition: str | None = None
    finish_reason: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    platform_message_id: str | None = None
    tool_calls: list[Any] | None = None
    reasoning_details: Any = None
    codex_reasoning_items: Any = None
    codex_message_items: Any = None
    api_content: Content = None
    extra: Mapping[str, Any] = NO_EXTRA
    hidden_because: Hidden | None = None


@dataclass(frozen=True, slots=True)
class MessageWindow:
    """A message and its neighbours, in order; empty if there is no such message."""

    messages: tuple[Message, ...] = ()
    messages_before: int = 0
    """The number of neighbours before the message; fewer than asked for at the beginning of the session."""
    messages_after: int = 0
    """The number of neighbours after the message; fewer than asked for at the end of the session."""


@dataclass(frozen=True, slots=True)
class AnchoredView:
    """A window, and the messages with which the session around it began and ended."""

    window: MessageWindow = MessageWindow()
    """The messages around the anchor."""
    bookend_start: tuple[Message, ...] = ()
    """The messages with which the session began."""
    bookend_end: tuple[Message, ...] = ()
    """The messages with which the session ended."""


@dataclass(frozen=True, slots=True)
class MessageVersion:
    """A content of a message that an edit has replaced."""

    version: int
    content: Content
    replaced_at: datetime


@dataclass(frozen=True, slots=True)
class UserTurn:
    """A person's message, briefly."""

    message_id: int
    seq: int
    """The place of the message in its session."""
    sent_at: datetime
    preview: str
    """The first line of the message."""


@dataclass(frozen=True, slots=True)
class Rewind:
    """The report of a rewind."""

    rewound_count: int
    """The number of messages that the rewind has hidden."""
    turns_undone: int
    """The number of these messages that a person addressed to the agent."""
    target_text: str
    """The text of the first of these, for another try."""
    target_message_id: int
    """The id of the first hidden message."""
    new_head_id: int | None
    """The id of the last message that is left; None if none is."""


class MessageMembers(TypedDict, total=False):
    """The optional members of a message, besides role and content."""

    observed: bool
    author: str | None
    from_lane: str | None
    tool_call_id: str | None
    tool_name: str | None
    effect_disposition: str | None
    token_count: int | None
    finish_reason: str | None
    reasoning: str | None
    reasoning_content: str | None
    platform_message_id: str | None
    tool_calls: list[Any] | None
    reasoning_details: Any
    codex_reasoning_items: Any
    codex_message_items: Any
    api_content: Content
    extra: Mapping[str, Any]


_OURS: Final = frozenset({"message_id", "session_id", "seq", "extra", "author", "from_lane", "people"})
_FROM_CHAT: Final = frozenset(Message.__struct_fields__) - _OURS
_OTHER_NAMES: Final = frozenset({"timestamp", "message_id", "display_content", "session_id", "seq"})


def message_from(given: Message | Mapping[str, Any]) -> Message:
    """Return the message that a chat program passes on as a mapping; unknown members are kept in `extra`.

    `timestamp` is the instant of sending, and `message_id` the platform's id.
    """
    if isinstance(given, Message):
        return given
    if not isinstance(given, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers exist
        problem = f"a message must be a Message or a mapping, not {type(given).__name__}"
        raise InvalidInputError(problem)
    if "role" not in given:
        raise InvalidInputError("a message must have a role")  # noqa: TRY003 -- there is nothing to add
    known = {name: value for name, value in given.items() if name in _FROM_CHAT}
    if "timestamp" in given:
        known["sent_at"] = given["timestamp"]
    name = given.get("platform_message_id", given.get("message_id"))
    known["platform_message_id"] = None if name is None else str(name)
    if "display_content" in given:
        known["api_content"], known["content"] = given.get("content"), given["display_content"]
    known["sent_at"] = parse_instant("timestamp", known.get("sent_at"))
    known["edited_at"] = parse_instant("edited_at", known.get("edited_at"))
    known["observed"] = bool(known.get("observed"))
    extra = {name: one for name, one in given.items() if name not in _FROM_CHAT and name not in _OTHER_NAMES}
    return Message(**known, extra=extra or NO_EXTRA)


def text_of(content: Content) -> str:
    """Return the text of a content that a person can read, each part on a line of its own."""
    return content if isinstance(content, str) else "\n".join(_text_parts(content))


def preview_of(text: str) -> str | None:
    """Return the beginning of a text on one line; None if no character of it is visible."""
    line = _first_line(text)
    return line[:MAX_PREVIEW] + "..." if len(line) > MAX_PREVIEW else line or None


def brief_line(text: str) -> str:
    """Return the beginning of a text on one line of at most 80 characters."""
    return shorten_text(_first_line(text), MAX_BRIEF)


def _first_line(text: str) -> str:
    return " ".join(text[:PREVIEW_READS].splitlines()).strip()


def _text_parts(content: object) -> Iterator[str]:
    match content:
        case str():
            yield content
        case {"text": str(text)}:
            yield text
        case dict():
            yield from _text_parts(cast("dict[str, object]", content).get("content"))
        case list() | tuple():
            for part in cast("Iterable[object]", content):
                yield from _text_parts(part)
        case _:
            return
