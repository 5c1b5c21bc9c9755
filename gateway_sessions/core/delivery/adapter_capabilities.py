"""The capabilities of an adapter: how it receives, what it can send, and what it can find out afterwards."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import msgspec

from gateway_sessions.core.delivery.outbound_messages import Button, OutboundMessage
from gateway_sessions.core.queue.inbound import Attachment, AttachmentKind
from gateway_sessions.core.text_length import LengthUnit
from gateway_sessions.errors import InvalidInputError

if TYPE_CHECKING:
    from gateway_sessions.core.markdown.dialect import MarkupDialect

LEAST_MAX_LENGTH: Final = 64
"""The least `max_length`: a shorter limit leaves no room for a fence that is opened again, or for a mark."""


class ReceiveClass(StrEnum):
    """What becomes of messages while nobody can take them."""

    ACKNOWLEDGED = "acknowledged"
    """The platform hears of success only after `submit` has returned, and delivers the message until then."""
    CURSOR = "cursor"
    """The platform keeps messages; the place up to which they are fetched moves only after `submit`."""
    BACKFILLED = "backfilled"
    """The platform forgets what nobody listens to; the adapter reads what it missed when it connects."""
    LOSSY = "lossy"
    """What is written while nobody listens is lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterCapabilities:
    """The capabilities of an adapter, as far as the gateway uses them."""

    receives: ReceiveClass = ReceiveClass.LOSSY
    """What becomes of messages while nobody can take them."""
    edit: bool = False
    """Whether a sent message can be changed, so that a reply can grow while it is made."""
    typing: bool = False
    """Whether the platform can show that somebody writes."""
    idempotent_for: timedelta | None = None
    """The time for which the platform shows a message once that is sent again with the same idempotency key;
    `timedelta.max`: always; None: it shows both."""
    finds: bool = False
    """Whether the adapter has `find`, which looks up on the platform whether a message was sent."""
    idempotent_send: bool = False
    """The same as `idempotent_for=timedelta.max`, as adapters wrote it before; it goes with the next release.
    """
    dialect: MarkupDialect | None = None
    """The markup of the platform; the gateway renders texts in Markdown with it. None: they are sent as they
    are."""
    max_length: int | None = None
    """The longest text of one message, in `length_unit`; longer texts are sent in parts. None: no limit."""
    length_unit: LengthUnit = LengthUnit.CHARACTERS
    """The unit in which the platform measures a text."""
    min_edit_interval: timedelta = timedelta(seconds=1)
    """The least time between two edits of a message."""
    attachments: frozenset[AttachmentKind] | None = None
    """The kinds of attachments that the platform shows; None: all. Others are described in words."""
    buttons: bool = False
    """Whether the platform shows buttons; if not, they are listed in words."""
    names: frozenset[str] = frozenset()
    """The names of the account, without @; a command that addresses another name is ignored.

    Empty: unknown, and every command is taken to be for this account.
    """
    hyphens_in_commands: bool = True
    """Whether people can tap a command with a hyphen; if not, commands are shown with an underscore."""

    def __post_init__(self) -> None:
        # Marks that are opened again take as much room again as a fence.
        least = LEAST_MAX_LENGTH if self.dialect is None else 2 * LEAST_MAX_LENGTH
        if self.max_length is not None and self.max_length < least:
            problem = f"max_length = {self.max_length} must be at least {least}, or None"
            raise InvalidInputError(problem)
        if self.idempotent_send:
            told = "AdapterCapabilities(idempotent_send=True) is written idempotent_for=timedelta.max"
            warnings.warn(told, DeprecationWarning, stacklevel=3)
            object.__setattr__(self, "idempotent_for", timedelta.max)

    def shows_once(self, message: OutboundMessage, age: timedelta) -> bool:
        """Return whether people see a message once that is sent again, and was sent first that long ago."""
        if message.replaces is not None:
            return True
        return self.idempotent_for is not None and age < self.idempotent_for

    def in_words(self, message: OutboundMessage) -> OutboundMessage:
        """Return the message with a line of text for each attachment and button that cannot be shown."""
        shown = self.attachments
        lost = [one for one in message.attachments if shown is not None and one.kind not in shown]
        unknown = () if self.buttons else message.buttons
        if not lost and not unknown:
            return message
        lines = [message.text, *(f"[{one.kind}: {describe_attachment(one)}]" for one in lost)]
        lines += map(_describe_button, unknown)
        return msgspec.structs.replace(
            message,
            text="\n".join(filter(None, lines)),
            attachments=tuple(one for one in message.attachments if one not in lost),
            buttons=message.buttons if self.buttons else (),
        )

    def is_called(self, name: str | None) -> bool:
        """Return whether a command that addresses this name is for this account; None addresses all."""
        return is_called(name, self.names)

    def fits(self, text: str) -> bool:
        """Return whether a text can be sent in one message."""
        return self.max_length is None or self.length_unit.length(text) <= self.max_length


def is_called(name: str | None, names: Collection[str]) -> bool:
    """Return whether a command that addresses this name is for an account with those names."""
    return not name or not names or name.lower() in {one.lower().removeprefix("@") for one in names}


def describe_attachment(attachment: Attachment) -> str:
    """Return the words for an attachment that a platform cannot show."""
    return " ".join(filter(None, (attachment.name, attachment.url))) or "unnamed"


def _describe_button(button: Button) -> str:
    """Return the line that stands for a button; who wants to press it writes its label."""
    return f"- {button.label}" if button.url is None else f"- {button.label}: {button.url}"
