"""The plan of a prune: which sessions are too old or too many, the oldest first."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from gateway_sessions.core.instants import check_duration
from gateway_sessions.errors import InvalidInputError

RECENT: Final = timedelta(hours=24)
"""The age within which a touched session is kept, whatever bound is crossed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionBounds:
    """The bounds of a store. A session is pruned as soon as it crosses one of them."""

    untouched_since: datetime | None = None
    """The instant since which a session must have been touched to stay; None: no bound by age."""
    max_count: int | None = None
    """The number of sessions that may stay; None: any number."""
    max_bytes: int | None = None
    """The bytes of text that may stay; None: any number."""
    recent_since: datetime
    """The instant from which on touched sessions stay, whatever bound is crossed."""

    @classmethod
    def at(
        cls, now: datetime, older_than_days: float | None, max_count: int | None, max_bytes: int | None
    ) -> RetentionBounds:
        """Return the bounds at *now*, or raise `InvalidInputError` for a bad bound or none at all."""
        for name, bound in (("max_count", max_count), ("max_bytes", max_bytes)):
            if bound is not None and (isinstance(bound, bool) or bound < 0):
                problem = f"{name} = {bound} must be 0 or more"
                raise InvalidInputError(problem)
        if older_than_days is None and max_count is None and max_bytes is None:
            problem = "nothing says what to prune: give older_than_days, max_count or max_bytes"
            raise InvalidInputError(problem)
        age = None if older_than_days is None else check_duration("older_than_days", days=older_than_days)
        return cls(
            untouched_since=None if age is None else now - age,
            max_count=max_count,
            max_bytes=max_bytes,
            recent_since=now - (RECENT if age is None else min(RECENT, age)),
        )


@dataclass(frozen=True, slots=True)
class GroupMember:
    """One session of a group."""

    session_id: str
    messages: int = 0
    text_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionGroup:
    """A session and the work of its sub-agents, which is pruned with it."""

    members: tuple[GroupMember, ...]
    """The sessions of the group, the session itself first."""
    last_active: datetime
    """The instant at which the group, or a continuation of it, was touched last."""
    protected: bool
    """Whether the group, or a part of it, is on a lane, is pinned, or has a hook still to be called."""

    @property
    def messages(self) -> int:
        """The number of stored messages in the group."""
        return sum(one.messages for one in self.members)

    def is_unchanged_since(self, planned: SessionGroup) -> bool:
        """Return whether the group is still as old and unprotected as when it was *planned*."""
        untouched = not self.protected and self.last_active <= planned.last_active
        ids = {one.session_id for one in planned.members}
        return untouched and all(one.session_id in ids for one in self.members)


class PrunePlan:
    """Takes groups in turn, the oldest first, until the bounds are kept or the limit is reached."""

    def __init__(
        self, bounds: RetentionBounds, *, count: int, text_bytes: int, limit: int | None = None
    ) -> None:
        self._bounds = bounds
        self._limit = limit
        self._count = count
        self._bytes = text_bytes
        self._taken: dict[str, GroupMember] = {}
        self.groups: list[SessionGroup] = []
        """The groups to prune."""

    @property
    def members(self) -> tuple[GroupMember, ...]:
        """All sessions to prune."""
        return tuple(self._taken.values())

    def wants_more(self, last_active: datetime) -> bool:
        """Return whether a session touched at that instant, or later, could still have to be pruned."""
        if self._limit is not None and len(self._taken) >= self._limit:
            return False
        return last_active < self._bounds.recent_since and (self._crowded() or self._is_old(last_active))

    def offer_group(self, group: SessionGroup) -> bool:
        """Take the group if it has to be pruned, and return whether it was taken."""
        if group.members[0].session_id in self._taken or group.protected:
            return False
        if not self.wants_more(group.last_active):
            return False
        for member in group.members:
            if member.session_id not in self._taken:
                self._taken[member.session_id] = member
                self._count -= 1
                self._bytes -= member.text_bytes
        self.groups.append(group)
        return True

    def _is_old(self, last_active: datetime) -> bool:
        since = self._bounds.untouched_since
        return since is not None and last_active < since

    def _crowded(self) -> bool:
        too_many = self._bounds.max_count is not None and self._count > self._bounds.max_count
        return too_many or (self._bounds.max_bytes is not None and self._bytes > self._bounds.max_bytes)


class FirstPruneDue:
    """Takes groups in the same order, and finds the group that grows too old first."""

    def __init__(self) -> None:
        self.last_active: datetime | None = None
        """The instant at which that group was touched last; None if every group is protected."""

    def wants_more(self, last_active: datetime) -> bool:
        """Return whether a session touched at that instant could grow too old before that group."""
        return self.last_active is None or last_active < self.last_active

    def offer_group(self, group: SessionGroup) -> None:
        """Take the group if it grows too old before all others."""
        if not group.protected and self.wants_more(group.last_active):
            self.last_active = group.last_active


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneReport:
    """The sessions that were pruned; in a dry run, the sessions that would be."""

    dry_run: bool
    session_ids: tuple[str, ...]
    """The ids of the pruned sessions, the oldest first."""
    messages: int = 0
    text_bytes: int = 0
    """The bytes of their messages' text."""
    kept_in_use: tuple[str, ...] = ()
    """The sessions that were chosen, but used again before they were pruned."""

    def with_more(self, more: PruneReport) -> PruneReport:
        """Return one report of both."""
        return PruneReport(
            dry_run=self.dry_run,
            session_ids=self.session_ids + more.session_ids,
            messages=self.messages + more.messages,
            text_bytes=self.text_bytes + more.text_bytes,
            kept_in_use=self.kept_in_use + more.kept_in_use,
        )
