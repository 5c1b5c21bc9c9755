"""Reading of Google Chat's events: which message one brings, and what came with it.

Nothing here waits or asks anybody.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from gateway_sessions.core.identity.source import SessionSource
from gateway_sessions.core.queue.inbound import Attachment, AttachmentKind, InboundMessage, ReplyTo
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.integrations.google_chat.objects import (
    GoogleChatEvent,
    GoogleChatEventHead,
    GoogleChatMessage,
    GoogleChatSpace,
)

PLATFORM: Final = "google_chat"
CONTENT: Final = "google-chat:"
"""The beginning of an attachment's address: behind it stands the name of its content."""
ACTION: Final = "action"
LABEL: Final = "label"
OWN_MESSAGE: Final = "/messages/client-"
"""Stands in the names that an app gives its own messages."""

_READ: Final = frozenset({"MESSAGE", "ADDED_TO_SPACE", "CARD_CLICKED", "APP_COMMAND"})
_MEDIA: Final = {
    "image": AttachmentKind.PHOTO,
    "video": AttachmentKind.VIDEO,
    "audio": AttachmentKind.AUDIO,
}


def read_event(raw: bytes, account: str = "", commands: Sequence[str] = ()) -> InboundMessage | str:
    """Return the message that an event brings, or the type of an event that brings none.

    *commands* are the names of the app's commands by their ids, from 1.
    """
    try:
        head = msgspec.json.decode(raw, type=GoogleChatEventHead)
        if head.type not in _READ:
            return head.type
        event = msgspec.json.decode(raw, type=GoogleChatEvent)
        message = _message_of(event, account, commands)
    except (msgspec.MsgspecError, InvalidInputError, UnicodeDecodeError, ValueError, RecursionError) as error:
        problem = f"an event of Google Chat cannot be read ({type(error).__name__}: {error})"
        raise InvalidInputError(problem) from error
    return message or head.type


def _message_of(event: GoogleChatEvent, account: str, commands: Sequence[str]) -> InboundMessage | None:
    if event.type == "CARD_CLICKED":
        return _pressed(event, account)
    metadata, slash = event.app_command_metadata, event.message.slash_command if event.message else None
    if metadata is not None:
        return _command(event, account, _name_of_command(event, metadata.app_command_id, commands))
    if slash is not None:
        return _command(event, account, _name_of_command(event, slash.command_id, commands))
    return _said(event, account)


def _name_of_command(event: GoogleChatEvent, number: str | int, commands: Sequence[str]) -> str:
    """Return the name of a command with its slash: as the event tells, else as it is configured."""
    message = event.message
    found = [one.slash_command for one in message.annotations] if message else []
    names = [one.command_name for one in found if one is not None and one.command_name]
    first, *_ = [*((message.text or "").split() if message else []), ""]
    if names or first.startswith("/"):
        return "/" + (names or [first])[0].removeprefix("/")
    if not 0 <= (place := int(number) - 1) < len(commands):
        problem = f"nobody has told the name of the command with the id {number}: list it in `commands`"
        raise InvalidInputError(problem)
    return "/" + commands[place].removeprefix("/")


def _command(event: GoogleChatEvent, account: str, name: str) -> InboundMessage | None:
    """Return a command as a person would type it; Google leaves its name out of the argument text."""
    message = event.message
    arguments = (message.argument_text if message else None) or ""
    if message is None and event.user is None:
        return None
    # A command of a menu has no message: one person cannot choose two at one instant.
    chosen = f"{event.space.name}/commands/{event.user.name if event.user else ''}/{event.event_time}"
    return InboundMessage(
        source=_source_of(event, account),
        text=f"{name} {arguments.strip()}".rstrip(),
        message_id=message.name if message else chosen,
        sent_at=message.create_time if message else None,
        attachments=tuple(_attachments_of(message)) if message else (),
    )


def _said(event: GoogleChatEvent, account: str) -> InboundMessage | None:
    """Return what somebody said; whoever adds the app to a space by a mention says something, too."""
    message = event.message
    if message is None:
        return None
    text = (message.text if message.argument_text is None else message.argument_text) or ""
    attachments = tuple(_attachments_of(message))
    if not text.strip() and not attachments:
        return None
    return InboundMessage(
        source=_source_of(event, account),
        text=text.strip() if message.argument_text is not None else text,
        message_id=message.name,
        sent_at=message.create_time,
        attachments=attachments,
        reply_to=_reply_of(message),
    )


def _pressed(event: GoogleChatEvent, account: str) -> InboundMessage | None:
    if event.action is None or event.message is None or event.user is None:
        return None
    given = {one.key: one.value for one in event.action.parameters}
    value = given.get(ACTION) or event.action.action_method_name
    if not value:
        return None
    # A press has no id: one person cannot press twice at one instant.
    pressed = f"{event.message.name}/{event.user.name}/{event.event_time}"
    return InboundMessage(
        source=_source_of(event, account),
        text=given.get(LABEL) or value,
        message_id=pressed,
        action=value,
        reply_to=ReplyTo(message_id=event.message.name, own=True),
    )


def _source_of(event: GoogleChatEvent, account: str) -> SessionSource:
    message, space = event.message, event.space
    sender = event.user or (message.sender if message else None)
    is_private = is_direct(space)
    thread = message.thread if message and message.thread else event.thread
    return SessionSource(
        platform=PLATFORM,
        chat_id=space.name,
        chat_name=space.display_name or None,
        chat_type="dm" if is_private else "group",
        user_id=sender.name if sender else None,
        user_name=sender.display_name if sender else None,
        # In private, each message has a thread of its own that nobody sees.
        thread_id=None if is_private or thread is None else thread.name,
        is_bot=sender is not None and sender.type == "BOT",
        account=account,
    )


def is_direct(space: GoogleChatSpace) -> bool:
    """Return whether a space is a conversation with one person."""
    return space.space_type == "DIRECT_MESSAGE" or space.type == "DM"


def _attachments_of(message: GoogleChatMessage) -> Iterator[Attachment]:
    for one in message.attachment:
        kind = _MEDIA.get((one.content_type or "").partition("/")[0], AttachmentKind.DOCUMENT)
        place = one.attachment_data_ref
        url = f"{CONTENT}{place.resource_name}" if place else ""
        yield Attachment(kind=kind, url=url, media_type=one.content_type, name=one.content_name)


def _reply_of(message: GoogleChatMessage) -> ReplyTo | None:
    quoted = message.quoted_message_metadata
    return ReplyTo(message_id=quoted.name, own=OWN_MESSAGE in quoted.name) if quoted else None
