"""A node's membership in a cluster: its heartbeats, and when it must not act because none arrived.

Other nodes declare a node dead when they have not heard of it for longer than `ClusterRules.ttl`, and take
over its turns. So a node whose heartbeats fail falls silent before that time, stops its work, and joins
again as another node.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import anyio
from anyio.abc import TaskGroup

from gateway_sessions.core.cluster import ClusterRules, Node, is_leader, lost_epochs, trusted_until
from gateway_sessions.core.instants import ID_BITS, to_micros
from gateway_sessions.errors import StorageError, StoreStoppedError
from gateway_sessions.ports import Clock
from gateway_sessions.storage.engines.protocol import SharedDatabase
from gateway_sessions.storage.tables import nodes as transactions
from gateway_sessions.storage.tables.nodes import HeartbeatAnswer, JoinedNode, NodeToJoin

logger: Final = logging.getLogger(__name__)

RETRY_SECONDS: Final = 1.0
"""The pause after a failed heartbeat: short, so that several tries fit into the time of trust."""
SAMPLES: Final = 8
"""The number of newest readings of the server's clock that count. Over a longer time the two clocks drift
apart."""
MICROS: Final = 1_000_000
"""Microseconds in a second: the server's clock is read in microseconds, ours in seconds."""


class ServerClock:
    """Tells the least time that the server's clock can show, from readings of it and our own clock.

    An answer takes time to arrive, so each reading is a little late. The latest time that follows from
    several readings is the most exact one.
    """

    def __init__(self) -> None:
        self._readings: deque[float] = deque(maxlen=SAMPLES)

    def add_reading(self, micros: int, at: float) -> None:
        """Note that the answer with the server's time *micros* arrived *at* that instant of our clock."""
        self._readings.append(micros - at * MICROS)

    def least_micros(self, at: float) -> int:
        """Return the server's time at that instant, or a little less; 0 if no reading was taken."""
        return int(max(self._readings) + at * MICROS) if self._readings else 0


class Membership:
    """Keeps one node alive among the other nodes of the cluster."""

    def __init__(
        self,
        shared: SharedDatabase,
        rules: ClusterRules,
        *,
        name: str,
        clock: Clock | None = None,
        on_joined: Callable[[JoinedNode], object],
        on_silent: Callable[[], object],
    ) -> None:
        """Row ids follow the server's time, or a *clock* that a test turns.

        *on_joined* is called when this process has joined the cluster, as a new node; *on_silent* when this
        node must stop all its work.
        """
        self.rules = rules
        self.name = name
        self.version = ""
        """The version of the program, which `nodes` shows to operators."""
        self.epoch: int = 0
        self.nodes: tuple[Node, ...] = ()
        """All nodes that were not declared dead when this node last looked."""
        self.lost: set[int] = set()
        """Epochs of nodes that died, or may have died, until a duty of this node has taken over their
        turns."""
        self._on_joined = on_joined
        self._on_silent = on_silent
        self._shared = shared
        self._own_clock = clock
        self._clock = ServerClock()
        self._trust_ends = 0.0
        self._silent = False
        self._surveyed = anyio.Event()
        shared.trusted = lambda: self.trusted

    @property
    def trusted(self) -> bool:
        """Return True while no other node can have declared this node dead."""
        return not self._silent and _now() < self._trust_ends

    @property
    def leads(self) -> bool:
        """Return True if this node has the duties that only one node of the cluster may have."""
        return self.trusted and is_leader(self.epoch, self.nodes)

    async def wait_for_next_survey(self) -> None:
        """Wait until this node has read the list of nodes again, or became silent."""
        await self._surveyed.wait()

    async def join(self, secret: bytes) -> JoinedNode:
        """Join the cluster, in the place of a node of the same name if there is one."""
        return await self._join_cluster(secret, replaces=True)

    def start(self, tasks: TaskGroup, secret: bytes) -> None:
        """Begin to send heartbeats in the background, and to watch that they arrive in time."""
        tasks.start_soon(self._repeat_heartbeats, secret)
        tasks.start_soon(self._watch_trust)

    def earliest_id(self) -> int:
        """Return the least id that may be used now: ids of all nodes rise with the server's time."""
        return (self._own_clock_micros() or self._clock.least_micros(_now())) << ID_BITS

    async def send_heartbeat_or_rejoin(self, secret: bytes) -> bool:
        """Send one heartbeat, or join anew after silence; return False if the database did not answer."""
        try:
            if not self._silent:
                await self._send_heartbeat()
            if self._silent:
                await self._join_cluster(secret, replaces=False)
        except StoreStoppedError:
            raise
        except StorageError as error:
            facts = {"action": "heartbeat_failed", "problem": str(error)}
            logger.warning("this node could not say that it lives", extra=facts)
            return False
        return True

    def _own_clock_micros(self) -> int | None:
        return None if self._own_clock is None else to_micros(self._own_clock.now())

    async def _repeat_heartbeats(self, secret: bytes) -> None:
        pause = self.rules.heartbeat.total_seconds()
        while True:
            await asyncio.sleep(pause)
            try:
                well = await self.send_heartbeat_or_rejoin(secret)
            except StoreStoppedError:
                return
            pause = self.rules.heartbeat.total_seconds() if well else RETRY_SECONDS

    async def _watch_trust(self) -> None:
        """Fall silent when the time of trust ends without a heartbeat."""
        while True:
            await asyncio.sleep(max(self._trust_ends - _now(), 0) if not self._silent else RETRY_SECONDS)
            if not self._silent and _now() >= self._trust_ends:
                self._fall_silent("could not say in time that it lives")

    async def _send_heartbeat(self) -> None:
        at = _now()
        survey = await self._within_half_of_trust(
            lambda: self._shared.run_heartbeat(
                partial(transactions.record_heartbeat, self.epoch, self.rules.ttl)
            )
        )
        if not survey.alive:
            self._fall_silent("was declared dead")
        elif not self._silent:
            self._trust_ends = trusted_until(at, self.rules)
            self._note_nodes(survey.now, survey.nodes)

    async def _within_half_of_trust(self, ask: Callable[[], Awaitable[HeartbeatAnswer]]) -> HeartbeatAnswer:
        """Ask for at most half of the time of trust: another try may then still come in time."""
        try:
            async with asyncio.timeout(self.rules.trust.total_seconds() / 2):
                return await ask()
        except TimeoutError:
            raise StorageError("the database", "takes too long to answer") from None  # noqa: TRY003 -- two facts

    async def _join_cluster(self, secret: bytes, *, replaces: bool) -> JoinedNode:
        at = _now()
        who = NodeToJoin(
            name=self.name,
            version=self.version,
            ttl=self.rules.ttl,
            replaces=replaces,
            at=self._own_clock_micros(),
        )
        was = self.epoch or None
        self.lost |= {was} if was is not None else set()
        joined = await self._shared.run_before_joining(partial(transactions.join_node, secret, who, was))
        self.epoch, self._trust_ends, self._silent = (
            joined.opening.epoch,
            trusted_until(at, self.rules),
            False,
        )
        self._note_nodes(joined.now, joined.nodes)
        self._shared.act_as_node(
            joined.opening.epoch, joined.first_id, slot=joined.slot, earliest=self.earliest_id
        )
        self._on_joined(joined)
        if _now() - at > self.rules.heartbeat.total_seconds():
            # Joining has waited for locks for so long that the list of nodes may be too old to be trusted.
            await self._send_heartbeat()
        if was is not None:
            facts = {"action": "rejoined", "epoch": self.epoch, "was": was}
            logger.warning("this node is back, as another one", extra=facts)
        return joined

    def _note_nodes(self, micros: int, nodes: tuple[Node, ...]) -> None:
        self._clock.add_reading(micros, _now())
        self.lost |= lost_epochs(self.nodes, nodes) - {self.epoch}
        self.nodes = nodes
        self._wake_watchers()

    def _fall_silent(self, why: str) -> None:
        self._silent = True
        logger.error("this node stops what it does", extra={"action": "node_silent", "why": why})
        self._on_silent()
        self._wake_watchers()

    def _wake_watchers(self) -> None:
        self._surveyed.set()
        self._surveyed = anyio.Event()


def _now() -> float:
    return asyncio.get_running_loop().time()
