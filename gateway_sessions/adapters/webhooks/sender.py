"""`ApiSender`: makes the calls of one account: in pace, with a token, each failure with one meaning."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, assert_never

from cachetools import LRUCache

from gateway_sessions.adapters.webhooks.api_calls import (
    ApiCall,
    CallLimited,
    CallOutcome,
    CallRefused,
    CallSucceeded,
    CallSuperseded,
    CallUnauthorized,
    CallUnavailable,
    CallUnknown,
    PlatformAnswer,
)
from gateway_sessions.adapters.webhooks.limiter import SendingLimiter
from gateway_sessions.adapters.webhooks.platform import CallNeeded, WebhookPlatform
from gateway_sessions.errors import AdapterUnavailableError, DeliveryRefusedError, RateLimitedError
from gateway_sessions.ports import Clock

logger: Final = logging.getLogger(__name__)

UNFINISHED: Final = 1024
"""The messages of several calls that are remembered after some calls: a retry goes on behind those."""
MOST_NEEDED: Final = 3
"""The calls that one authorization may need."""


class CallMaker(Protocol):
    """Makes calls; `http_client.ApiClient` is one."""

    async def answer_to(self, call: ApiCall) -> PlatformAnswer:
        """Return the answer; `AdapterUnavailableError`: nothing was sent, `OSError`: nobody knows."""
        ...


@dataclass(slots=True)
class _Progress:
    """The calls of a message that were carried out."""

    calls: int = 0
    ids: list[str] = field(default_factory=list[str])
    following: ApiCall | None = None
    """The call that an upload has made possible, and that is still to be made."""


class ApiSender:
    """Makes calls, and raises what their failures mean to a gateway."""

    def __init__(self, platform: WebhookPlatform, client: CallMaker, clock: Clock) -> None:
        self._platform = platform
        self._client = client
        self._clock = clock
        self._limiter = SendingLimiter(platform.pace, clock)
        self._authorizing = asyncio.Lock()
        self._unfinished: LRUCache[str, _Progress] = LRUCache(UNFINISHED)

    async def send(self, calls: Sequence[ApiCall], *, idempotency_key: str) -> list[str]:
        """Make the calls of a message in order, and return the ids of what they show.

        If one fails, the next attempt with the same key goes on there, as long as this process lives.
        """
        progress = self._unfinished.get(idempotency_key) or _Progress()
        for call in calls[progress.calls :]:
            await self._make_with_following(call, progress, idempotency_key)
            progress.calls += 1
        self._unfinished.pop(idempotency_key, None)
        return progress.ids

    async def call(self, call: ApiCall) -> PlatformAnswer:
        """Make one call, and return the answer to it, if it succeeded."""
        return (await self._make(call))[1]

    async def fetch(self, call: ApiCall) -> PlatformAnswer:
        """Make a call as it is, without a token and out of pace, and return any answer."""
        return await self._client.answer_to(call)

    async def authorized(self, call: ApiCall) -> ApiCall:
        """Return a call with what proves who we are; `AdapterUnavailableError` if that cannot be had."""
        for _ in range(MOST_NEEDED):
            authorized = self._platform.authorize(call, self._clock.now())
            if isinstance(authorized, ApiCall):
                return authorized
            await self._learn(call, authorized)
        problem = f"{call.name or 'a call'} cannot be authorized"
        raise AdapterUnavailableError(self._platform.name, problem)

    async def _make_with_following(self, call: ApiCall, progress: _Progress, key: str) -> None:
        next_call: ApiCall | None = progress.following or call
        while next_call is not None:
            succeeded, answer = await self._make(next_call)
            if next_call.shows and succeeded.message_id is not None:
                progress.ids.append(succeeded.message_id)
            next_call = next_call.then(answer) if next_call.then is not None else None
            progress.following = next_call
            self._unfinished[key] = progress

    async def _make(self, call: ApiCall) -> tuple[CallSucceeded, PlatformAnswer]:
        outcome, answer = await self._attempt(call)
        if isinstance(outcome, CallUnauthorized) and self._platform.forget_token():
            outcome, answer = await self._attempt(call)
        if isinstance(outcome, CallRefused) and outcome.markup and call.plain is not None:
            facts = {"action": "markup_refused", "platform": self._platform.name}
            logger.warning("a text is sent without its markup: %s", outcome.problem, extra=facts)
            return await self._make(call.plain)
        if isinstance(outcome, CallSuperseded):
            return await self._make(outcome.call)
        if isinstance(outcome, CallSucceeded):
            self._limiter.went_well(call.chat)
            return outcome, answer
        raise self._error_of(call, outcome)

    async def _attempt(self, call: ApiCall) -> tuple[CallOutcome, PlatformAnswer]:
        wait = await self._limiter.reserve(call.chat, shows=call.shows)
        if wait is not None:
            raise RateLimitedError(self._platform.name, wait)
        # Only now: a platform's part may count attempts, and a token may end while a call waits for its turn.
        authorized = await self.authorized(call)
        answer = await self._client.answer_to(authorized)
        return self._platform.outcome(call, answer, self._clock.now()), answer

    async def _learn(self, call: ApiCall, needed: CallNeeded) -> None:
        async with self._authorizing:  # calls that start together need one token
            if isinstance(self._platform.authorize(call, self._clock.now()), ApiCall):
                return
            try:
                answer = await self._client.answer_to(needed.call)
                self._platform.learn(needed.call, answer, self._clock.now())
            except (OSError, ValueError) as error:  # the message itself was certainly not sent
                problem = f"gave no token ({error})"
                raise AdapterUnavailableError(self._platform.name, problem) from error

    def _error_of(
        self,
        call: ApiCall,
        outcome: CallLimited | CallUnavailable | CallUnauthorized | CallRefused | CallUnknown,
    ) -> Exception:
        name = self._platform.name
        match outcome:
            case CallLimited(after, everywhere):
                return RateLimitedError(name, self._limiter.pause(call.chat, after, everywhere=everywhere))
            case CallUnavailable(problem) | CallUnauthorized(problem):
                return AdapterUnavailableError(name, problem)
            case CallRefused(problem):
                return DeliveryRefusedError(name, problem)
            case CallUnknown(problem):
                return ConnectionError(f"{name}: {problem}")
            case _:
                assert_never(outcome)
