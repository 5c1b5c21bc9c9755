"""`GatewayListener`: passes news of the queue and of other nodes on to the lanes, turns and deliveries."""

from __future__ import annotations

from collections.abc import Collection

from gateway_sessions.runtime.delivery.delivery import Delivery
from gateway_sessions.runtime.duties.cluster import Cluster
from gateway_sessions.runtime.gateway.running_turn import StopReason
from gateway_sessions.runtime.gateway.scheduler import LaneScheduler
from gateway_sessions.runtime.gateway.turn_signals import TurnSignals
from gateway_sessions.runtime.queue.listener import QueueListener


class GatewayListener(QueueListener):
    """Hears what becomes of the queue in this process, and what other nodes leave to this one."""

    def __init__(
        self,
        lanes: LaneScheduler,
        deliveries: Collection[Delivery],
        turn_signals: TurnSignals,
        cluster: Cluster | None,
        *,
        wants_versions: bool,
    ) -> None:
        """Versions are wanted only if an agent can be warm: an agent that all sessions share never is."""
        self._lanes = lanes
        self._deliveries = deliveries
        self._remote_turns = turn_signals
        self._cluster = cluster
        self.wants_versions: bool = wants_versions

    def hear_waiting_turn(self, session_key: str) -> None:
        """Begin the turn that waits, here or on its own node."""
        self._lanes.look_for_ready_turns()
        if self._cluster is not None:
            self._cluster.call_node_of_lane(session_key)

    def hear_overtaken_turn(self, session_key: str, token: int) -> None:
        """Stop the turn that may not write any more, wherever it runs."""
        self._lanes.stop_overtaken_turn(session_key, token)
        if self._cluster is not None and session_key not in self._lanes.running:
            self._cluster.call_nodes()

    def hear_removed_turns(self) -> None:
        """Send what people are owed about messages that wait no more."""
        for delivery in self._deliveries:
            delivery.look_for_due_replies()

    def look_for_work(self) -> None:
        """Look soon for turns, signals and replies that other nodes have left."""
        self._lanes.look_for_ready_turns()
        self._remote_turns.read_soon()
        for delivery in self._deliveries:
            delivery.check_soon()

    def stop_all_turns(self) -> None:
        """Stop all turns: other nodes may take them over."""
        for running in list(self._lanes.running.values()):
            running.stop(StopReason.OVERTAKEN)

    def want_versions(self) -> None:
        """Want versions again: the gateway has ended, and whoever works on the queue next may need them."""
        self.wants_versions = True
