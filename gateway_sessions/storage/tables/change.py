"""`Change`: the time, actor, row ids and policies that every change of a lane carries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TypeVar

import msgspec

from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.core.sessions.policy_rules import PolicyBook
from gateway_sessions.core.sessions.state_machine import due_instant, policy_for

T = TypeVar("T")


class Actor(StrEnum):
    """The originator of a change, for the transition log."""

    PERSON = "person"
    AGENT = "agent"
    POLICY = "policy"
    WATCHER = "watcher"
    RECOVERY = "recovery"
    OPERATOR = "operator"
    IMPORT = "import"


class LaneEvent(StrEnum):
    """An event of a lane itself and not of its session's state, for the transition log."""

    CREATED = "created"
    IMPORTED = "imported"
    PRUNED = "pruned"
    COMPRESSED = "compressed"
    ASSIGNED = "assigned"


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """The facts that a change of a lane needs, so that its transaction reads no clock and makes no ids."""

    now: datetime
    ids: Iterator[int]
    """Rising ids for the rows of the transition log, made by the program and not by the database."""
    entry_ids: Iterator[int]
    """Ids for new entries; none of them was ever used before."""
    actor: Actor
    policies: PolicyBook
    freshness: timedelta | None
    epoch: int = 0
    """The opening of the store that makes the change."""
    id_above: Callable[[int], int] | None = None
    """Makes an id above a given one, where other nodes make ids as well; None: all their ids are smaller."""
    hooks: tuple[str, ...] = ()
    """The names of the hooks to call for each session that this change ends."""

    def with_due_instant(self, entry: SessionEntry) -> SessionEntry:
        """Return the entry with the instant at which its policy has to be looked at again."""
        policy = policy_for(entry, self.policies)
        due_at = due_instant(entry, policy, self.freshness)
        return entry.altered(due_at=due_at, policy_fingerprint=policy.fingerprint)
