"""Import of sessions from lines, one transaction each, with a report of findings."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeVar

from gateway_sessions.core.export.session_reader import read_session
from gateway_sessions.core.export.transfer_reports import (
    Finding,
    FindingKind,
    ImportReport,
    Progress,
    TransferProgress,
)
from gateway_sessions.core.instants import EPOCH
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.ports import Transaction
from gateway_sessions.storage.files.threads import in_thread
from gateway_sessions.storage.transaction_runner_protocol import TransactionRunner
from gateway_sessions.storage.transactions.transfer import import_session
from gateway_sessions.storage.transactions.transfer.import_session import (
    DryRun,
    EncodedSession,
    ImportedSession,
    ImportFate,
    encode_session,
)
from gateway_sessions.storage.transfer.export_files import MAX_LINE_BYTES, TOO_LONG

T = TypeVar("T")

MAX_BATCH: Final = 128
"""Sessions that are written at once: they share commits, which are slow on some disks."""
MAX_BATCH_BYTES: Final = 4 << 20
"""The size of such a batch, which is in memory."""
MAX_FINDINGS: Final = 10_000
"""The most findings in a report; further ones are counted."""


@dataclass(frozen=True, slots=True)
class SessionToImport:
    """A session that is ready to import."""

    rows: EncodedSession
    line: int | None = None
    size: int = 0


@dataclass(frozen=True, slots=True)
class UnusableLine:
    """A line that holds no session."""

    problem: str
    line: int


@dataclass(frozen=True, slots=True)
class ChildToImport:
    """A session whose parent may still come."""

    session_id: str
    relation: str | None
    line: int | None
    new: bool


@dataclass(slots=True)
class Importer:
    """Imports sessions and counts them."""

    db: TransactionRunner
    change_ids: Iterator[int]
    dry_run: bool = False
    fill: bool = False
    """True if a session without messages may be replaced."""
    progress: Progress | None = None
    imported: int = 0
    skipped: int = 0
    messages: int = 0
    hidden: int = 0
    findings: list[Finding] = field(default_factory=list[Finding])
    more_findings: int = 0
    _run: DryRun = field(init=False)
    _waiting: defaultdict[str, list[ChildToImport]] = field(
        default_factory=lambda: defaultdict[str, list[ChildToImport]](list), init=False
    )

    def __post_init__(self) -> None:
        self._run = DryRun(pretend=self.dry_run)

    async def import_lines(self, lines: AsyncIterable[tuple[int, object]], owner: str | None) -> ImportReport:
        """Import all sessions of a file; a line that cannot be used is reported, and the rest goes on."""
        some: list[tuple[int, object]] = []
        size = 0
        async for number, line in lines:
            some.append((number, line))
            size += _line_length(line)
            if len(some) >= MAX_BATCH or size >= MAX_BATCH_BYTES:
                await self._import_batches(some, owner)
                some, size = [], 0
        await self._import_batches(some, owner)
        await self.report_missing_parents()
        return self.make_report()

    async def _import_batches(self, lines: Sequence[tuple[int, object]], owner: str | None) -> None:
        batch: list[SessionToImport] = []
        for one in await in_thread(partial(_sessions_of_lines, lines, owner)):
            if isinstance(one, SessionToImport):
                batch.append(one)
            else:
                self.add_finding(FindingKind.ERROR, one.problem, line=one.line)
        await self.import_batch(batch)

    async def import_batch(self, batch: Sequence[SessionToImport]) -> list[ImportedSession]:
        """Import some sessions in their order, each in a transaction of its own."""
        ids = self.change_ids
        outcomes = await self._run_all(
            [
                partial(import_session.import_session, one.rows, self._run, ids, fill=self.fill)
                for one in batch
            ]
        )
        for one, outcome in zip(batch, outcomes, strict=True):
            await self._count_outcome(one, outcome)
        if self.progress is not None and batch:
            self.progress(TransferProgress(sessions=self.imported + self.skipped, messages=self.messages))
        return outcomes

    async def skip_existing(self, session_id: str, parent: str | None, relation: str | None) -> None:
        """Count a session that is here already, and link it to its parent and its children."""
        self.skipped += 1
        if parent is not None:
            await self._attach_to_parent(ChildToImport(session_id, relation, None, new=False), parent)
        for child in self._waiting.pop(session_id, ()):
            await self._attach_to_parent(child, session_id)

    async def report_missing_parents(self) -> None:
        """Report the sessions whose parents have not come."""
        for parent, children in self._waiting.items():
            for one in children:
                if one.new:
                    self._note_detached(one, f"its parent {parent} is neither here nor in the file")
        self._waiting.clear()

    def add_finding(
        self, kind: FindingKind, detail: str, session_id: str | None = None, line: int | None = None
    ) -> None:
        """Add a finding to the report."""
        if len(self.findings) < MAX_FINDINGS:
            self.findings.append(Finding(kind, detail, session_id, line))
        else:
            self.more_findings += 1

    def make_report(self, lanes: int = 0, begun: int = 0) -> ImportReport:
        """Return the report of everything so far."""
        return ImportReport(
            imported=self.imported,
            skipped=self.skipped,
            messages=self.messages,
            hidden=self.hidden,
            lanes=lanes,
            begun=begun,
            findings=tuple(self.findings),
            more_findings=self.more_findings,
            dry_run=self.dry_run,
        )

    async def _count_outcome(self, one: SessionToImport, outcome: ImportedSession) -> None:
        session_id = one.rows.session_id
        if outcome.fate is ImportFate.CLASH:
            self.add_finding(FindingKind.CLASH, outcome.problem or "", session_id, one.line)
            return
        new = outcome.fate is ImportFate.IMPORTED
        self.imported += new
        self.skipped += not new
        self.messages += one.rows.message_count if new else 0
        self.hidden += len(one.rows.messages) - one.rows.message_count if new else 0
        waiting = ChildToImport(session_id, outcome.relation, one.line, new)
        if outcome.title is not None:
            detail = f"its title {one.rows.columns.title!r} was taken; it is called {outcome.title!r}"
            self.add_finding(FindingKind.RETITLED, detail, session_id, one.line)
        if outcome.branched:
            self._as_branch(waiting, str(one.rows.columns.parent_session_id))
        if outcome.adrift is not None:
            self._note_detached(waiting, f"its parent {outcome.adrift} comes from it")
        if outcome.waits_for is not None:
            await self._attach_to_parent(waiting, outcome.waits_for)
        for child in self._waiting.pop(session_id, ()):
            await self._attach_to_parent(child, session_id)

    async def _attach_to_parent(self, child: ChildToImport, parent: str) -> None:
        attached = await self._run_one(
            partial(import_session.attach_to_parent, child.session_id, parent, child.relation, self._run)
        )
        if attached is None:
            self._note_detached(child, f"its parent {parent} comes from it")
        elif attached is False:
            self._waiting[parent].append(child)

    def _note_detached(self, one: ChildToImport, detail: str) -> None:
        self.add_finding(FindingKind.DETACHED, detail, one.session_id, one.line)

    def _as_branch(self, one: ChildToImport, parent: str) -> None:
        detail = f"its parent {parent} goes on in another session, so it is a branch now"
        self.add_finding(FindingKind.BRANCHED, detail, one.session_id, one.line)

    async def _run_one(self, transaction: Callable[[], Transaction[T]]) -> T:
        return await (self.db.read(transaction) if self.dry_run else self.db.write(transaction))

    async def _run_all(self, transactions: Sequence[Callable[[], Transaction[T]]]) -> list[T]:
        if self.dry_run:
            return await self.db.read(partial(import_session.run_in_one_commit, transactions))
        try:
            async with asyncio.TaskGroup() as tasks:
                asked = [tasks.create_task(self.db.write(transaction)) for transaction in transactions]
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None
        return [one.result() for one in asked]


def _sessions_of_lines(
    lines: Sequence[tuple[int, object]], owner: str | None
) -> list[SessionToImport | UnusableLine]:
    found: list[SessionToImport | UnusableLine] = []
    for number, line in lines:
        try:
            found.append(_session_of_line(number, line, owner))
        except InvalidInputError as error:
            found.append(UnusableLine(str(error), number))
    return found


def _line_length(line: object) -> int:
    return len(line) if isinstance(line, str | bytes) else 0


def _session_of_line(number: int, line: object, owner: str | None) -> SessionToImport:
    """Return the session of a line; raise `InvalidInputError` if it holds none."""
    if line is TOO_LONG:
        problem = f"the line is longer than {MAX_LINE_BYTES} bytes"
        raise InvalidInputError(problem)
    given = _decode_line(line) if isinstance(line, str | bytes) else line
    rows = encode_session(read_session(given, owner=owner), EPOCH)
    return SessionToImport(rows, number, _line_length(line) or rows.totals.text_bytes)


def _decode_line(line: str | bytes) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        problem = f"the line is no JSON object: {error}"
        raise InvalidInputError(problem) from error
