"""Replies of agents, outbound messages, their targets, and the capabilities of a platform.

Target and message are stored before they are sent, so that a reply still finds its way after a crash.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final

import msgspec
from msgspec.structs import force_setattr

from gateway_sessions.core.checks import check_items, check_types, field_types, plain_text
from gateway_sessions.core.identity.source import SessionSource
from gateway_sessions.core.queue.inbound import Attachment, AttachmentKind, InboundMessage
from gateway_sessions.core.storable_text import check_choice, storable_text
from gateway_sessions.core.transcript.messages import NO_EXTRA, Content, Message, Role, message_from
from gateway_sessions.errors import InvalidInputError

GROWING: Final = "stream:"
"""The beginning of the idempotency key of a message that is sent to grow: its text is not final."""
LEAST_MAX_LENGTH: Final = 64
"""The least `max_length`: a shorter limit leaves no room for a fence that is opened again, or for a mark."""


class TextFormat(StrEnum):
    """The format of a text."""

    PLAIN = "plain"
    MARKDOWN = "markdown"


class LengthUnit(StrEnum):
    """The unit in which a platform limits the length of a text."""

    CHARACTERS = "characters"
    UTF16 = "utf16"
    BYTES = "bytes"

    def length(self, text: str) -> int:
        """Return the length of a text in this unit."""
        if self is LengthUnit.CHARACTERS:
            return len(text)
        if self is LengthUnit.UTF16:
            return len(text.encode("utf-16-le", "surrogatepass")) // 2
        return len(text.encode("utf-8", "surrogatepass"))


class ReplyTarget(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The target of a reply: all facts by which an adapter finds the place again, even in another process."""

    platform: str
    account: str = ""
    """The account that sends the reply; empty: the account without a name."""
    chat_id: str = ""
    user_id: str | None = None
    """The person's id, for platforms that have no chats."""
    thread_id: str | None = None
    reply_to: str | None = None
    """The id of the message that is answered."""
    metadata: Mapping[str, Any] = NO_EXTRA
    """The adapter's own facts from the answered message, given back unchanged."""

    def __post_init__(self) -> None:
        check_types("a target", self, _OF_TARGET)

    @classmethod
    def answering(cls, message: InboundMessage) -> ReplyTarget:
        """Return the target of a reply to a message."""
        target = cls.at(message.source, account=message.account)
        return msgspec.structs.replace(target, reply_to=message.message_id, metadata=message.metadata)

    @classmethod
    def at(cls, source: SessionSource, *, account: str = "") -> ReplyTarget:
        """Return the target of an unprompted message, of which only the origin is known."""
        return cls(
            platform=source.platform,
            account=account or source.account,
            chat_id=source.chat_id,
            user_id=source.user_id or source.user_id_alt,
            thread_id=source.thread_id,
        )


class OutboundMessage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message that is sent to people."""

    text: str = ""
    attachments: tuple[Attachment, ...] = ()
    is_notice: bool = False
    """Whether the gateway and not the agent says it; an adapter may show a notice smaller."""
    format: TextFormat = TextFormat.PLAIN
    replaces: str | None = None
    """The platform's id of the message that this one replaces, if a reply was shown as it grew."""

    def __post_init__(self) -> None:
        check_types("a reply", self, _OF_OUTBOUND)
        # The text of the first try must equal the text that a later try reads from the database.
        if (text := storable_text(self.text)) != self.text:
            force_setattr(self, "text", text)

    @property
    def is_empty(self) -> bool:
        """Whether the message has neither text nor attachments."""
        return not self.text.strip() and not self.attachments

    def instead_of(self, message_id: str | None) -> OutboundMessage:
        """Return the same message in the place of another one; None: in no message's place."""
        return msgspec.structs.replace(self, replaces=message_id)

    def with_text(self, text: str) -> OutboundMessage:
        """Return the same message with another text."""
        return msgspec.structs.replace(self, text=text)


class Growing(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The message on a platform in which the reply of a turn grows."""

    number: int
    """The number of this message in its turn: after a replaced one, the reply grows in a new message."""
    message_id: str | None = None
    """The message's id on the platform; None: another message has taken its place."""


_OF_TARGET: Final = field_types(
    ReplyTarget, "platform", "account", "chat_id", "user_id", "thread_id", "reply_to"
)
_OF_OUTBOUND: Final = field_types(OutboundMessage, "text", "is_notice", "replaces")


def describe_attachment(attachment: Attachment) -> str:
    """Return the words for an attachment that a platform cannot show."""
    return " ".join(filter(None, (attachment.name, attachment.url))) or "unnamed"


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterCapabilities:
    """The capabilities of a platform, as far as the gateway uses them."""

    edit: bool = False
    """Whether a sent message can be changed, so that a reply can grow while it is made."""
    typing: bool = False
    """Whether the platform can show that somebody writes."""
    idempotent_send: bool = False
    """Whether the platform shows a message once that is sent twice with the same idempotency key."""
    max_length: int | None = None
    """The longest text of one message, in `length_unit`; longer texts are sent in parts. None: no limit."""
    length_unit: LengthUnit = LengthUnit.CHARACTERS
    """The unit in which the platform measures a text."""
    min_edit_interval: timedelta = timedelta(seconds=1)
    """The least time between two edits of a message."""
    attachments: frozenset[AttachmentKind] | None = None
    """The kinds of attachments that the platform shows; None: all. Others are described in words."""
    names: frozenset[str] = frozenset()
    """The names of the account, without @; a command that addresses another name is ignored.

    Empty: unknown, and every command is taken to be for this account.
    """
    hyphens_in_commands: bool = True
    """Whether people can tap a command with a hyphen; if not, commands are shown with an underscore."""

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
        lines = [message.text, *(f"[{one.kind}: {describe_attachment(one)}]" for one in lost)]
        kept = tuple(one for one in message.attachments if one not in lost)
        return msgspec.structs.replace(message, text="\n".join(filter(None, lines)), attachments=kept)

    def is_called(self, name: str | None) -> bool:
        """Return whether a command that addresses this name is for this account; None addresses all."""
        return (
            not name
            or not self.names
            or name.lower() in {one.lower().removeprefix("@") for one in self.names}
        )

    def fits(self, text: str) -> bool:
        """Return whether a text can be sent in one message."""
        return self.max_length is None or self.length_unit.length(text) <= self.max_length


NOTHING: Final = "[Nothing was said.]"
"""The answer that a model sees of itself where it kept silent, so that the turn does not look cut off."""

_ASSISTANT: Final = str(Role.ASSISTANT)
_OWN: Final = frozenset({"role", "content", "finish_reason", "reasoning"})


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply of an agent, and the facts about it that the transcript keeps."""

    text: str = ""
    _: KW_ONLY
    attachments: tuple[Attachment, ...] = ()
    format: TextFormat = TextFormat.PLAIN
    silent: bool = False
    """Whether nothing is sent; the transcript keeps the reply all the same."""
    recorded: bool = False
    """Whether the agent has appended the reply's row itself, so that the turn adds none."""
    finish_reason: str | None = None
    """Why the model stopped, in the provider's word."""
    reasoning: str | None = None
    """The model's reasoning, as text."""
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Further members of the row, as a message has them (`api_content`, `reasoning_details`, any other)."""

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers exist
            problem = f"the text of a reply must be a str, not {type(self.text).__name__}"
            raise InvalidInputError(problem)
        object.__setattr__(self, "text", plain_text(self.text))
        object.__setattr__(self, "attachments", tuple(self.attachments))
        if self.attachments:
            check_items("the attachments of a reply", self.attachments, Attachment)
        if not isinstance(self.format, TextFormat):  # pyright: ignore[reportUnnecessaryIsInstance]  # the same
            object.__setattr__(self, "format", check_choice("format", self.format, TextFormat))
        if own := _OWN & self.extra.keys():
            problem = f"extra must leave {', '.join(sorted(own))} to the reply itself"
            raise InvalidInputError(problem)

    @property
    def is_empty(self) -> bool:
        """Whether the reply has neither text nor attachments."""
        return not self.text.strip() and not self.attachments

    @property
    def message(self) -> OutboundMessage | None:
        """The message that is sent; None if nothing is."""
        if self.silent or self.is_empty:
            return None
        return OutboundMessage(text=self.text, attachments=self.attachments, format=self.format)

    @property
    def row(self) -> Message | None:
        """The transcript row of the reply; None if the agent has appended that row itself."""
        if self.recorded:
            return None
        if not self.extra and not self.is_empty:
            return Message(
                _ASSISTANT, self._row_content(), finish_reason=self.finish_reason, reasoning=self.reasoning
            )
        return message_from(
            {
                **({"api_content": NOTHING} if self.is_empty else {}),
                **self.extra,
                "role": Role.ASSISTANT,
                "content": self._row_content(),
                "finish_reason": self.finish_reason,
                "reasoning": self.reasoning,
            }
        )

    def _row_content(self) -> Content:
        if not self.attachments:
            return self.text
        parts = [{"type": "text", "text": self.text}] if self.text else []
        return [*parts, *({"type": "attachment", **msgspec.to_builtins(one)} for one in self.attachments)]
