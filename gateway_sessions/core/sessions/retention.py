"""The plan of a prune: which sessions are too old or too many, the oldest first."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from gateway_sessions.core.instants import duration
from gateway_sessions.errors import InvalidInputError

RECENT: Final = timedelta(hours=24)
"""Whatever bound is crossed, what was touched since then is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What a store may hold. A session goes as soon as one of them wants it."""

    untouched_since: datetime | None = None
    max_count: int | None = None
    max_bytes: int | None = None
    recent_since: datetime
    """Sessions touched at or after this instant stay."""

    @classmethod
    def at(
        cls, now: datetime, older_than_days: float | None, max_count: int | None, max_bytes: int | None
    ) -> Bounds:
        """The bounds now; `InvalidInputError` for what is none, or if there is none at all."""
        for name, bound in (("max_count", max_count), ("max_bytes", max_bytes)):
            if bound is not None and (isinstance(bound, bool) or bound < 0):
                problem = f"{name} = {bound} must be 0 or more"
                raise InvalidInputError(problem)
        if older_than_days is None and max_count is None and max_bytes is None:
            problem = "nothing says what to prune: give older_than_days, max_count or max_bytes"
            raise InvalidInputError(problem)
        age = None if older_than_days is None else duration("older_than_days", days=older_than_days)
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
    """A session and what goes with it: the work of its sub-agents."""

    members: tuple[GroupMember, ...]
    """The session first."""
    last_active: datetime
    """When anything of it, or of what continues it, was touched last."""
    protected: bool
    """On a lane, pinned, with a hook still to be called, or part of something that is."""

    @property
    def messages(self) -> int:
        """How many are stored in all of it."""
        return sum(one.messages for one in self.members)

    def is_still(self, planned: SessionGroup) -> bool:
        """Whether nothing has happened to the group since it was *planned* that would save it."""
        untouched = not self.protected and self.last_active <= planned.last_active
        ids = {one.session_id for one in planned.members}
        return untouched and all(one.session_id in ids for one in self.members)


class PrunePlan:
    """Takes groups one after another, the oldest first, until the bounds are kept or so many are taken."""

    def __init__(self, bounds: Bounds, *, count: int, text_bytes: int, limit: int | None = None) -> None:
        self._bounds = bounds
        self._limit = limit
        self._count = count
        self._bytes = text_bytes
        self._taken: dict[str, GroupMember] = {}
        self.groups: list[SessionGroup] = []
        """What has to go."""

    @property
    def members(self) -> tuple[GroupMember, ...]:
        """All sessions that have to go."""
        return tuple(self._taken.values())

    def wants_more(self, last_active: datetime) -> bool:
        """Whether a session touched at that instant, or a later one, could still have to go."""
        if self._limit is not None and len(self._taken) >= self._limit:
            return False
        return last_active < self._bounds.recent_since and (self._crowded() or self._is_old(last_active))

    def offer(self, group: SessionGroup) -> bool:
        """Take the group if it has to go."""
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


class FirstToGo:
    """Takes groups in the same order, and finds which of them grows too old first."""

    def __init__(self) -> None:
        self.last_active: datetime | None = None
        """When that group was touched last; None if every group is protected."""

    def wants_more(self, last_active: datetime) -> bool:
        """Tell whether a session touched at that instant, or a later one, could grow too old before."""
        return self.last_active is None or last_active < self.last_active

    def offer(self, group: SessionGroup) -> None:
        """Take the group if it grows too old before all others."""
        if not group.protected and self.wants_more(group.last_active):
            self.last_active = group.last_active


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneReport:
    """What was removed; in a dry run, what would be."""

    dry_run: bool
    session_ids: tuple[str, ...]
    """The oldest first."""
    messages: int = 0
    text_bytes: int = 0
    """Of their messages."""
    kept_in_use: tuple[str, ...] = ()
    """Chosen, and used again before their turn came."""

    def with_more(self, more: PruneReport) -> PruneReport:
        """One report of both."""
        return PruneReport(
            dry_run=self.dry_run,
            session_ids=self.session_ids + more.session_ids,
            messages=self.messages + more.messages,
            text_bytes=self.text_bytes + more.text_bytes,
            kept_in_use=self.kept_in_use + more.kept_in_use,
        )
