"""`DiscordInteractionsPlatform`: what interactions mean that Discord posts to a webhook, without any I/O.

A bot that only has commands and buttons needs no connection to Discord's gateway, and no library.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any, ClassVar, Final

import msgspec
from cachetools import LRUCache

from gateway_sessions._process.request_log import hide_in_request_log
from gateway_sessions.adapters.webhooks import (
    ApiCall,
    CallOutcome,
    CallRefused,
    CallSuperseded,
    CallUnauthorized,
    CallUnavailable,
    FileToSend,
    PassedOver,
    PlatformAnswer,
    Request,
    Response,
    UnreadableEvent,
    Verdict,
    WebhookEvent,
    WebhookPlatform,
    outcome_of_status,
)
from gateway_sessions.adapters.webhooks.signatures import SIGNED_AT_ANOTHER_TIME, is_recent
from gateway_sessions.core.delivery.adapter_capabilities import AdapterCapabilities, ReceiveClass
from gateway_sessions.core.delivery.outbound_messages import OutboundMessage, ReplyTarget
from gateway_sessions.core.identity.source import Platform
from gateway_sessions.core.queue.inbound import Receipt
from gateway_sessions.errors import DeliveryRefusedError, InvalidInputError
from gateway_sessions.integrations.discord.api import UNKNOWN_BOT, DiscordRequest, hint_of
from gateway_sessions.integrations.discord.interactions import (
    ANSWERS,
    INTERACTION,
    InteractionAnswer,
    InteractionType,
    is_alive,
    place_of,
    read_interaction,
    request_in_place,
    request_of_follow_up,
)
from gateway_sessions.integrations.discord.objects import DiscordInteraction
from gateway_sessions.integrations.discord.reading import DiscordRules
from gateway_sessions.integrations.discord.sending import (
    DISCORD_CAPABILITIES,
    request_that_edits,
    requests_that_show,
    values_to_remember,
)
from gateway_sessions.ports import Clock

API_URL: Final = "https://discord.com/api/v10"
hide_in_request_log(re.compile(r"(?<=/webhooks/)\d+/[^/\s]+"))
KNOWN_INTERACTIONS: Final = 10_000
"""So many interactions are remembered: more than one bot has within the quarter of an hour of a token."""
ONLY_ANSWERS: Final = (
    "without a connection to its gateway, Discord takes only answers to interactions: set bot_token, and the "
    "bot writes to the channel"
)
EXPIRED: Final = (
    "the answer comes later than Discord waits for one, which is fifteen minutes: set bot_token, and later "
    "answers are messages in the channel"
)
NOT_ACKNOWLEDGED: Final = (
    "Discord had no acknowledgement of the interaction within three seconds, so it takes no answer: set "
    "bot_token, and such answers are messages in the channel"
)
UNKNOWN_WEBHOOK: Final = 10015
"""The code of a token whose interaction was not acknowledged yet, or never was."""
SETTLES: Final = timedelta(seconds=10)
"""The time after which an acknowledgement has arrived for certain, or never will."""
BAD_WEBHOOK_TOKEN: Final = 50027
"""The code of a token that has expired."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscordInteractionSettings:
    """An application, as https://discord.com/developers shows it."""

    application_id: str
    public_key: str
    """The key by which Discord's signatures are checked."""
    bot_token: str = field(default="", repr=False)
    """The token of the application's bot, if it has one and is in the guild: answers that come too late, and
    what nobody asked for, are then messages of the bot in the channel. Without it, they are refused."""
    command: str = ""
    """The command whose text is all that a person says: with `ask`, `/ask hello` is `hello`."""
    api_url: str = API_URL


class DiscordInteractionsPlatform(WebhookPlatform):
    """What the interactions of one application mean."""

    name: ClassVar[str] = Platform.DISCORD
    max_body: ClassVar[int] = 256 << 10
    signed_with: ClassVar[str] = "the application's public key"
    answer_seconds: ClassVar[float] = 2.5
    """Discord waits for three seconds; then it tells the person that the bot did not answer."""

    def __init__(self, settings: DiscordInteractionSettings, *, account: str = "", clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._is_signed = _check_of_signatures(settings.public_key)
        command = settings.command.removeprefix("/")
        self._rules = DiscordRules(bot_id=settings.application_id, account=account, command=command)
        self._taken_by: LRUCache[str, str] = LRUCache(KNOWN_INTERACTIONS)
        """The reply that stands where a command waits for its answer: its idempotency key, by token."""
        self._came_at: LRUCache[str, datetime] = LRUCache(KNOWN_INTERACTIONS)

    @property
    def capabilities(self) -> AdapterCapabilities:
        """The abilities of the adapter."""
        # Discord posts an interaction once, and messages by a token have no nonce.
        return replace(DISCORD_CAPABILITIES, receives=ReceiveClass.LOSSY, idempotent_for=None, typing=False)

    # In

    def verify(self, request: Request, now: datetime) -> Verdict:
        """Return whether Discord has signed exactly these bytes, just now."""
        timestamp = request.headers.get("x-signature-timestamp", "")
        signature = request.headers.get("x-signature-ed25519", "")
        if not is_recent(timestamp, now):
            return Verdict.FORGED
        genuine = self._is_signed(signature, timestamp.encode() + request.body)
        return Verdict.GENUINE if genuine else Verdict.FORGED

    def why_forged(self, request: Request, now: datetime) -> str:
        """Return whether the time or the signature of a request is wrong."""
        timestamp = request.headers.get("x-signature-timestamp", "")
        if timestamp and not is_recent(timestamp, now):
            return SIGNED_AT_ANOTHER_TIME
        return super().why_forged(request, now)

    def answer_challenge(self, request: Request) -> Response | None:
        """Return the answer to a ping; None if the request is none."""
        is_ping = _type_in(request) == InteractionType.PING
        return _answer({"type": int(InteractionAnswer.PONG)}) if is_ping else None

    def parse(self, request: Request) -> Sequence[WebhookEvent]:
        """Return what an interaction brings."""
        try:
            interaction = msgspec.json.decode(request.body, type=DiscordInteraction)
            message = read_interaction(interaction, place_of(interaction), self._rules, {})
        except (InvalidInputError, msgspec.DecodeError, UnicodeError, RecursionError) as error:
            return [UnreadableEvent(request.body.decode("utf-8", "replace"), str(error))]
        if message is None:
            return [PassedOver("an interaction of another kind")]
        # A pressed button is answered by its token as well: there is no connection for a plain message.
        self._came_at[interaction.token] = self._clock.now()
        metadata = {**message.metadata, INTERACTION: interaction.token}
        return [msgspec.structs.replace(message, metadata=metadata)]

    def response(self, request: Request, receipts: Sequence[Receipt]) -> Response:
        """Return what tells the person that an answer is being made."""
        match _type_in(request):
            case InteractionType.COMMAND:
                return _answer({"type": int(InteractionAnswer.LATER_AS_MESSAGE)})
            case InteractionType.AUTOCOMPLETE:
                return _answer({"type": int(InteractionAnswer.CHOICES), "data": {"choices": []}})
            case _:
                return _answer({"type": int(InteractionAnswer.LATER)})

    # Out

    def authorize(self, call: ApiCall, now: datetime) -> ApiCall:
        """Return a call with the token of the bot; whoever has the token of an interaction needs no other."""
        if not self._settings.bot_token or _token_in(call.url):
            return call
        return replace(call, headers={**call.headers, "authorization": f"Bot {self._settings.bot_token}"})

    def check_call(self) -> ApiCall | None:
        """Return the call that shows whether Discord knows the token of the bot; None if there is none."""
        if not self._settings.bot_token:
            return None
        return ApiCall(url=f"{self._settings.api_url}/users/@me", method="GET", name="users/@me", shows=False)

    def render(
        self, message: OutboundMessage, target: ReplyTarget, *, idempotency_key: str
    ) -> Sequence[ApiCall]:
        """Return the calls that show a message: the first one where a command waits for its answer.

        Once Discord takes no answer any more, they are those of the bot in the channel.
        """
        if values_to_remember(message.buttons):
            problem = "the value of a button is too long: at most 97 characters"
            raise DeliveryRefusedError(self.name, problem)
        token = self._token_of(target)
        pressed = str(target.metadata.get(ANSWERS) or "") or None
        requests = requests_that_show(
            _channel_of(target), message, idempotency_key=idempotency_key, reply_to=pressed
        )
        if token is None:
            return [self._call(one, target) for one in requests]
        application = self._settings.application_id
        answers = [request_of_follow_up(application, token, one) for one in requests]
        if self._takes_place(target, token, idempotency_key):
            answers[0] = request_in_place(application, token, requests[0])
        return [self._answer_call(*both, target) for both in zip(answers, requests, strict=True)]

    def _takes_place(self, target: ReplyTarget, token: str, idempotency_key: str) -> bool:
        """Return whether a message stands where a command waits: the first one does, in all its attempts.

        After a restart nobody knows what stands there; then a message follows it. Discord shows the first one
        that follows where the command waits, if nothing stands there.
        """
        if target.metadata.get(ANSWERS) or token not in self._came_at:
            return False  # the press of a button leaves nothing open
        return self._taken_by.setdefault(token, idempotency_key) == idempotency_key

    def render_edit(self, message: OutboundMessage, target: ReplyTarget, message_id: str) -> ApiCall:
        """Return the call that changes a message."""
        in_channel = request_that_edits(_channel_of(target), message_id, message)
        token = self._token_of(target)
        if token is None:
            return self._call(in_channel, target)
        ids = {
            "webhook_id": self._settings.application_id,
            "webhook_token": token,
            "message_id": message_id,
        }
        path = "/webhooks/{webhook_id}/{webhook_token}/messages/{message_id}"
        return self._answer_call(replace(in_channel, path=path, ids=ids), in_channel, target)

    def outcome(self, call: ApiCall, answer: PlatformAnswer, now: datetime) -> CallOutcome:
        """Return what became of a call; what an interaction takes no more, the bot says in the channel."""
        code, token = answer.member("code"), _token_in(call.url)
        came_at = self._came_at.get(token)
        if code == UNKNOWN_WEBHOOK and came_at is not None and now - came_at < SETTLES:
            return CallUnavailable("the acknowledgement of the interaction is still on its way")
        if token and code in (UNKNOWN_WEBHOOK, BAD_WEBHOOK_TOKEN):
            if call.plain is not None:
                return CallSuperseded(call.plain)
            return CallRefused(EXPIRED if code == BAD_WEBHOOK_TOKEN else NOT_ACKNOWLEDGED)
        number, everywhere = answer.member("id"), answer.member("global") is True
        outcome = outcome_of_status(
            answer, now, message_id=str(number) if number else None, everywhere=everywhere
        )
        if isinstance(outcome, CallUnauthorized):
            return CallUnauthorized(UNKNOWN_BOT)
        hint = hint_of(code)
        return CallRefused(f"{hint} ({code})") if hint and isinstance(outcome, CallRefused) else outcome

    def _token_of(self, target: ReplyTarget) -> str | None:
        """Return the token by which a message is answered; None if the bot has to say it in the channel."""
        token, number = target.metadata.get(INTERACTION), target.reply_to
        problem = ONLY_ANSWERS
        if isinstance(token, str) and number is not None:
            if is_alive(number, self._clock.now()):
                return token
            problem = EXPIRED
        if not self._settings.bot_token:
            raise DeliveryRefusedError(self.name, problem)
        if not _channel_of(target):
            raise DeliveryRefusedError(self.name, "a message needs a channel")
        return None

    def _answer_call(
        self, answer: DiscordRequest, in_channel: DiscordRequest, target: ReplyTarget
    ) -> ApiCall:
        """Return the call that answers an interaction, with the one for the channel if it is too late."""
        call = self._call(answer, target)
        has_bot = self._settings.bot_token and _channel_of(target)
        return replace(call, plain=self._call(in_channel, target)) if has_bot else call

    def _call(self, request: DiscordRequest, target: ReplyTarget) -> ApiCall:
        url, name = f"{self._settings.api_url}{request.url_path}", request.path
        if not request.files:
            return ApiCall.of_json(url, request.json, name=name, chat=target.chat_id, method=request.method)
        files = {
            f"files[{number}]": FileToSend(one.name, one.content, one.media_type)
            for number, one in enumerate(request.files)
        }
        fields = {"payload_json": msgspec.json.encode(request.json).decode()}
        upload = ApiCall.of_upload(url, fields, files, name=name, chat=target.chat_id)
        return replace(upload, method=request.method, shows=True)


def _channel_of(target: ReplyTarget) -> str:
    return target.thread_id or target.chat_id or ""


def _token_in(url: str) -> str:
    """Return the token of the interaction that a call answers; "" if it answers none."""
    _, _, rest = url.partition("/webhooks/")
    return rest.split("/")[1] if "/" in rest else ""


def _check_of_signatures(public_key: str) -> Callable[[str, bytes], bool]:
    """Return the function that tells whether a signature, in hexadecimal digits, is that of some bytes."""
    try:
        from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 -- only signatures need it
        from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415 -- the same
            Ed25519PublicKey,
        )
    except ModuleNotFoundError as error:
        problem = "interactions of Discord need cryptography: pip install 'gateway-sessions[webhooks]'"
        raise InvalidInputError(problem) from error
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key))
    except ValueError as error:
        problem = "public_key is no key: copy it from the page General Information of the application"
        raise InvalidInputError(problem) from error

    def is_signed(signature: str, content: bytes) -> bool:
        try:
            key.verify(bytes.fromhex(signature), content)
        except (InvalidSignature, ValueError):
            return False
        return True

    return is_signed


def _type_in(request: Request) -> object:
    try:
        return msgspec.json.decode(request.body, type=_OnlyType).type
    except (msgspec.DecodeError, UnicodeError):
        return None


class _OnlyType(msgspec.Struct):
    type: int = 0


def _answer(value: Mapping[str, Any]) -> Response:
    return Response(HTTPStatus.OK, msgspec.json.encode(value), {"content-type": "application/json"})
