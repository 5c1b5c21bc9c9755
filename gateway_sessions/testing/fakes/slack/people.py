"""People of a fake Slack: they write, change, delete, press buttons and use commands."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable
from typing import Any, Final

from gateway_sessions._process.clock import SystemClock
from gateway_sessions.testing.fakes.slack.blocks import buttons_of
from gateway_sessions.testing.fakes.slack.delivery import SlackDeliveries, SlackDelivery
from gateway_sessions.testing.fakes.slack.methods import media_type_of
from gateway_sessions.testing.fakes.slack.workspace import (
    APP,
    TEAM,
    Message,
    SlackChannel,
    SlackUser,
    SlackWorkspace,
)

KINDS: Final = {"channel": "channels", "group": "groups", "im": "im", "mpim": "mpim"}
VERIFICATION_TOKEN: Final = "fake"  # noqa: S105 -- Slack deprecates it in favour of signatures


class SlackPeople:
    """The people of a workspace, and what the app hears of them."""

    def __init__(
        self,
        workspace: SlackWorkspace,
        deliveries: SlackDeliveries,
        events: Iterable[str],
        base_url: Callable[[], str],
    ) -> None:
        self._workspace = workspace
        self._deliveries = deliveries
        self.events: set[str] = set(events)
        """The events that the app has asked for."""
        self._base_url = base_url

    def place(self, person: str, channel: str | None = None) -> SlackChannel:
        """Return the direct messages of a person, or a channel."""
        return self._workspace.direct(person) if channel is None else self._workspace.channel(channel)

    # Messages

    def says(
        self,
        person: str,
        text: str,
        *,
        channel: str | None = None,
        thread: str | None = None,
        files: Iterable[tuple[str, bytes]] = (),
        **more: Any,
    ) -> str:
        """Let a person write, to the bot or in a channel; return the timestamp of the message.

        `@helper` mentions the bot. *files* are names with contents, *more* are members of the message.
        """
        place, user = self.place(person, channel), self._workspace.person(person)
        place.members.add(user.id)
        content: Message = {
            "user": user.id,
            "text": self._workspace.typed_text(text),
            "client_msg_id": str(uuid.uuid4()),
            "team": TEAM,
            **more,
        }
        if thread is not None:
            content["thread_ts"] = thread
            if (root := place.messages.get(thread)) is not None:
                content["parent_user_id"] = root.get("user")
        if uploaded := [self._file(name, body) for name, body in files]:
            content |= {"subtype": "file_share", "files": uploaded, "upload": False}
        message = self._workspace.add_message(place, content)
        self.tell("said", place, message, None)
        return str(message["ts"])

    def edits(self, ts: str, text: str) -> None:
        """Let a person change what they wrote."""
        place, message = self._found(ts)
        before = dict(message)
        edited = {"user": message["user"], "ts": self._workspace.new_ts()}
        message.update({"text": self._workspace.typed_text(text), "edited": edited})
        self.tell("changed", place, message, before)

    def unfurls(self, ts: str) -> None:
        """Let Slack show what a link of a message leads to; the message changes, and nobody changed it."""
        place, message = self._found(ts)
        before = dict(message)
        message["attachments"] = [{"from_url": "https://example.org", "title": "Example"}]
        self.tell("changed", place, message, before)

    def deletes(self, ts: str) -> None:
        """Let a person delete what they wrote; of a message with answers, a tombstone stays."""
        place, message = self._found(ts)
        if message.get("reply_count"):
            before = dict(message)
            message |= {"subtype": "tombstone", "text": "This message was deleted.", "user": "USLACKBOT"}
            self.tell("changed", place, message, before)
            return
        del place.messages[ts]
        self.tell("deleted", place, message, message)

    def presses(self, person: str, label: str, *, channel: str | None = None) -> str:
        """Let a person press the button of that label, on the last message that has one."""
        place, user = self.place(person, channel), self._workspace.person(person)
        for message in reversed(place.messages.copy().values()):
            for block_id, button in buttons_of(message):
                if button["text"]["text"] == label:
                    return self._press(user, place, message, {**button, "block_id": block_id})
        problem = f"{person} sees no button {label!r}"
        raise AssertionError(problem)

    def commands(self, person: str, command: str, text: str = "", *, channel: str | None = None) -> str:
        """Let a person use a slash command; return the id under which it is delivered."""
        place, user = self.place(person, channel), self._workspace.person(person)
        trigger = self._workspace.new_id("trigger")
        payload = {
            "token": VERIFICATION_TOKEN,
            "team_id": TEAM,
            "team_domain": "fake",
            "channel_id": place.id,
            "channel_name": "directmessage" if place.kind == "im" else place.name,
            "user_id": user.id,
            "user_name": user.name,
            "command": command,
            "text": text,
            "api_app_id": APP,
            "is_enterprise_install": "false",
            "response_url": f"{self._base_url()}/response/{trigger}",
            "trigger_id": trigger,
        }
        self._deliveries.add("slash_commands", payload, trigger)
        return trigger

    def removes_bot(self, *, channel: str) -> None:
        """Let somebody remove the bot from a channel, of which Slack tells it nothing."""
        self._workspace.channel(channel).members.discard(self._workspace.bot.id)

    def archives(self, *, channel: str) -> None:
        """Let somebody archive a channel, where nobody can write any more."""
        self._workspace.channel(channel).is_archived = True

    def answered(self, trigger: str) -> SlackDelivery:
        """Return the delivery of a command or of a pressed button, with what the app answered."""
        return next(one for one in self._deliveries.all if one.ts == trigger)

    # What the app hears

    def tell(self, what: str, place: SlackChannel, message: Message, before: Message | None) -> None:
        """Owe the app the events of a message that was `said`, `changed` or `deleted`."""
        event = _event_of(what, message, before, self._workspace)
        event |= {"channel": place.id, "channel_type": place.kind, "event_ts": event["ts"]}
        if self._workspace.bot.id not in place.members:
            return
        mentions = f"<@{self._workspace.bot.id}>" in message.get("text", "")
        if what == "said" and mentions and place.kind != "im" and "app_mention" in self.events:
            # Slack does not say there in which kind of channel it was.
            mention = {
                name: value for name, value in event.items() if name not in ("channel_type", "subtype")
            }
            self._owe({**mention, "type": "app_mention"}, str(message["ts"]))
        if f"message.{KINDS[place.kind]}" in self.events:
            self._owe(event, str(message["ts"]))

    def _owe(self, event: dict[str, Any], ts: str) -> None:
        bot = self._workspace.bot
        authorization = {"team_id": TEAM, "user_id": bot.id, "is_bot": True, "is_enterprise_install": False}
        self.owe_event(
            {
                "token": VERIFICATION_TOKEN,
                "team_id": TEAM,
                "context_team_id": TEAM,
                "api_app_id": APP,
                "event": event,
                "type": "event_callback",
                "event_id": self._workspace.new_id("Ev"),
                "event_time": int(SystemClock().now().timestamp()),
                "authorizations": [authorization],
                "is_ext_shared_channel": False,
            },
            ts,
        )

    def owe_event(self, payload: dict[str, Any], ts: str) -> None:
        """Owe the app an event as it stands, whatever it is; *ts* is the id under which it is found again."""
        # A copy as of now: the message may change before it is delivered.
        self._deliveries.add("events_api", json.loads(json.dumps(payload)), ts)

    def _found(self, ts: str) -> tuple[SlackChannel, Message]:
        for place in self._workspace.channels.values():
            if ts in place.messages:
                return place, place.messages[ts]
        problem = f"there is no message {ts}"
        raise AssertionError(problem)

    def _file(self, name: str, content: bytes) -> dict[str, Any]:
        return self._workspace.add_file(name, content, media_type_of(name), self._base_url())

    def _press(self, user: SlackUser, place: SlackChannel, message: Message, button: dict[str, Any]) -> str:
        trigger = self._workspace.new_id("trigger")
        container = {
            "type": "message",
            "message_ts": message["ts"],
            "channel_id": place.id,
            "is_ephemeral": False,
        }
        if "thread_ts" in message:
            container["thread_ts"] = message["thread_ts"]
        action = {"type": "button", "action_ts": self._workspace.new_ts(), **button}
        payload: dict[str, Any] = {
            "type": "block_actions",
            "user": {"id": user.id, "username": user.name, "name": user.name, "team_id": TEAM},
            "api_app_id": APP,
            "token": VERIFICATION_TOKEN,
            "container": container,
            "trigger_id": trigger,
            "team": {"id": TEAM, "domain": "fake"},
            "channel": {"id": place.id, "name": "directmessage" if place.kind == "im" else place.name},
            "message": message,
            "state": {"values": {}},
            "response_url": f"{self._base_url()}/response/{trigger}",
            "actions": [action],
        }
        self._deliveries.add("interactive", json.loads(json.dumps(payload)), trigger)
        return trigger


def _event_of(
    what: str, message: Message, before: Message | None, workspace: SlackWorkspace
) -> dict[str, Any]:
    inner = {
        name: value for name, value in message.items() if name not in ("mrkdwn", "reply_count", "metadata")
    }
    match what:
        case "said":
            return inner
        case "changed":
            changed = {"subtype": "message_changed", "hidden": True, "message": inner}
            return {"type": "message", **changed, "previous_message": before, "ts": workspace.new_ts()}
        case _:
            deleted = {"subtype": "message_deleted", "hidden": True, "deleted_ts": message["ts"]}
            return {"type": "message", **deleted, "previous_message": before, "ts": workspace.new_ts()}
