"""A node's membership in a cluster: its heartbeats, and when it must not act because none arrived.

Once nobody has heard of it for too long, whatever it was doing is over: it comes back as another node.
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

from gateway_sessions.core.cluster import ClusterRules, Node, leads, lost, trusted_until
from gateway_sessions.core.instants import ID_BITS, to_micros
from gateway_sessions.errors import StorageError, StoreStoppedError
from gateway_sessions.ports import Clock
from gateway_sessions.storage.engines.protocol import Shared
from gateway_sessions.storage.tables import nodes as transactions
from gateway_sessions.storage.tables.nodes import JoinedNode, Joining, Survey

logger = logging.getLogger(__name__)

RETRY_SECONDS: Final = 1.0
SAMPLES: Final = 8
"""How many of the last readings of the server's clock count: over a longer time, clocks drift apart."""
MICROS: Final = 1_000_000


class ServerClock:
    """What the server's clock says at least, going by ours since it was last read.

    An answer takes its time to come; so the latest of what several readings come to is the nearest.
    """

    def __init__(self) -> None:
        self._readings: deque[float] = deque(maxlen=SAMPLES)

    def read(self, micros: int, at: float) -> None:
        """It said that, and we heard it then."""
        self._readings.append(micros - at * MICROS)

    def micros(self, at: float) -> int:
        """What it says then, or a little less; 0 if it was never read."""
        return int(max(self._readings) + at * MICROS) if self._readings else 0


class Membership:
    """Keeps one node alive among the others."""

    def __init__(self, shared: Shared, rules: ClusterRules, *, name: str, clock: Clock | None = None) -> None:
        """Ids go by the server's time, or by that of a *clock* that somebody turns."""
        self.rules = rules
        self.name = name
        self.version = ""
        """Of the program, for whoever looks."""
        self.epoch = 0
        self.nodes: tuple[Node, ...] = ()
        """All that were not declared dead, when this one last looked."""
        self.lost: set[int] = set()
        """Nodes that died, or may have, as long as nobody here has seen to what they left behind."""
        self.on_joined: Callable[[JoinedNode], object] = _nobody
        """Told when this is another node from now on."""
        self.on_silent: Callable[[], object] = _nobody
        """Told when nothing that this node was doing may go on."""
        self._shared = shared
        self._own_clock = clock
        self._clock = ServerClock()
        self._until = 0.0
        self._silent = False
        self._looked = anyio.Event()
        shared.trusted = lambda: self.trusted

    @property
    def trusted(self) -> bool:
        """Whether this node may be sure that nobody has declared it dead."""
        return not self._silent and _now() < self._until

    @property
    def leads(self) -> bool:
        """Whether it has the duties that only one node may have."""
        return self.trusted and leads(self.epoch, self.nodes)

    async def looked(self) -> None:
        """Wait until this node has looked at the others again, or became silent."""
        await self._looked.wait()

    async def join(self, secret: bytes) -> JoinedNode:
        """Be a node from now on, in the place of one that had the same name."""
        return await self._join(secret, replaces=True)

    def start(self, tasks: TaskGroup, secret: bytes) -> None:
        """Say again and again that it lives."""
        tasks.start_soon(self._keep, secret)
        tasks.start_soon(self._watch)

    def earliest_id(self) -> int:
        """No id is smaller from now on: so they rise with the server's time, whichever node makes them."""
        return (self._own_time() or self._clock.micros(_now())) << ID_BITS

    async def beat(self, secret: bytes) -> bool:
        """Say once that this node lives, or join anew if it is too late for that; whether it went well."""
        try:
            if not self._silent:
                await self._say()
            if self._silent:
                await self._join(secret, replaces=False)
        except StoreStoppedError:
            raise
        except StorageError as error:
            facts = {"action": "heartbeat_failed", "problem": str(error)}
            logger.warning("this node could not say that it lives", extra=facts)
            return False
        return True

    def _own_time(self) -> int | None:
        return None if self._own_clock is None else to_micros(self._own_clock.now())

    async def _keep(self, secret: bytes) -> None:
        pause = self.rules.heartbeat.total_seconds()
        while True:
            await asyncio.sleep(pause)
            try:
                well = await self.beat(secret)
            except StoreStoppedError:
                return
            pause = self.rules.heartbeat.total_seconds() if well else RETRY_SECONDS

    async def _watch(self) -> None:
        """Notice in time that nothing was heard."""
        while True:
            await asyncio.sleep(max(self._until - _now(), 0) if not self._silent else RETRY_SECONDS)
            if not self._silent and _now() >= self._until:
                self._fall_silent("could not say in time that it lives")

    async def _say(self) -> None:
        at = _now()
        survey = await self._in_time(
            lambda: self._shared.aside(partial(transactions.keep, self.epoch, self.rules.ttl))
        )
        if not survey.alive:
            self._fall_silent("was declared dead")
        elif not self._silent:
            self._until = trusted_until(at, self.rules)
            self._learn(survey.now, survey.nodes)

    async def _in_time(self, ask: Callable[[], Awaitable[Survey]]) -> Survey:
        """After that another try may still come in time."""
        try:
            async with asyncio.timeout(self.rules.trust.total_seconds() / 2):
                return await ask()
        except TimeoutError:
            raise StorageError("the database", "takes too long to answer") from None  # noqa: TRY003 -- two facts

    async def _join(self, secret: bytes, *, replaces: bool) -> JoinedNode:
        at = _now()
        who = Joining(
            name=self.name,
            version=self.version,
            ttl=self.rules.ttl,
            replaces=replaces,
            at=self._own_time(),
        )
        was = self.epoch or None
        self.lost |= {was} if was is not None else set()
        joined = await self._shared.enter(partial(transactions.join, secret, who, was))
        self.epoch, self._until, self._silent = joined.opening.epoch, trusted_until(at, self.rules), False
        self._learn(joined.now, joined.nodes)
        self._shared.be(joined.opening.epoch, joined.first_id, slot=joined.slot, earliest=self.earliest_id)
        self.on_joined(joined)
        if _now() - at > self.rules.heartbeat.total_seconds():
            await self._say()  # it waited for others so long that nobody was to trust what it was told
        if was is not None:
            facts = {"action": "rejoined", "epoch": self.epoch, "was": was}
            logger.warning("this node is back, as another one", extra=facts)
        return joined

    def _learn(self, micros: int, nodes: tuple[Node, ...]) -> None:
        self._clock.read(micros, _now())
        self.lost |= lost(self.nodes, nodes) - {self.epoch}
        self.nodes = nodes
        self._tell()

    def _fall_silent(self, why: str) -> None:
        self._silent = True
        logger.error("this node stops what it does", extra={"action": "node_silent", "why": why})
        self.on_silent()
        self._tell()

    def _tell(self) -> None:
        self._looked.set()
        self._looked = anyio.Event()


def _now() -> float:
    return asyncio.get_running_loop().time()


def _nobody(*_: object) -> None:
    """Nobody wants to know."""
