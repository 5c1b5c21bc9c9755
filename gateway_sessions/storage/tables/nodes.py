"""The rows of the nodes that have the store open: heartbeats, death, and requests between nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, NamedTuple, TypeAlias

import msgspec

from gateway_sessions.core.cluster import Node, free_slot, node_that_made
from gateway_sessions.core.instants import ID_BITS, RESOLUTION
from gateway_sessions.errors import StorageUnavailableError
from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.storage.tables import meta
from gateway_sessions.storage.tables.sql_files import row_of
from gateway_sessions.storage.tables.statements import signals_lock

SIGNALS_PAGE: Final = 200
"""The number of signals read at a time; the next read gets the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeToJoin:
    """The facts that a node states about itself when it opens the store."""

    name: str
    version: str
    ttl: timedelta
    replaces: bool
    """True if a node of the same name must be gone by now, because this node takes its place."""
    at: int | None = None
    """The instant that the node's ids begin at, in microseconds; None: the time of the database."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedNode:
    """An opening of the store as one node among others."""

    opening: meta.StoreOpening
    slot: int
    first_id: int
    now: int
    """The time of the database, in microseconds."""
    nodes: tuple[Node, ...]


row_of("all_nodes")(Node)


@dataclass(frozen=True, slots=True)
class HeartbeatAnswer:
    """The answer to a node's heartbeat."""

    alive: bool
    """False if the node was declared dead: it must not go on under its epoch."""
    now: int
    """The time of the database, in microseconds."""
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LivingOpenings:
    """The openings that are alive, for a node that takes over the work of dead ones."""

    epochs: tuple[int, ...]
    has_made: Callable[[int], bool]
    """Tells by its id whether a row was made by one of these openings."""

    @property
    def epochs_as_json(self) -> str:
        """Return the epochs of the openings, as queries take them."""
        return msgspec.json.encode(self.epochs).decode()


LivingQuery: TypeAlias = Callable[[], Transaction[LivingOpenings]]


def join_node(secret: bytes, who: NodeToJoin, was: int | None = None) -> Transaction[JoinedNode]:
    """Open the store as one node among others. *was* is the node's earlier opening, which ends."""
    opening = yield from meta.open_store(secret)
    if was is not None:
        yield Statement("forget_node", (was,))
    if who.replaces:
        yield Statement("forget_nodes_named", (who.name,))
    slot = free_slot({one.slot for one in (yield from all_nodes())})
    if slot is None:
        what, problem = "the store", "is open in more processes than can be told apart"
        raise StorageUnavailableError(what, problem)
    ((now,),) = yield Statement("server_time")
    first_id = max(opening.last_change_id + 1, (now if who.at is None else who.at) << ID_BITS)
    itself = (opening.epoch, slot, who.name, who.version, first_id, who.ttl // RESOLUTION)
    yield Statement("add_node", itself)
    nodes = yield from all_nodes()
    return JoinedNode(opening=opening, slot=slot, first_id=first_id, now=now, nodes=nodes)


def record_heartbeat(epoch: int, ttl: timedelta) -> Transaction[HeartbeatAnswer]:
    """Record a heartbeat of a node, and return the other nodes."""
    ((kept,),) = yield Statement("keep_node", (ttl // RESOLUTION, epoch))
    ((now,),) = yield Statement("server_time")
    return HeartbeatAnswer(alive=bool(kept), now=now, nodes=(yield from all_nodes()))


def remove_node(epoch: int) -> Transaction[None]:
    """Remove a node that ends in order, so that no other node waits until its heartbeat is overdue."""
    yield Statement("forget_node", (epoch,))


def all_nodes() -> Transaction[tuple[Node, ...]]:
    """Return all nodes that have not been declared dead, the oldest first."""
    rows = yield Statement("all_nodes")
    return tuple(
        Node(
            epoch=epoch,
            slot=slot,
            name=name,
            version=version,
            first_id=first_id,
            silent=bool(silent),
        )
        for epoch, slot, name, version, first_id, silent in rows
    )


def bury_silent_nodes() -> Transaction[LivingOpenings]:
    """Declare nodes dead whose heartbeat is overdue, and return the others.

    The transaction runs alone: no node can join between the declaration and the list.
    """
    yield Statement("bury_nodes")
    yield Statement("forget_lost_mail")
    nodes = yield from all_nodes()
    return LivingOpenings(
        epochs=tuple(one.epoch for one in nodes),
        has_made=lambda row_id: node_that_made(row_id, nodes) is not None,
    )


def sole_opening(epoch: int, first_id: int) -> Transaction[LivingOpenings]:
    """Return the one opening of a store with one owner at a time; its first row has that id."""
    yield from ()
    return LivingOpenings(epochs=(epoch,), has_made=lambda row_id: row_id >= first_id)


# Signals to turns on other nodes


@row_of("signals_for")
class StoredSignal(NamedTuple):
    """A signal as it is stored."""

    signal_id: int
    session_key: str
    token: int
    kind: str
    body: str | None


class SignalRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A request of one node to another about the turn that runs there."""

    session_key: str
    token: int
    """The token of the turn that is meant."""
    kind: str
    body: str | None = None


@dataclass(frozen=True, slots=True)
class SignalsAndLeases:
    """The signals that wait for a node, and the leases that it still holds."""

    signals: tuple[SignalRow, ...]
    signal_ids: tuple[int, ...]
    leases: frozenset[tuple[str, int]]


def add_signal(epoch: int, signals: SignalRow, signal_id: int) -> Transaction[None]:
    """Leave a signal for another node."""
    what = (signal_id, epoch, signals.session_key, signals.token, signals.kind, signals.body)
    yield Statement("add_signal", what, lock=signals_lock(epoch))


def signals_and_leases(epoch: int) -> Transaction[SignalsAndLeases]:
    """Return the signals that other nodes left for a node, and the leases that it still holds."""
    leases = yield Statement("leases_of", (epoch,))
    rows = yield Statement("signals_for", (epoch, SIGNALS_PAGE))
    stored = [StoredSignal._make(row) for row in rows]
    signals = tuple(
        SignalRow(session_key=one.session_key, token=one.token, kind=one.kind, body=one.body)
        for one in stored
    )
    return SignalsAndLeases(
        signals, tuple(one.signal_id for one in stored), frozenset((key, token) for key, token in leases)
    )


def remove_signals(epoch: int, signal_ids: Sequence[int]) -> Transaction[None]:
    """Remove signals that were read."""
    yield Statement(
        "forget_signals", (msgspec.json.encode(list(signal_ids)).decode(),), lock=signals_lock(epoch)
    )
