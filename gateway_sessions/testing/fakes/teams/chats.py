"""The people and chats of a fake Teams, and the activities by which it tells a bot of them."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from gateway_sessions.ports import Clock

FIRST_ID: Final = 1_700_000_000_000
"""Ids of messages are instants in milliseconds."""
THREAD: Final = ";messageid="


@dataclass(slots=True)
class TeamsPerson:
    """Somebody who writes."""

    name: str
    id: str
    directory_id: str
    has_blocked_bot: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return the person as an activity names them."""
        return {"id": self.id, "name": self.name, "aadObjectId": self.directory_id}


@dataclass(slots=True)
class TeamsChat:
    """A conversation with a person, a chat of several people, or a channel."""

    id: str
    kind: str
    name: str = ""
    has_bot: bool = True
    messages: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """All that is shown, by the ids; what the bot has said has it as its sender."""


class TeamsChats:
    """All people and chats, and the numbers of what is said."""

    def __init__(self, bot_id: str, bot_name: str, clock: Clock) -> None:
        self.bot: dict[str, str] = {"id": bot_id, "name": bot_name}
        self.people: dict[str, TeamsPerson] = {}
        self.chats: dict[str, TeamsChat] = {}
        self.tenant = "7e0a3a52-1111-4222-8333-444455556666"
        self._clock = clock
        self._numbers = 0

    def person(self, name: str) -> TeamsPerson:
        """Return the person of that name, who has a conversation with the bot."""
        if name not in self.people:
            number = len(self.people) + 1
            person = TeamsPerson(name, f"29:1-{number:04}-{name}", f"00000000-0000-4000-8000-{number:012}")
            self.people[name] = person
            chat_id = f"a:1-{number:04}"
            self.chats[chat_id] = TeamsChat(chat_id, "personal")
        return self.people[name]

    def chat_of(self, person: str = "", *, group: str | None = None, channel: str | None = None) -> TeamsChat:
        """Return the conversation with a person, a group chat or a channel."""
        if channel is not None:
            return self._named(f"19:{channel}@thread.tacv2", "channel", channel)
        if group is not None:
            return self._named(f"19:{group}@thread.v2", "groupChat", group)
        self.person(person)
        return self.chats[f"a:1-{list(self.people).index(person) + 1:04}"]

    def _named(self, chat_id: str, kind: str, name: str) -> TeamsChat:
        return self.chats.setdefault(chat_id, TeamsChat(chat_id, kind, name))

    def new_id(self) -> str:
        """Return the id of the next message."""
        self._numbers += 1
        return str(FIRST_ID + self._numbers)

    def find(self, conversation: str) -> tuple[TeamsChat | None, str]:
        """Return the chat of a conversation's id, and the root of its thread."""
        chat, _, root = conversation.partition(THREAD)
        return self.chats.get(chat), root

    # Activities

    def activity(
        self, service_url: str, person: TeamsPerson, chat: TeamsChat, *, root: str, **members: Any
    ) -> dict[str, Any]:
        """Return an activity of a person in a chat, or in one thread of a channel."""
        now = self._clock.now() + timedelta(milliseconds=self._numbers)
        told = f"{now:%Y-%m-%dT%H:%M:%S}.{now.microsecond:06}7Z"  # seven digits, as .NET writes them
        conversation: dict[str, Any] = {
            "id": f"{chat.id}{THREAD}{root}" if root else chat.id,
            "conversationType": chat.kind,
            "tenantId": self.tenant,
        }
        if chat.kind != "personal":
            conversation |= {"isGroup": True, "name": chat.name}
        data: dict[str, Any] = {"tenant": {"id": self.tenant}}
        if chat.kind == "channel":
            data |= {"channel": {"id": chat.id}, "team": {"id": "19:team@thread.tacv2"}}
        return {
            "timestamp": told,
            "channelId": "msteams",
            "serviceUrl": service_url,
            "from": person.as_json(),
            "recipient": self.bot,
            "conversation": conversation,
            "locale": "en-US",
            "channelData": {**data, **members.pop("channelData", {})},
            "entities": [{"type": "clientInfo", "platform": "Web", "locale": "en-US"}],
            **members,
        }

    def mention(self) -> dict[str, Any]:
        """Return the entity that says that a text mentions the bot."""
        return {"type": "mention", "mentioned": self.bot, "text": f"<at>{self.bot['name']}</at>"}


def quotation(message_id: str, message: dict[str, Any]) -> str:
    """Return the HTML with which an answer to a message begins."""
    author, text = message["from"], html.escape(str(message.get("text", "")))
    return (
        f'<blockquote itemscope itemtype="http://schema.skype.com/Reply" itemid="{message_id}">'
        f'<strong itemprop="mri" itemid="{author["id"]}">{html.escape(author["name"])}</strong>'
        f'<span itemprop="time" itemid="{message_id}"></span><p itemprop="preview">{text}</p></blockquote>'
    )
