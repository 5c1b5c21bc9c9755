"""`TeamsPlatform`: what the bytes of a bot on Teams mean, for the engine of webhooks, without I/O."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import ClassVar, Final

import msgspec
from cachetools import LRUCache

from gateway_sessions.adapters.webhooks import (
    ApiCall,
    CallNeeded,
    CallOutcome,
    PassedOver,
    PlatformAnswer,
    Request,
    Response,
    SendingPace,
    Verdict,
    Verification,
    WebhookEvent,
    WebhookPlatform,
)
from gateway_sessions.core.delivery.adapter_capabilities import AdapterCapabilities, ReceiveClass
from gateway_sessions.core.delivery.outbound_messages import OutboundMessage, ReplyTarget
from gateway_sessions.core.markdown.dialects import TEAMS
from gateway_sessions.core.queue.inbound import Receipt
from gateway_sessions.core.text_length import LengthUnit
from gateway_sessions.errors import DeliveryRefusedError
from gateway_sessions.integrations.teams.activities import (
    PLATFORM,
    SERVICE_URL,
    TeamsReadingRules,
    UnreadableActivityError,
    check_sender,
    is_press,
    read_activity,
    read_head,
)
from gateway_sessions.integrations.teams.sending import (
    LONGEST_TEXT,
    SHOWN_ATTACHMENTS,
    call_that_edits,
    call_that_shows,
    call_that_types,
    outcome_of,
)
from gateway_sessions.integrations.teams.settings import TeamsSettings
from gateway_sessions.integrations.tokens.access_token import AccessToken
from gateway_sessions.integrations.tokens.issuer_keys import IssuerKeys
from gateway_sessions.integrations.tokens.signed_tokens import TokenRefusedError, TokenRules, bearer_token

KNOWN_SERVICES: Final = 10_000
"""The conversations whose service is remembered for messages that answer nothing; each takes 200 bytes."""
PRESS_TAKEN: Final = msgspec.json.encode(
    {"statusCode": 200, "type": "application/vnd.microsoft.activity.message", "value": ""}
)
"""What Teams wants to hear after the press of a button, else it tells the person that the press failed."""


class TeamsPlatform(WebhookPlatform):
    """What the bytes of one bot on Teams mean."""

    name: ClassVar[str] = PLATFORM
    max_body: ClassVar[int] = 256 << 10
    """A message has up to 100 KB in Teams, and comes twice in its activity: as text and as HTML."""
    answer_seconds: ClassVar[float] = 12.0
    """Teams waits for fifteen seconds."""
    forged_status: ClassVar[int] = HTTPStatus.FORBIDDEN
    pace: ClassVar[SendingPace] = SendingPace(per_second=50)
    """Teams lets a bot make fifty calls a second; what it allows in one chat it tells by status 429."""

    def __init__(self, settings: TeamsSettings, rules: TeamsReadingRules) -> None:
        self._settings = settings
        self._rules = rules
        cloud = settings.cloud
        self._keys = IssuerKeys(metadata_url=cloud.openid_url)
        self._token_rules = TokenRules(issuers=(cloud.issuer,), audiences=(settings.app_id,))
        self._token = AccessToken(
            lambda _: self._token_call(), platform=PLATFORM, check="app_id, app_secret and tenant_id"
        )
        self._services: LRUCache[str, str] = LRUCache(KNOWN_SERVICES)
        self._refusal = "its token is signed with a key that nobody knows"

    @property
    def capabilities(self) -> AdapterCapabilities:
        """The abilities of the adapter."""
        return AdapterCapabilities(
            receives=ReceiveClass.ACKNOWLEDGED,
            edit=True,
            typing=True,
            dialect=TEAMS,
            max_length=LONGEST_TEXT,
            length_unit=LengthUnit.BYTES,
            # Teams allows 1,800 calls an hour in one chat.
            min_edit_interval=timedelta(seconds=2),
            attachments=SHOWN_ATTACHMENTS,
            buttons=True,
        )

    # In

    def verify(self, request: Request, now: datetime) -> Verification:
        """Return whether the Bot Framework has signed a token for this very activity."""
        try:
            token = bearer_token(request.headers)
            checked = self._keys.check(token, self._token_rules, now)
            if isinstance(checked, ApiCall):
                return CallNeeded(checked)
            check_sender(checked, read_head(request.body), self._settings)
        except TokenRefusedError as refused:
            self._refusal = str(refused)
            return Verdict.FORGED
        except UnreadableActivityError:
            pass  # its sender is genuine; it is put aside where it is read
        return Verdict.GENUINE

    def why_forged(self, request: Request, now: datetime) -> str:
        """Return what is wrong with the token of the request that was checked last."""
        return self._refusal

    def parse(self, request: Request) -> Sequence[WebhookEvent]:
        """Return the message of an activity."""
        message = read_activity(request.body, self._rules)
        if message is None:
            return [PassedOver(read_head(request.body).type)]
        self._services[message.source.chat_id] = str(message.metadata[SERVICE_URL])
        return [message]

    def response(self, request: Request, receipts: Sequence[Receipt]) -> Response:
        """Return the answer once the message is stored; questions that no bot here answers get status 501."""
        pressed = is_press(request.body)
        if pressed is None:
            return Response(HTTPStatus.OK)
        if not pressed:
            return Response(HTTPStatus.NOT_IMPLEMENTED)
        return Response(HTTPStatus.OK, PRESS_TAKEN, {"content-type": "application/json"})

    # Out

    def _token_call(self) -> ApiCall:
        fields = {
            "grant_type": "client_credentials",
            "client_id": self._settings.app_id,
            "client_secret": self._settings.app_secret,
            "scope": self._settings.cloud.scope,
        }
        return ApiCall.of_form(self._settings.token_url, fields, name="access token", shows=False)

    def authorize(self, call: ApiCall, now: datetime) -> ApiCall | CallNeeded:
        """Return a call with the access token, which only the services of Teams get to see."""
        authorized = self._token.authorize(call, now)
        if authorized is None:
            return CallNeeded(self._token.needed_call(now))
        return authorized if self._settings.may_call(call.url) else call

    def learn(self, call: ApiCall, answer: PlatformAnswer, now: datetime) -> None:
        """Keep keys or a token."""
        if not self._token.learn(call, answer, now):
            self._keys.learn(call, answer, now)

    def forget_token(self) -> bool:
        """Drop the access token; another one can be had."""
        self._token.forget()
        return True

    def check_call(self) -> ApiCall:
        """Return a call that needs an access token, and shows that the addresses of the keys can be had."""
        return ApiCall(url=self._settings.cloud.openid_url, method="GET", name="openid metadata", shows=False)

    def render(
        self, message: OutboundMessage, target: ReplyTarget, *, idempotency_key: str
    ) -> Sequence[ApiCall]:
        """Return the call that shows a message."""
        return [call_that_shows(self._service_of(target), target, message)]

    def render_edit(self, message: OutboundMessage, target: ReplyTarget, message_id: str) -> ApiCall:
        """Return the call that changes a message."""
        return call_that_edits(self._service_of(target), target, message, message_id)

    def render_typing(self, target: ReplyTarget) -> ApiCall:
        """Return the call that shows that an answer is being made."""
        return call_that_types(self._service_of(target), target)

    def _service_of(self, target: ReplyTarget) -> str:
        """Return the service for a target; refuse one that is none of Teams', whoever has stored it."""
        told = target.metadata.get(SERVICE_URL)
        service = told or self._services.get(target.chat_id) or self._settings.cloud.service_url
        if not isinstance(service, str) or not self._settings.may_call(service):
            problem = "the target names a service that is none of Teams' (TeamsCloud.service_origins)"
            raise DeliveryRefusedError(PLATFORM, problem)
        return service

    def outcome(self, call: ApiCall, answer: PlatformAnswer, now: datetime) -> CallOutcome:
        """Return what became of a call."""
        return outcome_of(answer, now)
