"""The methods of the Bot API that a fake Telegram knows, with the rules for their parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from gateway_sessions.testing.fakes.http_server import UploadedFile
from gateway_sessions.testing.fakes.telegram.chats import TelegramChat, TelegramChats
from gateway_sessions.testing.fakes.telegram.entities import found_entities, parse_html, utf16_length
from gateway_sessions.testing.fakes.telegram.refusals import bad_request

LONGEST_TEXT: Final = 4096
LONGEST_CAPTION: Final = 1024
MOST_OF_ALBUM: Final = 10
NOT_MODIFIED: Final = (
    "message is not modified: specified new message content and reply markup are exactly the same "
    "as a current content and reply markup of the message"
)
ACTIONS: Final = frozenset(
    {
        *("typing", "upload_photo", "record_video", "upload_video", "record_voice", "upload_voice"),
        *("upload_document", "choose_sticker", "find_location", "record_video_note", "upload_video_note"),
    }
)
MEDIA: Final = {
    **{"sendPhoto": "photo", "sendDocument": "document", "sendVideo": "video", "sendAudio": "audio"},
    **{"sendVoice": "voice", "sendAnimation": "animation"},
}

Parameters = Mapping[str, Any]
BotMethod = Callable[[Parameters], object]


class BotMethods:
    """The methods that change or show chats."""

    def __init__(self, chats: TelegramChats, files: dict[str, bytes]) -> None:
        self._chats = chats
        self._files = files
        self.actions: list[tuple[int, str, int | None]] = []
        """What the bot was shown to do: chat, action, topic."""
        self.commands: dict[str, list[dict[str, str]]] = {}
        """The bot's menu of commands, by scope."""
        self.answered_buttons: dict[str, str] = {}
        """What people were shown after they pressed a button, by the id of the press."""
        self.drafts: dict[tuple[int, int], str] = {}
        """The drafts that grow, by chat and number."""
        self.table: dict[str, BotMethod] = {
            "getMe": lambda _: {**chats.bot.as_json(), "can_join_groups": True},
            "sendMessage": self._send_message,
            "sendMessageDraft": self._send_draft,
            "editMessageText": self._edit_message,
            "deleteMessage": self._delete_message,
            "sendChatAction": self._show_action,
            "sendMediaGroup": self._send_album,
            "answerCallbackQuery": self._answer_button,
            "setMyCommands": self._set_commands,
            "getMyCommands": lambda given: self.commands.get(_scope(given), []),
            "deleteMyCommands": lambda given: bool(self.commands.pop(_scope(given), None)) or True,
            "getFile": self._describe_file,
            "getChat": lambda given: self._chat(given).as_json(),
            **{name: self._sender_of(kind) for name, kind in MEDIA.items()},
        }

    def _chat(self, given: Parameters) -> TelegramChat:
        return self._chats.open_chat(given.get("chat_id"))

    # Messages

    def _send_message(self, given: Parameters) -> dict[str, Any]:
        chat = self._chat(given)
        content = formatted(given, "text", LONGEST_TEXT)
        return self._add(chat, given, content)

    def _add(self, chat: TelegramChat, given: Parameters, content: dict[str, Any]) -> dict[str, Any]:
        return self._chats.message_in(
            chat,
            self._chats.bot,
            {**content, **_place(chat, given), **_reply(chat, given), **_buttons(given)},
        )

    def _send_draft(self, given: Parameters) -> bool:
        chat = self._chat(given)
        if chat.kind != "private":
            raise bad_request("drafts can be sent to private chats only")
        content = formatted(given, "text", LONGEST_TEXT)
        self.drafts[chat.id, int(given["draft_id"])] = str(content["text"])
        return True

    def _edit_message(self, given: Parameters) -> dict[str, Any]:
        chat = self._chat(given)
        message = chat.messages.get(int(given.get("message_id", 0)))
        if message is None:
            raise bad_request("message to edit not found")
        if message["from"]["id"] != self._chats.bot.id:
            raise bad_request("message can't be edited")
        content = {**formatted(given, "text", LONGEST_TEXT), **_buttons(given)}
        before = {name: message.get(name) for name in ("text", "entities", "reply_markup")}
        if before == {name: content.get(name) for name in before}:
            raise bad_request(NOT_MODIFIED)
        for name in before:
            message.pop(name, None)
        message.update({**content, "edit_date": message["date"]})
        return message

    def _delete_message(self, given: Parameters) -> bool:
        if self._chat(given).messages.pop(int(given.get("message_id", 0)), None) is None:
            raise bad_request("message to delete not found")
        return True

    # Files

    def _sender_of(self, kind: str) -> BotMethod:
        def send(given: Parameters) -> dict[str, Any]:
            chat = self._chat(given)
            content = formatted(given, "caption", LONGEST_CAPTION) if given.get("caption") else {}
            return self._add(chat, given, {**self._stored(kind, given.get(kind), given), **content})

        return send

    def _stored(self, kind: str, media: object, given: Parameters) -> dict[str, Any]:
        """Return the member of a message for a file that was uploaded, is known, or stands at an address."""
        if isinstance(media, str) and media.startswith("attach://"):
            media = given.get(media.removeprefix("attach://"))
        if isinstance(media, UploadedFile):
            return self.file_member(kind, media.content, media.name)
        if isinstance(media, str) and media in self._files:
            return self.file_member(kind, self._files[media], "known")
        if isinstance(media, str) and media.startswith(("http://", "https://")):
            return self.file_member(kind, media.encode(), media.rpartition("/")[2])
        raise bad_request(f"there is no {kind} in the request")

    def file_member(self, kind: str, content: bytes, name: str) -> dict[str, Any]:
        """Keep a file, and return the member of a message that names it."""
        file_id = f"file-{self._chats.new_id()}"
        self._files[file_id] = content
        facts: dict[str, Any] = {"file_id": file_id, "file_unique_id": file_id, "file_size": len(content)}
        if kind == "photo":
            return {"photo": [{**facts, "width": 90, "height": 90}]}
        return {kind: {**facts, "file_name": name, "duration": 1}}

    def _send_album(self, given: Parameters) -> list[dict[str, Any]]:
        chat, media = self._chat(given), _objects(given.get("media"))
        if not 2 <= len(media) <= MOST_OF_ALBUM:
            raise bad_request("wrong number of media in the album")
        group = str(self._chats.new_id())
        sent: list[dict[str, Any]] = []
        for one in media:
            caption = formatted(one, "caption", LONGEST_CAPTION) if one.get("caption") else {}
            content = {**self._stored(one["type"], one["media"], given), **caption, "media_group_id": group}
            sent.append(self._add(chat, given, content))
        return sent

    def _describe_file(self, given: Parameters) -> dict[str, Any]:
        file_id = str(given.get("file_id"))
        if file_id not in self._files:
            raise bad_request("invalid file_id")
        size = len(self._files[file_id])
        return {
            "file_id": file_id,
            "file_unique_id": file_id,
            "file_size": size,
            "file_path": f"files/{file_id}",
        }

    # What surrounds messages

    def _show_action(self, given: Parameters) -> bool:
        chat, action, thread = self._chat(given), str(given.get("action")), given.get("message_thread_id")
        if action not in ACTIONS:
            raise bad_request("wrong parameter action in request")
        self.actions.append((chat.id, action, int(thread) if thread else None))
        return True

    def _answer_button(self, given: Parameters) -> bool:
        self.answered_buttons[str(given.get("callback_query_id"))] = str(given.get("text", ""))
        return True

    def _set_commands(self, given: Parameters) -> bool:
        commands = _objects(given.get("commands"))
        for one in commands:
            name = str(one.get("command", ""))
            if not (1 <= len(name) <= 32 and name.replace("_", "a").isalnum() and name == name.lower()):
                raise bad_request("BOT_COMMAND_INVALID")
            if not 1 <= len(str(one.get("description", ""))) <= 256:
                raise bad_request("BOT_COMMAND_DESCRIPTION_INVALID")
        self.commands[_scope(given)] = commands
        return True


def formatted(given: Parameters, name: str, longest: int) -> dict[str, Any]:
    """Return the text of a message and its entities, or refuse as Telegram does."""
    text = str(given.get(name) or "")
    match given.get("parse_mode"):
        case None | "":
            entities = _objects(given.get("entities")) or found_entities(text)
        case "HTML":
            text, entities = parse_html(text)
        case other:
            raise bad_request(f"this fake does not know the parse mode {other}")
    if not text.strip():
        raise bad_request("message text is empty" if name == "text" else "message caption is empty")
    if utf16_length(text) > longest:
        raise bad_request("message is too long" if name == "text" else "message caption is too long")
    return {
        name: text,
        **({"entities" if name == "text" else "caption_entities": entities} if entities else {}),
    }


def _place(chat: TelegramChat, given: Parameters) -> dict[str, Any]:
    thread = given.get("message_thread_id")
    if thread is None:
        return {}
    if int(thread) not in chat.topics:
        raise bad_request("message thread not found")
    return {"message_thread_id": int(thread), "is_topic_message": True}


def _reply(chat: TelegramChat, given: Parameters) -> dict[str, Any]:
    asked = _object(given.get("reply_parameters"))
    number = int(asked.get("message_id") or given.get("reply_to_message_id") or 0)
    if not number:
        return {}
    if number in chat.messages:
        return {"reply_to_message": chat.messages[number]}
    if asked.get("allow_sending_without_reply") or given.get("allow_sending_without_reply"):
        return {}
    raise bad_request("message to be replied not found")


def _buttons(given: Parameters) -> dict[str, Any]:
    markup = _object(given.get("reply_markup"))
    for row in msgspec.convert(markup.get("inline_keyboard", []), list[list[dict[str, Any]]]):
        for button in row:
            if len(str(button.get("callback_data", "")).encode()) > 64:
                raise bad_request("BUTTON_DATA_INVALID")
    return {"reply_markup": markup} if markup else {}


def _scope(given: Parameters) -> str:
    return str(_object(given.get("scope")).get("type", "default"))


def _object(value: object) -> dict[str, Any]:
    """Return a parameter that is an object, maybe as JSON in a string; empty if it was left out."""
    return msgspec.convert(_decoded(value) or {}, dict[str, Any])


def _objects(value: object) -> list[dict[str, Any]]:
    """Return a parameter that is a list of objects, maybe as JSON in a string."""
    return msgspec.convert(_decoded(value) or [], list[dict[str, Any]])


def _decoded(value: object) -> object:
    return msgspec.json.decode(value) if isinstance(value, str) and value else value
