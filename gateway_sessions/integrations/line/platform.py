"""`LinePlatform`: what the bytes of one account of LINE mean, for the engine of webhooks, without I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import ClassVar, Final

import msgspec
from cachetools import LRUCache

from gateway_sessions.adapters.webhooks import (
    ApiCall,
    CallLimited,
    CallOutcome,
    CallSucceeded,
    CallSuperseded,
    CallUnauthorized,
    CallUnavailable,
    PlatformAnswer,
    Request,
    Verdict,
    WebhookEvent,
    WebhookPlatform,
)
from gateway_sessions.adapters.webhooks.signatures import hmac_base64, is_same_secret
from gateway_sessions.core.delivery.adapter_capabilities import AdapterCapabilities, ReceiveClass
from gateway_sessions.core.delivery.outbound_messages import OutboundMessage, ReplyTarget
from gateway_sessions.core.queue.inbound import InboundMessage
from gateway_sessions.core.text_length import LengthUnit
from gateway_sessions.integrations.line.events import (
    PLATFORM,
    REPLY_TOKEN,
    LineReadingRules,
    read_batch,
)
from gateway_sessions.integrations.line.sending import (
    LINE_TEXT,
    LONGEST_TEXT,
    REPLY,
    SHOWN_ATTACHMENTS,
    is_spent_token,
    loading_call,
    messages_of,
    outcome_of,
    push_calls,
    read_answer,
    reply_call,
)
from gateway_sessions.integrations.tokens.access_token import check_identity

API_URL: Final = "https://api.line.me"
DATA_URL: Final = "https://api-data.line.me"
"""The server for files."""
KNOWN_MESSAGES: Final = 10_000
"""The sent messages and reply tokens that are remembered: more than an account uses in a minute."""
TOKEN_LIFE: Final = timedelta(seconds=50)
"""The time for which a reply token is good for certain; LINE promises no whole minute."""
RETRY_KEY_LIFE: Final = timedelta(hours=24)


@dataclass(frozen=True, slots=True, kw_only=True)
class LineSettings:
    """The channel of an account, as the LINE Developers console shows it."""

    channel_secret: str = field(repr=False)
    """The secret by which LINE signs."""
    channel_access_token: str = field(repr=False)
    """A long-lived token of the channel."""
    use_reply_tokens: bool = True
    """Whether the first answer to a message is sent by its reply token, which costs nothing.

    Without, each message is a push, which counts for the plan, and which LINE shows once however often it is
    sent.
    """
    api_url: str = API_URL
    data_url: str = DATA_URL

    def __post_init__(self) -> None:
        check_identity(self.channel_secret, "channel_secret")
        check_identity(self.channel_access_token, "channel_access_token")


class LinePlatform(WebhookPlatform):
    """What the bytes of one account of LINE mean."""

    name: ClassVar[str] = PLATFORM
    max_body: ClassVar[int] = 256 << 10
    """A webhook may bring many events, each with a text of up to 5,000 characters."""
    signed_with: ClassVar[str] = "channel_secret"
    answer_seconds: ClassVar[float] = 10.0
    """LINE does not say how long it waits. What is stored after that is known again if it comes again."""

    def __init__(self, settings: LineSettings, rules: LineReadingRules) -> None:
        self._settings = settings
        self._own: LRUCache[str, bool] = LRUCache(KNOWN_MESSAGES)
        self._rules = replace(rules, own_messages=self._own)
        self._came_at: LRUCache[str, datetime] = LRUCache(KNOWN_MESSAGES)
        """When the message came with which a reply token did."""
        self._taken_by: LRUCache[str, str] = LRUCache(KNOWN_MESSAGES)
        """The reply for which a token is used: its idempotency key."""
        self._attempts: LRUCache[str, int] = LRUCache(KNOWN_MESSAGES)
        """How often a reply was tried with a token, and no answer said that it is shown."""

    @property
    def capabilities(self) -> AdapterCapabilities:
        """The abilities of the adapter."""
        return AdapterCapabilities(
            receives=ReceiveClass.ACKNOWLEDGED,
            typing=True,
            # A reply by its token has no key.
            idempotent_for=None if self._settings.use_reply_tokens else RETRY_KEY_LIFE,
            dialect=LINE_TEXT,
            max_length=LONGEST_TEXT,
            length_unit=LengthUnit.UTF16,
            attachments=SHOWN_ATTACHMENTS,
            buttons=True,
        )

    # In

    def verify(self, request: Request, now: datetime) -> Verdict:
        """Return whether LINE has signed exactly these bytes with the channel's secret."""
        expected = hmac_base64(self._settings.channel_secret, request.body)
        given = request.headers.get("x-line-signature", "")
        return Verdict.GENUINE if is_same_secret(expected, given) else Verdict.FORGED

    def parse(self, request: Request) -> Sequence[WebhookEvent]:
        """Return what each event tells."""
        events = read_batch(request.body, self._rules)
        for event in events:
            if isinstance(event, InboundMessage) and event.sent_at is not None:
                token = event.metadata.get(REPLY_TOKEN)
                if isinstance(token, str):
                    self._came_at[token] = event.sent_at
        return events

    # Out

    def authorize(self, call: ApiCall, now: datetime) -> ApiCall:
        """Return a call with the channel's access token."""
        if (token := _reply_token_of(call)) is not None:
            self._attempts[token] = self._attempts.get(token, 0) + 1
        proof = {"authorization": f"Bearer {self._settings.channel_access_token}"}
        return replace(call, headers={**call.headers, **proof})

    def check_call(self) -> ApiCall:
        """Return the call that asks who the account is."""
        return ApiCall(url=f"{self._settings.api_url}/v2/bot/info", method="GET", name="info", shows=False)

    def render(
        self, message: OutboundMessage, target: ReplyTarget, *, idempotency_key: str
    ) -> Sequence[ApiCall]:
        """Return the calls that show a message: the first one by the reply token, if it is still free."""
        api_url = self._settings.api_url
        calls = push_calls(api_url, target, messages_of(message), idempotency_key=idempotency_key)
        token = target.metadata.get(REPLY_TOKEN)
        if not self._settings.use_reply_tokens or not isinstance(token, str) or not token:
            return calls
        if self._taken_by.setdefault(token, idempotency_key) != idempotency_key:
            return calls
        return [reply_call(api_url, token, calls[0]), *calls[1:]]

    def render_typing(self, target: ReplyTarget) -> ApiCall | None:
        """Return the call that shows that an answer is being made; there is none for groups."""
        is_person = not target.chat_id or target.chat_id.startswith("U")
        return loading_call(self._settings.api_url, target) if is_person else None

    def outcome(self, call: ApiCall, answer: PlatformAnswer, now: datetime) -> CallOutcome:
        """Return what became of a call; a reply whose token is spent is pushed instead."""
        outcome, token = outcome_of(answer, now), _reply_token_of(call)
        if token is not None and isinstance(outcome, CallLimited | CallUnavailable | CallUnauthorized):
            self._attempts[token] = self._attempts.get(token, 1) - 1  # it was certainly not carried out
        if isinstance(outcome, CallSucceeded):
            self._attempts.pop(token or "", None)
            for sent in read_answer(answer).sent_messages:
                self._own[sent.id] = True
        if token is None or call.plain is None or not is_spent_token(answer):
            return outcome
        came_at = self._came_at.get(token)
        if self._attempts.get(token, 0) > 1 and came_at is not None and now - came_at < TOKEN_LIFE:
            return CallSucceeded()  # too young to have ended: an attempt without an answer has used it
        return CallSuperseded(call.plain)


def _reply_token_of(call: ApiCall) -> str | None:
    """Return the token of a call that replies; None for all other calls."""
    return str(msgspec.json.decode(call.body)["replyToken"]) if call.name == REPLY else None
