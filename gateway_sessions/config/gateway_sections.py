"""These sections are read by a gateway only: turns, replies, warm agents, adapters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from typing import ClassVar, Final

from gateway_sessions.config.keys import Contradiction, Section, key
from gateway_sessions.config.kinds import Choice, Count, Duration, Flag, Text, Texts
from gateway_sessions.core.delivery.retry_policy import DeliveryRules
from gateway_sessions.core.storable_text import MAX_TEXT_BYTES
from gateway_sessions.core.transcript.recap import RecapForm

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
class GatewayConfig(Section):
    """How much a gateway takes on, and how it ends and starts."""

    section: ClassVar[str] = "gateway"
    max_turns: int = key(Count(), 64)
    """How many turns run at the same time."""
    max_turns_per_owner: int = key(Count(), 8)
    """How many of them belong to one owner: a person, or a shared room."""
    max_waiting: int = key(Count(), 10_000)
    """How many messages wait on all lanes together, and how many commands are under way; more are refused."""
    max_waiting_per_owner: int = key(Count(), 1_000)
    """How many of them belong to one owner, so that nobody takes the room of all others."""
    max_message_bytes: int = key(Count(most=MAX_TEXT_BYTES), MIB)
    """The largest message that is accepted."""
    drain_timeout: timedelta = key(Duration(zero=True), timedelta(seconds=30))
    """How long running turns may go on when the gateway ends."""
    inactivity_timeout: timedelta | None = key(Duration(off=True), None)
    """How long a turn may show no sign of progress; None: as long as it likes."""
    crash_loop_starts: int = key(Count(), 3)
    """So many starts after crashes within the window are a loop: no turn is taken up again."""
    crash_loop_window: timedelta = key(Duration(), timedelta(seconds=60))
    """The length of that window."""
    dedup_window: timedelta = key(Duration("days"), timedelta(days=7))
    """How long a message that a platform delivers again is known; at least as long as its platform tries."""
    unknown_commands: UnknownCommands = key(Choice(UnknownCommands), UnknownCommands.AGENT)
    """What becomes of a word behind a slash that no command is called: it is text for the agent, or people
    are told that there is no such command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryConfig(Section):
    """How patiently replies are sent."""

    section: ClassVar[str] = "delivery"
    retry: timedelta = key(Duration(), timedelta(seconds=2))
    """The pause before a reply that could not be sent is tried again; it doubles with each try."""
    retry_cap: timedelta = key(Duration(), timedelta(minutes=5))
    """The longest pause, not less than the first one."""
    max_age: timedelta = key(Duration("hours"), timedelta(hours=24))
    """An older reply is not sent any more, and is kept among the dead letters."""
    timeout: timedelta = key(Duration(), timedelta(seconds=30))
    """How long sending a reply may take."""
    ambiguous: Ambiguous = key(Choice(Ambiguous), Ambiguous.RESEND)
    """A reply that may have been sent is sent again a few times, and says that it may be a repeat; or it is
    kept among the dead letters at once. Platforms that recognise a repeat get it again in any case."""

    def contradictions(self) -> Iterator[Contradiction]:
        """Yield a longest pause that is shorter than the first one."""
        if self.retry_cap < self.retry:
            yield "retry_cap_seconds", "must not be less than retry_seconds"

    @property
    def rules(self) -> DeliveryRules:
        """What decides about a reply that could not be sent."""
        rules = DeliveryRules(first_pause=self.retry, longest_pause=self.retry_cap, max_age=self.max_age)
        return rules if self.ambiguous is Ambiguous.RESEND else replace(rules, max_unclear=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCacheConfig(Section):
    """How many agents are kept warm, and how long."""

    section: ClassVar[str] = "agent_cache"
    size: int = key(Count(), 128)
    """How many agents that have nothing to do are kept warm."""
    idle: timedelta = key(Duration(), timedelta(hours=1))
    """After how long such an agent is closed."""
    close_timeout: timedelta = key(Duration(), timedelta(seconds=30))
    """How long an agent may take to close."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig(Section):
    """Which model the agent of the command line asks, and where; None: what the usual variables say."""

    section: ClassVar[str] = "model"
    name: str | None = key(Text(null=True), None)
    """The model of conversations for which nobody has chosen another one. None: `OPENAI_MODEL` of the
    environment."""
    base_url: str | None = key(Text(kind_name="address", null=True), None)
    """What stands in front of `/chat/completions`. None: `OPENAI_BASE_URL`, else that of OpenAI."""
    api_key: str | None = key(Text(null=True, secret=True), None)
    """The key, best as `${NAME}` of a variable. None: `OPENAI_API_KEY`, if there is one.
    `config explain` does not show it."""
    instructions: str | None = key(Text(null=True), None)
    """What the model is told first in every conversation. None: `OPENAI_INSTRUCTIONS`, if there are any."""
    history_limit: int | None = key(Count(null=True), None)
    """How many of the last messages it is told; None: all."""
    connect: timedelta = key(Duration(), timedelta(seconds=10))
    """How long it may take to reach the endpoint."""
    silence: timedelta = key(Duration(), timedelta(seconds=120))
    """How long the endpoint may say nothing, before its answer and in the middle of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeConfig(Section):
    """What the gateway of the command line connects to, and where it listens."""

    section: ClassVar[str] = "serve"
    console: bool = key(Flag(), default=False)
    """Lines of its standard input are messages, and replies go to its standard output."""
    host: str = key(Text(), "127.0.0.1")
    """The address that it listens at."""
    health_port: int | None = key(Count(0, LAST_PORT, null=True), None)
    """The port of `/healthz` and `/readyz`. None: there is none; 0 is any that is free."""
    webhook_port: int | None = key(Count(0, LAST_PORT, null=True), None)
    """The port of the [signed webhook](webhook.md). None: there is none."""
    webhook_path: str = key(Text(kind_name="text, begins with a slash", starts=("/",)), "/messages")
    """Where messages are posted to."""
    webhook_callback_url: str | None = key(
        Text(kind_name="address", null=True, starts=("http://", "https://")), None
    )
    """Where replies are posted to; a webhook needs it."""
    webhook_secrets: tuple[str, ...] = key(Texts(least_bytes=LEAST_SECRET_BYTES, secret=True), ())
    """What both sides sign with; a webhook needs one. The first signs replies, each of them is accepted.
    `config explain` does not show them."""

    def __post_init__(self) -> None:
        """Let nobody change the secrets."""
        object.__setattr__(self, "webhook_secrets", tuple(self.webhook_secrets))
        Section.__post_init__(self)

    def contradictions(self) -> Iterator[Contradiction]:
        """Yield what a webhook lacks."""
        if self.has_webhook and self.webhook_callback_url is None:
            yield "webhook_callback_url", "must be set with webhook_port"
        if self.has_webhook and not self.webhook_secrets:
            yield "webhook_secrets", "must hold one with webhook_port"

    @property
    def has_webhook(self) -> bool:
        """Whether messages come in by HTTP."""
        return self.webhook_port is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class DisplayConfig(Section):
    """What the command line shows of a conversation."""

    section: ClassVar[str] = "display"
    resume_display: RecapForm = key(Choice(RecapForm), RecapForm.FULL)
    """What [`chat`](cli.md#talking) and `sessions browse` show first of a conversation that goes on: the last
    exchanges, one line, or nothing. `--recap` overrides it."""
