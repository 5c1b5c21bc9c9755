"""`Ownership`: this process as the owner of a store, or as one node of it, with its epoch and its ids."""

from __future__ import annotations

import itertools
import os
import socket
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from anyio.abc import TaskGroup

from gateway_sessions._process.clock import SystemClock
from gateway_sessions._process.installed_packages import program_version
from gateway_sessions.core.cluster import LONGEST_NAME, ClusterRules
from gateway_sessions.core.instants import first_change_id
from gateway_sessions.ports import Clock, Transaction
from gateway_sessions.storage.engines.membership import Membership
from gateway_sessions.storage.engines.opening_retry import OpeningRetry
from gateway_sessions.storage.engines.protocol import Engine, SharedDatabase
from gateway_sessions.storage.files.threads import in_thread
from gateway_sessions.storage.listener import DatabaseListener
from gateway_sessions.storage.tables import meta, nodes
from gateway_sessions.storage.tables.nodes import JoinedNode, LivingOpenings

SECRET_BYTES: Final = 32
"""The size of the store's secret: no one can guess it, and so no pseudonym either."""
EPOCH_BITS: Final = 32
"""The number of bits below the epoch in an entry's id: room for the entries of one owner."""


class Ownership:
    """Begins an epoch of the store, as its only owner or as one node among others; gives out ids in it."""

    def __init__(
        self,
        engine: Engine,
        clock: Clock,
        cluster: ClusterRules,
        *,
        wait: float,
        listener: DatabaseListener,
        on_joined: Callable[[meta.StoreOpening], object],
    ) -> None:
        """*on_joined* is called when this process has joined the other nodes, also again after silence."""
        self._engine = engine
        self._clock = clock
        self._on_joined = on_joined
        self._secret = os.urandom(SECRET_BYTES)
        self._first_id = 0
        self.opening: meta.StoreOpening = meta.StoreOpening(
            0, last_change_id=0, install_secret=b"", generation=0, settled=False
        )
        self.epoch: int = 0
        """The number of this opening of the store."""
        self.shared: SharedDatabase | None = engine.shared
        """The database as several nodes share it; None where only one process can open it."""
        self.change_ids: Iterator[int] = itertools.count()
        """Rising ids for rows. Writing transactions take them, so that they rise in the order of commits."""
        self.entry_ids: Iterator[int] = itertools.count()
        self.retry: OpeningRetry = OpeningRetry(
            wait, None if engine.shared is None else self._describe_blockers
        )
        """Repeats what a server refuses while the store is being opened."""
        self.membership: Membership | None = self._membership_in(cluster, listener)
        """This process as one node of several that have the store open; None where only one process can."""

    async def begin_epoch(self) -> None:
        """Begin an epoch: as the only owner, or as one node among others."""
        if self.membership is not None and self.shared is not None:
            self.membership.version = await in_thread(program_version)
            self.change_ids = self.shared.ids
            await self.retry.run_with_retries(partial(self.membership.join, self._secret))
            return
        opening = await self._engine.write(partial(meta.open_store, self._secret))
        self._first_id = first_change_id(self._clock.now(), opening.last_change_id)
        self.change_ids = self._engine.begin_epoch(opening.epoch, self._first_id)
        self._use_opening(opening)

    def start(self, tasks: TaskGroup) -> None:
        """Begin to send heartbeats, where other nodes may have the store open."""
        if self.membership is not None:
            self.membership.start(tasks, self._secret)

    def living_nodes(self) -> Transaction[LivingOpenings]:
        """Return the living nodes, for a node that takes over from dead ones. The transaction runs alone."""
        if self.membership is not None:
            return nodes.bury_silent_nodes()
        return nodes.sole_opening(self.epoch, self._first_id)

    def leave_cluster(self) -> Transaction[None]:
        """Tell the other nodes that this one has ended."""
        if self.membership is not None:
            yield from nodes.remove_node(self.epoch)

    def _membership_in(self, cluster: ClusterRules, listener: DatabaseListener) -> Membership | None:
        if self.shared is None:
            return None
        self.shared.on_call = listener.hear_call
        return Membership(
            self.shared,
            cluster,
            name=cluster.name or f"{socket.gethostname()}:{self._engine.path.parent}"[-LONGEST_NAME:],
            clock=None if isinstance(self._clock, SystemClock) else self._clock,
            on_joined=self._use_joined_node,
            on_silent=listener.hear_silence,
        )

    def _use_joined_node(self, joined: JoinedNode) -> None:
        self._use_opening(joined.opening)
        self._on_joined(joined.opening)

    def _use_opening(self, opening: meta.StoreOpening) -> None:
        self.opening = opening
        self.epoch = opening.epoch
        self.entry_ids = itertools.count(opening.epoch << EPOCH_BITS)

    async def _describe_blockers(self) -> str:
        """Return the processes that keep a store from being opened, in words."""
        if self.shared is None:
            return ""
        known = await self._engine.read(nodes.all_nodes)
        silent = ", ".join(one.name for one in known if one.silent)
        found = [await self.shared.describe_blockers(), f"silent nodes: {silent}" if silent else ""]
        return "; ".join(filter(None, found))
