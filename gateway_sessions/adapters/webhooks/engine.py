"""`WebhookEngine`: receives for one account: no platform hears success before its messages are stored.

An answer has the header `gateway-sessions-taken` if, and only if, this engine gave it. So a program in front
can tell a message that is safe from a stray status 200, as of a parked domain or a proxy's page of errors.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Final, TypeAlias

import anyio

from gateway_sessions.adapters._http import Request, Response
from gateway_sessions.adapters.protocol import Submit
from gateway_sessions.adapters.webhooks.api_calls import ApiCall, PlatformAnswer
from gateway_sessions.adapters.webhooks.events import (
    DeliveryStatus,
    PassedOver,
    UnreadableEvent,
    WebhookEvent,
)
from gateway_sessions.adapters.webhooks.platform import CallNeeded, ReceivingPlatform, Verdict
from gateway_sessions.core.queue.inbound import InboundMessage, Receipt, Rejected, RejectReason
from gateway_sessions.errors import GatewaySessionsError, InvalidInputError
from gateway_sessions.ports import Clock

logger: Final = logging.getLogger(__name__)

TAKEN: Final = "gateway-sessions-taken"
"""The header of an answer to a request whose messages are safe; its value is how they are."""
RETRY_SECONDS: Final = 5
"""The pause after which a platform should deliver again: a locked or restarting store is back by then."""
KEYS_PAUSE: Final = timedelta(seconds=30)
"""The least time between two fetches of public keys: strangers can name a key that nobody has."""
MOST_NEEDED: Final = 3
"""The calls that one verification may need: an address of keys, the keys, and one more."""

_LATER: Final = {"retry-after": str(RETRY_SECONDS)}

Fetch: TypeAlias = Callable[[ApiCall], Awaitable[PlatformAnswer]]
"""This function makes a call as it is; it raises `AdapterError` or `OSError` if there is no answer."""
SetAside: TypeAlias = Callable[[UnreadableEvent], Awaitable[bool]]
"""This function keeps an event that cannot be read; it returns whether it is durable."""
HandleFirst: TypeAlias = Callable[[Request], Awaitable[bool]]
"""This function is offered each genuine request first, and returns whether it took it."""
TellStatus: TypeAlias = Callable[[DeliveryStatus], Awaitable[None]]
"""This function is told what became of messages that were sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineParts:
    """The functions to which an engine hands its events."""

    submit: Submit
    fetch: Fetch
    set_aside: SetAside
    tell_status: TellStatus
    clock: Clock
    account: str = ""
    handle_first: HandleFirst | None = None
    """Handlers of the program's own; what they take is confirmed, whatever became of it."""


class _NotTakenError(Exception):
    """The platform must deliver the request again."""


class WebhookEngine:
    """Answers the requests of one account of a platform."""

    def __init__(self, platform: ReceivingPlatform, parts: EngineParts) -> None:
        self._platform = platform
        self._parts = parts
        self._fetching = asyncio.Lock()
        self._fetched_at: dict[str, datetime] = {}
        self._last_refusal = ""

    async def answer(self, request: Request) -> Response:
        """Return the answer to a request: success only for what is stored, or kept in a file."""
        platform = self._platform
        if request.method not in platform.methods:
            allowed = ", ".join(sorted(platform.methods))
            return Response(HTTPStatus.METHOD_NOT_ALLOWED, headers={"allow": allowed})
        if len(request.body) > platform.max_body:
            return Response(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        try:
            # One limit for the whole: the platform's own wait does not tell fetching from storing.
            with anyio.fail_after(platform.answer_seconds):
                return await self._answer_in_time(request)
        except _NotTakenError:
            pass
        except TimeoutError:
            self._log_not_taken("it took too long")
        except (GatewaySessionsError, OSError) as error:
            self._log_not_taken(str(error))
        except Exception:  # a mistake of ours: the platform keeps the message and tries again
            logger.exception("a webhook was not taken", extra={"action": "webhook_failed", **self._facts})
        return Response(platform.not_taken_status, headers=_LATER)

    async def _answer_in_time(self, request: Request) -> Response:
        if await self._verdict(request) is not Verdict.GENUINE:
            self._log_forged(self._platform.why_forged(request, self._parts.clock.now()))
            return Response(self._platform.forged_status)  # a stranger learns nothing else
        self._last_refusal = ""
        challenge = self._platform.answer_challenge(request)
        if challenge is not None:
            return challenge
        if self._parts.handle_first is not None and await self._parts.handle_first(request):
            return self._platform.response(request, ())
        receipts, durable = await self._take(self._events_of(request))
        response = self._platform.response(request, receipts)
        taken = "durable" if durable else "logged"
        return replace(response, headers={**response.headers, TAKEN: taken})

    # Is it the platform?

    async def _verdict(self, request: Request) -> Verdict:
        for _ in range(MOST_NEEDED):
            verification = self._platform.verify(request, self._parts.clock.now())
            if isinstance(verification, Verdict):
                return verification
            if not await self._has_learnt(verification):
                return Verdict.FORGED
        return Verdict.FORGED

    async def _has_learnt(self, needed: CallNeeded) -> bool:
        """Make a call and let the platform's part learn; False if it was made just now, for somebody else."""
        call = needed.call
        asked_at = self._parts.clock.now()
        async with self._fetching:  # a burst of requests needs the keys once
            now = self._parts.clock.now()
            last = self._fetched_at.get(call.url)
            if last is not None and last >= asked_at:
                return True  # while this request waited for the lock
            if last is not None and now - last < KEYS_PAUSE:
                return False
            try:
                answer = await self._parts.fetch(call)
                self._platform.learn(call, answer, now)
            except (OSError, ValueError) as error:
                self._log_not_taken(f"{call.name or 'a call'} for its verification failed ({error})")
                raise _NotTakenError from error
            # Only now: after a failure nobody knows who is genuine, so the next request asks again.
            self._fetched_at[call.url] = self._parts.clock.now()
            return True

    # What does it tell?

    def _events_of(self, request: Request) -> Sequence[WebhookEvent]:
        try:
            return self._platform.parse(request)
        except InvalidInputError as error:
            problem = str(error)
        except Exception as error:  # a mistake in the reading: it would fail on each delivery
            logger.exception(
                "a webhook could not be read", extra={"action": "webhook_unreadable", **self._facts}
            )
            problem = f"{type(error).__name__}: {error}"
        return [UnreadableEvent(request.body.decode("utf-8", "replace"), problem)]

    async def _take(self, events: Sequence[WebhookEvent]) -> tuple[list[Receipt], bool]:
        """Hand over events one after the other; return the receipts, and whether all is durable."""
        receipts: list[Receipt] = []
        durable = True
        for event in events:
            match event:
                case InboundMessage():
                    receipt = await self._submit(event)
                    if isinstance(receipt, UnreadableEvent):
                        durable = await self._parts.set_aside(receipt) and durable
                    else:
                        receipts.append(receipt)
                case DeliveryStatus():
                    await self._parts.tell_status(event)
                case UnreadableEvent():
                    durable = await self._parts.set_aside(event) and durable
                case PassedOver(what):
                    facts = {"action": "webhook_passed_over", **self._facts}
                    logger.debug("an event is nobody's message: %s", what, extra=facts)
        return receipts, durable

    async def _submit(self, message: InboundMessage) -> Receipt | UnreadableEvent:
        """Return the receipt of a message; people are told of most rejections, so these are receipts too."""
        try:
            receipt = await self._parts.submit(message)
        except InvalidInputError as error:  # the store will never take it
            return UnreadableEvent(message, str(error))
        if isinstance(receipt, Rejected) and receipt.reason is RejectReason.DRAINING:
            raise _NotTakenError  # another process will be there in a moment
        return receipt

    # Words

    def _log_forged(self, problem: str) -> None:
        # Strangers may post all day: what is refused for the same reason again is not logged again.
        if problem != self._last_refusal:
            self._last_refusal = problem
            facts = {"action": "webhook_forged", **self._facts}
            logger.warning("a request was refused: %s", problem, extra=facts)

    def _log_not_taken(self, problem: str) -> None:
        facts = {"action": "webhook_not_taken", **self._facts}
        logger.warning("a webhook was not taken, and will come again: %s", problem, extra=facts)

    @property
    def _facts(self) -> dict[str, str]:
        return {"platform": self._platform.name, "account": self._parts.account}


def not_listening() -> Response:
    """Return the answer while no gateway is connected: the platform is asked to deliver again."""
    return Response(HTTPStatus.SERVICE_UNAVAILABLE, headers=_LATER)
