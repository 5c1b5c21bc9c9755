"""The objects of Google Chat, as far as they are read; what else Google sends is passed over."""

from __future__ import annotations

from datetime import datetime

import msgspec


class GoogleChatUser(msgspec.Struct, frozen=True, rename="camel"):
    """A person or an app."""

    name: str
    display_name: str | None = None
    type: str = "HUMAN"


class GoogleChatSpace(msgspec.Struct, frozen=True, rename="camel"):
    """A conversation with a person, a group chat or a space."""

    name: str
    display_name: str | None = None
    type: str = ""
    space_type: str = ""


class GoogleChatThread(msgspec.Struct, frozen=True):
    """A thread of a space."""

    name: str


class GoogleChatDataRef(msgspec.Struct, frozen=True, rename="camel"):
    """Names the content of an attachment."""

    resource_name: str


class GoogleChatAttachment(msgspec.Struct, frozen=True, rename="camel"):
    """A file of a message."""

    content_name: str | None = None
    content_type: str | None = None
    attachment_data_ref: GoogleChatDataRef | None = None


class GoogleChatQuote(msgspec.Struct, frozen=True):
    """The message that is quoted."""

    name: str


class GoogleChatCommand(msgspec.Struct, frozen=True, rename="camel"):
    """A slash command that was used: its id as the console has it, and its name with the slash."""

    command_id: str | int = ""
    command_name: str = ""


class GoogleChatAnnotation(msgspec.Struct, frozen=True, rename="camel"):
    """What Google has found in a text; only commands are read."""

    slash_command: GoogleChatCommand | None = None


class GoogleChatMessage(msgspec.Struct, frozen=True, rename="camel"):
    """A message."""

    name: str
    sender: GoogleChatUser | None = None
    create_time: datetime | None = None
    text: str | None = None
    argument_text: str | None = None
    """The text without the mention of the app."""
    thread: GoogleChatThread | None = None
    attachment: list[GoogleChatAttachment] = []
    quoted_message_metadata: GoogleChatQuote | None = None
    slash_command: GoogleChatCommand | None = None
    annotations: list[GoogleChatAnnotation] = []


class GoogleChatParameter(msgspec.Struct, frozen=True):
    """What a button carries."""

    key: str = ""
    value: str = ""


class GoogleChatAction(msgspec.Struct, frozen=True, rename="camel"):
    """The press of a button."""

    action_method_name: str = ""
    parameters: list[GoogleChatParameter] = []


class GoogleChatAppCommand(msgspec.Struct, frozen=True, rename="camel"):
    """A command that was chosen from a menu or typed."""

    app_command_id: str | int = ""


class GoogleChatEventHead(msgspec.Struct, frozen=True):
    """The part of any event that tells whether it is read further."""

    type: str


class GoogleChatEvent(msgspec.Struct, frozen=True, rename="camel"):
    """Something that happened."""

    type: str
    space: GoogleChatSpace
    event_time: str = ""
    user: GoogleChatUser | None = None
    message: GoogleChatMessage | None = None
    action: GoogleChatAction | None = None
    thread: GoogleChatThread | None = None
    app_command_metadata: GoogleChatAppCommand | None = None
