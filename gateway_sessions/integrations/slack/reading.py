"""Reading of what Slack tells: which message an event, a pressed button or a command brings, and for whom.

Nothing here waits or asks anybody. What cannot be read raises `UnreadableSlackError`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final, TypeAlias, cast

import msgspec

from gateway_sessions.adapters.group_talk import MENTIONS, Address, GroupRules, Hearing, without_mention
from gateway_sessions.core.identity.source import Platform, SessionSource
from gateway_sessions.core.queue.inbound import Attachment, AttachmentKind, InboundMessage, MessageKind
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.integrations.slack.objects import (
    SlackCommand,
    SlackEvent,
    SlackEventHead,
    SlackFile,
    SlackMessage,
    SlackPress,
)

FILE: Final = "slack:"
"""The beginning of an attachment's address: behind it stands the id of the file, for this workspace only."""
BUTTON: Final = "gateway:"
"""The beginning of the id of each button that a reply shows; other buttons belong to the rest of the app."""
THREAD: Final = "thread_ts"
"""The member of a message's metadata with the thread to answer in, where the thread is no session."""
UNDECIDED: Final = "undecided"
"""The member of a message's metadata that says: it is for the bot if the bot takes part in the thread."""

MILLION: Final = 1_000_000
_HEARD: Final = frozenset({"message", "app_mention"})
_NEW: Final = frozenset({"", "file_share", "thread_broadcast", "me_message"})
_SLACKBOT: Final = "USLACKBOT"
_TIMESTAMP: Final = re.compile(r"\d{1,12}\.\d{1,6}", re.ASCII)
_CONTROL: Final = re.compile(r"<([@#!]?)([^<>|]+)(?:\|([^<>]*))?>")

Payload: TypeAlias = Mapping[str, Any]
"""An event, a pressed button or a command as JSON has it."""


class UnreadableSlackError(InvalidInputError):
    """What came does not have the form that Slack describes."""


class ThreadSessions(StrEnum):
    """The places in which each thread is a session of its own."""

    CHANNELS = "channels"  # a message in a channel and its thread are one session, direct messages are one
    EVERYWHERE = "everywhere"  # as well each thread of direct messages, as assistants show them
    NOWHERE = "nowhere"  # a channel is one session; answers stand in the thread of their question


@dataclass(frozen=True, slots=True)
class SlackIdentity:
    """The app's bot, as `auth.test` tells it."""

    user_id: str
    bot_id: str = ""
    team_id: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackRules:
    """Which messages an adapter reads, and how."""

    account: str = ""
    groups: GroupRules[Payload] = MENTIONS
    threads: ThreadSessions = ThreadSessions.CHANNELS
    command: str = ""
    """The app's own command, whose text is a command of the gateway: `/helper new` is `/new`."""


def read_payload(payload: Payload, rules: SlackRules, bot: SlackIdentity) -> InboundMessage | None:
    """Return the message that came; None if it is nobody's, or for somebody else."""
    try:
        if payload.get("type") == "event_callback":
            if msgspec.convert(payload, SlackEventHead).event.type not in _HEARD:
                return None
            return _Reading(msgspec.convert(payload, SlackEvent), payload, rules, bot).message()
        if payload.get("type") == "block_actions":
            return _pressed(msgspec.convert(payload, SlackPress), rules)
        if "command" in payload:
            return _command(msgspec.convert(payload, SlackCommand), rules)
    except (
        msgspec.ValidationError,
        InvalidInputError,
        ValueError,
        OverflowError,
        OSError,
        RecursionError,
    ) as error:
        problem = f"an event of Slack cannot be read ({type(error).__name__}: {error})"
        raise UnreadableSlackError(problem) from error
    return None


def new_message_in(payload: Payload) -> tuple[str, str] | None:
    """Return the channel and the timestamp of the message that somebody wrote, if an event tells of one."""
    event: object = payload.get("event")
    if payload.get("type") != "event_callback" or not isinstance(event, dict):
        return None
    said = cast("dict[str, object]", event)
    channel, ts = said.get("channel"), said.get("ts")
    is_new = str(said.get("type")) in _HEARD and str(said.get("subtype") or "") in _NEW
    if not is_new or said.get("bot_id") or not isinstance(channel, str) or not millionths_of(ts):
        return None
    return (channel, str(ts)) if channel else None


def millionths_of(ts: object) -> int:
    """Return a timestamp as a number that tells the order; 0 for what is none."""
    if not isinstance(ts, str) or not _TIMESTAMP.fullmatch(ts):
        return 0
    seconds, _, rest = ts.partition(".")
    return int(seconds) * MILLION + int(rest.ljust(6, "0"))


def timestamp_of(millionths: int) -> str:
    """Return a number of millionths of a second as Slack writes it."""
    return f"{millionths // MILLION}.{millionths % MILLION:06}"


class _Reading:
    """One event of a message, as it is being read."""

    def __init__(self, event: SlackEvent, payload: Payload, rules: SlackRules, bot: SlackIdentity) -> None:
        self.event = event.event
        self.team = event.team_id
        self.payload = payload
        self.rules = rules
        self.bot = bot

    def message(self) -> InboundMessage | None:
        """Return the message that the event brings."""
        event = self.event
        if event.subtype in _NEW:
            return self._said(event)
        if event.subtype == "message_changed" and event.message is not None:
            if event.message.subtype == "tombstone":
                return self._deleted(event.message.ts, event.previous_message)
            return self._changed(event.message, event.previous_message)
        if event.subtype == "message_deleted" and event.deleted_ts:
            return self._deleted(event.deleted_ts, event.previous_message)
        return None  # somebody joined, a topic changed …

    def _said(self, said: SlackMessage) -> InboundMessage | None:
        text, attachments = said.text or "", tuple(_attachment(file) for file in said.files or [])
        hearing = self._hearing(said, text)
        if not (text or attachments):
            return None
        return self._inbound(said, hearing, text=text, attachments=attachments)

    def _changed(self, now: SlackMessage, before: SlackMessage | None) -> InboundMessage | None:
        # Slack also reports what it has added by itself: what a link leads to, the number of answers.
        if now.edited is None or (before is not None and before.edited == now.edited):
            return None
        return self._inbound(
            now,
            self._hearing(now, changes=True),
            text=now.text or "",
            attachments=tuple(_attachment(file) for file in now.files or []),
            kind=MessageKind.EDIT,
            revision=int(_timestamp(self.event.event_ts or self.event.ts).replace(".", "")),
        )

    def _deleted(self, ts: str, before: SlackMessage | None) -> InboundMessage | None:
        if before is None:
            return None  # then nobody knows who wrote it, and where it stood
        gone = msgspec.structs.replace(before, ts=ts)
        return self._inbound(gone, self._hearing(before, changes=True), kind=MessageKind.DELETE)

    def _hearing(self, message: SlackMessage, text: str = "", *, changes: bool = False) -> Hearing:
        own = self.bot.user_id, _SLACKBOT, None, ""
        places = self._mentions_in(text)
        address = Address(
            text=without_mention(text, places),
            private=self._is_direct,
            # What other bots say counts as said by ourselves: two bots that answer each other never end.
            own=message.user in own or bool(message.bot_id),
            changes=changes,
            mentions=self.event.type == "app_mention" or bool(places),
            answers=message.parent_user_id == self.bot.user_id,
            takes_part=None if message.thread_ts not in (None, message.ts) else False,
            names=(self.bot.name,) if self.bot.name else (),
        )
        return self.rules.groups.hearing(address, self.payload)

    def _mentions_in(self, text: str) -> list[tuple[int, int]]:
        """Return the places of the bot's mentions in a text."""
        if not self.bot.user_id:
            return []
        mention = re.compile(rf"<@{re.escape(self.bot.user_id)}(?:\|[^<>]*)?>")
        return [found.span() for found in mention.finditer(text)]

    @property
    def _is_direct(self) -> bool:
        # An event of a mention has no type of channel, so that the id of the channel tells it.
        return is_direct(self.event.channel)

    def _inbound(
        self,
        said: SlackMessage,
        hearing: Hearing,
        *,
        text: str = "",
        attachments: tuple[Attachment, ...] = (),
        kind: MessageKind = MessageKind.NEW,
        revision: int = 0,
    ) -> InboundMessage | None:
        if not self.rules.groups.keeps(hearing):
            return None
        ts = _timestamp(said.ts)
        lane, metadata = _lane_of(self.event.channel, ts, said.thread_ts, self.rules.threads)
        if hearing is Hearing.UNDECIDED:
            metadata[UNDECIDED] = said.thread_ts
        return InboundMessage(
            source=_source(self.event.channel, lane, said.user or "", self.team, self.rules.account),
            text=_with_slash_first(typed_text(without_mention(text, self._mentions_in(text)))),
            message_id=ts,
            account=self.rules.account,
            kind=kind,
            revision=revision,
            sent_at=datetime.fromtimestamp(float(ts), UTC),
            attachments=attachments,
            observed=hearing is Hearing.OVERHEARD,
            metadata=metadata,
        )


def _pressed(press: SlackPress, rules: SlackRules) -> InboundMessage | None:
    ours = [one for one in press.actions if one.action_id.startswith(BUTTON)]
    if not ours or ours[0].value is None:
        return None  # a button that leads to an address, or one of the rest of the app
    action, message_ts = ours[0], _timestamp(press.container.message_ts)
    thread = press.container.thread_ts or (press.message.thread_ts if press.message else None)
    channel = press.channel.id
    lane, metadata = _lane_of(channel, message_ts, thread, rules.threads)
    team, name = press.team.id if press.team else None, press.user.name or press.user.username
    return InboundMessage(
        source=_source(channel, lane, press.user.id, team, rules.account, name),
        text=(action.text.text if action.text else "") or action.value or "",
        action=action.value,
        message_id=f"press:{message_ts}:{_timestamp(action.action_ts)}:{press.user.id}",
        account=rules.account,
        sent_at=datetime.fromtimestamp(float(action.action_ts), UTC),
        metadata=metadata,
    )


def _command(used: SlackCommand, rules: SlackRules) -> InboundMessage:
    text = f"{used.command} {used.text}".rstrip()
    if rules.command and used.command == rules.command:
        text = f"/{used.text.strip().removeprefix('/') or 'help'}"
    return InboundMessage(
        source=_source(used.channel_id, None, used.user_id, used.team_id, rules.account, used.user_name),
        text=text,
        message_id=f"command:{used.trigger_id}",
        account=rules.account,
    )


# Where and who


def is_direct(channel: str) -> bool:
    """Return whether a channel is the direct messages of one person and the bot."""
    return channel.startswith("D")


def _source(
    channel: str, lane: str | None, user: str, team: str | None, account: str, name: str = ""
) -> SessionSource:
    if not channel or not user:
        problem = "an event names no channel or no person"
        raise InvalidInputError(problem)
    return SessionSource(
        platform=Platform.SLACK,
        chat_id=channel,
        chat_type="dm" if is_direct(channel) else "channel",
        user_id=user,
        user_name=name or None,
        thread_id=lane,
        guild_id=team,
        account=account,
    )


def _lane_of(
    channel: str, ts: str, thread: str | None, threads: ThreadSessions
) -> tuple[str | None, dict[str, Any]]:
    """Return the thread that is a session, and else the facts by which an answer finds its thread."""
    if threads is ThreadSessions.NOWHERE or (is_direct(channel) and threads is ThreadSessions.CHANNELS):
        return None, ({THREAD: _timestamp(thread)} if thread else {})
    if is_direct(channel) and not thread:
        return None, {}
    return _timestamp(thread or ts), {}


def _timestamp(text: str) -> str:
    if not _TIMESTAMP.fullmatch(text):
        problem = f"{text[:40]!r} is no timestamp of Slack"
        raise InvalidInputError(problem)
    return text


# What


def _with_slash_first(text: str) -> str:
    """Return a text without blanks before a slash: Slack keeps texts that begin with one to itself."""
    bare = text.lstrip()
    return bare if bare.startswith("/") else text


def typed_text(text: str) -> str:
    """Return a text as its writer has typed it; mentions of people stay as Slack has them, `<@U123>`."""
    plain = _CONTROL.sub(_typed_control, text)
    return plain.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _typed_control(found: re.Match[str]) -> str:
    kind, target, label = found.groups()
    match kind:
        case "@":
            return f"<@{target}>"
        case "#":
            return f"#{label or target}"
        case "!":
            return label or f"@{target.partition('^')[0]}"
        case _:
            address = target.removeprefix("mailto:").removeprefix("tel:")
            if not label or label in (target, address):
                return address
            return label if target.endswith(f"//{label}") else f"[{label}]({target})"


def _attachment(file: SlackFile) -> Attachment:
    group = (file.mimetype or "").partition("/")[0]
    kinds = {"image": AttachmentKind.PHOTO, "video": AttachmentKind.VIDEO, "audio": AttachmentKind.AUDIO}
    kind = kinds.get(group, AttachmentKind.DOCUMENT)
    if file.subtype == "slack_audio":
        kind = AttachmentKind.VOICE
    return Attachment(
        kind=kind, url=f"{FILE}{file.id}", media_type=file.mimetype, name=file.name, size=file.size
    )
