"""`Change`: what every change of a lane carries, such as its time, actor, row ids and policies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.core.sessions.policy_rules import PolicyBook, ResolvedPolicy
from gateway_sessions.core.sessions.state_machine import due_instant, policy_for


class Actor(StrEnum):
    """Who made a change, for the transition log."""

    PERSON = "person"
    AGENT = "agent"
    POLICY = "policy"
    WATCHER = "watcher"
    RECOVERY = "recovery"
    OPERATOR = "operator"
    IMPORT = "import"


class LaneEvent(StrEnum):
    """What happens to a lane rather than to the state of its session, for the transition log."""

    CREATED = "created"
    IMPORTED = "imported"
    PRUNED = "pruned"
    COMPRESSED = "compressed"
    ASSIGNED = "assigned"


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What every change brings along, so that a transaction need not ask the world."""

    now: datetime
    ids: Iterator[int]
    """Rising ids for the rows of the transition log, made by the program and not by the database."""
    entry_ids: Iterator[int]
    """Ids for new entries, of which none was ever used before."""
    actor: Actor
    policies: PolicyBook
    freshness: timedelta | None
    epoch: int = 0
    """The opening of the store that makes it."""
    id_above: Callable[[int], int] | None = None
    """An id above a given one, where others make ids as well; None: theirs are all smaller."""
    hooks: tuple[str, ...] = ()
    """The hooks to call for each session that this change ends."""

    def policy_of(self, entry: SessionEntry) -> ResolvedPolicy:
        """The policy that judges this entry."""
        return policy_for(entry, self.policies)

    def scheduled(self, entry: SessionEntry) -> SessionEntry:
        """The entry with the instant at which its policy has to be looked at."""
        policy = self.policy_of(entry)
        due_at = due_instant(entry, policy, self.freshness)
        return entry.altered(due_at=due_at, policy_fingerprint=policy.fingerprint)
