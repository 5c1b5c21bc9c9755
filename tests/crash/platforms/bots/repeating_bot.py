"""What the bots of the sweeps do: they repeat what they are told."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from gateway_sessions import Config, Gateway, SessionStore, TurnContext
from gateway_sessions.adapters import Adapter
from gateway_sessions.config.gateway_sections import DeliveryConfig
from gateway_sessions.core.delivery.retry_policy import DeliveryRules
from gateway_sessions.core.queue.busy_modes import BusyRules
from gateway_sessions.core.sessions.busy_mode import BusyMode

ATTEMPTS = 1000
"""A sweep kills the bot more often within a minute, and within one turn, than anything else does."""


class PatientDelivery(DeliveryConfig):
    """Gives no reply up because nobody knows whether it was sent: a sweep cuts several sends of one off."""

    @property
    def rules(self) -> DeliveryRules:
        return replace(DeliveryConfig(retry=self.retry).rules, max_unclear=ATTEMPTS)


async def repeat_all(home: str, adapter: Adapter) -> None:
    """Answer whatever an adapter brings, until the bot is killed."""
    async with (
        SessionStore.open(Path(home), config()) as store,
        Gateway(store, agent=answer, adapters=[adapter]) as gateway,
    ):
        await gateway.run()


async def answer(turn: TurnContext) -> str:
    return f"A:{turn.text}"


def config() -> Config:
    """Return a configuration in which each message is a turn, and nothing waits because of many crashes."""
    plain = Config(timezone="UTC", busy=BusyRules(mode=BusyMode.QUEUE, debounce=timedelta()))
    return replace(
        plain,
        agent=replace(plain.agent, max_restart_attempts=ATTEMPTS),
        delivery=PatientDelivery(retry=timedelta(seconds=0.05)),
        gateway=replace(plain.gateway, crash_loop_starts=ATTEMPTS),
    )
