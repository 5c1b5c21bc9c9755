"""Replies of agents, outbound messages, their targets, and the capabilities of a platform.

A message on its way out: what is said, to whom, and what the platform can do with it.

Target and message are stored before anything is sent, so that a reply still finds its way after a crash.

What an agent answers: the message that people get, and the row that the transcript gets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from datetime import timedelta
from enum import StrEnum
from types import MappingProxyType, NoneType
from typing import Any, Final

import msgspec
from msgspec.structs import force_setattr

from gateway_sessions.core.checks import check_each, check_types, plain_text
from gateway_sessions.core.identity.source import SessionSource
from gateway_sessions.core.queue.inbound import Attachment, AttachmentKind, InboundMessage
from gateway_sessions.core.text import check_choice, storable_text
from gateway_sessions.core.transcript.messages import NO_EXTRA, Content, Message, Role, message_of
from gateway_sessions.errors import InvalidInputError

GROWING: Final = "stream:"
"""What the idempotency key of a message begins with that is sent to grow: nothing of it is promised."""
LEAST_MAX_LENGTH: Final = 64
"""A shorter limit leaves no room for a fence that is opened again, or for a mark."""


class TextFormat(StrEnum):
    """How a text is to be read."""

    PLAIN = "plain"
    MARKDOWN = "markdown"


class LengthUnit(StrEnum):
    """What a platform counts when it limits the length of a text."""

    CHARACTERS = "characters"
    UTF16 = "utf16"
    BYTES = "bytes"

    def length(self, text: str) -> int:
        """How long a text is, counted like this."""
        if self is LengthUnit.CHARACTERS:
            return len(text)
        if self is LengthUnit.UTF16:
            return len(text.encode("utf-16-le", "surrogatepass")) // 2
        return len(text.encode("utf-8", "surrogatepass"))


class ReplyTarget(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where a reply goes: all that an adapter needs to find the place again, in another process as well."""

    platform: str
    account: str = ""
    """The adapter that sends it, where one platform has several."""
    chat_id: str = ""
    user_id: str | None = None
    """The person, for platforms that have no chats."""
    thread_id: str | None = None
    reply_to: str | None = None
    """The id of the message that is answered."""
    metadata: Mapping[str, Any] = NO_EXTRA
    """What the adapter wanted back with the reply."""

    def __post_init__(self) -> None:
        check_types("a target", self, _OF_TARGET)

    @classmethod
    def answering(cls, message: InboundMessage) -> ReplyTarget:
        """The place that a message came from."""
        target = cls.at(message.source, account=message.account)
        return msgspec.structs.replace(target, reply_to=message.message_id, metadata=message.metadata)

    @classmethod
    def at(cls, source: SessionSource, *, account: str = "") -> ReplyTarget:
        """A place of which only the origin is known, for what is said without having been asked."""
        return cls(
            platform=source.platform,
            account=account or source.account,
            chat_id=source.chat_id,
            user_id=source.user_id or source.user_id_alt,
            thread_id=source.thread_id,
        )


class OutboundMessage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something to be said."""

    text: str = ""
    attachments: tuple[Attachment, ...] = ()
    is_notice: bool = False
    """Said by the gateway and not by the agent; an adapter may show it smaller."""
    format: TextFormat = TextFormat.PLAIN
    replaces: str | None = None
    """The message on the platform that this one takes the place of, where a reply was shown as it grew."""

    def __post_init__(self) -> None:
        check_types("a reply", self, _OF_OUTBOUND)
        # What is sent at once must not differ from what a later try reads from the database.
        if (text := storable_text(self.text)) != self.text:
            force_setattr(self, "text", text)

    @property
    def is_empty(self) -> bool:
        """Whether it says nothing at all."""
        return not self.text.strip() and not self.attachments

    def instead_of(self, message_id: str | None) -> OutboundMessage:
        """The same message in the place of another one, or of none."""
        return msgspec.structs.replace(self, replaces=message_id)

    def with_text(self, text: str) -> OutboundMessage:
        """The same message with another text."""
        return msgspec.structs.replace(self, text=text)


class Growing(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The message on a platform in which the reply of a turn grows."""

    number: int
    """Counts those of the turn: behind what has taken the place of one, the reply grows in a new one."""
    message_id: str | None = None
    """Its id on the platform; None: something else has its place."""


_PERHAPS_TEXT: Final = (str, NoneType)
_OF_TARGET: Final = MappingProxyType(
    {
        "platform": (str,),
        "account": (str,),
        "chat_id": (str,),
        "user_id": _PERHAPS_TEXT,
        "thread_id": _PERHAPS_TEXT,
        "reply_to": _PERHAPS_TEXT,
    }
)
_OF_OUTBOUND: Final = MappingProxyType({"text": (str,), "is_notice": (bool,), "replaces": _PERHAPS_TEXT})


def told(attachment: Attachment) -> str:
    """Return what people are told of an attachment that they cannot be shown."""
    return " ".join(filter(None, (attachment.name, attachment.url))) or "unnamed"


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterCapabilities:
    """What a platform can do, as far as anybody here asks."""

    edit: bool = False
    """What was sent can be changed, so that a reply can grow while it is made."""
    typing: bool = False
    idempotent_send: bool = False
    """What is sent a second time with the same idempotency key is shown once."""
    max_length: int | None = None
    """The longest text of one message; longer ones are sent in parts."""
    length_unit: LengthUnit = LengthUnit.CHARACTERS
    min_edit_interval: timedelta = timedelta(seconds=1)
    attachments: frozenset[AttachmentKind] | None = None
    """The kinds of attachments that are shown; None: all. Of others people are told in words."""
    names: frozenset[str] = frozenset()
    """What the account is called, without @: a command for another name is nobody's business here.

    Empty: it does not tell, and every command is taken to be for it.
    """
    hyphens_in_commands: bool = True
    """Whether people can tap a command that has a hyphen in it; else they are told it with an underscore."""

    def __post_init__(self) -> None:
        if self.max_length is not None and self.max_length < LEAST_MAX_LENGTH:
            problem = f"max_length = {self.max_length} must be at least {LEAST_MAX_LENGTH}, or None"
            raise InvalidInputError(problem)

    def in_words(self, message: OutboundMessage) -> OutboundMessage:
        """Return the message with a line of text for each attachment that cannot be shown."""
        shown = self.attachments
        lost = [one for one in message.attachments if shown is not None and one.kind not in shown]
        if not lost:
            return message
        lines = [message.text, *(f"[{one.kind}: {told(one)}]" for one in lost)]
        kept = tuple(one for one in message.attachments if one not in lost)
        return msgspec.structs.replace(message, text="\n".join(filter(None, lines)), attachments=kept)

    def is_called(self, name: str | None) -> bool:
        """Tell whether a command for that name is for this account; None: it names nobody."""
        return (
            not name
            or not self.names
            or name.lower() in {one.lower().removeprefix("@") for one in self.names}
        )

    def fits(self, text: str) -> bool:
        """Whether a text can be sent in one message."""
        return self.max_length is None or self.length_unit.length(text) <= self.max_length


NOTHING: Final = "[Nothing was said.]"
"""What a model is told it answered, where it kept silent: not that the turn was cut off."""

_ASSISTANT: Final = str(Role.ASSISTANT)
_OWN: Final = frozenset({"role", "content", "finish_reason", "reasoning"})


@dataclass(frozen=True, slots=True)
class Reply:
    """What an agent says, and what is kept of how it came to say it."""

    text: str = ""
    _: KW_ONLY
    attachments: tuple[Attachment, ...] = ()
    format: TextFormat = TextFormat.PLAIN
    silent: bool = False
    """Nothing of it is sent; the transcript keeps it all the same."""
    recorded: bool = False
    """The agent has appended the row that says this; the turn adds none."""
    finish_reason: str | None = None
    reasoning: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Further members of its row, as a message has them (`api_content`, `reasoning_details`, any other)."""

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers exist
            problem = f"the text of a reply must be a str, not {type(self.text).__name__}"
            raise InvalidInputError(problem)
        object.__setattr__(self, "text", plain_text(self.text))
        object.__setattr__(self, "attachments", tuple(self.attachments))
        if self.attachments:
            check_each("the attachments of a reply", self.attachments, Attachment)
        if not isinstance(self.format, TextFormat):  # pyright: ignore[reportUnnecessaryIsInstance]  # the same
            object.__setattr__(self, "format", check_choice("format", self.format, TextFormat))
        if own := _OWN & self.extra.keys():
            problem = f"extra must leave {', '.join(sorted(own))} to the reply itself"
            raise InvalidInputError(problem)

    @property
    def is_empty(self) -> bool:
        """Whether it says nothing at all."""
        return not self.text.strip() and not self.attachments

    @property
    def message(self) -> OutboundMessage | None:
        """What is sent of it; None if nothing is."""
        if self.silent or self.is_empty:
            return None
        return OutboundMessage(text=self.text, attachments=self.attachments, format=self.format)

    @property
    def row(self) -> Message | None:
        """The row of the transcript that says it; None if the agent has appended that itself."""
        if self.recorded:
            return None
        if not self.extra and not self.is_empty:
            return Message(
                _ASSISTANT, self._content(), finish_reason=self.finish_reason, reasoning=self.reasoning
            )
        return message_of(
            {
                **({"api_content": NOTHING} if self.is_empty else {}),
                **self.extra,
                "role": Role.ASSISTANT,
                "content": self._content(),
                "finish_reason": self.finish_reason,
                "reasoning": self.reasoning,
            }
        )

    def _content(self) -> Content:
        if not self.attachments:
            return self.text
        said = [{"type": "text", "text": self.text}] if self.text else []
        return [*said, *({"type": "attachment", **msgspec.to_builtins(one)} for one in self.attachments)]
