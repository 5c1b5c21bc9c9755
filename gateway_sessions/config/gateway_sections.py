"""The parts of a configuration that only a gateway reads: turns, replies, warm agents, adapters."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from typing import Final

from gateway_sessions.core.delivery import DeliveryRules
from gateway_sessions.core.limits import Finding, check_section, choice, count, off_or_time, time
from gateway_sessions.core.recap import RecapForm
from gateway_sessions.core.storable import MAX_TEXT_BYTES

MIB: Final = 1 << 20
LAST_PORT: Final = 65_535
LEAST_SECRET_BYTES: Final = 16


class Ambiguous(StrEnum):
    """What becomes of a reply of which nobody knows whether it was sent."""

    RESEND = "resend"  # it is sent again a few times, and says that it may be a repeat
    HOLD = "hold"  # it is put aside where everybody can see it


class UnknownCommands(StrEnum):
    """What becomes of a word behind a slash that no command is called."""

    AGENT = "agent"  # it is text for the agent like any other
    ANSWER = "answer"  # people are told that there is no such command


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayConfig:
    """How much a gateway takes on, and how it ends and starts."""

    max_turns: int = 64
    """How many turns run at the same time."""
    max_turns_per_owner: int = 8
    max_waiting: int = 10_000
    """How many messages wait on all lanes together."""
    max_waiting_per_owner: int = 1_000
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
    unknown_commands: UnknownCommands = UnknownCommands.AGENT

    def __post_init__(self) -> None:
        check_section(
            "gateway",
            count("max_turns", self.max_turns),
            count("max_turns_per_owner", self.max_turns_per_owner),
            count("max_waiting", self.max_waiting),
            count("max_waiting_per_owner", self.max_waiting_per_owner),
            count("max_message_bytes", self.max_message_bytes, most=MAX_TEXT_BYTES),
            time("drain_timeout_seconds", self.drain_timeout, zero=True),
            off_or_time("inactivity_timeout_seconds", self.inactivity_timeout),
            count("crash_loop_starts", self.crash_loop_starts),
            time("crash_loop_window_seconds", self.crash_loop_window),
            time("dedup_window_days", self.dedup_window),
            choice("unknown_commands", self.unknown_commands, UnknownCommands),
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """Which model the agent of the command line asks, and where; None: what the usual variables say."""

    name: str | None = None
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    instructions: str | None = None
    history_limit: int | None = None
    """How many of the last messages it is told; None: all."""
    connect: timedelta = timedelta(seconds=10)
    """How long it may take to reach it."""
    silence: timedelta = timedelta(seconds=120)
    """How long it may say nothing."""

    def __post_init__(self) -> None:
        check_section(
            "model",
            None if self.history_limit is None else count("history_limit", self.history_limit),
            time("connect_seconds", self.connect),
            time("silence_seconds", self.silence),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeConfig:
    """What the gateway of the command line connects to, and where it listens."""

    console: bool = False
    host: str = "127.0.0.1"
    health_port: int | None = None
    """Where it says how it is; None: nowhere. Of all ports 0 is any that is free."""
    webhook_port: int | None = None
    """Where signed messages come in; None: there is no webhook."""
    webhook_path: str = "/messages"
    webhook_callback_url: str | None = None
    webhook_secrets: tuple[str, ...] = field(default=(), repr=False)
    """The first one signs replies; each of them is accepted."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "webhook_secrets", tuple(self.webhook_secrets))
        check_section(
            "serve",
            _port("health_port", self.health_port),
            _port("webhook_port", self.webhook_port),
            None if self.webhook_path.startswith("/") else ("webhook_path", "must begin with a slash"),
            self._callback(),
            self._secrets(),
        )

    def _callback(self) -> Finding:
        url = self.webhook_callback_url
        if url is None:
            return ("webhook_callback_url", "must be set with a webhook") if self.has_webhook else None
        if url.startswith(("http://", "https://")):
            return None
        return "webhook_callback_url", "must begin with http:// or https://"

    def _secrets(self) -> Finding:
        if self.has_webhook and not self.webhook_secrets:
            return "webhook_secrets", "must hold one with a webhook"
        if any(len(one.encode()) < LEAST_SECRET_BYTES for one in self.webhook_secrets):
            return "webhook_secrets", f"must have at least {LEAST_SECRET_BYTES} bytes each"
        return None

    @property
    def has_webhook(self) -> bool:
        """Whether messages come in by HTTP."""
        return self.webhook_port is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class DisplayConfig:
    """What the command line shows of a conversation."""

    resume_display: RecapForm = RecapForm.FULL
    """How much of one with which somebody goes on."""


def _port(key: str, port: int | None) -> Finding:
    return (
        None if port is None or 0 <= port <= LAST_PORT else (key, f"must be from 0 to {LAST_PORT}, or null")
    )
