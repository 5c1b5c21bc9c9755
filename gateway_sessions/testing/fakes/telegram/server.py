"""`FakeTelegram`: a Bot API server on loopback, with people who write to its bot."""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import anyio

from gateway_sessions._process.clock import SystemClock
from gateway_sessions.adapters._http import HttpError, NotConnectedError, Url, post
from gateway_sessions.ports import Clock
from gateway_sessions.testing.fakes.faults import (
    AskedPauses,
    CutConnection,
    Delay,
    Fault,
    RateLimit,
    RefusedCall,
    ServerFault,
)
from gateway_sessions.testing.fakes.http_server import (
    ConnectionCutError,
    FakeRequest,
    FakeResponse,
)
from gateway_sessions.testing.fakes.platform_server import LOOK_SECONDS, BotMessage, FakePlatformServer
from gateway_sessions.testing.fakes.telegram.chats import (
    TelegramChat,
    TelegramChats,
    TelegramUser,
    text_content,
    visible_text,
)
from gateway_sessions.testing.fakes.telegram.methods import BotMethods
from gateway_sessions.testing.fakes.telegram.refusals import (
    TelegramRefusalError,
    too_many_requests,
)

TOKEN: Final = "123456789:AAFakeTokenOfABotThatNobodyKnows"  # noqa: S105 -- it opens nothing
WEBHOOK_IS_SET: Final = (
    "Conflict: can't use getUpdates method while webhook is active; "
    "use deleteWebhook to delete the webhook first"
)
OTHER_POLLER: Final = (
    "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
)
MOST_UPDATES: Final = 100
LONGEST_POLL: Final = 50
PATIENCE_SECONDS: Final = 2.0
"""The longest time until a program that lives polls again."""
REDELIVERY_SECONDS: Final = 0.05
"""The pause before an update is posted again that the bot's server did not take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TelegramLimits:
    """How much a bot may send before it is asked to wait; `None` in place of them: as much as it likes."""

    a_second: int = 30
    a_second_in_a_chat: int = 1
    a_minute_in_a_group: int = 20


class FakeTelegram(FakePlatformServer):
    """A Bot API server for one bot, to be used as `async with FakeTelegram() as telegram`.

    Point a client library at `telegram.url`. Updates stay until the bot confirms them, also while no bot
    runs; a second poller ends the first one, as Telegram does it.
    """

    def __init__(
        self,
        *,
        token: str = TOKEN,
        username: str = "helper_bot",
        limits: TelegramLimits | None = None,
        clock: Clock | None = None,
    ) -> None:
        super().__init__()
        self.token = token
        self.bot: TelegramUser = TelegramUser(int(token.partition(":")[0]), "Helper", username, is_bot=True)
        self.files: dict[str, bytes] = {}
        self._clock = clock or SystemClock()
        self.chats: TelegramChats = TelegramChats(self.bot, self._clock)
        self.methods: BotMethods = BotMethods(self.chats, self.files)
        known = ("getUpdates", "setWebhook", "deleteWebhook", "getWebhookInfo", *self.methods.table)
        self._names = {name.lower(): name for name in known}
        self._limits = limits
        self._sent_at: dict[str, deque[float]] = {}
        self._pauses = AskedPauses()
        self._polls_begun = 0
        self._poll_waits = False
        self._delivered: dict[int, int] = {}
        """The number of the poll that brought an update first."""
        self._webhook: dict[str, Any] = {}
        self.posted: dict[int, bool] = {}
        """The updates that were posted to a webhook, and whether each was taken the first time."""

    def _duties(self) -> list[Callable[[], Awaitable[object]]]:
        return [self._post_updates]

    # People

    def says(
        self,
        person: str,
        text: str,
        *,
        group: str | None = None,
        topic: str | None = None,
        reply_to: int | None = None,
        **more: Any,
    ) -> int:
        """Let a person write, in private or in a group; return the id of the update."""
        return self._writes(person, text_content(text), group=group, topic=topic, reply_to=reply_to, **more)

    def sends(
        self,
        person: str,
        kind: str,
        content: bytes,
        *,
        caption: str | None = None,
        name: str = "file",
        group: str | None = None,
        album: str | None = None,
    ) -> int:
        """Let a person send a photo, a document, a voice message …; an *album* is several of one name."""
        member = self.methods.file_member(kind, content, name)
        if caption is not None:
            member["caption"] = caption
        if album is not None:
            member["media_group_id"] = album
        return self._writes(person, member, group=group)

    def edits(self, update_id: int, text: str) -> int:
        """Let a person change what they wrote."""
        message = self._message_of(update_id)
        message.update({**text_content(text), "edit_date": self._now()})
        return self.chats.add_update("edited_message", json.loads(json.dumps(message)))

    def presses(self, person: str, label: str, *, group: str | None = None) -> int:
        """Let a person press the button of that label, on the last message that has one."""
        chat = self.chat_of(person, group)
        for message in reversed(list(chat.messages.values())):
            for row in message.get("reply_markup", {}).get("inline_keyboard", []):
                for button in row:
                    if button["text"] == label:
                        return self._press(person, message, button)
        problem = f"{person} sees no button {label!r}"
        raise AssertionError(problem)

    def starts(self, person: str, payload: str = "") -> int:
        """Let a person press Start, maybe by a link with a payload."""
        return self.says(person, f"/start {payload}".strip())

    def blocks(self, person: str) -> int:
        """Let a person block the bot."""
        return self._member_changes(person, "kicked", blocked=True)

    def unblocks(self, person: str) -> int:
        """Let a person unblock the bot."""
        return self._member_changes(person, "member", blocked=False)

    def again(self, update: dict[str, Any]) -> None:
        """Deliver an update a second time."""
        self.chats.add_again(update)

    # What people see

    def chat_of(self, person: str, group: str | None = None) -> TelegramChat:
        """Return the private chat of a person, or a group."""
        return self.chats.chats[self.chats.person(person).id] if group is None else self.chats.group(group)

    def texts(self, person: str = "", *, group: str | None = None, topic: str | None = None) -> list[str]:
        """Return what the bot has said to a person, in a group or in one of its topics, as people read it."""
        chat = self.chat_of(person, group)
        thread = None if topic is None else self._topic(chat, topic)
        return self.chats.texts(chat, senders=[self.bot.id], thread=thread)

    def shown(self, person: str = "", *, group: str | None = None) -> list[dict[str, Any]]:
        """Return the bot's messages as Telegram keeps them."""
        chat = self.chat_of(person, group)
        return [one for one in list(chat.messages.values()) if one["from"]["id"] == self.bot.id]

    def bot_messages(self) -> Iterator[BotMessage]:
        """Yield all messages of the bot that people see, wherever they stand."""
        for chat in list(self.chats.chats.values()):
            place = f"#{chat.title}" if chat.person is None else chat.title
            for message_id, message in sorted(chat.messages.items()):
                if message["from"]["id"] == self.bot.id:
                    yield BotMessage(place, f"{chat.id} {message_id}", visible_text(message))

    def adapter_settings(self, folder: Path) -> dict[str, str]:
        """Return the keys of a configuration by which an adapter speaks with this fake."""
        return {"token": self.token, "api_url": self.url}

    async def is_taken(self, update_id: int, *, seconds: float = 10) -> bool:
        """Wait for the poll behind the one that brought an update; return whether it has confirmed it."""
        chats, delivered = self.chats, self._delivered
        await self.wait_until(lambda: update_id in delivered or update_id in chats.confirmed, seconds=seconds)
        with anyio.move_on_after(PATIENCE_SECONDS):  # who has gone polls no more
            while self._polls_begun <= delivered.get(update_id, 0):
                await anyio.sleep(LOOK_SECONDS)
        return update_id in chats.confirmed

    @property
    def polls(self) -> bool:
        """Whether a poll waits for an update."""
        return self._poll_waits

    @property
    def pending(self) -> int:
        """The number of updates that the bot has not confirmed."""
        return len(self.chats.updates)

    # The server

    async def _answer(self, request: FakeRequest) -> FakeResponse:
        _, account, *rest = [*request.path.split("/"), "", ""]
        if account == "file":
            return self._file(request.path)
        if account != f"bot{self.token}":
            return FakeResponse.of_json(TelegramRefusalError(401, "Unauthorized").as_json(), status=401)
        parameters = request.parameters()
        # As with Telegram, the case of a method's letters does not matter.
        method = self._names.get(rest[0].lower(), rest[0])
        fault = self.faults.next_for(method, parameters)
        response = await self._response(method, parameters, fault)
        self._log_call(method, parameters, response)
        return response

    async def _response(
        self, method: str, parameters: Mapping[str, Any], fault: Fault | None
    ) -> FakeResponse:
        match fault:
            case CutConnection():
                if fault is CutConnection.AFTER:
                    await self._outcome(method, parameters)
                raise ConnectionCutError
            case ServerFault():
                if fault.done:
                    await self._outcome(method, parameters)
                return FakeResponse(fault.status, fault.body.encode(), {"content-type": "text/html"})
            case RefusedCall():
                return _refused(TelegramRefusalError(fault.status, fault.problem))
            case RateLimit():
                return _refused(self._asked_to_wait(_place(parameters), fault.retry_after))
            case Delay() | None:
                await anyio.sleep(fault.seconds if fault else 0)
                return await self._outcome(method, parameters)

    async def _outcome(self, method: str, parameters: Mapping[str, Any]) -> FakeResponse:
        try:
            self._check_pace(method, parameters)
            match method:
                case "getUpdates":
                    result: object = await self._get_updates(parameters)
                case "setWebhook" | "deleteWebhook" | "getWebhookInfo":
                    result = self._change_webhook(method, parameters)
                case _ if method in self.methods.table:
                    result = self.methods.table[method](parameters)
                case _:
                    return _refused(TelegramRefusalError(404, "Not Found"))
        except TelegramRefusalError as refusal:
            return _refused(refusal)
        return FakeResponse.of_json({"ok": True, "result": result})

    def _file(self, path: str) -> FakeResponse:
        content = self.files.get(path.rpartition("/")[2])
        if content is None or f"/bot{self.token}/" not in path:
            return _refused(TelegramRefusalError(404, "Not Found"))
        return FakeResponse(200, content, {"content-type": "application/octet-stream"})

    # Pace

    def _asked_to_wait(self, place: str, seconds: float) -> TelegramRefusalError:
        return too_many_requests(math.ceil(self._pauses.ask(place, seconds)))

    def _check_pace(self, method: str, parameters: Mapping[str, Any]) -> None:
        """Refuse whoever was asked to wait and does not, for twice as long; and whoever sends too much."""
        place, now = _place(parameters), self._clock.now().timestamp()
        if (longer := self._pauses.broken(place)) is not None:
            raise too_many_requests(math.ceil(longer))
        if self._limits is not None and method.startswith(("send", "edit")) and place:
            self._count(place, now, self._limits)

    def _count(self, place: str, now: float, limits: TelegramLimits) -> None:
        in_chat, everywhere = self._sent_at.setdefault(place, deque()), self._sent_at.setdefault("", deque())
        in_a_minute = [at for at in in_chat if at > now - 60]
        if sum(at > now - 1 for at in in_chat) >= limits.a_second_in_a_chat:
            raise self._asked_to_wait(place, 1)
        if place.startswith("-") and len(in_a_minute) >= limits.a_minute_in_a_group:
            raise self._asked_to_wait(place, in_a_minute[0] + 60 - now)
        if sum(at > now - 1 for at in everywhere) >= limits.a_second:
            raise too_many_requests(1)
        in_chat.append(now)
        everywhere.append(now)

    # Updates

    async def _get_updates(self, given: Mapping[str, Any]) -> list[dict[str, Any]]:
        if self._webhook:
            raise TelegramRefusalError(409, WEBHOOK_IS_SET)
        self._polls_begun += 1
        number = self._polls_begun
        if (offset := int(given.get("offset") or 0)) > 0:
            self.chats.confirm(offset)
        limit = min(int(given.get("limit") or MOST_UPDATES), MOST_UPDATES)
        self._poll_waits = True
        with anyio.move_on_after(min(float(given.get("timeout") or 0), LONGEST_POLL)):
            while not self.chats.updates and self._polls_begun == number:
                await anyio.sleep(LOOK_SECONDS)
        if self._polls_begun != number:
            raise TelegramRefusalError(409, OTHER_POLLER)
        self._poll_waits = False
        brought = self.chats.updates[:limit]
        for update in brought:
            self._delivered.setdefault(update["update_id"], number)
        return brought

    def _change_webhook(self, method: str, given: Mapping[str, Any]) -> object:
        if method == "getWebhookInfo":
            return {"url": self._webhook.get("url", ""), "pending_update_count": self.pending}
        if given.get("drop_pending_updates") in (True, "true", "True", "1"):
            self.chats.confirm(10**18)
        self._webhook = {}
        if method == "setWebhook" and given.get("url"):
            self._webhook = {"url": str(given["url"]), "secret_token": str(given.get("secret_token") or "")}
        return True

    async def _post_updates(self) -> None:
        """Post updates to the webhook one after the other, each until it is taken."""
        while True:
            if not self._webhook or not self.chats.updates:
                await anyio.sleep(LOOK_SECONDS)
                continue
            update = self.chats.updates[0]
            headers = {"content-type": "application/json"}
            if secret := self._webhook["secret_token"]:
                headers["x-telegram-bot-api-secret-token"] = secret
            taken = await _is_taken(self._webhook["url"], headers, json.dumps(update).encode())
            self.posted.setdefault(update["update_id"], taken)
            if taken:
                self.chats.confirm(update["update_id"] + 1)
            else:
                self.failed_deliveries.append(f"{self._webhook['url']} did not take an update")
                await anyio.sleep(REDELIVERY_SECONDS)

    def _now(self) -> int:
        return int(self._clock.now().timestamp())

    # Helpers of people

    def _writes(
        self,
        person: str,
        content: dict[str, Any],
        *,
        group: str | None = None,
        topic: str | None = None,
        reply_to: int | None = None,
        **more: Any,
    ) -> int:
        chat, sender = self.chat_of(person, group), self.chats.person(person)
        place: dict[str, Any] = {}
        if topic is not None:
            place = {"message_thread_id": self._topic(chat, topic), "is_topic_message": True}
        if reply_to is not None:
            place["reply_to_message"] = chat.messages[reply_to]
        message = self.chats.message_in(chat, sender, {**content, **place, **more})
        return self.chats.add_update("message", json.loads(json.dumps(message)))

    def _topic(self, chat: TelegramChat, name: str) -> int:
        for number, known in chat.topics.items():
            if known == name:
                return number
        number = max(chat.topics, default=1) + 1
        chat.topics[number] = name
        return number

    def _message_of(self, update_id: int) -> dict[str, Any]:
        content = self.chats.update(update_id)["message"]
        return self.chats.chats[content["chat"]["id"]].messages[content["message_id"]]

    def _press(self, person: str, message: dict[str, Any], button: dict[str, Any]) -> int:
        return self.chats.add_update(
            "callback_query",
            {
                "id": str(self.chats.new_id()),
                "from": self.chats.person(person).as_json(),
                "message": message,
                "chat_instance": "1",
                "data": button.get("callback_data", ""),
            },
        )

    def _member_changes(self, person: str, status: str, *, blocked: bool) -> int:
        who = self.chats.person(person)
        who.has_blocked_bot = blocked
        member = {"user": self.bot.as_json(), "status": status}
        change = {
            "chat": self.chats.chats[who.id].as_json(),
            "from": who.as_json(),
            "date": self._now(),
            "old_chat_member": {**member, "status": "member" if blocked else "kicked"},
            "new_chat_member": {**member, **({"until_date": 0} if blocked else {})},
        }
        return self.chats.add_update("my_chat_member", change)


def _place(parameters: Mapping[str, Any]) -> str:
    return str(parameters.get("chat_id", ""))


async def _is_taken(url: str, headers: Mapping[str, str], body: bytes) -> bool:
    try:
        answer = await post(Url.parse(url), headers, body, tls=None)
    except (NotConnectedError, HttpError, OSError, EOFError):
        return False
    return 200 <= answer.status < 300


def _refused(refusal: TelegramRefusalError) -> FakeResponse:
    return FakeResponse.of_json(refusal.as_json(), status=refusal.code)
