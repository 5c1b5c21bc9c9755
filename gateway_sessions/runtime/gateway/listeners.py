"""What a gateway does when the queue, or another node, has news for it."""

from __future__ import annotations

from collections.abc import Collection

from gateway_sessions.runtime.delivery.delivery import Delivery
from gateway_sessions.runtime.duties.cluster import Cluster
from gateway_sessions.runtime.gateway.remote_turns import RemoteTurns
from gateway_sessions.runtime.gateway.running_turn import StopReason
from gateway_sessions.runtime.gateway.scheduler import LaneScheduler
from gateway_sessions.runtime.queue.listener import QueueListener


class QueueNews(QueueListener):
    """Passes what becomes of the queue on to the lanes, the deliveries and the other nodes."""

    def __init__(
        self,
        lanes: LaneScheduler,
        deliveries: Collection[Delivery],
        cluster: Cluster | None,
        *,
        wants_versions: bool,
    ) -> None:
        self._lanes = lanes
        self._deliveries = deliveries
        self._cluster = cluster
        self._wants_versions = wants_versions

    @property
    def wants_versions(self) -> bool:
        """Whether an agent may have been warm since a turn of its lane; one for all sessions never is."""
        return self._wants_versions

    def ready(self, session_key: str) -> None:
        """Begin the turn that waits, here or on its own node."""
        self._lanes.wake()
        if self._cluster is not None:
            self._cluster.tell_ready(session_key)

    def overtaken(self, session_key: str, token: int) -> None:
        """Stop the turn that may not write any more, wherever it runs."""
        self._lanes.stop_overtaken(session_key, token)
        if self._cluster is not None and session_key not in self._lanes.running:
            self._cluster.call()

    def taken_out(self) -> None:
        """Send what people are owed about it."""
        for delivery in self._deliveries:
            delivery.wake()

    def end(self) -> None:
        """The gateway has ended: whoever works on the queue now may want to know everything."""
        self._wants_versions = True


class ClusterNews:
    """Passes what other nodes bring about on to the lanes, their running turns and the deliveries."""

    def __init__(
        self, lanes: LaneScheduler, remote_turns: RemoteTurns, deliveries: Collection[Delivery]
    ) -> None:
        self._lanes = lanes
        self._remote_turns = remote_turns
        self._deliveries = deliveries

    def look(self) -> None:
        """Look soon for turns, signals and replies that others have left."""
        self._lanes.wake()
        self._remote_turns.look()
        for delivery in self._deliveries:
            delivery.check_soon()

    def silence(self) -> None:
        """Stop all turns: other nodes may take them over."""
        for running in list(self._lanes.running.values()):
            running.stop(StopReason.OVERTAKEN)
