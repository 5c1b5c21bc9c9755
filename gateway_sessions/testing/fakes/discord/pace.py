"""How fast a bot may call Discord, told in headers, and what happens to a bot that does not listen."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from typing import Final

from gateway_sessions.ports import Clock
from gateway_sessions.testing.fakes.discord.refusals import JSON
from gateway_sessions.testing.fakes.faults import AskedPauses
from gateway_sessions.testing.fakes.http_server import FakeResponse

VIA: Final = {"via": "1.1 google"}
"""The header by which a client tells Discord's own refusal from that of a guard in front of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscordLimits:
    """How many calls a bot may make; `None` in place of them: as many as it likes."""

    messages: int = 5
    """So many messages within `seconds` in one channel."""
    seconds: float = 5.0
    a_second: int = 50
    """So many calls of all kinds within a second."""


class DiscordPace:
    """Counts calls; the places are channels, and "" for all calls together."""

    def __init__(self, limits: DiscordLimits | None, clock: Clock) -> None:
        self._limits = limits
        self._clock = clock
        self._calls: dict[str, deque[float]] = {}
        self._pauses = AskedPauses()

    def ask_to_wait(self, place: str, seconds: float) -> FakeResponse:
        """Return the answer that asks for a pause."""
        return _asked_to_wait(place, self._pauses.ask(place, seconds))

    def refusal(self, place: str) -> FakeResponse | None:
        """Count a call in a place; return the answer that asks for a pause, twice as long for who had one."""
        now = time.monotonic()
        for asked in ("", place):
            if (longer := self._pauses.broken(asked)) is not None:
                return _asked_to_wait(asked, longer)
        if self._limits is None:
            return None
        everywhere = self._within("", now, 1.0)
        if len(everywhere) >= self._limits.a_second:
            return self.ask_to_wait("", everywhere[0] + 1.0 - now)
        here = self._within(place, now, self._limits.seconds)
        if place and len(here) >= self._limits.messages:
            return self.ask_to_wait(place, here[0] + self._limits.seconds - now)
        everywhere.append(now)
        if place:
            here.append(now)
        return None

    def headers(self, place: str) -> dict[str, str]:
        """Return what an answer tells of the calls that are left."""
        if self._limits is None or not place:
            return {}
        now = time.monotonic()
        here = self._within(place, now, self._limits.seconds)
        left = (here[0] + self._limits.seconds - now) if here else 0.0
        return {
            "x-ratelimit-limit": str(self._limits.messages),
            "x-ratelimit-remaining": str(max(0, self._limits.messages - len(here))),
            "x-ratelimit-reset": f"{self._clock.now().timestamp() + left:.3f}",
            "x-ratelimit-reset-after": f"{left:.3f}",
            "x-ratelimit-bucket": "messages",
        }

    def _within(self, place: str, now: float, seconds: float) -> deque[float]:
        calls = self._calls.setdefault(place, deque())
        while calls and calls[0] <= now - seconds:
            calls.popleft()
        return calls


def _asked_to_wait(place: str, seconds: float) -> FakeResponse:
    everywhere = not place
    scope = "global" if everywhere else "user"
    body = {"message": "You are being rate limited.", "retry_after": seconds, "global": everywhere}
    headers = {**JSON, **VIA, "retry-after": f"{seconds:.3f}", "x-ratelimit-scope": scope}
    if everywhere:
        headers["x-ratelimit-global"] = "true"
    return FakeResponse.of_json(body, status=429, headers=headers)
