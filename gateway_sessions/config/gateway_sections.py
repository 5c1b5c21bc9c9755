"""The parts of a configuration that only a gateway reads: turns, replies and warm agents."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from typing import Final

from gateway_sessions.core.delivery import DeliveryRules
from gateway_sessions.core.limits import check_section, count, off_or_time, time
from gateway_sessions.core.storable import MAX_TEXT_BYTES

MIB: Final = 1 << 20


class Ambiguous(StrEnum):
    """What becomes of a reply of which nobody knows whether it was sent."""

    RESEND = "resend"  # it is sent again a few times, and says that it may be a repeat
    HOLD = "hold"  # it is put aside where everybody can see it


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayConfig:
    """How much a gateway takes on, and how it ends and starts."""

    max_turns: int = 64
    """How many turns run at the same time."""
    max_turns_per_owner: int = 8
    max_waiting: int = 10_000
    """How many messages wait on all lanes together."""
    max_message_bytes: int = MIB
    drain_timeout: timedelta = timedelta(seconds=30)
    """How long running turns may go on when the gateway ends."""
    inactivity_timeout: timedelta | None = None
    """How long a turn may show no sign of progress; None: as long as it likes."""
    crash_loop_starts: int = 3
    crash_loop_window: timedelta = timedelta(seconds=60)
    """So many starts after crashes in so much time are a loop, in which no turn is taken up again."""
    dedup_window: timedelta = timedelta(days=7)
    """How long a message that was delivered twice is known for that."""

    def __post_init__(self) -> None:
        check_section(
            "gateway",
            count("max_turns", self.max_turns),
            count("max_turns_per_owner", self.max_turns_per_owner),
            count("max_waiting", self.max_waiting),
            count("max_message_bytes", self.max_message_bytes, most=MAX_TEXT_BYTES),
            time("drain_timeout_seconds", self.drain_timeout, zero=True),
            off_or_time("inactivity_timeout_seconds", self.inactivity_timeout),
            count("crash_loop_starts", self.crash_loop_starts),
            time("crash_loop_window_seconds", self.crash_loop_window),
            time("dedup_window_days", self.dedup_window),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryConfig:
    """How patiently replies are sent."""

    retry: timedelta = timedelta(seconds=2)
    """The pause after the first failure; it doubles with each."""
    retry_cap: timedelta = timedelta(minutes=5)
    max_age: timedelta = timedelta(hours=24)
    """An older reply is not sent any more."""
    timeout: timedelta = timedelta(seconds=30)
    """How long an adapter may take to send one."""
    ambiguous: Ambiguous = Ambiguous.RESEND

    def __post_init__(self) -> None:
        low = ("retry_cap_seconds", "must not be less than retry_seconds")
        check_section(
            "delivery",
            time("retry_seconds", self.retry),
            time("retry_cap_seconds", self.retry_cap) or (low if self.retry_cap < self.retry else None),
            time("max_age_hours", self.max_age),
            time("timeout_seconds", self.timeout),
        )

    @property
    def rules(self) -> DeliveryRules:
        """What decides about a reply that could not be sent."""
        rules = DeliveryRules(first_pause=self.retry, longest_pause=self.retry_cap, max_age=self.max_age)
        return rules if self.ambiguous is Ambiguous.RESEND else replace(rules, max_unclear=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCacheConfig:
    """How many agents are kept warm, and how long."""

    size: int = 128
    idle: timedelta = timedelta(hours=1)
    close_timeout: timedelta = timedelta(seconds=30)
    """How long an agent may take to close."""

    def __post_init__(self) -> None:
        check_section(
            "agent_cache",
            count("size", self.size),
            time("idle_seconds", self.idle),
            time("close_timeout_seconds", self.close_timeout),
        )
