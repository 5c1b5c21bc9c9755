"""`WhatsAppRules`: one number of the WhatsApp Business Platform, for the webhook engine."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from http import HTTPStatus
from typing import ClassVar, Final

from gateway_sessions.adapters._http import Request, Response
from gateway_sessions.adapters.webhooks.api_calls import ApiCall, CallOutcome, PlatformAnswer
from gateway_sessions.adapters.webhooks.events import WebhookEvent
from gateway_sessions.adapters.webhooks.platform import SendingPace, Verdict, Verification, WebhookPlatform
from gateway_sessions.adapters.webhooks.signatures import check_secret, hmac_hex, is_same_secret
from gateway_sessions.core.delivery.adapter_capabilities import AdapterCapabilities, ReceiveClass
from gateway_sessions.core.delivery.outbound_messages import OutboundMessage, ReplyTarget
from gateway_sessions.core.identity.source import Platform
from gateway_sessions.core.markdown.dialects import WHATSAPP
from gateway_sessions.core.text_length import LengthUnit
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.integrations.whatsapp.failures import outcome_of_answer
from gateway_sessions.integrations.whatsapp.sending import (
    LONGEST_TEXT,
    SHOWN_ATTACHMENTS,
    SendingNumber,
    callback_key,
    calls_that_show,
    recipient_of,
)
from gateway_sessions.integrations.whatsapp.webhooks import ReadingNumber, events_in

GRAPH_URL: Final = "https://graph.facebook.com"
API_VERSION: Final = "v24.0"
"""A version of the Graph API lives for two years; another one can be named in the settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatsAppSettings:
    """The settings of one number. All of them stand in the app's dashboard at Meta."""

    phone_number_id: str
    """The id of the number, which is not the number itself."""
    access_token: str = field(repr=False)
    """The token of a system user with the right whatsapp_business_messaging; such a token does not end."""
    app_secret: str | Sequence[str] = field(repr=False)
    """The secret with which Meta signs; several while it is being replaced."""
    verify_token: str = field(repr=False)
    """A word of your choice, which you also enter where the webhook is set up at Meta."""
    api_url: str = GRAPH_URL
    api_version: str = API_VERSION

    def __post_init__(self) -> None:
        if not self.phone_number_id.isdigit():
            problem = f"phone_number_id = {self.phone_number_id!r} must be the id of a number, in digits"
            raise InvalidInputError(problem)
        check_secret(self.access_token, "access_token")
        check_secret(self.verify_token, "verify_token")
        if not self.app_secrets:
            check_secret("", "app_secret")
        for one in self.app_secrets:
            check_secret(one, "app_secret")

    @property
    def app_secrets(self) -> Sequence[str]:
        """The secrets with which Meta may sign."""
        return (self.app_secret,) if isinstance(self.app_secret, str) else self.app_secret


class WhatsAppRules(WebhookPlatform):
    """What WhatsApp's webhooks and answers mean for one number."""

    name: ClassVar[str] = Platform.WHATSAPP
    methods: ClassVar[frozenset[str]] = frozenset({"GET", "POST"})
    # Meta sends up to 3 MiB when many messages have waited, and says so in its documentation.
    max_body: ClassVar[int] = 3 << 20
    signed_with: ClassVar[str] = "app_secret, or verify_token if this was the challenge"
    answer_seconds: ClassVar[float] = 10.0
    pace: ClassVar[SendingPace] = SendingPace(per_second=80)

    def __init__(self, settings: WhatsAppSettings, *, account: str = "") -> None:
        self._settings = settings
        base = f"{settings.api_url.rstrip('/')}/{settings.api_version}"
        self._reading = ReadingNumber(settings.phone_number_id, account)
        self._sending = SendingNumber(base, settings.phone_number_id)

    def leave_to_others(self, numbers: Collection[str]) -> None:
        """Pass over what is for other *numbers*, whose adapters get the same requests."""
        self._reading = replace(self._reading, others=frozenset(numbers))

    @property
    def capabilities(self) -> AdapterCapabilities:
        """The abilities of the adapter."""
        return AdapterCapabilities(
            receives=ReceiveClass.ACKNOWLEDGED,
            typing=True,
            finds=True,
            dialect=WHATSAPP,
            max_length=LONGEST_TEXT,
            length_unit=LengthUnit.UTF16,
            attachments=SHOWN_ATTACHMENTS,
            buttons=True,
        )

    # In

    def verify(self, request: Request, now: datetime) -> Verification:
        """Return whether Meta makes this request: by the word of the challenge, or by its signature."""
        if request.method == "GET":
            given = request.query.get("hub.verify_token", "")
            subscribes = request.query.get("hub.mode") == "subscribe"
            genuine = is_same_secret(self._settings.verify_token, given) and subscribes
        else:
            given = request.headers.get("x-hub-signature-256", "")
            expected = [f"sha256={hmac_hex(one, request.body)}" for one in self._settings.app_secrets]
            genuine = sum(is_same_secret(one, given) for one in expected) > 0
        return Verdict.GENUINE if genuine else Verdict.FORGED

    def answer_challenge(self, request: Request) -> Response | None:
        """Return what Meta asks to get back when the webhook is set up."""
        if request.method != "GET":
            return None
        challenge = request.query.get("hub.challenge", "").encode("utf-8", "replace")
        return Response(HTTPStatus.OK, challenge, {"content-type": "text/plain; charset=utf-8"})

    def parse(self, request: Request) -> Sequence[WebhookEvent]:
        """Return what a webhook tells."""
        return events_in(request.body, self._reading)

    # Out

    def authorize(self, call: ApiCall, now: datetime) -> ApiCall:
        """Return a call with the token."""
        bearer = {"authorization": f"Bearer {self._settings.access_token}"}
        return replace(call, headers={**call.headers, **bearer})

    def check_call(self) -> ApiCall:
        """Return the call that asks for the number: it fails if the token or the number is wrong."""
        url = f"{self._sending.api_url}/{self._settings.phone_number_id}?fields=display_phone_number"
        return ApiCall(url=url, method="GET", name="number", shows=False)

    def render(
        self, message: OutboundMessage, target: ReplyTarget, *, idempotency_key: str
    ) -> Sequence[ApiCall]:
        """Return the calls that show a message."""
        return calls_that_show(message, target, self._sending, idempotency_key=idempotency_key)

    def reported_key(self, idempotency_key: str) -> str:
        """Return the form in which a key comes back in reports."""
        return callback_key(idempotency_key)

    def render_typing(self, target: ReplyTarget) -> ApiCall | None:
        """Return the call that marks the answered message as read and shows typing for 25 seconds."""
        if target.reply_to is None or recipient_of(target)["recipient_type"] == "group":
            return None
        read = {
            "messaging_product": "whatsapp",
            "status": "read",
            "message_id": target.reply_to,
            "typing_indicator": {"type": "text"},
        }
        url = self._sending.messages_url
        return ApiCall.of_json(url, read, name="typing", chat=target.chat_id, shows=False)

    def media_call(self, media_id: str) -> ApiCall:
        """Return the call that asks where a file is."""
        return ApiCall(url=f"{self._sending.api_url}/{media_id}", method="GET", name="media", shows=False)

    def outcome(self, call: ApiCall, answer: PlatformAnswer, now: datetime) -> CallOutcome:
        """Return what became of a call."""
        return outcome_of_answer(answer, now)
