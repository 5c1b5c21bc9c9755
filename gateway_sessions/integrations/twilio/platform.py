"""`TwilioPlatform`: what the bytes of one sender at Twilio mean, for the engine of webhooks, without I/O."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import ClassVar, Final

from gateway_sessions.adapters.webhooks import (
    ApiCall,
    CallOutcome,
    CallRefused,
    CallSucceeded,
    PlatformAnswer,
    Request,
    Response,
    Verdict,
    WebhookEvent,
    WebhookPlatform,
    outcome_of_status,
)
from gateway_sessions.core.delivery.adapter_capabilities import AdapterCapabilities, ReceiveClass
from gateway_sessions.core.delivery.outbound_messages import OutboundMessage, ReplyTarget
from gateway_sessions.core.markdown.dialects import PLAIN
from gateway_sessions.core.queue.inbound import AttachmentKind, Receipt
from gateway_sessions.core.text_length import LengthUnit
from gateway_sessions.errors import DeliveryRefusedError, InvalidInputError
from gateway_sessions.integrations.tokens.access_token import check_identity
from gateway_sessions.integrations.twilio.reading import (
    MOST_MEDIA,
    PLATFORM,
    SENDER,
    STOP_WORDS,
    is_signed,
    read_form,
    read_request,
)

LONGEST_BODY: Final = 1600
"""In UTF-16 units, in which no text is shorter than as Twilio counts."""
MESSAGE_TEXT: Final = replace(PLAIN, name=PLATFORM, limit=LONGEST_BODY, unit=LengthUnit.UTF16)
"""A message on a phone shows text as it is."""
MEDIA: Final = frozenset(
    {
        AttachmentKind.PHOTO,
        AttachmentKind.VIDEO,
        AttachmentKind.AUDIO,
        AttachmentKind.VOICE,
        AttachmentKind.DOCUMENT,
    }
)
EMPTY_TWIML: Final = b'<?xml version="1.0" encoding="UTF-8"?><Response></Response>'
"""The answer that says nothing to the person: replies are sent by calls, when they are ready."""
MEANINGS: Final = {
    20003: "the account_sid and the auth_token do not belong together",
    21211: "the number of the person is none",
    21408: "the account may not send to this country: see its geographic permissions",
    21610: "the person has replied STOP: nothing may be sent until they reply START",
    21614: "the number of the person takes no messages",
    21617: "the text is longer than Twilio takes",
    21910: "the sender and the person are on different channels",
    63016: "WhatsApp takes only templates more than 24 hours after the person's last message",
}
"""Codes of refusals, and what they mean to whoever reads the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TwilioSettings:
    """An account at Twilio, and the number, WhatsApp address or messaging service that sends."""

    account_sid: str
    auth_token: str = field(repr=False)
    """The token by which Twilio signs requests, and by which ours are accepted."""
    sender: str
    """A number such as `+15550100`, `whatsapp:+15550100`, or the id of a messaging service (`MG…`)."""
    public_url: str
    """The address of the webhook as Twilio has it: it is signed, whatever a proxy makes of it."""
    media: bool = True
    """Whether files are sent, as MMS in North America or on WhatsApp; else they are told of in words."""
    opt_out_words: frozenset[str] = STOP_WORDS
    """The messages that Twilio answers itself, and the agent never sees; in upper case."""
    api_url: str = "https://api.twilio.com"

    def __post_init__(self) -> None:
        check_identity(self.account_sid, "account_sid")
        check_identity(self.auth_token, "auth_token")
        check_identity(self.sender, "sender")
        if not self.account_sid.isalnum():
            problem = f"account_sid = {self.account_sid!r} is no id of an account: it begins with AC"
            raise InvalidInputError(problem)
        if not self.public_url.startswith(("https://", "http://")) or "#" in self.public_url:
            problem = (
                f"public_url = {self.public_url!r} must be the address that Twilio posts to, without a #"
            )
            raise InvalidInputError(problem)

    @property
    def account_url(self) -> str:
        """The address of the account's resources."""
        return f"{self.api_url}/2010-04-01/Accounts/{self.account_sid}"


class TwilioPlatform(WebhookPlatform):
    """What the bytes of one sender at Twilio mean."""

    name: ClassVar[str] = PLATFORM
    signed_with: ClassVar[str] = "auth_token and public_url"
    answer_seconds: ClassVar[float] = 12.0
    """Twilio waits for fifteen seconds."""

    def __init__(self, settings: TwilioSettings, *, account: str = "") -> None:
        self._settings = settings
        self._account = account
        secret = f"{settings.account_sid}:{settings.auth_token}".encode()
        self._proof = {"authorization": f"Basic {base64.b64encode(secret).decode()}"}

    @property
    def capabilities(self) -> AdapterCapabilities:
        """The abilities of the adapter."""
        return AdapterCapabilities(
            receives=ReceiveClass.ACKNOWLEDGED,
            dialect=MESSAGE_TEXT,
            max_length=LONGEST_BODY,
            length_unit=LengthUnit.UTF16,
            attachments=MEDIA if self._settings.media else frozenset(),
        )

    # In

    def verify(self, request: Request, now: datetime) -> Verdict:
        """Return whether Twilio has signed exactly this form, for our public address."""
        _, mark, query = request.target.partition("?")
        url = f"{self._settings.public_url}{mark}{query}"
        try:
            form = read_form(request.body)
        except InvalidInputError:
            return Verdict.FORGED
        given = request.headers.get("x-twilio-signature", "")
        genuine = is_signed(given, url, form, self._settings.auth_token)
        return Verdict.GENUINE if genuine else Verdict.FORGED

    def parse(self, request: Request) -> Sequence[WebhookEvent]:
        """Return the message, or the fate of a sent one."""
        form = read_form(request.body)
        return [read_request(form, account=self._account, opt_out_words=self._settings.opt_out_words)]

    def response(self, request: Request, receipts: Sequence[Receipt]) -> Response:
        """Return the answer that says nothing to the person."""
        return Response(200, EMPTY_TWIML, {"content-type": "text/xml"})

    # Out

    def authorize(self, call: ApiCall, now: datetime) -> ApiCall:
        """Return a call with the account's secret, which only Twilio's own host gets to see."""
        if not call.url.startswith(f"{self._settings.api_url}/"):
            return call
        return replace(call, headers={**call.headers, **self._proof})

    def check_call(self) -> ApiCall:
        """Return a call that any key of the account may make."""
        url = f"{self._settings.account_url}/Messages.json?PageSize=1"
        return ApiCall(url=url, method="GET", name="messages", shows=False)

    def render(
        self, message: OutboundMessage, target: ReplyTarget, *, idempotency_key: str
    ) -> Sequence[ApiCall]:
        """Return the call that sends a message."""
        text = message.text if message.markup is None else message.markup
        if (length := LengthUnit.UTF16.length(text)) > LONGEST_BODY:
            problem = f"a text may have {LONGEST_BODY} UTF-16 units, this one has {length}"
            raise DeliveryRefusedError(PLATFORM, problem)
        person = target.chat_id or target.user_id or ""
        fields = [("To", person), self._sender_of(target), ("StatusCallback", self._settings.public_url)]
        if text.strip():
            fields.append(("Body", text))
        fields += [("MediaUrl", url) for url in _media_urls(message)]
        own = message.extra.get(PLATFORM)
        if isinstance(own, dict):
            given: dict[str, object] = own  # pyright: ignore[reportUnknownVariableType]  # JSON
            fields += [(name, str(value)) for name, value in given.items()]
        return [
            ApiCall.of_form(f"{self._settings.account_url}/Messages.json", fields, name="send", chat=person)
        ]

    def _sender_of(self, target: ReplyTarget) -> tuple[str, str]:
        """Return the number to which the person wrote, or else that of the settings."""
        sender = target.metadata.get(SENDER) or self._settings.sender
        return ("MessagingServiceSid" if str(sender).startswith("MG") else "From", str(sender))

    def outcome(self, call: ApiCall, answer: PlatformAnswer, now: datetime) -> CallOutcome:
        """Return what became of a call."""
        sid = answer.member("sid")
        outcome = outcome_of_status(answer, now, message_id=sid if isinstance(sid, str) else None)
        if isinstance(outcome, CallSucceeded):
            return outcome
        code, said = answer.member("code"), answer.member("message")
        if isinstance(outcome, CallRefused) and isinstance(code, int):
            return CallRefused(f"{MEANINGS.get(code, said)} (error {code})")
        return outcome


def _media_urls(message: OutboundMessage) -> list[str]:
    if len(message.attachments) > MOST_MEDIA:
        problem = f"a message may have {MOST_MEDIA} files, this one has {len(message.attachments)}"
        raise DeliveryRefusedError(PLATFORM, problem)
    for one in message.attachments:
        if one.kind not in MEDIA or not one.url.startswith("https://"):
            problem = f"{one.name or 'a file'} has no https address, from which Twilio could take it"
            raise DeliveryRefusedError(PLATFORM, problem)
    return [one.url for one in message.attachments]
