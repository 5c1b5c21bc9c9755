"""Rules for several nodes on one database: who is alive, who leads, and which node serves a lane.

A *node* is one opening of the store. It reports to the database again and again that it lives. The other
nodes declare a node dead that has been silent for too long, and take over its turns. They cannot tell a dead
node from one whose reports do not arrive; so a node whose reports fail stops by itself before that time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from hashlib import blake2b, sha256
from typing import Final

from gateway_sessions.core.checks import KeyProblem, check_section, duration_problem

SHARDS: Final = 1024
"""The parts into which lanes are divided: few enough to be cheap, many enough to be even."""
SLOTS: Final = 2048
"""The nodes that can live at once: each has a number of its own, with which all its ids end."""
# Room for a machine's name and a directory.
LONGEST_NAME: Final = 200
POOL_SIZE: Final = 8
"""The default number of connections for the work of one process; one more reports that it lives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRules:
    """The rules by which the nodes of one database cooperate."""

    name: str | None = None
    """The name of this process among those that have a database on a server open; None: made of its machine
    and its directory."""
    heartbeat: timedelta = timedelta(seconds=5)
    """The time between two reports of a process that it lives."""
    ttl: timedelta = timedelta(seconds=20)
    """The silence after which a process is dead: the others take over its turns. The process stops its turns
    itself after three quarters of that time. At least three times the heartbeat."""
    sticky: timedelta = timedelta(milliseconds=500)
    """The time that a turn waits for the process to which its lane belongs, before any other process takes
    it."""
    poll: timedelta = timedelta(seconds=1)
    """The time between two searches for work that other processes have left."""
    poll_only: bool = False
    """Whether processes find each other's work by polling only: for poolers, which do not pass notifications
    on. On MySQL processes always do."""

    def __post_init__(self) -> None:
        often = self.heartbeat * 3 <= self.ttl
        check_section(
            "cluster",
            _name_problem(self.name),
            duration_problem("heartbeat_seconds", self.heartbeat),
            duration_problem("ttl_seconds", self.ttl)
            or (None if often else ("ttl_seconds", "must be three times heartbeat_seconds, or more")),
            duration_problem("sticky_ms", self.sticky, zero=True),
            duration_problem("poll_ms", self.poll),
        )

    @property
    def trust(self) -> timedelta:
        """The time after a report for which a node may rely on not being declared dead."""
        return self.ttl * 3 / 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One opening of the store that has not been declared dead."""

    epoch: int
    slot: int
    name: str
    version: str
    first_id: int
    """The least id of rows that the node makes."""
    silent: bool
    """Whether the node has been silent for longer than `ttl`."""


def trusted_until(sent_at: float, rules: ClusterRules) -> float:
    """Return until when a node may go on that reported at *sent_at*, both on its own clock, in seconds."""
    return sent_at + rules.trust.total_seconds()


def is_leader(epoch: int, nodes: Collection[Node]) -> bool:
    """Return whether a node has the duties that only one node may have: the oldest living node has them.

    Later nodes have larger epochs, so a node that has found itself to be the oldest stays it until its end.
    """
    return bool(nodes) and epoch == min(one.epoch for one in nodes)


def takes_over_first(epoch: int, nodes: Collection[Node]) -> bool:
    """Return whether a node takes over the turns of dead nodes first; the other nodes check later."""
    return is_leader(epoch, [one for one in nodes if not one.silent])


def lost_epochs(before: Iterable[Node], now: Collection[Node]) -> frozenset[int]:
    """Return the epochs of nodes whose work must be taken over: silent ones, and ones gone since."""
    there = {one.epoch for one in now}
    silent = {one.epoch for one in now if one.silent}
    return frozenset(silent | {one.epoch for one in before if one.epoch not in there})


def free_slot(taken: Collection[int]) -> int | None:
    """Return a number that no living node has; None if all are taken."""
    return next((one for one in range(SLOTS) if one not in taken), None)


def node_that_made(row_id: int, nodes: Iterable[Node]) -> Node | None:
    """Return the living node that made a row, as the row's id tells; None if the node is gone."""
    slot = row_id % SLOTS
    return next((one for one in nodes if one.slot == slot and one.first_id <= row_id), None)


def shard_of(session_key: str) -> int:
    """Return the part of all lanes to which a lane belongs for ever."""
    digest = sha256(session_key.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:2]) % SHARDS


@lru_cache(maxsize=8 * SHARDS)
def node_of(shard: int, names: frozenset[str]) -> str:
    """Return the node that serves a part; when a node comes or goes, only the parts of that node move."""
    return max(names, key=lambda name: (_rendezvous_weight(shard, name), name))


def _rendezvous_weight(shard: int, name: str) -> bytes:
    return blake2b(f"{shard} {name}".encode("utf-8", "surrogatepass"), digest_size=8).digest()


def _name_problem(name: str | None) -> KeyProblem:
    if name is None or (0 < len(name) <= LONGEST_NAME and name.isprintable() and name.strip() == name):
        return None
    return "name", f"must be a word or a few, of {LONGEST_NAME} characters at most"
