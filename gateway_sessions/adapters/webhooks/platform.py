"""`WebhookPlatform`: a platform that calls us, as functions of values, without any I/O.

The engine receives, stores, answers and sends; a platform's part only says what bytes mean. So each part can
be tested exhaustively and fuzzed, and the hard half is written once. What a part learns by a call, such as
public keys or a token, it keeps by itself; it asks for the call by returning `CallNeeded`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from http import HTTPStatus
from typing import ClassVar, Final, TypeAlias

from gateway_sessions.adapters._http import Request, Response
from gateway_sessions.adapters.webhooks.api_calls import ApiCall, CallOutcome, PlatformAnswer
from gateway_sessions.adapters.webhooks.events import WebhookEvent
from gateway_sessions.core.delivery.adapter_capabilities import AdapterCapabilities
from gateway_sessions.core.delivery.outbound_messages import OutboundMessage, ReplyTarget
from gateway_sessions.core.queue.inbound import Receipt
from gateway_sessions.errors import DeliveryRefusedError

MAX_WEBHOOK_BODY: Final = 64 << 10
"""The most bytes of a request that strangers may make us read: a signature needs the whole body first."""


class Verdict(StrEnum):
    """What a signature tells about a request."""

    GENUINE = "genuine"
    FORGED = "forged"  # or too old, or for somebody else


@dataclass(frozen=True, slots=True)
class CallNeeded:
    """The answer to a call is needed first; `WebhookPlatform.learn` gets it."""

    call: ApiCall


Verification: TypeAlias = Verdict | CallNeeded


@dataclass(frozen=True, slots=True, kw_only=True)
class SendingPace:
    """How fast a platform lets one account send, where that is known before it complains."""

    chat_interval: timedelta = timedelta()
    """The least time between two messages in one chat."""
    per_second: float | None = None
    """The messages of the whole account in a second; None: no limit is known."""


class ReceivingPlatform(ABC):
    """The half of a platform's part that reads what comes; a library may do the sending."""

    name: ClassVar[str]
    """The platform, as in every source."""
    methods: ClassVar[frozenset[str]] = frozenset({"POST"})
    """The methods of HTTP by which the platform calls; add GET if it challenges by GET."""
    max_body: ClassVar[int] = MAX_WEBHOOK_BODY
    answer_seconds: ClassVar[float] = 30.0
    """The time in which messages must be stored: less than the platform waits for an answer."""
    not_taken_status: ClassVar[int] = HTTPStatus.SERVICE_UNAVAILABLE
    """The status after which the platform delivers again."""
    forged_status: ClassVar[int] = HTTPStatus.UNAUTHORIZED
    signed_with: ClassVar[str] = "its secret"
    """The settings by which a signature is checked, as an operator calls them."""

    @abstractmethod
    def verify(self, request: Request, now: datetime) -> Verification:
        """Return whether the platform itself makes this request, from its raw bytes.

        Requests of every allowed method come here. Compare secrets with `signatures.is_same_secret`.
        """

    def why_forged(self, request: Request, now: datetime) -> str:
        """Return for the operator why a request is forged, and what to do if it is genuine after all."""
        return f"its signature is wrong; if {self.name} made it, correct {self.signed_with}"

    def answer_challenge(self, request: Request) -> Response | None:
        """Return the answer to a genuine request that only asks whether we are there; else None."""
        return None

    @abstractmethod
    def parse(self, request: Request) -> Sequence[WebhookEvent]:
        """Return what a genuine request tells, in its order: an event for each thing in it.

        What is nobody's message is `PassedOver`; what has an unknown form is `UnreadableEvent`. Raise
        `InvalidInputError` if nothing at all can be read. Nothing is left out silently.
        """

    def response(self, request: Request, receipts: Sequence[Receipt]) -> Response:
        """Return the answer once all messages are stored; receipts stand in the order of the messages."""
        return Response(HTTPStatus.OK)

    def learn(self, call: ApiCall, answer: PlatformAnswer, now: datetime) -> None:
        """Keep what the answer to a needed call tells: keys, a token; `ValueError` if it tells nothing."""
        return


class WebhookPlatform(ReceivingPlatform):
    """The part of one account of a platform: what its bytes mean, in both directions.

    Only `verify`, `parse`, `render` and `outcome` must be written.
    """

    pace: ClassVar[SendingPace] = SendingPace()

    @property
    @abstractmethod
    def capabilities(self) -> AdapterCapabilities:
        """The abilities of the platform's adapter."""

    # Out

    def authorize(self, call: ApiCall, now: datetime) -> ApiCall | CallNeeded:
        """Return a call with the headers that prove who we are, or the call that gets us a token."""
        return call

    def forget_token(self) -> bool:
        """Drop a token that the platform does not accept any more; return whether a new one can be had."""
        return False

    def check_call(self) -> ApiCall | None:
        """Return a call that shows whether the account works, made at each connection; None: none does."""
        return None

    @abstractmethod
    def render(
        self, message: OutboundMessage, target: ReplyTarget, *, idempotency_key: str
    ) -> Sequence[ApiCall]:
        """Return the calls that show a message, in order, always the same ones for the same arguments.

        Raise `DeliveryRefusedError` for what the platform would refuse.
        """

    def reported_key(self, idempotency_key: str) -> str:
        """Return the form in which a key comes back in reports on a message, if it does."""
        return idempotency_key

    def render_edit(self, message: OutboundMessage, target: ReplyTarget, message_id: str) -> ApiCall:
        """Return the call that changes a sent message."""
        raise DeliveryRefusedError(self.name, "what was sent cannot be changed")

    def render_typing(self, target: ReplyTarget) -> ApiCall | None:
        """Return the call that shows that an answer is being made; None if there is none."""
        return None

    @abstractmethod
    def outcome(self, call: ApiCall, answer: PlatformAnswer, now: datetime) -> CallOutcome:
        """Return what became of a call; `api_calls.outcome_of_status` knows what most platforms share."""
