"""Chats, people and messages of a fake Telegram, and the updates that its bot is owed."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway_sessions.ports import Clock
from gateway_sessions.testing.fakes.telegram.entities import found_entities
from gateway_sessions.testing.fakes.telegram.refusals import bad_request, forbidden

FIRST_PERSON = 1000
FIRST_GROUP = 100
SUPERGROUP = -1000000000000
GENERAL_TOPIC = 1
FILES = ("photo", "document", "voice", "audio", "video", "animation", "sticker", "video_note")
"""The members of messages that are files."""


@dataclass(slots=True)
class TelegramUser:
    """A person, or the bot."""

    id: int
    first_name: str
    username: str | None = None
    is_bot: bool = False
    has_blocked_bot: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return the user as the Bot API shows one."""
        facts = {"id": self.id, "is_bot": self.is_bot, "first_name": self.first_name, "language_code": "en"}
        return {**facts, "username": self.username} if self.username else facts


@dataclass(slots=True)
class TelegramChat:
    """A private chat, a group or a supergroup."""

    id: int
    kind: str
    title: str
    person: TelegramUser | None = None
    """Whose private chat it is."""
    topics: dict[int, str] = field(default_factory=dict[int, str])
    messages: dict[int, dict[str, Any]] = field(default_factory=dict[int, dict[str, Any]])
    migrated_to: int | None = None
    bot_was_kicked: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return the chat as the Bot API shows it within a message."""
        facts: dict[str, Any] = {"id": self.id, "type": self.kind}
        if self.person is None:
            return {**facts, "title": self.title, **({"is_forum": True} if self.topics else {})}
        named = {"first_name": self.person.first_name, "username": self.person.username}
        return {**facts, **{name: value for name, value in named.items() if value}}


class TelegramChats:
    """All chats of one bot; tests and the server's thread may change them at a time."""

    def __init__(self, bot: TelegramUser, clock: Clock) -> None:
        self.bot = bot
        self.people: dict[str, TelegramUser] = {}
        self.chats: dict[int, TelegramChat] = {}
        self.updates: list[dict[str, Any]] = []
        """The updates that the bot has not confirmed."""
        self.told: dict[int, dict[str, Any]] = {}
        """All updates by their ids, also those that it has confirmed."""
        self.confirmed: list[int] = []
        """The ids of the updates that it has confirmed, in order."""
        self._clock = clock
        self._lock = threading.Lock()
        self._update_ids = itertools.count(700_000_001)
        self._ids = itertools.count(1)

    # Who and where

    def person(self, name: str) -> TelegramUser:
        """Return the person of that name, who appears when they are first named."""
        if name not in self.people:
            number = FIRST_PERSON + len(self.people) + 1
            self.people[name] = TelegramUser(number, name.capitalize(), username=name)
            self.chats[number] = TelegramChat(number, "private", name, self.people[name])
        return self.people[name]

    def group(self, title: str, *, forum: bool = False, basic: bool = False) -> TelegramChat:
        """Return the group of that title: a supergroup, unless it is a *basic* one."""
        for chat in self.chats.values():
            if chat.title == title and chat.person is None and chat.migrated_to is None:
                return chat
        number = FIRST_GROUP + len(self.chats) + 1
        chat = TelegramChat(-number, "group", title)
        if not basic:
            chat = TelegramChat(SUPERGROUP - number, "supergroup", title)
        if forum:
            chat.topics[GENERAL_TOPIC] = "General"
        self.chats[chat.id] = chat
        return chat

    def upgrade(self, chat: TelegramChat) -> TelegramChat:
        """Make a supergroup of a group: the old id is refused from then on, with the new one beside it."""
        upgraded = TelegramChat(SUPERGROUP + chat.id, "supergroup", chat.title, topics=dict(chat.topics))
        self.chats[upgraded.id] = upgraded
        self.message_in(chat, self.bot, {"migrate_to_chat_id": upgraded.id})
        chat.migrated_to = upgraded.id
        return upgraded

    def open_chat(self, chat_id: object) -> TelegramChat:
        """Return the chat into which the bot writes, or refuse as Telegram does."""
        chat = self.chats.get(int(str(chat_id))) if str(chat_id).lstrip("-").isdigit() else None
        if chat is None:
            raise bad_request("chat not found")
        if chat.migrated_to is not None:
            refusal = bad_request("group chat was upgraded to a supergroup chat")
            refusal.parameters = {"migrate_to_chat_id": chat.migrated_to}
            raise refusal
        if chat.person is not None and chat.person.has_blocked_bot:
            raise forbidden("bot was blocked by the user")
        if chat.bot_was_kicked:
            raise forbidden(f"bot was kicked from the {chat.kind} chat")
        return chat

    # What is said

    def message_in(self, chat: TelegramChat, sender: TelegramUser, content: dict[str, Any]) -> dict[str, Any]:
        """Add a message to a chat."""
        facts = {"from": sender.as_json(), "chat": chat.as_json(), "date": int(self._clock.now().timestamp())}
        with self._lock:
            message_id = max(chat.messages, default=0) + 1
            message = chat.messages[message_id] = {"message_id": message_id, **facts, **content}
        return message

    def add_update(self, kind: str, content: dict[str, Any]) -> int:
        """Owe the bot an update; return its id."""
        with self._lock:
            update_id = next(self._update_ids)
            self.told[update_id] = {"update_id": update_id, kind: content}
            self.updates.append(self.told[update_id])
        return update_id

    def update(self, update_id: int) -> dict[str, Any]:
        """Return an update, whether the bot has confirmed it or not."""
        assert update_id in self.told, f"there is no update {update_id}"
        return self.told[update_id]

    def add_again(self, update: dict[str, Any]) -> None:
        """Owe the bot an update for a second time, in front of all others."""
        self.updates.insert(0, update)

    def confirm(self, before: int) -> None:
        """Forget the updates whose ids are smaller."""
        with self._lock:
            self.confirmed += [one["update_id"] for one in self.updates if one["update_id"] < before]
            self.updates = [one for one in self.updates if one["update_id"] >= before]

    def new_id(self) -> int:
        """Return a number that nothing else has."""
        return next(self._ids)

    def texts(self, chat: TelegramChat, *, senders: Iterable[int], thread: int | None) -> list[str]:
        """Return the texts of some senders in a chat, or in one of its topics."""
        ids = set(senders)
        return [
            str(message.get("text", message.get("caption", "")))
            for message in list(chat.messages.values())
            if message["from"]["id"] in ids and (thread is None or message.get("message_thread_id") == thread)
        ]


def text_content(text: str) -> dict[str, Any]:
    """Return the members of a message that a person has typed."""
    entities = found_entities(text)
    return {"text": text, **({"entities": entities} if entities else {})}


def visible_text(message: Mapping[str, Any]) -> str:
    """Return a message as people see it: its text, files by their kind, and the labels of its buttons."""
    parts = [str(message.get("text", message.get("caption", "")))]
    parts += [f"[{kind}]" for kind in FILES if kind in message]
    rows: list[list[dict[str, Any]]] = message.get("reply_markup", {}).get("inline_keyboard", [])
    parts += [" ".join(f"[{button['text']}]" for button in row) for row in rows]
    return "\n".join(filter(None, parts))
