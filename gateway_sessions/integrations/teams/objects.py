"""The objects of the Bot Framework, as far as they are read; what else Teams sends is passed over."""

from __future__ import annotations

from datetime import datetime

import msgspec


class TeamsAccount(msgspec.Struct, frozen=True, rename="camel"):
    """A person or a bot in a conversation."""

    id: str
    name: str | None = None
    aad_object_id: str | None = None
    """The person's id in the directory, which is the same for every bot."""
    role: str | None = None


class TeamsConversation(msgspec.Struct, frozen=True, rename="camel"):
    """A chat, or one thread of a channel."""

    id: str
    name: str | None = None
    conversation_type: str | None = None
    tenant_id: str | None = None
    is_group: bool | None = None


class TeamsEntity(msgspec.Struct, frozen=True):
    """A fact about a message, such as a mention."""

    type: str = ""
    mentioned: TeamsAccount | None = None
    text: str | None = None


class TeamsAttachment(msgspec.Struct, frozen=True, rename="camel"):
    """A picture, a file, a card, or the message once more as HTML."""

    content_type: str = ""
    content_url: str | None = None
    content: object = None
    name: str | None = None


class TeamsFile(msgspec.Struct, frozen=True, rename="camel"):
    """The content of an attachment that is a file of a person."""

    download_url: str
    file_type: str | None = None


class TeamsPlace(msgspec.Struct, frozen=True):
    """A team, a channel or a tenant."""

    id: str
    name: str | None = None


class TeamsChannelData(msgspec.Struct, frozen=True, rename="camel"):
    """What only Teams tells of an activity."""

    event_type: str | None = None
    team: TeamsPlace | None = None
    channel: TeamsPlace | None = None
    tenant: TeamsPlace | None = None


class TeamsActivityHead(msgspec.Struct, frozen=True, rename="camel"):
    """The part of any activity that its token is compared with."""

    type: str
    channel_id: str = ""
    service_url: str = ""


class TeamsActivity(msgspec.Struct, frozen=True, rename="camel"):
    """A message, an edit, a deletion or the press of a button."""

    type: str
    id: str
    sender: TeamsAccount = msgspec.field(name="from")
    recipient: TeamsAccount
    conversation: TeamsConversation
    service_url: str
    timestamp: datetime | None = None
    text: str | None = None
    text_format: str | None = None
    name: str | None = None
    """The name of an invoke activity: what is asked for."""
    reply_to_id: str | None = None
    entities: list[TeamsEntity] | None = None
    attachments: list[TeamsAttachment] | None = None
    value: object = None
    """What a button of a card carries."""
    channel_data: TeamsChannelData | None = None


class ConnectorResource(msgspec.Struct, frozen=True):
    """The answer to a call that has made something."""

    id: str | None = None


class ConnectorProblem(msgspec.Struct, frozen=True):
    """The reason why a call was refused."""

    code: str = ""
    message: str = ""


class ConnectorRefusal(msgspec.Struct, frozen=True):
    """The answer to a call that was refused."""

    error: ConnectorProblem = ConnectorProblem()
