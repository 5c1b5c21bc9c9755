"""Rules for several nodes on one database: who is alive, who leads, and which node serves a lane.

A *node* is one opening of the store. It tells the database that it lives, again and again. Who has said
nothing for too long is declared dead by the others, and its turns become theirs. Nobody can tell a dead node
from one that merely cannot be heard; so a node that was not heard stops of its own accord, before that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from hashlib import blake2b, sha256
from typing import Final

from gateway_sessions.core.checks import Finding, check_section, time

SHARDS: Final = 1024
"""Lanes are dealt out in so many parts: few enough to be cheap, many enough to be even."""
SLOTS: Final = 2048
"""So many nodes can live at once: each has a number of its own, which all ids that it makes end with."""
LONGEST_NAME: Final = 200
POOL_SIZE: Final = 8
"""Connections for the work of one process, if nobody says another number; one more says that it lives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRules:
    """How the nodes of one database get along."""

    name: str | None = None
    """What this process is called among those that have a database on a server open; None: after its machine
    and its directory."""
    heartbeat: timedelta = timedelta(seconds=5)
    """The time between two times that a process says that it lives."""
    ttl: timedelta = timedelta(seconds=20)
    """After so much silence a process is dead: the others take over its turns. It stops them itself after
    three quarters of that. At least three times the heartbeat."""
    sticky: timedelta = timedelta(milliseconds=500)
    """How long a turn waits for the process that its lane belongs to, before any other takes it."""
    poll: timedelta = timedelta(seconds=1)
    """The time between two looks for what others have left to do."""
    poll_only: bool = False
    """Processes wake each other by nothing but that: for poolers, which do not pass calls on. On MySQL they
    never do otherwise."""

    def __post_init__(self) -> None:
        often = self.heartbeat * 3 <= self.ttl
        check_section(
            "cluster",
            _named(self.name),
            time("heartbeat_seconds", self.heartbeat),
            time("ttl_seconds", self.ttl)
            or (None if often else ("ttl_seconds", "must be three times heartbeat_seconds, or more")),
            time("sticky_ms", self.sticky, zero=True),
            time("poll_ms", self.poll),
        )

    @property
    def trust(self) -> timedelta:
        """For so long after it was heard, a node may be sure that nobody has declared it dead."""
        return self.ttl * 3 / 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One opening of the store that has not been declared dead."""

    epoch: int
    slot: int
    name: str
    version: str
    first_id: int
    """Whatever it makes has this id or a larger one."""
    silent: bool
    """Whether it has said nothing for too long."""


def trusted_until(sent_at: float, rules: ClusterRules) -> float:
    """How long a node may go on that said at that moment, by its own clock, that it lives."""
    return sent_at + rules.trust.total_seconds()


def leads(epoch: int, nodes: Collection[Node]) -> bool:
    """Whether a node has the duties that only one may have: the oldest of those not declared dead does.

    Later ones have larger numbers; so whoever has seen itself to be the oldest stays it until its end.
    """
    return bool(nodes) and epoch == min(one.epoch for one in nodes)


def takes_over_first(epoch: int, nodes: Collection[Node]) -> bool:
    """Whether a node is the one to see to the turns of dead ones; the others look later whether it did."""
    return leads(epoch, [one for one in nodes if not one.silent])


def lost(before: Iterable[Node], now: Collection[Node]) -> frozenset[int]:
    """The nodes whose work somebody has to take over: silent ones, and those that are gone since."""
    there = {one.epoch for one in now}
    silent = {one.epoch for one in now if one.silent}
    return frozenset(silent | {one.epoch for one in before if one.epoch not in there})


def free_slot(taken: Collection[int]) -> int | None:
    """A number that no other node has; None if there are too many of them."""
    return next((one for one in range(SLOTS) if one not in taken), None)


def made_by(row_id: int, nodes: Iterable[Node]) -> Node | None:
    """The living node that has made a row, which its id tells; None if it is gone."""
    slot = row_id % SLOTS
    return next((one for one in nodes if one.slot == slot and one.first_id <= row_id), None)


def shard_of(session_key: str) -> int:
    """The part of all lanes that a lane is in, for ever."""
    digest = sha256(session_key.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:2]) % SHARDS


@lru_cache(maxsize=8 * SHARDS)
def node_of(shard: int, names: frozenset[str]) -> str:
    """The node that a part belongs to: when one comes or goes, only the parts that it gets or had move."""
    return max(names, key=lambda name: (_weight(shard, name), name))


def _weight(shard: int, name: str) -> bytes:
    return blake2b(f"{shard} {name}".encode("utf-8", "surrogatepass"), digest_size=8).digest()


def _named(name: str | None) -> Finding:
    if name is None or (0 < len(name) <= LONGEST_NAME and name.isprintable() and name.strip() == name):
        return None
    return "name", f"must be a word or a few, of {LONGEST_NAME} characters at most"
