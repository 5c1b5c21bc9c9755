"""`FakeWhatsApp`: the Graph API of one number, with people who write to it.

It signs its webhooks, repeats them for days of its own time, reports on each message, and refuses what Meta
refuses: a wrong token, texts and captions that are too long, buttons that cannot be, a file nobody uploaded.
After 24 hours without a word of a person, it accepts a message and then reports that it failed.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar, Final

import msgspec

from gateway_sessions.ports import Clock
from gateway_sessions.testing.fakes.faults import RefusedCall
from gateway_sessions.testing.fakes.http_server import FakeRequest, FakeResponse, UploadedFile
from gateway_sessions.testing.fakes.platform_server import BotMessage
from gateway_sessions.testing.fakes.webhook_platform import FakeWebhookPlatform, WebhookDelivery

PHONE_NUMBER_ID: Final = "106540352242922"
DISPLAY_NUMBER: Final = "+1 555-078-3881"
ACCESS_TOKEN: Final = "EAAfake"  # noqa: S105 -- it opens nothing
APP_SECRET: Final = "0123456789abcdef0123456789abcdef"  # noqa: S105 -- the same
VERIFY_TOKEN: Final = "word-of-your-choice"  # noqa: S105 -- the same
WINDOW: Final = timedelta(hours=24)
LONGEST: Final = {"text": 4096, "caption": 1024, "question": 1024, "title": 20, "row": 24, "detail": 72}


class GraphRefusalError(Exception):
    """The Graph API refuses a call."""

    def __init__(self, code: int, message: str, *, status: int = 400) -> None:
        self.code = code
        self.message = message
        self.status = status
        super().__init__(message)

    def response(self) -> FakeResponse:
        """Return the refusal as Meta words it."""
        error = {"message": f"(#{self.code}) {self.message}", "type": "OAuthException", "code": self.code}
        return FakeResponse.of_json({"error": {**error, "fbtrace_id": "A1"}}, status=self.status)


def graph_error(code: int, message: str = "it was planned", *, status: int = 400) -> RefusedCall:
    """Return a fault for `faults.plan`: the Graph API refuses with that code."""
    return RefusedCall(status, json.dumps({"code": code, "message": message}))


@dataclass(slots=True)
class WhatsAppPerson:
    """A person with WhatsApp."""

    name: str
    phone: str
    user_id: str
    hides_phone: bool = False
    """Whether the person has a user name, so that businesses do not learn the number."""
    has_blocked: bool = False
    """Whether the person has blocked the number."""
    has_left: bool = False
    """Whether the person's phone number is not on WhatsApp any more."""
    wrote_at: datetime | None = None
    shown: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """The messages that the person got, as they were posted, each with its `id`."""


class FakeWhatsApp(FakeWebhookPlatform):
    """A WhatsApp Business Platform for one number, to be used as `async with FakeWhatsApp() as whatsapp`."""

    retry_schedule: ClassVar[Sequence[float]] = (1, 10, 60, 600, 3600, 86400, 86400, 86400)
    answer_seconds: ClassVar[float] = 15.0

    def __init__(self, *, speed: float = 100_000.0, clock: Clock | None = None, reports: bool = True) -> None:
        """*reports*: whether it reports on what was sent, as Meta does."""
        super().__init__(speed=speed, clock=clock)
        self.numbers: set[str] = {PHONE_NUMBER_ID}
        """The ids of the numbers that the app has; a webhook is from the first one."""
        self.files: dict[str, UploadedFile] = {}
        self.url_of_files: str = ""
        """Where files are said to be; empty: at this server."""
        self.typing: list[str] = []
        """The ids of messages that were marked as read while an answer was being made."""
        self.reports: bool = reports
        self.people: dict[str, WhatsAppPerson] = {}
        self._numbers: defaultdict[str, int] = defaultdict(int)

    # People

    def person(self, name: str) -> WhatsAppPerson:
        """Return the person of that name, who is new if nobody has it."""
        if name not in self.people:
            at = len(self.people) + 1
            self.people[name] = WhatsAppPerson(name, f"1650555{at:04}", f"US.{10**15 + at}")
        return self.people[name]

    def says(self, name: str, text: str, **more: Any) -> WebhookDelivery:
        """Let a person write a text; *more* are further members of the message."""
        return self.writes(name, "text", {"body": text}, **more)

    def sends(
        self,
        name: str,
        kind: str,
        content: bytes,
        *,
        media_type: str = "application/octet-stream",
        **member: Any,
    ) -> WebhookDelivery:
        """Let a person send an image, a video, a document …; *member* has a caption or a file name."""
        media_id = self._new_id("media")
        self.files[media_id] = UploadedFile(str(member.get("filename", "file")), content, media_type)
        digest = base64.b64encode(hashlib.sha256(content).digest()).decode()
        return self.writes(name, kind, {"id": media_id, "mime_type": media_type, "sha256": digest, **member})

    def presses(self, name: str, label: str) -> WebhookDelivery:
        """Let a person press the button, or choose the row, of that label on the last message with one."""
        for message in reversed(self.person(name).shown):
            for kind, choice in _choices_of(message):
                if choice["title"] == label:
                    reply = {"type": kind, kind: {"id": choice["id"], "title": label}}
                    return self.writes(name, "interactive", reply, context={"id": message["id"]})
        problem = f"{name} sees no button {label!r}"
        raise AssertionError(problem)

    def blocks(self, name: str) -> None:
        """Let a person block the number: WhatsApp goes on taking messages for them, and delivers none."""
        self.person(name).has_blocked = True

    def unblocks(self, name: str) -> None:
        """Let a person unblock the number."""
        self.person(name).has_blocked = False

    def leaves(self, name: str) -> None:
        """Let a person leave WhatsApp: messages to them are refused."""
        self.person(name).has_left = True

    def writes(self, name: str, kind: str, content: Any, **more: Any) -> WebhookDelivery:
        """Let a person write a message of any type."""
        return self.deliver(self.webhook([self.message(name, kind, content, **more)], name))

    def message(self, name: str, kind: str, content: Any, **more: Any) -> dict[str, Any]:
        """Return a message of a person as Meta describes it."""
        person, now = self.person(name), self.clock.now()
        person.wrote_at = now
        number = {} if person.hides_phone else {"from": person.phone}
        return {
            **number,
            "from_user_id": person.user_id,
            "id": self._new_id("wamid."),
            "timestamp": str(int(now.timestamp())),
            "type": kind,
            kind: content,
            **more,
        }

    def webhook(self, messages: Sequence[dict[str, Any]], *names: str) -> dict[str, Any]:
        """Return the body of a webhook with messages of some people."""
        contacts = [self._contact(self.person(name)) for name in names]
        return self._envelope({"contacts": contacts, "messages": list(messages)})

    def texts(self, name: str) -> list[str]:
        """Return the texts, captions and questions that a person got."""
        return [text for one in self.person(name).shown if (text := _text_of(one)) is not None]

    def bot_messages(self) -> Iterator[BotMessage]:
        """Yield all messages of the number that people see, wherever they stand."""
        for person in list(self.people.values()):
            for one in list(person.shown):
                yield BotMessage(person.name, one["id"], _seen_text(one))

    def adapter_settings(self, folder: Path) -> dict[str, str]:
        """Return the keys of a configuration by which an adapter speaks with this fake."""
        account = {"phone_number_id": PHONE_NUMBER_ID, "access_token": ACCESS_TOKEN, "app_secret": APP_SECRET}
        return {**account, "verify_token": VERIFY_TOKEN, "api_url": self.url}

    # Webhooks

    def sign(self, delivery: WebhookDelivery, url: str) -> Mapping[str, str]:
        """Return the headers of a webhook."""
        digest = hmac.new(APP_SECRET.encode(), delivery.body, hashlib.sha256).hexdigest()
        return {"x-hub-signature-256": f"sha256={digest}", "user-agent": "facebookexternalua"}

    def _envelope(self, value: dict[str, Any]) -> dict[str, Any]:
        metadata = {
            "display_phone_number": "".join(filter(str.isdigit, DISPLAY_NUMBER)),
            "phone_number_id": PHONE_NUMBER_ID,
        }
        full = {"messaging_product": "whatsapp", "metadata": metadata, **value}
        change = {"field": "messages", "value": full}
        return {
            "object": "whatsapp_business_account",
            "entry": [{"id": "102290129340398", "changes": [change]}],
        }

    def _contact(self, person: WhatsAppPerson) -> dict[str, Any]:
        number = {} if person.hides_phone else {"wa_id": person.phone}
        return {"profile": {"name": person.name}, "user_id": person.user_id, **number}

    def report(self, name: str, sent: Mapping[str, Any], status: str, **more: Any) -> WebhookDelivery:
        """Let WhatsApp report on a message that was sent."""
        person = self.person(name)
        told = {
            "id": sent["id"],
            "status": status,
            "timestamp": str(int(self.clock.now().timestamp())),
            "recipient_id": person.phone,
            "recipient_user_id": person.user_id,
            "biz_opaque_callback_data": sent.get("biz_opaque_callback_data", ""),
            **more,
        }
        return self.deliver(self._envelope({"contacts": [self._contact(person)], "statuses": [told]}))

    # The Graph API

    def method_of(self, request: FakeRequest) -> str:
        """Return the name of a call: `messages`, `typing`, `media`, `number` or `file`."""
        _, first, *rest = request.path.split("/")
        match rest:
            case [number, "messages"] if number in self.numbers:
                return "typing" if "typing_indicator" in request.parameters() else "messages"
            case [number, "media"] if number in self.numbers:
                return "upload"
            case [number] if number in self.numbers:
                return "number"
            case [_] if first == "files":
                return "file"
            case [_]:
                return "media"
            case _:
                return "unknown"

    def refused(self, refusal: RefusedCall) -> FakeResponse:
        """Return a planned refusal."""
        try:
            error: dict[str, Any] = json.loads(refusal.problem)
        except ValueError:
            error = {"code": 100, "message": refusal.problem}
        code, message = int(error["code"]), str(error["message"])
        return GraphRefusalError(code, message, status=refusal.status).response()

    def limited(self, retry_after: float) -> FakeResponse:
        """Return the refusal of one message too many to one person."""
        response = GraphRefusalError(
            131056, "(Business Account, Consumer Account) pair rate limit hit"
        ).response()
        return FakeResponse(
            response.status, response.body, {**response.headers, "retry-after": f"{retry_after:g}"}
        )

    async def api(self, method: str, request: FakeRequest, parameters: Mapping[str, Any]) -> FakeResponse:
        """Answer a call of the Graph API."""
        if request.headers.get("authorization") != f"Bearer {ACCESS_TOKEN}":
            return GraphRefusalError(190, "Invalid OAuth access token.", status=401).response()
        try:
            return self._answer_to(method, request, parameters)
        except GraphRefusalError as refusal:
            return refusal.response()

    def _answer_to(self, method: str, request: FakeRequest, parameters: Mapping[str, Any]) -> FakeResponse:
        name = request.path.rpartition("/")[2]
        match method:
            case "messages":
                return FakeResponse.of_json(self._send(dict(parameters)))
            case "typing":
                self.typing.append(str(parameters["message_id"]))
                return FakeResponse.of_json({"success": True})
            case "upload":
                return FakeResponse.of_json({"id": self._upload(parameters)})
            case "number":
                return FakeResponse.of_json({"display_phone_number": DISPLAY_NUMBER, "id": PHONE_NUMBER_ID})
            case "file" | "media" if name in self.files:
                return self._file(method, name)
            case _:
                problem = f"Unsupported {request.method.lower()} request: the object does not exist"
                raise GraphRefusalError(100, problem)

    def _file(self, method: str, name: str) -> FakeResponse:
        file = self.files[name]
        if method == "file":
            return FakeResponse(200, file.content, {"content-type": file.media_type})
        size = len(file.content)
        url = f"{self.url_of_files or self.url}/files/{name}"
        facts = {
            "mime_type": file.media_type,
            "file_size": size,
            "sha256": hashlib.sha256(file.content).hexdigest(),
        }
        return FakeResponse.of_json({"messaging_product": "whatsapp", "id": name, "url": url, **facts})

    def _upload(self, parameters: Mapping[str, Any]) -> str:
        file = parameters.get("file")
        if parameters.get("messaging_product") != "whatsapp" or not isinstance(file, UploadedFile):
            raise GraphRefusalError(100, "The parameter file is required.")
        media_id = self._new_id("media")
        self.files[media_id] = file
        return media_id

    def _send(self, message: dict[str, Any]) -> dict[str, Any]:
        person = self._recipient(message)
        self._check(message)
        message_id = self._new_id("wamid.")
        sent = {**message, "id": message_id}
        closed = person.wrote_at is None or self.clock.now() - person.wrote_at > WINDOW
        if closed and message["type"] != "template":
            error = {"code": 131047, "title": "Re-engagement message", "message": "Re-engagement message"}
            details = {"details": "More than 24 hours have passed since the customer last replied."}
            self.report(person.name, sent, "failed", errors=[{**error, "error_data": details}])
        else:
            if not person.has_blocked:
                person.shown.append(sent)
            # WhatsApp does not say who has blocked a number: a message is sent, and never delivered.
            for status in ("sent", "delivered")[: 1 if person.has_blocked else 2] if self.reports else ():
                self.report(person.name, sent, status)
        return {
            "messaging_product": "whatsapp",
            "contacts": [{"input": person.phone, "wa_id": person.phone, "user_id": person.user_id}],
            "messages": [{"id": message_id}],
        }

    def _recipient(self, message: Mapping[str, Any]) -> WhatsAppPerson:
        if message.get("messaging_product") != "whatsapp":
            raise GraphRefusalError(100, "The parameter messaging_product is required.")
        for person in [one for one in self.people.values() if not one.has_left]:
            # If both are given, the number wins.
            if person.phone == message.get("to", "") or (
                "to" not in message and person.user_id == message.get("recipient")
            ):
                return person
        if "to" in message or "recipient" in message:
            raise GraphRefusalError(131026, "Message undeliverable")
        raise GraphRefusalError(100, "The parameter to is required.")

    def _check(self, message: Mapping[str, Any]) -> None:
        kind = str(message.get("type"))
        content = message.get(kind)
        if not isinstance(content, dict):
            raise GraphRefusalError(131008, "Required parameter is missing")
        if len(message.get("biz_opaque_callback_data", "")) > 512:
            raise GraphRefusalError(
                100, "Param biz_opaque_callback_data must be at most 512 characters long."
            )
        member = msgspec.convert(content, dict[str, Any])
        match kind:
            case "text":
                _check_length("text.body", member.get("body"), LONGEST["text"])
            case "interactive":
                _check_interactive(member)
            case "image" | "video" | "audio" | "document" | "sticker":
                _check_length("caption", member.get("caption", "-"), LONGEST["caption"])
                if member.get("id") not in self.files and "link" not in member:
                    raise GraphRefusalError(131009, "Parameter value is not valid: the media id is unknown")
            case "location" | "template":
                return
            case _:
                raise GraphRefusalError(131051, "Unsupported message type")

    def _new_id(self, kind: str) -> str:
        self._numbers[kind] += 1
        return f"{kind}{self._numbers[kind]:06}"


def _check_length(name: str, value: object, most: int) -> None:
    if not isinstance(value, str) or not value.strip():
        raise GraphRefusalError(100, f"The parameter {name} is required.")
    if len(value.encode("utf-16-le")) // 2 > most:
        raise GraphRefusalError(100, f"Param {name} must be at most {most} characters long.")


def _check_interactive(content: Mapping[str, Any]) -> None:
    question = content["body"]["text"]
    _check_length("interactive.body.text", question, LONGEST["question"])
    action = content["action"]
    match content["type"]:
        case "button":
            titles, most, longest = [one["reply"]["title"] for one in action["buttons"]], 3, LONGEST["title"]
        case "list":
            _check_length("interactive.action.button", action["button"], LONGEST["title"])
            rows = [row for section in action["sections"] for row in section["rows"]]
            for row in rows:
                _check_length("description", row.get("description", "-"), LONGEST["detail"])
            titles, most, longest = [row["title"] for row in rows], 10, LONGEST["row"]
        case "cta_url":
            titles, most, longest = [action["parameters"]["display_text"]], 1, LONGEST["title"]
        case other:
            raise GraphRefusalError(131009, f"Parameter value is not valid: {other}")
    ids = [str(choice["id"]) for _, choice in _choices_of({"interactive": content})]
    if not 1 <= len(titles) <= most or len(set(ids)) < len(ids):
        raise GraphRefusalError(131009, f"Parameter value is not valid: 1 to {most} different choices")
    for title in titles:
        _check_length("title", title, longest)


def _choices_of(message: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return what a person can choose below a message, each with the type of the reply."""
    content = message.get("interactive", {})
    action = content.get("action", {})
    match content.get("type"):
        case "button":
            return [("button_reply", one["reply"]) for one in action["buttons"]]
        case "list":
            return [("list_reply", row) for section in action["sections"] for row in section["rows"]]
        case _:
            return []


def _text_of(message: Mapping[str, Any]) -> str | None:
    content = message.get(message["type"], {})
    match message["type"]:
        case "text":
            return str(content["body"])
        case "interactive":
            return str(content["body"]["text"])
        case _:
            return str(content["caption"]) if "caption" in content else None


def _seen_text(message: Mapping[str, Any]) -> str:
    parts = [_text_of(message) or f"[{message['type']}]"]
    parts += [f"[{choice['title']}]" for _, choice in _choices_of(message)]
    return "\n".join(parts)
