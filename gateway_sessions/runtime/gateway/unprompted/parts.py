"""`UnpromptedParts`: the speaker, the schedules and the questions of one gateway, put together."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TypeAlias

from gateway_sessions.core.queue.inbound import InboundMessage, Receipt
from gateway_sessions.core.sessions.reset_times import zone_named
from gateway_sessions.runtime.delivery.delivery import Delivery
from gateway_sessions.runtime.gateway.commands.protocol import CommandHost
from gateway_sessions.runtime.gateway.unprompted.questions import Questions
from gateway_sessions.runtime.gateway.unprompted.schedules import Schedules
from gateway_sessions.runtime.gateway.unprompted.speaking import Speaker, Targets
from gateway_sessions.runtime.store.open_store import parts_of, queue_of

Admit: TypeAlias = Callable[[InboundMessage], Awaitable[Receipt]]


class UnpromptedParts:
    """The parts of a gateway for what it says, begins and asks by itself."""

    def __init__(
        self,
        host: CommandHost,
        deliveries: Mapping[tuple[str, str], Delivery],
        admit: Admit,
        *,
        only: Collection[str] | None,
        is_leaving: Callable[[], bool],
    ) -> None:
        """*admit* takes a message in for the agent; *only* are the only lanes of the gateway, None: all."""
        store, queue = host.store, queue_of(host.store)
        opened = parts_of(store)
        zone_name, digits = opened.context.policies.zone_name, opened.context.entropy.hex_digits
        accounts = deliveries.keys()
        self.questions: Questions = Questions(queue, store.clock, host.events, digits)
        self.speaker: Speaker = Speaker(
            Targets(queue, host.config, accounts, only),
            queue,
            store.clock,
            deliveries,
            zone=zone_named(zone_name),
            new_digits=digits,
            on_scheduled=self._look_soon,
        )
        self.schedules: Schedules = Schedules(
            self.speaker,
            queue,
            store.clock,
            host.events,
            admit,
            zone=zone_name,
            accounts=accounts,
            only=only,
            cluster=opened.cluster,
            is_leaving=is_leaving,
        )

    def _look_soon(self) -> None:
        self.schedules.look_soon()  # they need the speaker, so they are made after it
