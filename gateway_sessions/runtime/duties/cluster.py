"""A node at work in a cluster: it takes over lanes of dead nodes, leads, and is notified by others."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from datetime import timedelta
from random import SystemRandom
from typing import Any, Final, TypeAlias

import anyio
from anyio.abc import TaskGroup

from gateway_sessions.core.cluster import Node, node_of, shard_of, takes_over_first
from gateway_sessions.runtime.duties.restart_recovery import RestartRecords
from gateway_sessions.runtime.duty import failure_reporter, repeat_sweep
from gateway_sessions.runtime.queue.listener import QueueListener
from gateway_sessions.runtime.queue.queue_operations import QueueOperations
from gateway_sessions.storage.engines.membership import Membership
from gateway_sessions.storage.engines.protocol import SharedDatabase

logger: Final = logging.getLogger(__name__)

COALESCED_SECONDS: Final = 0.05
"""The least time between two calls of other nodes, and between two sweeps because of calls."""
_ANY: Final = SystemRandom()

Duty: TypeAlias = Callable[[], Coroutine[Any, Any, None]]


class NodeLanes:
    """Knows to which node of a store each lane belongs."""

    def __init__(self, membership: Membership, sticky: timedelta) -> None:
        self.membership = membership
        self.sticky = sticky
        """The time for which the turns of a lane are left to its own node."""

    def other_nodes(self) -> list[Node]:
        """Return the other nodes, without silent ones."""
        own = self.membership.epoch
        return [one for one in self.membership.nodes if one.epoch != own and not one.silent]

    def node_of_lane(self, session_key: str) -> str:
        """Return the name of the node to which a lane belongs."""
        names = frozenset((self.membership.name, *(one.name for one in self.other_nodes())))
        return node_of(shard_of(session_key), names)

    def is_mine(self, session_key: str) -> bool:
        """Return whether a lane belongs to this node."""
        return self.node_of_lane(session_key) == self.membership.name


class Cluster:
    """The own node, among all that have the same store open."""

    def __init__(
        self,
        lanes: NodeLanes,
        shared: SharedDatabase,
        restart: RestartRecords,
        queue: QueueOperations,
        *,
        on_look: Callable[[], object],
        on_lead: Callable[[], object],
    ) -> None:
        """*on_look* is called whenever other nodes may have left work to this one.

        *on_lead* is called now and then while this node leads others, because they may have changed entries.
        """
        self.membership: Membership = lanes.membership
        self._lanes = lanes
        self._shared = shared
        self._restart = restart
        self._queue = queue
        self._called = asyncio.Event()
        self._to_call: set[int] | None = set()
        """The epochs of the nodes to call; None: all nodes."""
        self._calling = asyncio.Event()
        self._on_look = on_look
        self._on_lead = on_lead
        self._listeners: list[QueueListener] = []
        """The listeners of this node's gateways."""

    def start_duties(self, tasks: TaskGroup) -> None:
        """Begin the duties of a node."""
        for duty in (
            self._look_now_and_then,
            self._send_calls,
            self._watch_for_dead_nodes,
            self._count_waiting,
        ):
            tasks.start_soon(duty)

    def attach_listener(self, listener: QueueListener) -> None:
        """Tell a gateway of the other nodes from now on."""
        self._listeners.append(listener)

    # Whose a lane is

    @property
    def is_trusted(self) -> bool:
        """Whether turns may begin and go on here, as no other node can have taken them over."""
        return self.membership.trusted

    def is_mine(self, session_key: str) -> bool:
        """Return whether the turns of a lane begin here unless this node is busy."""
        return self._lanes.is_mine(session_key)

    def should_begin_here(self, session_key: str) -> bool:
        """Return whether a turn should begin here, where its message came in, and not on its lane's node."""
        return not self._shared.notifies_at_once or self.is_mine(session_key)

    def call_node_of_lane(self, session_key: str) -> None:
        """Let the lane's own node look, because a turn waits there."""
        owner = self._lanes.node_of_lane(session_key)
        if epochs := [one.epoch for one in self._lanes.other_nodes() if one.name == owner]:
            self.call_nodes(*epochs)

    # Calling

    def call_nodes(self, *epochs: int) -> None:
        """Let these nodes look soon, all if none is named; one that misses the call looks a little later."""
        if self._to_call is not None:
            self._to_call = self._to_call | set(epochs) if epochs else None
        self._calling.set()

    # Leading

    def only_while_leading(self, duty: Duty) -> Duty:
        """Return the duty as one that runs only while this node leads."""

        async def while_leading() -> None:
            while True:
                while not self.membership.leads:
                    await self.membership.wait_for_next_survey()
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(duty)
                    while self.membership.leads:
                        await self.membership.wait_for_next_survey()
                    tasks.cancel_scope.cancel()

        return while_leading

    # Hearing

    def silence(self) -> None:
        """Stop all that runs here."""
        for listener in self._listeners:
            listener.stop_all_turns()

    def hear_call(self, epochs: frozenset[int]) -> None:
        """Look soon, if another node calls this one or all."""
        if not epochs or self.membership.epoch in epochs:
            self._called.set()

    # Inside

    async def _look_now_and_then(self) -> None:
        """Let the duties of this node look now and then, and soon when another node calls."""
        await self._wait_for_call(None)
        await repeat_sweep(self._look_once, self._wait_for_call)

    async def _wait_for_call(self, _: None) -> None:
        poll = self.membership.rules.poll.total_seconds()
        with anyio.move_on_after(poll * (0.75 + 0.5 * _ANY.random())):  # so nodes do not look all at once
            await self._called.wait()
        self._called.clear()

    async def _look_once(self) -> None:
        self._on_look()
        for listener in self._listeners:
            listener.look_for_work()
        await asyncio.sleep(COALESCED_SECONDS)

    async def _send_calls(self) -> None:
        failed = failure_reporter(logger, "nobody could be called", {"action": "call_failed"}, logging.DEBUG)
        await self._calling.wait()
        await repeat_sweep(self._send_calls_once, self._wait_to_call, failed=failed)

    async def _wait_to_call(self, _: None) -> None:
        await asyncio.sleep(COALESCED_SECONDS)
        await self._calling.wait()

    async def _send_calls_once(self) -> None:
        self._calling.clear()
        epochs, self._to_call = self._to_call, set()
        if self._lanes.other_nodes() and epochs != set():
            await self._shared.notify_nodes(frozenset(epochs or ()))

    async def _count_waiting(self) -> None:
        """Count the waiting turns, which other nodes change as well."""
        failed = failure_reporter(
            logger, "what waits could not be counted", {"action": "count_failed"}, logging.DEBUG
        )
        await self._wait_for_survey(None)
        await repeat_sweep(self._count_once, self._wait_for_survey, failed=failed)

    async def _count_once(self) -> None:
        if self._lanes.other_nodes():
            await self._queue.refresh_counts()
            if self.membership.leads:
                self._on_lead()

    async def _wait_for_survey(self, _: None) -> None:
        await self.membership.wait_for_next_survey()

    async def _watch_for_dead_nodes(self) -> None:
        """Take over from nodes that are silent or gone: the oldest node at once, the others later if need be.

        Now and then the oldest node looks for lanes that were left behind, even if no node is missing.
        """
        loop = asyncio.get_running_loop()
        took_over_at = loop.time()

        async def sweep() -> None:
            nonlocal took_over_at
            dead = set(self.membership.lost)
            late = loop.time() - took_over_at > 2 * self.membership.rules.ttl.total_seconds()
            if self.is_trusted and (dead or (late and self.membership.leads)):
                await self._take_over_dead_nodes()
                self.membership.lost -= dead
                took_over_at = loop.time()

        await self._wait_for_survey(None)
        failed = failure_reporter(logger, "nothing could be taken over", {"action": "takeover_failed"})
        await repeat_sweep(sweep, self._wait_for_survey, failed=failed)

    async def _take_over_dead_nodes(self) -> None:
        if not takes_over_first(self.membership.epoch, self.membership.nodes):
            await asyncio.sleep(self.membership.rules.heartbeat.total_seconds())
        report = await self._restart.take_over()
        if report:
            self._called.set()
