"""The objects of Slack's events, as far as they are read; what else Slack sends is passed over."""

from __future__ import annotations

from typing import Any

import msgspec


class SlackFile(msgspec.Struct, frozen=True):
    """A file that came with a message."""

    id: str
    name: str | None = None
    mimetype: str | None = None
    size: int | None = None
    mode: str = ""
    subtype: str = ""


class SlackEdit(msgspec.Struct, frozen=True):
    """Who has changed a message, and when."""

    user: str = ""
    ts: str = ""


class SlackMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message, or the event that one was written, changed or deleted."""

    type: str = "message"
    subtype: str = ""
    user: str | None = None
    bot_id: str | None = None
    text: str | None = None
    ts: str = ""
    thread_ts: str | None = None
    parent_user_id: str | None = None
    channel: str = ""
    channel_type: str = ""
    event_ts: str = ""
    files: list[SlackFile] | None = None
    edited: SlackEdit | None = None
    message: SlackMessage | None = None
    """The message as it is now, if this is the event of a change."""
    previous_message: SlackMessage | None = None
    deleted_ts: str | None = None


class SlackEventKind(msgspec.Struct, frozen=True):
    """The kind of an event; the other members of its object depend on that."""

    type: str


class SlackEventHead(msgspec.Struct, frozen=True):
    """What the Events API delivers, of any kind."""

    event: SlackEventKind


class SlackEvent(msgspec.Struct, frozen=True):
    """What the Events API delivers about a message."""

    event: SlackMessage
    team_id: str | None = None


class SlackPerson(msgspec.Struct, frozen=True):
    """The person who pressed a button."""

    id: str
    name: str = ""
    username: str = ""


class SlackPlace(msgspec.Struct, frozen=True):
    """A channel, or a workspace."""

    id: str
    name: str | None = None


class SlackLabel(msgspec.Struct, frozen=True):
    """The text of a button."""

    text: str = ""


class SlackAction(msgspec.Struct, frozen=True):
    """The button that was pressed."""

    action_id: str
    action_ts: str = ""
    value: str | None = None
    text: SlackLabel | None = None


class SlackContainer(msgspec.Struct, frozen=True):
    """The message that has the button."""

    message_ts: str
    channel_id: str = ""
    thread_ts: str | None = None


class SlackPress(msgspec.Struct, frozen=True):
    """A person has pressed a button of a message."""

    user: SlackPerson
    channel: SlackPlace
    container: SlackContainer
    actions: list[SlackAction]
    team: SlackPlace | None = None
    message: SlackMessage | None = None


class SlackCommand(msgspec.Struct, frozen=True):
    """A person has used a slash command."""

    command: str
    channel_id: str
    user_id: str
    trigger_id: str
    text: str = ""
    user_name: str = ""
    team_id: str | None = None


class SlackAnswer(msgspec.Struct, frozen=True):
    """The answer of the Web API."""

    ok: bool
    error: str = ""
    ts: str | None = None
    needed: str = ""
    errors: list[Any] | None = None
