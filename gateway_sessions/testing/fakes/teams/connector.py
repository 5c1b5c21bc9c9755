"""The calls of the Bot Connector that a fake Teams knows, with the rules for their activities."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, cast

from gateway_sessions.testing.fakes.http_server import FakeRequest, FakeResponse
from gateway_sessions.testing.fakes.teams.chats import THREAD, TeamsChat, TeamsChats

LARGEST: Final = 28 << 10
"""The most bytes of an activity, without pictures that it holds."""
MOST_BUTTONS: Final = 6
FORMATS: Final = {"plain", "markdown", "xml"}


class TeamsRefusalError(Exception):
    """The Bot Connector refuses a call."""

    def __init__(self, status: int, code: str, message: str) -> None:
        self.response: FakeResponse = FakeResponse.of_json(
            {"error": {"code": code, "message": message}}, status=status
        )
        super().__init__(message)


class BotConnector:
    """Shows what a bot says."""

    def __init__(self, chats: TeamsChats) -> None:
        self._chats = chats
        self.typing: list[str] = []
        """The conversations in which the bot was shown to write."""

    def call(self, request: FakeRequest, activity: Mapping[str, Any]) -> FakeResponse:
        """Carry out a call below `/v3/conversations/`."""
        _, _, rest = request.path.partition("/v3/conversations/")
        conversation, _, place = rest.partition("/activities")
        chat, root = self._open_chat(conversation)
        message_id = place.strip("/")
        if request.method == "PUT":
            return self._update(chat, message_id, activity)
        if request.method == "DELETE":
            self._own_message(chat, message_id)
            del chat.messages[message_id]
            return FakeResponse(200)
        if activity.get("type") == "typing":
            self.typing.append(conversation)
            return FakeResponse.of_json({"id": self._chats.new_id()}, status=201)
        return self._show(chat, root, activity)

    def _open_chat(self, conversation: str) -> tuple[TeamsChat, str]:
        chat, root = self._chats.find(conversation)
        if chat is None:
            raise TeamsRefusalError(404, "ConversationNotFound", "Conversation not found.")
        if not chat.has_bot:
            told = "The bot is not part of the conversation roster."
            raise TeamsRefusalError(403, "BotNotInConversationRoster", told)
        if any(one.has_blocked_bot and self._chats.chat_of(one.name) is chat for one in self._people()):
            raise TeamsRefusalError(403, "MessageWritesBlocked", "Message writes are blocked.")
        if root and root not in chat.messages:
            raise TeamsRefusalError(404, "ActivityNotFoundInConversation", "The thread does not exist.")
        return chat, root

    def _people(self) -> list[Any]:
        return list(self._chats.people.values())

    def _show(self, chat: TeamsChat, root: str, activity: Mapping[str, Any]) -> FakeResponse:
        check_activity(activity)
        message_id = self._chats.new_id()
        thread = root or (message_id if chat.kind == "channel" else "")
        chat.messages[message_id] = {**activity, "from": self._chats.bot, "thread": thread}
        return FakeResponse.of_json({"id": message_id}, status=201)

    def _update(self, chat: TeamsChat, message_id: str, activity: Mapping[str, Any]) -> FakeResponse:
        check_activity(activity)
        before = self._own_message(chat, message_id)
        chat.messages[message_id] = {**activity, "from": self._chats.bot, "thread": before["thread"]}
        return FakeResponse.of_json({"id": message_id})

    def _own_message(self, chat: TeamsChat, message_id: str) -> dict[str, Any]:
        message = chat.messages.get(message_id)
        if message is None:
            raise TeamsRefusalError(404, "ActivityNotFoundInConversation", "Activity not found.")
        if message["from"]["id"] != self._chats.bot["id"]:
            raise TeamsRefusalError(403, "Forbidden", "The bot may change its own messages only.")
        return message


def check_activity(activity: Mapping[str, Any]) -> None:
    """Refuse an activity that Teams would refuse, or would not show whole."""
    attachments = attachments_of(activity)
    if activity.get("type") != "message":
        raise TeamsRefusalError(400, "BadSyntax", f"Unknown activity type {activity.get('type')!r}")
    if not str(activity.get("text") or "").strip() and not attachments:
        raise TeamsRefusalError(400, "BadSyntax", "Activity must include non empty text or attachments")
    if activity.get("textFormat", "markdown") not in FORMATS:
        raise TeamsRefusalError(400, "BadSyntax", "Unknown textFormat")
    counted = [
        {**one, "contentUrl": ""} if str(one.get("contentUrl", "")).startswith("data:") else one
        for one in attachments
    ]
    if len(json.dumps({**activity, "attachments": counted}, ensure_ascii=False).encode()) > LARGEST:
        raise TeamsRefusalError(413, "MessageSizeTooBig", "Message size too large.")
    for one in attachments:
        _check_attachment(one)


def _check_attachment(attachment: Mapping[str, Any]) -> None:
    kind = attachment.get("contentType", "")
    if kind == "application/vnd.microsoft.card.adaptive":
        card = attachment["content"]
        if card.get("type") != "AdaptiveCard" or not str(card.get("version", "")).startswith("1."):
            raise TeamsRefusalError(400, "BadSyntax", "Card is not an AdaptiveCard with a version")
        for part in card.get("body", []):
            if len(part.get("actions", [])) > MOST_BUTTONS:
                raise TeamsRefusalError(400, "BadSyntax", f"More than {MOST_BUTTONS} actions in a set")
    elif not kind.startswith("image/") or not str(attachment.get("contentUrl", "")).startswith(
        ("https://", "data:image/")
    ):
        raise TeamsRefusalError(400, "BadSyntax", f"Unsupported attachment {kind!r}")


def shown_text(message: Mapping[str, Any]) -> str:
    """Return all that people see of a message, attachments by name and address."""
    seen = [str(message.get("text") or "")]
    for one in attachments_of(message):
        seen += [str(one.get(name)) for name in ("name", "contentUrl") if one.get(name)]
        seen += [f"[{button['title']}]" for button in buttons_of(one)]
    return "\n".join(filter(None, seen))


def attachments_of(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the attachments of a message."""
    return message.get("attachments") or []


def buttons_of(attachment: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the buttons of a card."""
    card: object = attachment.get("content")
    if not isinstance(card, dict):
        return []
    content = cast("dict[str, Any]", card)
    return [action for part in (*content.get("body", []), content) for action in part.get("actions", [])]


__all__ = [
    "THREAD",
    "BotConnector",
    "TeamsRefusalError",
    "attachments_of",
    "buttons_of",
    "check_activity",
    "shown_text",
]
