"""A small platform that calls a webhook, with its fake: what the tests of the engine are held with."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar

from gateway_sessions.adapters import AdapterCapabilities, InboundMessage, OutboundMessage, ReplyTarget
from gateway_sessions.adapters.webhooks import (
    ApiCall,
    CallNeeded,
    CallOutcome,
    CallRefused,
    DeliveryState,
    DeliveryStatus,
    PassedOver,
    PlatformAnswer,
    Request,
    Response,
    SendingPace,
    UnreadableEvent,
    Verdict,
    Verification,
    WebhookEvent,
    WebhookPlatform,
    outcome_of_status,
)
from gateway_sessions.adapters.webhooks.signatures import hmac_hex, is_same_secret
from gateway_sessions.core.identity.source import SessionSource
from gateway_sessions.errors import DeliveryRefusedError, InvalidInputError
from gateway_sessions.testing.fakes.http_server import FakeRequest, FakeResponse
from gateway_sessions.testing.fakes.webhook_platform import FakeWebhookPlatform, WebhookDelivery

SECRET = "a secret of the tests"


def signature(body: bytes) -> str:
    return hmac_hex(SECRET, body)


class ExampleRules(WebhookPlatform):
    """Reads `{"events": [{"id", "chat", "text"}, …]}`, signed; sends to `/messages`, with a token."""

    name: ClassVar[str] = "example"
    methods: ClassVar[frozenset[str]] = frozenset({"GET", "POST"})
    answer_seconds: ClassVar[float] = 5.0

    def __init__(
        self, api_url: str = "http://127.0.0.1:1", *, pace: SendingPace | None = None, tokens: bool = False
    ) -> None:
        self.api_url = api_url
        self.tokens = tokens
        self.token: str | None = None
        self.keys: frozenset[str] = frozenset()
        if pace is not None:
            self.pace = pace  # type: ignore[misc]  # the tests try several

    @property
    def capabilities(self) -> AdapterCapabilities:
        return AdapterCapabilities(max_length=1000, typing=True, edit=True)

    def verify(self, request: Request, now: datetime) -> Verification:
        if request.method == "GET":
            return (
                Verdict.GENUINE if is_same_secret(SECRET, request.query.get("secret", "")) else Verdict.FORGED
            )
        if key := request.headers.get("x-key"):
            if key in self.keys:
                return Verdict.GENUINE
            return CallNeeded(ApiCall(url=f"{self.api_url}/keys", method="GET", name="keys"))
        given = request.headers.get("x-signature", "")
        return Verdict.GENUINE if is_same_secret(signature(request.body), given) else Verdict.FORGED

    def answer_challenge(self, request: Request) -> Response | None:
        return Response(200, request.query["challenge"].encode()) if request.method == "GET" else None

    def parse(self, request: Request) -> Sequence[WebhookEvent]:
        try:
            events = json.loads(request.body)["events"]
            assert isinstance(events, list)
        except (ValueError, KeyError, TypeError, RecursionError, AssertionError) as error:
            problem = f"no events ({type(error).__name__})"
            raise InvalidInputError(problem) from error
        return [self._event(one) for one in events] or [PassedOver("an empty batch")]

    def _event(self, event: Any) -> WebhookEvent:
        if event == "crash":
            raise LookupError(event)
        if not isinstance(event, dict):
            return UnreadableEvent(event, "no event")
        if event.get("joined"):
            return PassedOver("somebody joined")
        if "status" in event:
            state = DeliveryState.FAILED if event["status"] == "failed" else DeliveryState.SENT
            return DeliveryStatus(message_id=str(event.get("id")), state=state, problem=event.get("why"))
        try:
            source = SessionSource(platform=self.name, chat_id=event["chat"], user_id=event["chat"])
            return InboundMessage(source=source, text=event["text"], message_id=event["id"])
        except (KeyError, InvalidInputError) as error:
            return UnreadableEvent(event, f"{type(error).__name__}: {error}")

    def authorize(self, call: ApiCall, now: datetime) -> ApiCall | CallNeeded:
        if not self.tokens:
            return call
        if self.token is None:
            return CallNeeded(ApiCall(url=f"{self.api_url}/token", name="token", shows=False))
        return ApiCall.of_json(
            call.url, json.loads(call.body), chat=call.chat, headers={"authorization": self.token}
        )

    def learn(self, call: ApiCall, answer: PlatformAnswer, now: datetime) -> None:
        if not answer.is_success:
            raise ValueError(answer.problem)
        if call.name == "keys":
            self.keys = frozenset(answer.member("keys"))
        else:
            self.token = answer.member("token")

    def forget_token(self) -> bool:
        self.token = None
        return self.tokens

    def render(
        self, message: OutboundMessage, target: ReplyTarget, *, idempotency_key: str
    ) -> Sequence[ApiCall]:
        if len(message.text) > 1000:
            raise DeliveryRefusedError(self.name, "too long")
        texts = [message.text, *(one.url for one in message.attachments)]
        return [self._call("messages", target.chat_id, text=text) for text in filter(None, texts)]

    def render_edit(self, message: OutboundMessage, target: ReplyTarget, message_id: str) -> ApiCall:
        return self._call("edits", target.chat_id, text=message.text, id=message_id)

    def render_typing(self, target: ReplyTarget) -> ApiCall | None:
        return ApiCall.of_json(
            f"{self.api_url}/typing", {"chat": target.chat_id}, chat=target.chat_id, shows=False
        )

    def _call(self, name: str, chat: str, **given: str) -> ApiCall:
        url = f"{self.api_url}/{name}"
        plain = ApiCall.of_json(url, {"chat": chat, **given}, name=name, chat=chat)
        if "*" not in given["text"]:
            return plain
        marked = {"chat": chat, **given, "markup": True}
        return ApiCall.of_json(url, marked, name=name, chat=chat, plain=plain)

    def outcome(self, call: ApiCall, answer: PlatformAnswer, now: datetime) -> CallOutcome:
        if answer.member("error") == "bad markup":
            return CallRefused("bad markup", markup=True)
        message_id = answer.member("id")
        everywhere = "x-everywhere" in answer.headers
        return outcome_of_status(answer, now, message_id=message_id, everywhere=everywhere)


class FakeExample(FakeWebhookPlatform):
    """Delivers to `ExampleRules` and answers its calls."""

    retry_schedule: ClassVar[Sequence[float]] = (1, 5, 30)
    answer_seconds: ClassVar[float] = 10.0

    def __init__(self) -> None:
        super().__init__(speed=100)
        self.texts: list[tuple[str, str]] = []
        self.token = "t1"
        self.keys = ["k1"]

    def says(self, chat: str, *texts: str) -> WebhookDelivery:
        number = len(self.deliveries)
        events = [{"id": f"m{number}-{at}", "chat": chat, "text": text} for at, text in enumerate(texts)]
        return self.deliver({"events": events})

    def sign(self, delivery: WebhookDelivery, url: str) -> Mapping[str, str]:
        return {"x-signature": signature(delivery.body)}

    async def api(self, method: str, request: FakeRequest, parameters: Mapping[str, Any]) -> FakeResponse:
        match method:
            case "keys":
                return FakeResponse.of_json({"keys": self.keys})
            case "token":
                return FakeResponse.of_json({"token": self.token})
            case _ if "authorization" in request.headers and request.headers["authorization"] != self.token:
                return FakeResponse.of_json({}, status=401)
            case "messages" if parameters.get("markup") and "**" in parameters["text"]:
                return FakeResponse.of_json({"error": "bad markup"}, status=400)
            case "messages":
                self.texts.append((parameters["chat"], parameters["text"]))
                return FakeResponse.of_json({"id": f"s{len(self.texts)}"})
            case _:
                return FakeResponse.of_json({})
