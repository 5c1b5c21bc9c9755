"""`Webhook`: the adapter for any program that posts signed messages and receives signed replies.

A message is answered with its receipt, and only after it is durable. The signatures follow Standard Webhooks,
which many libraries support. `docs/reference/webhook.md` describes all formats.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import logging
import math
import re
import ssl
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import anyio
import msgspec

from gateway_sessions._process.background import in_background
from gateway_sessions._process.clock import SystemClock
from gateway_sessions.adapters._http import (
    HttpServer,
    NotConnectedError,
    Request,
    Response,
    Url,
    listening_socket,
    post,
)
from gateway_sessions.adapters.protocol import Submit
from gateway_sessions.adapters.set_aside import put_aside
from gateway_sessions.core.delivery.adapter_capabilities import AdapterCapabilities, ReceiveClass
from gateway_sessions.core.delivery.outbound_messages import OutboundMessage, ReplyTarget
from gateway_sessions.core.identity.source import Platform, SessionSource
from gateway_sessions.core.queue.inbound import (
    Accepted,
    Attachment,
    Duplicate,
    InboundMessage,
    MessageKind,
    Receipt,
    Rejected,
    RejectReason,
    ReplyTo,
)
from gateway_sessions.core.transcript.messages import NO_EXTRA
from gateway_sessions.errors import (
    AdapterUnavailableError,
    DeliveryRefusedError,
    GatewaySessionsError,
    InvalidInputError,
    RateLimitedError,
)
from gateway_sessions.ports import Clock

logger: Final = logging.getLogger(__name__)

MAX_BODY: Final = 1 << 20
"""The most bytes of a message: far more than a person types, and little enough for 64 in memory."""
SUBMIT_SECONDS: Final = 30.0
"""The time limit for a message to become durable; senders seldom wait longer for an answer."""
RETRY_SECONDS: Final = 5
"""The pause after which a sender should repeat a message: a locked or restarting store is back by then."""

_PLAIN_ID: Final = re.compile(r"[!-~]{1,128}")  # safe in a header, and short enough for proxies
_LATER: Final = {"retry-after": str(RETRY_SECONDS)}
_JSON: Final = {"content-type": "application/json"}


class _AnswerToReply(msgspec.Struct):
    """The answer that a receiver may give to a reply."""

    message_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSettings:
    """The settings of a webhook: where it listens, where it posts replies, and the shared secrets."""

    secrets: Sequence[str] = field(repr=False)
    """The first secret signs replies, and each is accepted, so that a secret can be replaced without a
    gap."""
    callback_url: str
    host: str = "127.0.0.1"
    port: int = 8080
    """The port to listen at; 0 is any free port, which `Webhook.address` tells."""
    path: str = "/messages"
    max_body: int = MAX_BODY
    receiver_deduplicates: bool = False
    """True: the receiver shows replies with the same `webhook-id` once, so that repeats need no mark."""
    unreadable: str | Path | None = None
    """A folder for unreadable messages; some senders send nothing else until a message is accepted.

    With None, the sender gets status 422 and keeps the message.
    """

    def __post_init__(self) -> None:
        if not self.path.startswith("/"):
            problem = f"path = {self.path!r} must begin with a slash"
            raise InvalidInputError(problem)


class Webhook:
    """The adapter of one program; several webhooks need different names."""

    def __init__(
        self,
        settings: WebhookSettings,
        *,
        name: str = "",
        platform: str = Platform.WEBHOOK,
        clock: Clock | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.name = name
        self.platform: str = platform.strip().lower()
        self.capabilities: AdapterCapabilities = AdapterCapabilities(
            receives=ReceiveClass.ACKNOWLEDGED,
            idempotent_for=timedelta.max if settings.receiver_deduplicates else None,
        )
        self.address: tuple[str, int] | None = None
        """The host and port at which the webhook listens, while it is connected."""
        self._settings = settings
        self._signer = Signer(settings.secrets, WINDOW)
        self._callback = Url.parse(settings.callback_url)
        self._clock = clock or SystemClock()
        self._tls = tls

    @asynccontextmanager
    async def connect(self, submit: Submit) -> AsyncGenerator[None]:
        """Listen within the block; `AdapterUnavailableError` if the address cannot be had."""
        where = f"{self._settings.host}:{self._settings.port}"
        try:
            listener = await asyncio.to_thread(listening_socket, self._settings.host, self._settings.port)
        except OSError as error:
            raise AdapterUnavailableError(self.platform, f"cannot listen at {where} ({error})") from error
        with listener:
            server = HttpServer(
                listener, partial(self._answer_request, submit), max_body=self._settings.max_body
            )
            async with in_background(server.serve):
                self.address = listener.getsockname()[:2]
                try:
                    yield
                finally:
                    self.address = None

    async def send(
        self, target: ReplyTarget, message: OutboundMessage, *, idempotency_key: str
    ) -> str | None:
        """Post a reply, and return the id from the receiver's answer, if there is one."""
        body = msgspec.json.encode({"target": target, "message": message})
        headers = self._signer.headers(_header_id(idempotency_key), body, self._clock.now())
        try:
            tls = await self._tls_context()
            response = await post(self._callback, {**_JSON, **headers}, body, tls=tls)
        except NotConnectedError as error:
            problem = f"{self._callback.authority} cannot be reached ({error})"
            raise AdapterUnavailableError(self.platform, problem) from error
        self._raise_for_status(response)
        try:
            return msgspec.json.decode(response.body, type=_AnswerToReply).message_id
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return None

    async def edit(self, target: ReplyTarget, message_id: str, message: OutboundMessage) -> None:
        """Refuse: a posted reply cannot be changed."""
        raise DeliveryRefusedError(self.platform, "what is posted cannot be changed")

    async def typing(self, target: ReplyTarget) -> None:
        """Do nothing: the protocol has no sign of typing."""

    async def _tls_context(self) -> ssl.SSLContext | None:
        """Return the TLS context, which is loaded from files once, in a thread."""
        if self._tls is None and self._callback.scheme == "https":
            self._tls = await asyncio.to_thread(ssl.create_default_context)
        return self._tls

    def _raise_for_status(self, response: Response) -> None:
        """Return if the receiver has accepted the reply, else raise the error that its status means."""
        status, pause = response.status, _retry_after_seconds(response.headers.get("retry-after", ""))
        problem = f"{self._callback.authority} answered with status {status}"
        match status:
            case _ if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
                return
            case HTTPStatus.TOO_MANY_REQUESTS:
                raise RateLimitedError(self.platform, pause)
            case HTTPStatus.SERVICE_UNAVAILABLE if pause is not None:
                raise RateLimitedError(self.platform, pause)
            case HTTPStatus.SERVICE_UNAVAILABLE:
                raise AdapterUnavailableError(self.platform, problem)
            case _ if status < HTTPStatus.INTERNAL_SERVER_ERROR:
                raise DeliveryRefusedError(self.platform, problem)
            case _:
                raise ConnectionError(problem)

    async def _answer_request(self, submit: Submit, request: Request) -> Response:
        """Accept a message if its request is signed; a stranger learns nothing else."""
        if request.path != self._settings.path:
            return Response(HTTPStatus.NOT_FOUND)
        if request.method != "POST":
            return Response(HTTPStatus.METHOD_NOT_ALLOWED, headers={"allow": "POST"})
        if not self._signer.is_signed(request.headers, request.body, self._clock.now()):
            return Response(HTTPStatus.UNAUTHORIZED)
        return await self._submit_message(submit, request)

    async def _submit_message(self, submit: Submit, request: Request) -> Response:
        """Submit a signed message, and answer with its receipt.

        A sender forgets a message after an answer with 2xx, so there is none before the receipt.
        """
        try:
            message = decode_message(request.body, self.platform, self.name, request.headers[ID])
            with anyio.fail_after(SUBMIT_SECONDS):
                return response_to_receipt(await submit(message))
        except InvalidInputError as error:
            return await self._answer_to_unreadable(request, error)
        except (GatewaySessionsError, TimeoutError):
            return Response(HTTPStatus.SERVICE_UNAVAILABLE, headers=_LATER)
        except Exception:  # a mistake of ours: the sender keeps the message and tries again
            logger.exception("a message was not taken", extra={"action": "webhook_failed"})
            return Response(HTTPStatus.SERVICE_UNAVAILABLE, headers=_LATER)

    async def _answer_to_unreadable(self, request: Request, error: InvalidInputError) -> Response:
        """Refuse an unreadable message for good, or keep it in a file and let the sender go on."""
        told = {"error": str(error)}
        folder = self._settings.unreadable
        if folder is None:
            facts = {"action": "webhook_unreadable", "platform": self.platform, "problem": str(error)}
            logger.warning("a message could not be read and was refused", extra=facts)
            return Response(HTTPStatus.UNPROCESSABLE_ENTITY, msgspec.json.encode(told), _JSON)
        update = {"id": request.headers[ID], "body": request.body.decode("utf-8", "replace")}
        try:
            await put_aside(folder, update, error, adapter=self)
        except OSError:
            logger.exception("a message could not be put aside", extra={"action": "webhook_failed"})
            return Response(HTTPStatus.SERVICE_UNAVAILABLE, headers=_LATER)
        body = msgspec.json.encode({"receipt": "put_aside"} | told)
        return Response(HTTPStatus.OK, body, _JSON)


def _header_id(key: str) -> str:
    """Return the key, or always the same hash of it if a header cannot hold the key."""
    return key if _PLAIN_ID.fullmatch(key) else hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()


def _retry_after_seconds(told: str) -> float | None:
    """Return the seconds in a `retry-after` header; None for a date or anything else."""
    try:
        seconds = float(told)
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


# Messages and receipts

# Senders repeat after 429 and 503, which mean a passing reason; all others mean a permanent one.
STATUS_OF: Final[Mapping[RejectReason, HTTPStatus]] = MappingProxyType(
    {
        RejectReason.BUSY: HTTPStatus.TOO_MANY_REQUESTS,
        RejectReason.QUEUE_FULL: HTTPStatus.TOO_MANY_REQUESTS,
        RejectReason.OVERLOADED: HTTPStatus.TOO_MANY_REQUESTS,
        RejectReason.TOO_LARGE: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        RejectReason.DRAINING: HTTPStatus.SERVICE_UNAVAILABLE,
        RejectReason.ERASED: HTTPStatus.GONE,
        RejectReason.NOT_ALLOWED: HTTPStatus.FORBIDDEN,
        RejectReason.NOT_ADDRESSED: HTTPStatus.UNPROCESSABLE_ENTITY,
        RejectReason.EMPTY: HTTPStatus.UNPROCESSABLE_ENTITY,
        RejectReason.UNKNOWN: HTTPStatus.UNPROCESSABLE_ENTITY,
    }
)


class _WebhookSource(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    chat_id: str = ""
    chat_name: str | None = None
    chat_type: str = "dm"
    user_id: str | None = None
    user_name: str | None = None
    thread_id: str | None = None
    is_bot: bool = False


class _WebhookMessage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    source: _WebhookSource
    text: str = ""
    message_id: str | None = None
    kind: MessageKind = MessageKind.NEW
    revision: int = 0
    sent_at: datetime | None = None
    attachments: tuple[Attachment, ...] = ()
    reply_to: ReplyTo | None = None
    metadata: Mapping[str, Any] = NO_EXTRA


_DECODER: Final = msgspec.json.Decoder(_WebhookMessage)


def decode_message(body: bytes, platform: str, account: str, webhook_id: str) -> InboundMessage:
    """Return the message in a body, or raise `InvalidInputError`.

    A new message without an id gets the id of its request, so that a repeated request is a duplicate.
    """
    try:
        sent = _DECODER.decode(body)
    except RecursionError:
        problem = "the message is nested too deeply"
        raise InvalidInputError(problem) from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InvalidInputError(str(error)) from error
    members = {name: getattr(sent, name) for name in sent.__struct_fields__}
    members["source"] = SessionSource(platform=platform, **msgspec.structs.asdict(sent.source))
    if sent.message_id is None and sent.kind is MessageKind.NEW:
        members["message_id"] = webhook_id
    return InboundMessage(account=account, **members)


def response_to_receipt(receipt: Receipt) -> Response:
    """Return the answer for a receipt."""
    headers = dict(_JSON)
    match receipt:
        case Accepted():
            status = HTTPStatus.ACCEPTED
        case Duplicate():
            status = HTTPStatus.OK
        case Rejected(reason=reason, retry_after=retry_after):
            status = STATUS_OF[reason]
            if retry_after is not None:
                headers["retry-after"] = str(math.ceil(retry_after))
    told = {"receipt": type(receipt).__name__.lower(), **msgspec.to_builtins(receipt)}
    return Response(status, msgspec.json.encode(told), headers)


# Signatures

# `webhook-signature` holds `v1,` and, in base64, the HMAC-SHA256 over id, timestamp and body, joined by dots.
# Several may stand there, separated by spaces, while a secret is being replaced.
ID: Final = "webhook-id"
TIMESTAMP: Final = "webhook-timestamp"
SIGNATURE: Final = "webhook-signature"

LEAST_SECRET: Final = 16
"""The least bytes of a secret: 128 bits cannot be guessed."""
ENCODED: Final = "whsec_"
WINDOW: Final = timedelta(minutes=5)
"""The greatest age of a request, as in libraries for Standard Webhooks; an older one may be a replay."""

_VERSION: Final = "v1,"
_MOST_DIGITS: Final = 12  # of a timestamp: thirty thousand years
_MOST_SIGNATURES: Final = 8  # each costs a comparison, and a sender has at most two secrets


@dataclass(frozen=True, slots=True)
class Signer:
    """Signs with the first secret, and accepts recent signatures of any of them."""

    secrets: Sequence[str] = field(repr=False)
    """Texts of at least sixteen bytes, or `whsec_` and base64 of such bytes."""
    window: timedelta = WINDOW
    """The greatest age of a request, and the greatest difference between the sender's clock and ours."""

    def __post_init__(self) -> None:
        if not self.secrets or any(len(_secret_bytes(one)) < LEAST_SECRET for one in self.secrets):
            problem = f"a secret must have at least {LEAST_SECRET} bytes"
            raise InvalidInputError(problem)

    def headers(self, message_id: str, body: bytes, now: datetime) -> dict[str, str]:
        """Return the headers that sign a body."""
        timestamp = str(int(now.timestamp()))
        signature = _VERSION + _sign(self.secrets[0], message_id, timestamp, body)
        return {ID: message_id, TIMESTAMP: timestamp, SIGNATURE: signature}

    def is_signed(self, headers: Mapping[str, str], body: bytes, now: datetime) -> bool:
        """Return whether exactly these bytes were signed with a secret, within the window."""
        message_id, timestamp = headers.get(ID, ""), headers.get(TIMESTAMP, "")
        if not message_id or not self._is_recent(timestamp, now):
            return False
        given = [
            one.removeprefix(_VERSION).encode()
            for one in headers.get(SIGNATURE, "").split(" ")[:_MOST_SIGNATURES]
            if one.startswith(_VERSION)
        ]
        expected = [_sign(secret, message_id, timestamp, body).encode() for secret in self.secrets]
        # The time of a plain comparison would reveal a signature byte by byte.
        return any(hmac.compare_digest(ours, theirs) for ours in expected for theirs in given)

    def _is_recent(self, timestamp: str, now: datetime) -> bool:
        if not timestamp.isascii() or not timestamp.isdigit() or len(timestamp) > _MOST_DIGITS:
            return False
        return abs(now.timestamp() - int(timestamp)) <= self.window.total_seconds()


def _sign(secret: str, message_id: str, timestamp: str, body: bytes) -> str:
    content = b".".join((message_id.encode(), timestamp.encode(), body))
    return base64.b64encode(hmac.digest(_secret_bytes(secret), content, hashlib.sha256)).decode()


def _secret_bytes(secret: str) -> bytes:
    if not secret.startswith(ENCODED):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix(ENCODED), validate=True)
    except binascii.Error:
        problem = f"a secret that begins with {ENCODED} must go on in base64"
        raise InvalidInputError(problem) from None
