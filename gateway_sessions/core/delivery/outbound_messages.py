"""Replies of agents, outbound messages and their targets.

Target and message are stored before they are sent, so that a reply still finds its way after a crash.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from enum import StrEnum
from typing import Any, Final

import msgspec
from msgspec.structs import force_setattr

from gateway_sessions.core.checks import check_items, field_types, plain_text
from gateway_sessions.core.identity.source import SessionSource
from gateway_sessions.core.queue.inbound import OWN_IDS, Attachment, InboundMessage
from gateway_sessions.core.storable_text import check_choice, storable_text
from gateway_sessions.core.transcript.messages import NO_EXTRA, Content, Message, Role, message_from
from gateway_sessions.errors import InvalidInputError

GROWING: Final = "stream:"
"""The beginning of the idempotency key of a message that is sent to grow: its text is not final."""


class TextFormat(StrEnum):
    """The format of a text."""

    PLAIN = "plain"
    MARKDOWN = "markdown"


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
        _OF_TARGET.check("a target", self)

    @classmethod
    def answering(cls, message: InboundMessage) -> ReplyTarget:
        """Return the target of a reply to a message."""
        target = cls.at(message.source, account=message.account)
        own = (message.message_id or "").startswith(OWN_IDS)  # no platform knows them, and none must be asked
        reply_to = None if own else message.message_id
        return msgspec.structs.replace(target, reply_to=reply_to, metadata=message.metadata)

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


class Button(msgspec.Struct, frozen=True, omit_defaults=True):
    """A button below a message. A press comes as an `InboundMessage` with the value as its `action`."""

    label: str
    """The words on the button."""
    value: str = ""
    """What the press tells the program; empty: the label."""
    url: str | None = None
    """The page that the button opens; such a press comes to nobody."""

    def __post_init__(self) -> None:
        _OF_BUTTON.check("a button", self)
        if not self.label.strip():
            problem = "a button must have a label"
            raise InvalidInputError(problem)

    @property
    def action(self) -> str:
        """Return what a press tells the program."""
        return self.value or self.label


class OutboundMessage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message that is sent to people."""

    text: str = ""
    """What people read, in `format`; if there is `markup`, the same as plain text."""
    markup: str | None = None
    """The text in the platform's own markup, as the gateway renders it for adapters that have a `dialect`."""
    buttons: tuple[Button, ...] = ()
    """The buttons below the message; on a platform without buttons they are listed as text."""
    extra: Mapping[str, Any] = NO_EXTRA
    """What only one platform understands, as JSON under the platform's name, such as blocks or cards.

    The adapter of that platform adds it to its call as it is; all others leave it out.
    """
    attachments: tuple[Attachment, ...] = ()
    is_notice: bool = False
    """Whether the gateway and not the agent says it; an adapter may show a notice smaller."""
    notice_code: str | None = None
    """What the notice is about, in a word that stays the same; None: it is the program's own text."""
    notice_arguments: Mapping[str, Any] = NO_EXTRA
    """The values of which the notice was made, as JSON; a part of a longer notice may have none."""
    worded: bool = False
    """Whether the words of the notice are final: `Gateway(wording=…)` was asked, or they are a part."""
    format: TextFormat = TextFormat.PLAIN
    replaces: str | None = None
    """The platform's id of the message that this one replaces, if a reply was shown as it grew."""

    def __post_init__(self) -> None:
        _OF_OUTBOUND.check("a reply", self)
        # The text of the first try must equal the text that a later try reads from the database.
        if (text := storable_text(self.text)) != self.text:
            force_setattr(self, "text", text)

    @property
    def is_empty(self) -> bool:
        """Whether the message has neither text nor attachments nor anything for one platform."""
        return not (self.text.strip() or self.attachments or self.extra)

    def instead_of(self, message_id: str | None) -> OutboundMessage:
        """Return the same message in the place of another one; None: in no message's place."""
        return msgspec.structs.replace(self, replaces=message_id)

    def with_text(self, text: str) -> OutboundMessage:
        """Return the same message with another text, without markup."""
        return msgspec.structs.replace(self, text=text, markup=None)


class Growing(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The message on a platform in which the reply of a turn grows."""

    number: int
    """The number of this message in its turn: after a replaced one, the reply grows in a new message."""
    message_id: str | None = None
    """The message's id on the platform; None: another message has taken its place."""


_OF_TARGET: Final = field_types(
    ReplyTarget, "platform", "account", "chat_id", "user_id", "thread_id", "reply_to"
)
_OF_BUTTON: Final = field_types(Button)
_OF_OUTBOUND: Final = field_types(OutboundMessage, "text", "markup", "is_notice", "notice_code", "replaces")


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
    buttons: tuple[Button, ...] = ()
    """The buttons below the reply."""
    platform_extra: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What only one platform understands, under its name: see `OutboundMessage.extra`."""
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
        object.__setattr__(self, "buttons", tuple(self.buttons))
        if self.buttons:
            check_items("the buttons of a reply", self.buttons, Button)
        if not isinstance(self.format, TextFormat):  # pyright: ignore[reportUnnecessaryIsInstance]  # the same
            object.__setattr__(self, "format", check_choice("format", self.format, TextFormat))
        if own := _OWN & self.extra.keys():
            problem = f"extra must leave {', '.join(sorted(own))} to the reply itself"
            raise InvalidInputError(problem)

    @property
    def is_empty(self) -> bool:
        """Whether the reply has neither text nor attachments nor anything for one platform."""
        return not (self.text.strip() or self.attachments or self.platform_extra)

    @property
    def message(self) -> OutboundMessage | None:
        """The message that is sent; None if nothing is."""
        if self.silent or self.is_empty:
            return None
        return OutboundMessage(
            text=self.text,
            attachments=self.attachments,
            buttons=self.buttons,
            extra=self.platform_extra,
            format=self.format,
        )

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
