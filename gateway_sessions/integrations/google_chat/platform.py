"""`GoogleChatPlatform`: what the bytes of one app in Google Chat mean, for the engine, without I/O."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any, ClassVar, Final
from urllib.parse import parse_qs, urlencode, urlsplit

import msgspec

from gateway_sessions.adapters.webhooks import (
    ApiCall,
    CallNeeded,
    CallOutcome,
    CallRefused,
    CallSucceeded,
    PassedOver,
    PlatformAnswer,
    Request,
    Response,
    Verdict,
    Verification,
    WebhookEvent,
    WebhookPlatform,
    outcome_of_status,
)
from gateway_sessions.core.delivery.adapter_capabilities import AdapterCapabilities, ReceiveClass
from gateway_sessions.core.delivery.outbound_messages import Button, OutboundMessage, ReplyTarget
from gateway_sessions.core.markdown.dialects import GOOGLE_CHAT
from gateway_sessions.core.queue.inbound import AttachmentKind, InboundMessage, Receipt
from gateway_sessions.core.text_length import LengthUnit
from gateway_sessions.errors import DeliveryRefusedError, InvalidInputError
from gateway_sessions.integrations.google_chat.events import ACTION, LABEL, PLATFORM, read_event
from gateway_sessions.integrations.tokens.access_token import AccessToken
from gateway_sessions.integrations.tokens.issuer_keys import IssuerKeys
from gateway_sessions.integrations.tokens.signed_tokens import (
    TokenRefusedError,
    TokenRules,
    bearer_token,
    sign_token,
)

CHAT: Final = "chat@system.gserviceaccount.com"
"""The account by which Google Chat calls."""
SCOPE: Final = "https://www.googleapis.com/auth/chat.bot"
CREATE: Final = "create"
"""The name of the call that creates a message."""
LARGEST_MESSAGE: Final = 32_000
"""The most bytes of a message with its cards."""
CHAT_SYNTAX: Final = "MARKUP_SYNTAX_CHAT"
"""Each message asks for this syntax: without it that of the app holds, and new apps have Markdown."""
TOKEN_LIFE: Final = timedelta(hours=1)
"""The longest life that Google allows for an assertion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoogleChatSettings:
    """An app in Google Chat: who may call it, and as whom it calls."""

    audience: str
    """The authentication audience of the app: the address of the endpoint, or the number of the project."""
    client_email: str
    private_key: str = field(repr=False)
    private_key_id: str = ""
    token_uri: str = "https://oauth2.googleapis.com/token"  # noqa: S105 -- an address
    api_url: str = "https://chat.googleapis.com"
    keys_url: str = "https://www.googleapis.com"
    commands: tuple[str, ...] = ()
    """The names of the app's commands by their ids, from 1; only those of a menu come without their names."""

    def __post_init__(self) -> None:
        if not self.audience.isdigit() and not self.audience.startswith(("https://", "http://")):
            problem = (
                f"audience = {self.audience!r} must be the address of the endpoint or the project's number"
            )
            raise InvalidInputError(problem)
        sign_token({}, self.private_key, self.private_key_id)

    @classmethod
    def from_key(cls, key: str | Mapping[str, Any], *, audience: str, **more: Any) -> GoogleChatSettings:
        """Return the settings for the key of a service account, as Google gives it as JSON."""
        try:
            members: Mapping[str, Any] = json.loads(key) if isinstance(key, str) else key
            given = {name: str(members[name]) for name in ("client_email", "private_key", "private_key_id")}
            token_uri = str(members.get("token_uri", "https://oauth2.googleapis.com/token"))
        except (ValueError, KeyError, TypeError) as error:
            problem = f"this is no key of a service account in JSON ({type(error).__name__}: {error})"
            raise InvalidInputError(problem) from error
        settings: dict[str, Any] = {"token_uri": token_uri, "audience": audience, **given, **more}
        return cls(**settings)


class GoogleChatPlatform(WebhookPlatform):
    """What the bytes of one app in Google Chat mean."""

    name: ClassVar[str] = PLATFORM
    max_body: ClassVar[int] = 256 << 10
    answer_seconds: ClassVar[float] = 25.0
    """Google waits for thirty seconds."""

    def __init__(self, settings: GoogleChatSettings, *, account: str = "") -> None:
        self._settings = settings
        self._account = account
        is_project = settings.audience.isdigit()
        keys = f"/service_accounts/v1/jwk/{CHAT}" if is_project else "/oauth2/v3/certs"
        self._keys = IssuerKeys(keys_url=f"{settings.keys_url}{keys}")
        issuers = (CHAT,) if is_project else ("https://accounts.google.com", "accounts.google.com")
        self._token_rules = TokenRules(issuers=issuers, audiences=(settings.audience,))
        self._is_project = is_project
        self._token = AccessToken(self._token_call, platform=PLATFORM, check="the key of the service account")
        self._refusal = "its token is signed with a key that nobody knows"

    @property
    def capabilities(self) -> AdapterCapabilities:
        """The abilities of the adapter."""
        return AdapterCapabilities(
            # Google tells the person that the app does not respond, and promises no further delivery.
            receives=ReceiveClass.LOSSY,
            edit=True,
            # A message's own name is taken once and for all.
            idempotent_for=timedelta.max,
            dialect=GOOGLE_CHAT,
            max_length=GOOGLE_CHAT.limit,
            length_unit=LengthUnit.UTF16,
            # Google allows one call a second that writes in a space.
            min_edit_interval=timedelta(seconds=2),
            attachments=frozenset({AttachmentKind.PHOTO}),
            buttons=True,
        )

    # In

    def verify(self, request: Request, now: datetime) -> Verification:
        """Return whether Google Chat itself has signed a token for this app."""
        try:
            checked = self._keys.check(bearer_token(request.headers), self._token_rules, now)
            if isinstance(checked, ApiCall):
                return CallNeeded(checked)
            self._check_caller(checked.claims)
        except TokenRefusedError as refused:
            self._refusal = str(refused)
            return Verdict.FORGED
        return Verdict.GENUINE

    def _check_caller(self, claims: Mapping[str, Any]) -> None:
        # Google signs such tokens for anybody's service account, with any audience.
        if self._is_project or (claims.get("email") == CHAT and claims.get("email_verified") is True):
            return
        problem = "the token is of another caller than Google Chat"
        raise TokenRefusedError(problem)

    def why_forged(self, request: Request, now: datetime) -> str:
        """Return what is wrong with the token of the request that was checked last."""
        return self._refusal

    def parse(self, request: Request) -> Sequence[WebhookEvent]:
        """Return the message of an event."""
        read = read_event(request.body, self._account, self._settings.commands)
        return [read if isinstance(read, InboundMessage) else PassedOver(read)]

    def response(self, request: Request, receipts: Sequence[Receipt]) -> Response:
        """Return the answer that says nothing: replies are sent by calls, when they are ready."""
        return Response(HTTPStatus.OK, b"{}", {"content-type": "application/json"})

    # Out

    def _token_call(self, now: datetime) -> ApiCall:
        settings, begins = self._settings, int(now.timestamp())
        claims = {
            "iss": settings.client_email,
            "scope": SCOPE,
            "aud": settings.token_uri,
            "iat": begins,
            "exp": begins + int(TOKEN_LIFE.total_seconds()),
        }
        assertion = sign_token(claims, settings.private_key, settings.private_key_id)
        fields = {"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion": assertion}
        return ApiCall.of_form(settings.token_uri, fields, name="access token", shows=False)

    def authorize(self, call: ApiCall, now: datetime) -> ApiCall | CallNeeded:
        """Return a call with the access token, which only Google Chat gets to see."""
        authorized = self._token.authorize(call, now)
        if authorized is None:
            return CallNeeded(self._token.needed_call(now))
        return authorized if call.url.startswith(f"{self._settings.api_url}/") else call

    def learn(self, call: ApiCall, answer: PlatformAnswer, now: datetime) -> None:
        """Keep keys or a token."""
        if not self._token.learn(call, answer, now):
            self._keys.learn(call, answer, now)

    def forget_token(self) -> bool:
        """Drop the access token; another one can be had."""
        self._token.forget()
        return True

    def check_call(self) -> ApiCall:
        """Return the call that lists one space of the app."""
        url = f"{self._settings.api_url}/v1/spaces?pageSize=1"
        return ApiCall(url=url, method="GET", name="spaces", shows=False)

    def render(
        self, message: OutboundMessage, target: ReplyTarget, *, idempotency_key: str
    ) -> Sequence[ApiCall]:
        """Return the call that creates a message under a name of its own."""
        space, own_id = _space_of(target), own_message_id(idempotency_key)
        query = {"messageId": own_id, "requestId": own_id}
        body = body_of(message)
        if target.thread_id:
            body["thread"] = {"name": target.thread_id}
            query["messageReplyOption"] = "REPLY_MESSAGE_FALLBACK_TO_NEW_THREAD"
        url = f"{self._settings.api_url}/v1/{space}/messages?{urlencode(query)}"
        return [ApiCall.of_json(url, body, name=CREATE, chat=space)]

    def render_edit(self, message: OutboundMessage, target: ReplyTarget, message_id: str) -> ApiCall:
        """Return the call that changes a message."""
        space = _space_of(target)
        if not message_id.startswith(f"{space}/messages/") or ".." in message_id or "?" in message_id:
            raise DeliveryRefusedError(PLATFORM, "the message is not in that space")
        url = f"{self._settings.api_url}/v1/{message_id}?updateMask=text,cardsV2"
        return ApiCall.of_json(url, body_of(message), method="PATCH", name="update", chat=space)

    def outcome(self, call: ApiCall, answer: PlatformAnswer, now: datetime) -> CallOutcome:
        """Return what became of a call; a name that is taken was taken by an earlier attempt."""
        name = _created_name(call)
        if answer.is_success or (name is not None and answer.status == HTTPStatus.CONFLICT):
            return CallSucceeded(name)
        outcome = outcome_of_status(answer, now)
        said = answer.member("error", "message")
        if not isinstance(outcome, CallRefused) or not isinstance(said, str):
            return outcome
        if answer.status == HTTPStatus.FORBIDDEN and call.shows:
            return CallRefused(f"{said.rstrip('.')}: add the app to the space")
        return CallRefused(said)


def _created_name(call: ApiCall) -> str | None:
    """Return the name of the message that a call creates; None if it creates none."""
    if call.name != CREATE:
        return None
    parts = urlsplit(call.url)
    return f"{parts.path.rpartition('/v1/')[2]}/{parse_qs(parts.query)['messageId'][0]}"


def own_message_id(idempotency_key: str) -> str:
    """Return the name that a message gets, always the same one for a key."""
    return f"client-{hashlib.sha256(idempotency_key.encode('utf-8', 'replace')).hexdigest()[:40]}"


def _space_of(target: ReplyTarget) -> str:
    space = target.chat_id
    if (
        not space.startswith("spaces/")
        or not space.removeprefix("spaces/").replace("-", "").replace("_", "").isalnum()
    ):
        problem = f"{space[:60]!r} is no space of Google Chat"
        raise DeliveryRefusedError(PLATFORM, problem)
    return space


def body_of(message: OutboundMessage) -> dict[str, Any]:
    """Return the body that shows a message; refuse what Google Chat would."""
    text = message.text if message.markup is None else message.markup
    if (length := LengthUnit.UTF16.length(text)) > GOOGLE_CHAT.limit:
        problem = f"a text may have {GOOGLE_CHAT.limit} UTF-16 units, this one has {length}"
        raise DeliveryRefusedError(PLATFORM, problem)
    body: dict[str, Any] = {"text": text, "markupSyntax": CHAT_SYNTAX} if text.strip() else {}
    widgets = _picture_widgets(message)
    if message.buttons:
        widgets.append({"buttonList": {"buttons": list(map(_button, message.buttons))}})
    if widgets:
        body["cardsV2"] = [{"cardId": "card", "card": {"sections": [{"widgets": widgets}]}}]
    own = message.extra.get(PLATFORM)
    if isinstance(own, Mapping):
        body |= own  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]  # JSON
    if (size := len(msgspec.json.encode(body))) > LARGEST_MESSAGE:
        problem = f"a message may have {LARGEST_MESSAGE} bytes with its cards, this one has {size}"
        raise DeliveryRefusedError(PLATFORM, problem)
    return body


def _picture_widgets(message: OutboundMessage) -> list[dict[str, Any]]:
    for one in message.attachments:
        if one.kind is not AttachmentKind.PHOTO or not one.url.startswith("https://"):
            problem = f"{one.name or 'a file'} is no picture with an https address"
            raise DeliveryRefusedError(PLATFORM, problem)
    return [{"image": {"imageUrl": one.url, "altText": one.name or ""}} for one in message.attachments]


def _button(button: Button) -> dict[str, Any]:
    if button.url is not None:
        return {"text": button.label, "onClick": {"openLink": {"url": button.url}}}
    parameters = [{"key": ACTION, "value": button.action}, {"key": LABEL, "value": button.label}]
    pressed = {"function": "press", "parameters": parameters}
    return {"text": button.label, "onClick": {"action": pressed}}
