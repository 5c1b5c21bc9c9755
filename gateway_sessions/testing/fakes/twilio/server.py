"""`FakeTwilio`: a REST API on loopback, with people, Twilio's rules, and faults on request."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final
from urllib.parse import parse_qsl, urlencode

from gateway_sessions.testing.fakes.faults import RefusedCall
from gateway_sessions.testing.fakes.http_server import FakeRequest, FakeResponse
from gateway_sessions.testing.fakes.platform_server import BotMessage
from gateway_sessions.testing.fakes.webhook_platform import FakeWebhookPlatform, WebhookDelivery

LONGEST: Final = 1600
STOPS: Final = {"STOP", "STOPALL", "UNSUBSCRIBE", "CANCEL", "END", "QUIT", "REVOKE", "OPTOUT"}
STARTS: Final = {"START", "UNSTOP", "YES"}


class TwilioRefusalError(Exception):
    """Twilio refuses a call."""

    def __init__(self, status: int, code: int, message: str) -> None:
        told = {"code": code, "message": message, "status": status, "more_info": f"https://e.org/{code}"}
        self.response: FakeResponse = FakeResponse.of_json(told, status=status)
        super().__init__(message)


class FakeTwilio(FakeWebhookPlatform):
    """A fake of Twilio with one number, whose webhook has the overrides `#rc=3&rp=5xx`."""

    # A repeated request follows at once.
    retry_schedule: ClassVar[Sequence[float]] = (0.1, 0.1, 0.1)

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.account_sid: str = f"AC{'0' * 32}"
        self.auth_token: str = "12345678901234567890123456789012"  # noqa: S105 -- this Twilio is made up, too
        self.number: str = "+15550100"
        self.public_url: str = "https://bots.example/twilio"
        """The address of the webhook as it is signed, which is not the one behind the proxy."""
        self.sent: list[dict[str, Any]] = []
        """What the account has sent."""
        self.media: dict[str, bytes] = {}
        self.has_stopped: set[str] = set()
        self._people: dict[str, str] = {}
        self._count = 0

    # People

    def person(self, name: str) -> str:
        """Return the number of a person."""
        return self._people.setdefault(name, f"+1555{1000 + len(self._people)}")

    def says(self, person: str, text: str, **fields: str) -> WebhookDelivery:
        """Let a person write."""
        number = self.person(person)
        if text.strip().upper() in STOPS:
            self.has_stopped.add(number)
        if text.strip().upper() in STARTS:
            self.has_stopped.discard(number)
        message = {
            "MessageSid": self._new_sid("SM"),
            "AccountSid": self.account_sid,
            "From": number,
            "To": self.number,
            "Body": text,
            "NumMedia": "0",
            "SmsStatus": "received",
            "ApiVersion": "2010-04-01",
            **fields,
        }
        return self.posts(message)

    def sends(self, person: str, content: bytes, media_type: str, text: str = "") -> WebhookDelivery:
        """Let a person send a file."""
        media_sid = self._new_sid("ME")
        self.media[media_sid] = content
        place = f"{self.url}/2010-04-01/Accounts/{self.account_sid}/Messages/MM1/Media/{media_sid}"
        fields = {"NumMedia": "1", "MediaUrl0": place, "MediaContentType0": media_type}
        return self.says(person, text, **fields)

    def reports(self, sid: str, status: str, **fields: str) -> WebhookDelivery:
        """Let Twilio report what became of a message."""
        return self.posts(
            {"MessageSid": sid, "MessageStatus": status, "AccountSid": self.account_sid, **fields}
        )

    def posts(self, fields: Mapping[str, str]) -> WebhookDelivery:
        """Let Twilio post a form."""
        kind = {"content-type": "application/x-www-form-urlencoded"}
        return self.deliver(urlencode(fields).encode(), headers=kind)

    # What people see

    def texts(self, person: str) -> list[str]:
        """Return what was sent to a person, files by their addresses."""
        return [
            "\n".join(filter(None, (one.get("Body", ""), *one["media"])))
            for one in self.sent
            if one["To"] == self.person(person)
        ]

    def bot_messages(self) -> Iterator[BotMessage]:
        """Yield all messages of the account that people see, files by their addresses."""
        names = {number: name for name, number in self._people.items()}
        for one in list(self.sent):
            text = "\n".join(filter(None, (one.get("Body", ""), *one["media"])))
            number = str(one["To"])
            yield BotMessage(names.get(number, number), one["sid"], text)

    def adapter_settings(self, folder: Path) -> dict[str, str]:
        """Return the keys of a configuration by which an adapter speaks with this fake."""
        account = {"account_sid": self.account_sid, "auth_token": self.auth_token, "sender": self.number}
        return {**account, "public_url": self.public_url, "api_url": self.url}

    # The webhook

    def sign(self, delivery: WebhookDelivery, url: str) -> Mapping[str, str]:
        """Return the signature of an attempt, over the public address and the form."""
        fields = sorted(parse_qsl(delivery.body.decode("latin-1"), keep_blank_values=True))
        content = self.public_url + "".join(name + value for name, value in fields)
        digest = hmac.digest(self.auth_token.encode(), content.encode(), hashlib.sha1)
        return {"x-twilio-signature": base64.b64encode(digest).decode()}

    # The API

    def method_of(self, request: FakeRequest) -> str:
        """Return the name of a call."""
        if request.path.endswith("/Messages.json"):
            return "send" if request.method == "POST" else "list"
        return "cdn" if request.path.startswith("/cdn/") else "media"

    def parameters_of(self, request: FakeRequest) -> Mapping[str, Any]:
        """Return the fields of a call; several values of one name as a list."""
        found: dict[str, Any] = {"media": []}
        for name, value in parse_qsl(request.body.decode(), keep_blank_values=True):
            if name == "MediaUrl":
                found["media"].append(value)
            else:
                found[name] = value
        return found

    def limited(self, retry_after: float) -> FakeResponse:
        """Return the answer that asks for a pause."""
        refusal = TwilioRefusalError(429, 20429, "Too Many Requests").response
        return FakeResponse(429, refusal.body, {**refusal.headers, "retry-after": f"{retry_after:g}"})

    def refused(self, refusal: RefusedCall) -> FakeResponse:
        """Return the answer that refuses."""
        return TwilioRefusalError(refusal.status, 21211, refusal.problem).response

    async def api(self, method: str, request: FakeRequest, parameters: Mapping[str, Any]) -> FakeResponse:
        """Answer a call of the REST API."""
        if method == "cdn":
            assert "authorization" not in request.headers, "a secret was told to another host"
            return FakeResponse(
                200, self.media[request.path.rpartition("/")[2]], {"content-type": "image/png"}
            )
        try:
            self._check_secret(request)
            return self._outcome(method, request, parameters)
        except TwilioRefusalError as refusal:
            return refusal.response

    def _check_secret(self, request: FakeRequest) -> None:
        secret = base64.b64encode(f"{self.account_sid}:{self.auth_token}".encode()).decode()
        if request.headers.get("authorization") != f"Basic {secret}":
            raise TwilioRefusalError(401, 20003, "Authenticate")

    def _outcome(self, method: str, request: FakeRequest, given: Mapping[str, Any]) -> FakeResponse:
        if method == "list":
            return FakeResponse.of_json({"messages": []})
        if method == "send":
            return self._send(given)
        media_sid = request.path.rpartition("/")[2]
        if media_sid not in self.media:
            raise TwilioRefusalError(404, 20404, "The requested resource was not found")
        return FakeResponse(307, b"", {"location": f"{self.url}/cdn/{media_sid}"})

    def _send(self, given: Mapping[str, Any]) -> FakeResponse:
        body, person = str(given.get("Body", "")), str(given.get("To", ""))
        if not body.strip() and not given["media"]:
            raise TwilioRefusalError(400, 21602, "Message body is required")
        if len(body.encode("utf-16-le")) // 2 > LONGEST:
            raise TwilioRefusalError(
                400, 21617, "The concatenated message body exceeds the 1600 character limit"
            )
        if not person.removeprefix("whatsapp:").startswith("+"):
            raise TwilioRefusalError(400, 21211, f"Invalid 'To' Phone Number: {person}")
        if person in self.has_stopped:
            raise TwilioRefusalError(400, 21610, "Attempt to send to unsubscribed recipient")
        if not given.get("From") and not given.get("MessagingServiceSid"):
            raise TwilioRefusalError(400, 21603, "A 'From' phone number is required")
        sid = self._new_sid("MM" if given["media"] else "SM")
        self.sent.append({**given, "sid": sid})
        return FakeResponse.of_json({"sid": sid, "status": "queued"}, status=201)

    def _new_sid(self, kind: str) -> str:
        self._count += 1
        return f"{kind}{self._count:032x}"
