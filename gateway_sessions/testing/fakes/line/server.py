"""`FakeLine`: a Messaging API on loopback, with people, LINE's rules, and faults on request."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar, Final

from gateway_sessions.testing.fakes.faults import RefusedCall
from gateway_sessions.testing.fakes.http_server import FakeRequest, FakeResponse
from gateway_sessions.testing.fakes.line.messages import (
    LineRefusalError,
    check_messages,
    check_retry_key,
    shown_words,
)
from gateway_sessions.testing.fakes.platform_server import BotMessage
from gateway_sessions.testing.fakes.webhook_platform import FakeWebhookPlatform, WebhookDelivery

REPLY_TOKEN_LIFE: Final = timedelta(minutes=1)
FIRST_MESSAGE: Final = 444573844083572736


class FakeLine(FakeWebhookPlatform):
    """A fake of LINE with one official account, for which webhook redelivery is switched on."""

    retry_schedule: ClassVar[Sequence[float]] = (60, 300, 900)

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.channel_secret: str = "0123456789abcdef0123456789abcdef"  # noqa: S105 -- this LINE is made up, too
        self.channel_access_token: str = "line/access+token="  # noqa: S105 -- the same
        self.bot_id: str = f"U{'b' * 32}"
        self.messages: list[tuple[str, dict[str, Any]]] = []
        """What was sent: the chat, and the message with its id."""
        self.loading: list[str] = []
        """The people to whom the sign of typing was shown."""
        self.contents: dict[str, bytes] = {}
        self.unnamed: set[str] = set()
        """The people whose names LINE does not tell."""
        self.quota: int = 1_000_000
        """The messages that may still be pushed this month."""
        self._accepted: dict[str, list[str]] = {}
        self._reply_tokens: dict[str, tuple[str, datetime]] = {}
        self._people: dict[str, str] = {}
        self._groups: dict[str, str] = {}
        self._blocked_by: set[str] = set()
        self._left: set[str] = set()
        self._count = 0

    # People

    def person(self, name: str) -> str:
        """Return the id of a person."""
        return self._people.setdefault(
            name, f"U{hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()}"
        )

    def group(self, name: str) -> str:
        """Return the id of a group."""
        return self._groups.setdefault(
            name, f"C{hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()}"
        )

    def says(
        self,
        person: str,
        text: str,
        *,
        group: str | None = None,
        mentions: bool = False,
        quotes: str | None = None,
    ) -> WebhookDelivery:
        """Let a person write, in private or in a group; *quotes* is the id of a message."""
        message: dict[str, Any] = {"type": "text", "text": text, "quoteToken": "q"}
        if mentions:
            message["text"] = f"@Helper {text}"
            mentionee = {"index": 0, "length": 7, "type": "user", "userId": self.bot_id, "isSelf": True}
            message["mention"] = {"mentionees": [mentionee]}
        if quotes is not None:
            message["quotedMessageId"] = quotes
        return self.sends(person, message, group=group)

    def sends(self, person: str, message: Mapping[str, Any], *, group: str | None = None) -> WebhookDelivery:
        """Let a person send a message of any kind."""
        return self.happens(person, "message", group=group, message={"id": self._new_id(), **message})

    def sends_content(self, person: str, kind: str, content: bytes, **members: Any) -> WebhookDelivery:
        """Let a person send a picture, a film, a recording or a file."""
        message_id = self._new_id()
        self.contents[message_id] = content
        message: dict[str, Any] = {"id": message_id, "type": kind, **members}
        if kind != "file":
            message |= {"contentProvider": {"type": "line"}, "quoteToken": "q"}
        return self.happens(person, "message", message=message)

    def takes_back(self, person: str, message_id: str) -> WebhookDelivery:
        """Let a person take a message back."""
        return self.happens(person, "unsend", reply=False, unsend={"messageId": message_id})

    def presses(self, person: str, label: str) -> WebhookDelivery:
        """Let a person press the button of that label on the last message."""
        chat, message = self.messages[-1]
        for item in message.get("quickReply", {}).get("items", []):
            if item["action"]["label"] == label and chat == self.person(person):
                return self.happens(person, "postback", postback={"data": item["action"]["data"]})
        problem = f"{person} sees no button {label!r}"
        raise AssertionError(problem)

    def blocks(self, person: str) -> WebhookDelivery:
        """Let a person block the account: LINE goes on taking messages for them, and shows none."""
        self._blocked_by.add(self.person(person))
        return self.happens(person, "unfollow", reply=False)

    def unblocks(self, person: str) -> WebhookDelivery:
        """Let a person unblock the account."""
        self._blocked_by.discard(self.person(person))
        return self.happens(person, "follow", follow={"isUnblocked": True})

    def removes_bot(self, person: str, *, group: str) -> WebhookDelivery:
        """Let a person remove the account from a group."""
        self._left.add(self.group(group))
        return self.happens(person, "leave", group=group, reply=False)

    def happens(
        self, person: str, kind: str, *, group: str | None = None, reply: bool = True, **members: Any
    ) -> WebhookDelivery:
        """Let something happen between a person and the account."""
        return self.deliver(
            {"destination": self.bot_id, "events": [self.event(person, kind, group, reply=reply, **members)]}
        )

    def event(
        self, person: str, kind: str, group: str | None = None, *, reply: bool = True, **members: Any
    ) -> dict[str, Any]:
        """Return an event as LINE describes it."""
        source = {"type": "user", "userId": self.person(person)}
        chat = source["userId"]
        if group is not None:
            chat = self.group(group)
            source |= {"type": "group", "groupId": chat}
        token = {}
        if reply:
            token = {"replyToken": secrets.token_hex(16)}
            self._reply_tokens[token["replyToken"]] = (chat, self.clock.now())
        return {
            "type": kind,
            "mode": "active",
            "timestamp": int(self.clock.now().timestamp() * 1000),
            "source": source,
            "webhookEventId": f"01FZ{self._new_id()}",
            "deliveryContext": {"isRedelivery": False},
            **token,
            **members,
        }

    # What people see

    def texts(self, person: str = "", *, group: str | None = None) -> list[str]:
        """Return what the account has said to a person or in a group."""
        chat = self.person(person) if group is None else self.group(group)
        return [shown_words(message) for place, message in self.messages if place == chat]

    def bot_messages(self) -> Iterator[BotMessage]:
        """Yield all messages of the account that people see, wherever they stand."""
        places = {chat: name for name, chat in self._people.items()}
        places |= {chat: f"#{name}" for name, chat in self._groups.items()}
        for chat, message in list(self.messages):
            text = shown_words(message) or f"[{message['type']}]"
            yield BotMessage(places.get(chat, chat), message["id"], text)

    def adapter_settings(self, folder: Path) -> dict[str, str]:
        """Return the keys of a configuration by which an adapter speaks with this fake."""
        secrets = {
            "channel_secret": self.channel_secret,
            "channel_access_token": self.channel_access_token,
        }
        return {**secrets, "api_url": self.url, "data_url": self.url}

    # The webhook

    def sign(self, delivery: WebhookDelivery, url: str) -> Mapping[str, str]:
        """Return the signature of an attempt; a repeated one says in its body that it is."""
        if delivery.attempts:
            delivery.body = delivery.body.replace(b'"isRedelivery": false', b'"isRedelivery": true')
        digest = hmac.digest(self.channel_secret.encode(), delivery.body, hashlib.sha256)
        return {"x-line-signature": base64.b64encode(digest).decode()}

    # The API

    def method_of(self, request: FakeRequest) -> str:
        """Return the name of a call."""
        *_, before, last = ["", *request.path.rstrip("/").split("/")]
        return before if before in ("profile", "member") else last

    def limited(self, retry_after: float) -> FakeResponse:
        """Return the answer that asks for a pause."""
        told = {"message": "The API rate limit has been exceeded. Try again later."}
        return FakeResponse.of_json(told, status=429, headers={"retry-after": f"{retry_after:g}"})

    def refused(self, refusal: RefusedCall) -> FakeResponse:
        """Return the answer that refuses."""
        return FakeResponse.of_json({"message": refusal.problem}, status=refusal.status)

    async def api(self, method: str, request: FakeRequest, parameters: Mapping[str, Any]) -> FakeResponse:
        """Answer a call of the Messaging API."""
        try:
            self._check_token(request)
            return self._outcome(method, request, parameters)
        except LineRefusalError as refusal:
            return refusal.response

    def _check_token(self, request: FakeRequest) -> None:
        if request.headers.get("authorization") != f"Bearer {self.channel_access_token}":
            raise LineRefusalError(401, "Authentication failed. Confirm that the access token is valid.")

    def _outcome(self, method: str, request: FakeRequest, given: Mapping[str, Any]) -> FakeResponse:
        match method:
            case "push":
                return self._push(check_retry_key(request.headers.get("x-line-retry-key", "")), given)
            case "reply":
                return self._reply(given)
            case "start":
                self.loading.append(str(given["chatId"]))
                return FakeResponse.of_json({}, status=202)
            case "info":
                return FakeResponse.of_json(self._account())
            case "profile" | "member" | "summary":
                return FakeResponse.of_json(self._named(method, request.path.split("/")))
            case "content" if (content := self.contents.get(request.path.split("/")[-2])) is not None:
                return FakeResponse(200, content, {"content-type": "application/octet-stream"})
            case _:
                raise LineRefusalError(404, "Not found")

    def _account(self) -> dict[str, str]:
        names = {"userId": self.bot_id, "basicId": "@helper", "displayName": "Helper"}
        return {**names, "chatMode": "bot", "markAsReadMode": "auto"}

    def _named(self, method: str, path: Sequence[str]) -> dict[str, str]:
        """Return the name of a group, or of a person who is alone or a member of something."""
        if method == "summary":
            names, wanted, told = self._groups, path[-2], ("groupId", "groupName")
        else:
            names, wanted, told = self._people, path[-1], ("userId", "displayName")
        for name, known in list(names.items()):
            if known == wanted and name not in self.unnamed:
                return dict(zip(told, (wanted, name), strict=True))
        raise LineRefusalError(404, "Not found")

    def _push(self, key: str, given: Mapping[str, Any]) -> FakeResponse:
        if key and key in self._accepted:
            sent = [{"id": one} for one in self._accepted[key]]
            raise LineRefusalError(409, "The retry key is already accepted", sentMessages=sent)
        messages = check_messages(given.get("messages"))
        if str(given.get("to", ""))[:1] not in ("U", "C", "R"):
            raise LineRefusalError(400, "The property, 'to', in the request body is invalid")
        if given["to"] in self._left:
            raise LineRefusalError(400, "Failed to send messages")
        if self.quota < len(messages):
            raise LineRefusalError(429, "You have reached your monthly limit.")
        self.quota -= len(messages)
        ids = self._show(str(given["to"]), messages)
        if key:
            self._accepted[key] = ids
        return FakeResponse.of_json({"sentMessages": [{"id": one, "quoteToken": "q"} for one in ids]})

    def _reply(self, given: Mapping[str, Any]) -> FakeResponse:
        messages = check_messages(given.get("messages"))
        chat, came_at = self._reply_tokens.get(str(given.get("replyToken")), ("", None))
        if came_at is None or self.clock.now() - came_at > REPLY_TOKEN_LIFE or chat in self._left:
            raise LineRefusalError(400, "Invalid reply token")
        del self._reply_tokens[str(given["replyToken"])]
        ids = self._show(chat, messages)
        return FakeResponse.of_json({"sentMessages": [{"id": one, "quoteToken": "q"} for one in ids]})

    def _show(self, chat: str, messages: Sequence[Mapping[str, Any]]) -> list[str]:
        ids = [self._new_id() for _ in messages]
        if chat not in self._blocked_by:
            self.messages += [(chat, {**one, "id": new}) for one, new in zip(messages, ids, strict=True)]
        return ids

    def _new_id(self) -> str:
        self._count += 1
        return str(FIRST_MESSAGE + self._count)
