"""Keeping what is to be kept, and removing the rest without a trace in any table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Final

from gateway_sessions.core.instants import instant_of
from gateway_sessions.core.retention import Bounds, Group, Member, PruneReport
from gateway_sessions.core.session_record import Relation
from gateway_sessions.core.work_progress import OnProgress, WorkProgress
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.storage.verb_runner import VerbRunner
from gateway_sessions.storage.verbs import retention as verbs
from gateway_sessions.storage.verbs.retention import Kind

MOST_GROUPS: Final = 20
"""Removed in one go."""


class RetentionMethods(VerbRunner):
    """Removal of sessions, one by one or by age and size."""

    async def delete_session(self, session_id: str) -> bool:
        """Remove a session with all its messages and those of its sub-agents; False if there is none.

        What came from it otherwise stays, and stands for itself. `SessionOnLaneError` for the current session
        of a lane, `SessionBusyError` while a turn of it runs. After a `StorageError` the session may be gone
        from sight with messages left in the file: called again, this removes them and says that there is no
        such session. A store that is opened removes them, too.
        """
        gone = await self.write(partial(verbs.delete, session_id, self.change_ids))
        await self.finish_removals()
        return bool(gone)

    async def delete_sessions(self, session_ids: Iterable[str]) -> int:
        """Remove several sessions, each as `delete_session` does; how many were there."""
        found = [await self.delete_session(one) for one in dict.fromkeys(session_ids)]
        return sum(found)

    async def prune_sessions(
        self,
        *,
        older_than_days: float | None = 90,
        max_count: int | None = None,
        max_bytes: int | None = None,
        source: str | None = None,
        relation: str | None = None,
        only_empty: bool = False,
        include_archived: bool = False,
        unended: bool = False,
        limit: int | None = None,
        dry_run: bool = False,
        now: datetime | float | None = None,
        progress: OnProgress | None = None,
    ) -> PruneReport:
        """Remove ended sessions nobody has touched for that long, and the oldest beyond a number or a size.

        With *unended* also those that nobody has ended. Never one that a lane has, that is pinned, touched
        within a day, or still owed to a hook, nor what was compressed into such a one. A dry run tells what
        would go; with *limit* so many go, or few more.
        """
        if limit is not None and limit < 1:
            problem = f"limit = {limit} must be 1 or more"
            raise InvalidInputError(problem)
        moment = instant_of("now", now) or self._clock.now()
        bounds = Bounds.at(moment, older_than_days, max_count, max_bytes)
        kind = Kind(
            source=source,
            relation=None if relation is None else Relation(relation),
            include_archived=include_archived,
            only_empty=only_empty,
            unended=unended,
        )
        async with self.view() as reader:
            plan = await reader.read(partial(verbs.plan, bounds, kind, limit))
        removed = [one.session_id for one in plan.members]
        in_use: list[str] = []
        if not dry_run:
            removed, in_use = await self._remove(plan.groups, progress, unended=unended)
        gone = frozenset(removed)
        report = _reported([one for one in plan.members if one.session_id in gone], removed)
        return replace(report, dry_run=dry_run, kept_in_use=tuple(in_use))

    async def finish_removals(self) -> int:
        """Remove the messages that are left of large sessions, piece by piece; how many there were."""
        messages = 0
        for session_id in await self.read(verbs.leftovers):
            removed = verbs.PIECE
            while removed == verbs.PIECE:
                removed = await self.write(partial(verbs.remove_leftover, session_id, self.change_ids))
                messages += removed
        return messages

    async def _remove(
        self, groups: Sequence[Group], progress: OnProgress | None, *, unended: bool
    ) -> tuple[list[str], list[str]]:
        removed: list[str] = []
        in_use: list[str] = []
        total = sum(len(one.members) for one in groups)
        for batch in _batches(groups):
            if progress is not None:
                progress(WorkProgress(doing="Removing sessions", done=len(removed), total=total))
            step = await self.write(partial(verbs.remove_groups, batch, self.change_ids, unended=unended))
            removed += step.session_ids
            in_use += step.in_use
        await self.finish_removals()
        return removed, in_use


def _reported(gone: Sequence[Member], session_ids: Sequence[str]) -> PruneReport:
    return PruneReport(
        dry_run=False,
        session_ids=tuple(session_ids),
        messages=sum(one.messages for one in gone),
        text_bytes=sum(one.text_bytes for one in gone),
    )


def _batches(groups: Sequence[Group]) -> Iterator[list[Group]]:
    """Groups in steps that nobody waits long behind."""
    batch: list[Group] = []
    messages = 0
    for group in groups:
        if batch and (messages + group.messages > verbs.PIECE or len(batch) == MOST_GROUPS):
            yield batch
            batch, messages = [], 0
        batch.append(group)
        messages += group.messages
    if batch:
        yield batch
