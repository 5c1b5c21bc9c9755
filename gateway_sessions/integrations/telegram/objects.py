"""The objects of the Bot API, as far as they are read; what else Telegram sends is passed over."""

from __future__ import annotations

from typing import Literal

import msgspec


class ApiUser(msgspec.Struct, frozen=True):
    """A person or a bot."""

    id: int
    first_name: str = ""
    last_name: str = ""
    username: str = ""
    is_bot: bool = False


class ApiChat(msgspec.Struct, frozen=True):
    """A chat of any kind, also one in whose name a person writes."""

    id: int
    type: Literal["private", "group", "supergroup", "channel"]
    title: str = ""
    first_name: str = ""
    last_name: str = ""
    username: str = ""


class ApiEntity(msgspec.Struct, frozen=True):
    """A marked piece of a text, in UTF-16 units."""

    type: str
    offset: int
    length: int
    user: ApiUser | None = None


class ApiFile(msgspec.Struct, frozen=True):
    """A file of any kind."""

    file_id: str
    file_size: int | None = None
    file_name: str | None = None
    mime_type: str | None = None
    emoji: str | None = None
    width: int = 0
    height: int = 0


class ApiContact(msgspec.Struct, frozen=True):
    """A person's number in an address book."""

    phone_number: str
    first_name: str = ""
    last_name: str = ""


class ApiOption(msgspec.Struct, frozen=True):
    """One answer of a poll."""

    text: str


class ApiPoll(msgspec.Struct, frozen=True):
    """A poll."""

    question: str
    options: list[ApiOption]


class ApiDice(msgspec.Struct, frozen=True):
    """A die, a dart, a ball … and its result."""

    emoji: str
    value: int


class ApiLocation(msgspec.Struct, frozen=True):
    """A point on the earth."""

    latitude: float
    longitude: float


class ApiQuote(msgspec.Struct, frozen=True):
    """The part of a message that is answered."""

    text: str


class ApiButton(msgspec.Struct, frozen=True):
    """A button below a message."""

    text: str
    callback_data: str = ""


class ApiMarkup(msgspec.Struct, frozen=True):
    """The buttons below a message, in rows."""

    inline_keyboard: list[list[ApiButton]] = []


class ApiMessage(msgspec.Struct, frozen=True):
    """A message."""

    message_id: int
    chat: ApiChat
    date: int = 0
    author: ApiUser | None = msgspec.field(name="from", default=None)
    sender_chat: ApiChat | None = None
    message_thread_id: int | None = None
    is_topic_message: bool = False
    media_group_id: str | None = None
    reply_to_message: ApiMessage | None = None
    reply_markup: ApiMarkup | None = None
    quote: ApiQuote | None = None
    text: str | None = None
    caption: str | None = None
    entities: list[ApiEntity] = []
    caption_entities: list[ApiEntity] = []
    photo: list[ApiFile] = []
    document: ApiFile | None = None
    video: ApiFile | None = None
    animation: ApiFile | None = None
    video_note: ApiFile | None = None
    audio: ApiFile | None = None
    voice: ApiFile | None = None
    sticker: ApiFile | None = None
    location: ApiLocation | None = None
    contact: ApiContact | None = None
    poll: ApiPoll | None = None
    dice: ApiDice | None = None

    @property
    def sender(self) -> ApiUser | ApiChat | None:
        """The person who wrote, or the chat in whose name somebody wrote."""
        return self.sender_chat or self.author

    @property
    def opens_topic(self) -> bool:
        """Whether the answered message is the one that opened the topic: every message there answers it."""
        answered = self.reply_to_message
        return (
            self.is_topic_message and answered is not None and answered.message_id == self.message_thread_id
        )


class ApiPress(msgspec.Struct, frozen=True):
    """A button that a person pressed."""

    id: str
    author: ApiUser = msgspec.field(name="from")
    message: ApiMessage | None = None
    """The message below which the button is; None for one that was sent through another chat."""
    data: str = ""

    @property
    def label(self) -> str:
        """The words on the button, if Telegram still tells them."""
        markup = self.message.reply_markup if self.message is not None else None
        buttons = [one for row in (markup.inline_keyboard if markup is not None else []) for one in row]
        return next((one.text for one in buttons if one.callback_data == self.data), "")


class ApiUpdate(msgspec.Struct, frozen=True):
    """An update."""

    update_id: int
    message: ApiMessage | None = None
    edited_message: ApiMessage | None = None
    callback_query: ApiPress | None = None


class ApiParameters(msgspec.Struct, frozen=True):
    """What an answer that refuses tells besides its reason."""

    retry_after: float | None = None
    migrate_to_chat_id: int | None = None


class ApiAnswer(msgspec.Struct, frozen=True):
    """The answer to a call."""

    ok: bool
    result: object = None
    error_code: int = 0
    description: str = ""
    parameters: ApiParameters = ApiParameters()
