"""The sections of a configuration that only a gateway or the command line reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from typing import ClassVar, Final

from gateway_sessions.config.keys import Contradiction, Section, block, key
from gateway_sessions.config.kinds import AdapterConfig, Adapters, Choice, Count, Duration, Flag, Text, Texts
from gateway_sessions.core.delivery.retry_policy import DeliveryRules
from gateway_sessions.core.storable_text import MAX_TEXT_BYTES
from gateway_sessions.core.transcript.recap import RecapForm

MIB: Final = 1 << 20
LAST_PORT: Final = 65_535
LEAST_SECRET_BYTES: Final = 16


class Ambiguous(StrEnum):
    """The choices for a reply that may or may not have been sent."""

    RESEND = "resend"  # send it again a few times, marked as a possible repeat
    HOLD = "hold"  # keep it among the dead letters


class UnknownCommands(StrEnum):
    """The choices for a slash command that does not exist."""

    AGENT = "agent"  # the agent gets it as text
    ANSWER = "answer"  # the gateway answers that there is no such command


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayConfig(Section):
    """Limits of a gateway, and how it starts and ends."""

    section: ClassVar[str] = "gateway"
    max_turns: int = key(Count(), 64)
    """The number of turns that may run at the same time."""
    max_turns_per_owner: int = key(Count(), 8)
    """The number of those turns that one owner, a person or a shared room, may have."""
    max_waiting: int = key(Count(), 10_000)
    """The number of messages that may wait on all lanes together, and of commands that may run; more are
    refused."""
    max_waiting_per_owner: int = key(Count(), 1_000)
    """The number of those messages that one owner may have, so that nobody fills the queue for all others."""
    max_message_bytes: int = key(Count(most=MAX_TEXT_BYTES), MIB)
    """The largest message that is accepted."""
    drain_timeout: timedelta = key(Duration(zero=True), timedelta(seconds=30))
    """The time that running turns get to finish when the gateway ends."""
    inactivity_timeout: timedelta | None = key(Duration(off=True), None)
    """The time after which a turn without a sign of progress is ended. None: there is no limit."""
    crash_loop_starts: int = key(Count(), 3)
    """The number of starts after crashes within the window that count as a crash loop: then no turn that was
    cut off is started again."""
    crash_loop_window: timedelta = key(Duration(), timedelta(seconds=60))
    """The window in which those starts are counted."""
    dedup_window: timedelta = key(Duration("days"), timedelta(days=7))
    """The time for which a repeated message is recognised. Choose at least the time for which the platform
    repeats."""
    unknown_commands: UnknownCommands = key(Choice(UnknownCommands), UnknownCommands.AGENT)
    """What happens to a slash command that does not exist: `agent` hands it to the agent as text, `answer`
    tells the person that there is no such command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryConfig(Section):
    """Time limits and retries for sending replies."""

    section: ClassVar[str] = "delivery"
    retry: timedelta = key(Duration(), timedelta(seconds=2))
    """The pause before a failed send is repeated; it doubles with each try."""
    retry_cap: timedelta = key(Duration(), timedelta(minutes=5))
    """The longest of these pauses; not shorter than the first."""
    max_age: timedelta = key(Duration("hours"), timedelta(hours=24))
    """The age after which a reply is no longer sent, and is kept among the dead letters."""
    timeout: timedelta = key(Duration(), timedelta(seconds=30))
    """The time limit for one attempt to send a reply."""
    ambiguous: Ambiguous = key(Choice(Ambiguous), Ambiguous.RESEND)
    """What happens to a reply that may or may not have been sent: `resend` sends it again a few times, marked
    as a possible repeat, and `hold` keeps it among the dead letters. A platform that recognises repeats
    always gets it again."""

    def contradictions(self) -> Iterator[Contradiction]:
        """Yield a longest pause that is shorter than the first one."""
        if self.retry_cap < self.retry:
            yield "retry_cap_seconds", "must not be less than retry_seconds"

    @property
    def rules(self) -> DeliveryRules:
        """The rules for a reply that could not be sent."""
        rules = DeliveryRules(first_pause=self.retry, longest_pause=self.retry_cap, max_age=self.max_age)
        return rules if self.ambiguous is Ambiguous.RESEND else replace(rules, max_unclear=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCacheConfig(Section):
    """The cache of idle agents."""

    section: ClassVar[str] = "agent_cache"
    size: int = key(Count(), 128)
    """The number of idle agents that are kept."""
    idle: timedelta = key(Duration(), timedelta(hours=1))
    """The time after which an idle agent is closed."""
    close_timeout: timedelta = key(Duration(), timedelta(seconds=30))
    """The time limit for closing an agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig(Section):
    """The model and the endpoint of `--agent openai`; the usual variables stand in for None."""

    section: ClassVar[str] = "model"
    name: str | None = key(Text(null=True), None)
    """The model of conversations for which nobody has chosen another one. None: the variable
    `OPENAI_MODEL`."""
    base_url: str | None = key(Text(kind_name="address", null=True), None)
    """The address of the endpoint without `/chat/completions`. None: the variable `OPENAI_BASE_URL`, else the
    address of OpenAI."""
    api_key: str | None = key(Text(null=True, secret=True), None)
    """The API key; write `${NAME}` to take it from a variable. None: the variable `OPENAI_API_KEY`, if it is
    set. `config explain` does not show the key."""
    instructions: str | None = key(Text(null=True), None)
    """The instructions at the beginning of every conversation. None: the variable `OPENAI_INSTRUCTIONS`, if
    it is set."""
    history_limit: int | None = key(Count(null=True), None)
    """The number of last messages that the model gets. None: all."""
    connect: timedelta = key(Duration(), timedelta(seconds=10))
    """The time limit for connecting to the endpoint."""
    silence: timedelta = key(Duration(), timedelta(seconds=120))
    """The longest silence of the endpoint, before its answer or in the middle of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhooksConfig(Section):
    """The port at which `serve` listens for all platforms that call it."""

    section: ClassVar[str] = "serve.webhooks"
    host: str = key(Text(), "127.0.0.1")
    """The address at which adapters listen whose platforms call them; a proxy with TLS stands in front."""
    port: int = key(Count(0, LAST_PORT), 8080)
    """The port that all of them share, each at a path of its own; it is open only if there is such an
    adapter. 0: any free port."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeConfig(Section):
    """The connections of the gateway that `serve` runs, and its ports."""

    section: ClassVar[str] = "serve"
    console: bool = key(Flag(), default=False)
    """Lines of the standard input are messages, and replies go to the standard output."""
    adapters: tuple[AdapterConfig, ...] = key(Adapters(), ())
    """The [adapters of platforms](../how-to/run-platforms-from-a-configuration.md): each has a `platform`, a
    `name` if it is another account of it, and keys of its own, such as `token`. `config explain` shows none
    of them."""
    webhooks: WebhooksConfig = block(WebhooksConfig)
    """Where adapters listen whose platforms call them, such as Slack, Teams and WhatsApp."""
    host: str = key(Text(), "127.0.0.1")
    """The address at which the gateway listens."""
    health_port: int | None = key(Count(0, LAST_PORT, null=True), None)
    """The port of `/healthz` and `/readyz`. None: no such port; 0: any free port."""
    webhook_port: int | None = key(Count(0, LAST_PORT, null=True), None)
    """The port of the [signed webhook](webhook.md). None: no webhook."""
    webhook_path: str = key(Text(kind_name="text, begins with a slash", starts=("/",)), "/messages")
    """The path to which messages are posted."""
    webhook_callback_url: str | None = key(
        Text(kind_name="address", null=True, starts=("http://", "https://")), None
    )
    """The address to which replies are posted; a webhook needs one."""
    webhook_secrets: tuple[str, ...] = key(Texts(least_bytes=LEAST_SECRET_BYTES, secret=True), ())
    """The secrets with which both sides sign; a webhook needs one. The first signs replies, and each of them
    is accepted. `config explain` does not show them."""

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
    """How the command line shows a conversation."""

    section: ClassVar[str] = "display"
    resume_display: RecapForm = key(Choice(RecapForm), RecapForm.FULL)
    """The recap that [`chat`](cli.md#talking) and `sessions browse` show of a resumed conversation: the last
    exchanges (`full`), one line (`minimal`) or nothing (`off`). `--recap` overrides it."""
