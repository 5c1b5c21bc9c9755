"""Methods of `SessionDB` that delete, prune, export and import sessions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, Final, Literal

from gateway_sessions.core.export.formats import new_renderer
from gateway_sessions.core.export.transfer_reports import ExportReport, ImportReport, Progress
from gateway_sessions.core.identity.scope import Scope
from gateway_sessions.core.instants import parse_instant
from gateway_sessions.core.progress import OnProgress, WorkProgress
from gateway_sessions.core.sessions.record import Relation
from gateway_sessions.core.sessions.retention import GroupMember, PruneReport, RetentionBounds, SessionGroup
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.storage.transaction_runner_protocol import TransactionRunner
from gateway_sessions.storage.transactions.sessions import remove as transactions
from gateway_sessions.storage.transactions.sessions.remove import PrunableKind
from gateway_sessions.storage.transactions.transfer import export
from gateway_sessions.storage.transactions.transfer.export import BEGINNING, ExportQuery
from gateway_sessions.storage.transfer.export_files import (
    Lines,
    SessionWriter,
    Target,
    open_target,
    read_lines,
)
from gateway_sessions.storage.transfer.import_files import Importer

MOST_GROUPS: Final = 20
"""The number of groups of sessions removed in one commit."""


class RetentionMethods(TransactionRunner):
    """Removal of sessions, one by one or by age and size."""

    async def delete_session(self, session_id: str) -> bool:
        """Remove a session with all its messages and those of its sub-agents; False if there is none.

        Other sessions that came from it stay, without a parent. Raise `SessionOnLaneError` for the current
        session of a lane, and `SessionBusyError` while a turn of it runs. After a `StorageError` the session
        may be gone while messages of it are left in the file: a second call removes these and returns False.
        So does a store when it is opened.
        """
        gone = await self.write(partial(transactions.delete_session, session_id, self._change_ids))
        await self.finish_removals()
        return bool(gone)

    async def delete_sessions(self, session_ids: Iterable[str]) -> int:
        """Remove several sessions, each as `delete_session` does; return how many there were."""
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
        """Remove ended sessions that were not used for long, and the oldest beyond a number or a size.

        With *unended*, sessions that have not ended are removed as well. A session is kept if a lane has it,
        if it is pinned, was touched within a day, or is owed to a hook, and so are the sessions that it
        continues. A dry run returns the sessions that it would remove; with *limit*, that many are removed,
        or few more.
        """
        if limit is not None and limit < 1:
            problem = f"limit = {limit} must be 1 or more"
            raise InvalidInputError(problem)
        moment = parse_instant("now", now) or self._clock.now()
        bounds = RetentionBounds.at(moment, older_than_days, max_count, max_bytes)
        kind = PrunableKind(
            source=source,
            relation=None if relation is None else Relation(relation),
            include_archived=include_archived,
            only_empty=only_empty,
            unended=unended,
        )
        async with self.view() as reader:
            plan = await reader.read(partial(transactions.plan_removal, bounds, kind, limit))
        removed = [one.session_id for one in plan.members]
        in_use: list[str] = []
        if not dry_run:
            removed, in_use = await self._remove_groups(plan.groups, progress, unended=unended)
        gone = frozenset(removed)
        report = _prune_report([one for one in plan.members if one.session_id in gone], removed)
        return replace(report, dry_run=dry_run, kept_in_use=tuple(in_use))

    async def finish_removals(self) -> int:
        """Remove the messages that are left of removed sessions, piece by piece; return how many."""
        messages = 0
        for session_id in await self.read(transactions.removed_with_leftovers):
            removed = transactions.PIECE
            while removed == transactions.PIECE:
                removed = await self.write(
                    partial(transactions.remove_leftover_messages, session_id, self._change_ids)
                )
                messages += removed
        return messages

    async def _remove_groups(
        self, groups: Sequence[SessionGroup], progress: OnProgress | None, *, unended: bool
    ) -> tuple[list[str], list[str]]:
        removed: list[str] = []
        in_use: list[str] = []
        total = sum(len(one.members) for one in groups)
        for batch in _batches_of_groups(groups):
            if progress is not None:
                progress(WorkProgress(doing="Removing sessions", done=len(removed), total=total))
            step = await self.write(
                partial(transactions.remove_groups, batch, self._change_ids, unended=unended)
            )
            removed += step.session_ids
            in_use += step.in_use
        await self.finish_removals()
        return removed, in_use


def _prune_report(gone: Sequence[GroupMember], session_ids: Sequence[str]) -> PruneReport:
    return PruneReport(
        dry_run=False,
        session_ids=tuple(session_ids),
        messages=sum(one.messages for one in gone),
        text_bytes=sum(one.text_bytes for one in gone),
    )


def _batches_of_groups(groups: Sequence[SessionGroup]) -> Iterator[list[SessionGroup]]:
    """Yield the groups in batches that are removed in one commit each, so small that no write waits long."""
    batch: list[SessionGroup] = []
    messages = 0
    for group in groups:
        if batch and (messages + group.messages > transactions.PIECE or len(batch) == MOST_GROUPS):
            yield batch
            batch, messages = [], 0
        batch.append(group)
        messages += group.messages
    if batch:
        yield batch


PAGE: Final = 200
"""The number of positions read in one page."""
_BESIDE_THE_DATABASE: Final = ("", "-wal", "-shm", "-journal")


class TransferMethods(TransactionRunner):
    """Export and import of sessions."""

    async def export_session(
        self, session_id: str, *, scope: Scope, include_hidden: bool = True
    ) -> dict[str, Any]:
        """Return a session with its messages; `SessionNotFoundError` if *scope* does not see it."""
        wanted = ExportQuery(scope=scope, include_hidden=include_hidden)
        return await self.read(partial(export.load_session, session_id, wanted))

    async def export_all(
        self, *, scope: Scope, source: str | None = None, include_hidden: bool = True
    ) -> AsyncIterator[dict[str, Any]]:
        """Yield every session that *scope* may see, the oldest first, each as it is when it is read.

        `write_export` writes all of them as of one moment.
        """
        wanted = ExportQuery(scope=scope, source=source, include_hidden=include_hidden)
        after = BEGINNING
        while page := await self.read(partial(export.list_exportable, wanted, after, PAGE)):
            for after, _ in page:
                found = await self.read(partial(export.load_session_if_there, after[1], wanted))
                if found is not None:
                    yield found

    async def write_export(
        self,
        target: Target,
        *,
        scope: Scope,
        format: str = "jsonl",  # noqa: A002 -- the word that everybody expects
        source: str | None = None,
        session_id: str | None = None,
        lineage: Literal["single", "logical"] = "single",
        include_hidden: bool = True,
        progress: Progress | None = None,
    ) -> ExportReport:
        """Write sessions to a file (whole or not at all) or a binary stream, all as of one moment.

        With *lineage* "logical", the sessions of a compressed conversation stand together, in their order.
        """
        if lineage not in ("single", "logical"):
            problem = f"lineage must be 'single' or 'logical', not {lineage!r}"
            raise InvalidInputError(problem)
        made = new_renderer(format)
        wanted = ExportQuery(scope=scope, source=source, include_hidden=include_hidden)
        database = [self.path.with_name(self.path.name + end) for end in _BESIDE_THE_DATABASE]
        async with self.view() as reader, open_target(target, database) as write:
            writer = SessionWriter(
                reader=reader, renderer=made, write=write, wanted=wanted, progress=progress
            )
            return await writer.write_all(session_id, logical=lineage == "logical")

    async def import_sessions(
        self,
        lines: Lines,
        *,
        owner: str | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> ImportReport:
        """Import sessions from a file of JSON Lines, or from lines or objects: the inverse of an export.

        No session of the store is changed: the report lists the clashes. With *owner*, all become that
        owner's.
        """
        importer = Importer(self, self._change_ids, dry_run=dry_run, progress=progress)
        async with aclosing(read_lines(lines)) as found:
            return await importer.import_lines(found, owner)
