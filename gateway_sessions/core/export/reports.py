"""Reports of exports and imports: how many sessions and messages, and what an import found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferProgress:
    """How far an export or an import is."""

    sessions: int = 0
    messages: int = 0
    total_sessions: int | None = None
    """None: nobody knows."""


Progress: TypeAlias = Callable[[TransferProgress], object]
"""Called now and then with how far it is; not awaited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportReport:
    """What was written."""

    sessions: int = 0
    messages: int = 0
    bytes: int = 0


class FindingKind(StrEnum):
    """What an import came across."""

    ERROR = "error"  # it cannot be read or stored, and is left out
    CLASH = "clash"  # something else is here in its place, and stays; the session is left out
    RETITLED = "retitled"  # its title was taken, so it got the next one
    DETACHED = "detached"  # its parent is neither here nor in the file, or comes from it
    BRANCHED = "branched"  # its parent goes on in another session, so it counts as a branch
    RENAMED = "renamed"  # its id could not be used, and another one stands for it
    LANE = "lane"  # its lane could not go on with it
    LEFT_ALONE = "left_alone"  # something that is none of ours was not read


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that an import came across, and where."""

    kind: FindingKind
    detail: str
    session_id: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        place = f"line {self.line}: " if self.line is not None else ""
        who = f"session {self.session_id}: " if self.session_id is not None else ""
        return f"{place}{who}{self.detail}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """What was taken in. Of a dry run: what would have been."""

    imported: int = 0
    skipped: int = 0
    """Sessions that were here already, as they are in the file."""
    messages: int = 0
    """In the imported sessions, counted as everywhere: without those that are hidden."""
    hidden: int = 0
    """Messages that came along and are not shown: they were taken back, edited, or put into a summary."""
    lanes: int = 0
    """Lanes that go on with a session of theirs."""
    begun: int = 0
    """Sessions that began for lanes whose own had no row; they are not among the imported ones."""
    findings: tuple[Finding, ...] = ()
    more_findings: int = 0
    """How many there were beyond those that are listed."""
    dry_run: bool = False

    def of(self, kind: FindingKind) -> tuple[Finding, ...]:
        """The findings of one kind."""
        return tuple(one for one in self.findings if one.kind is kind)

    @property
    def clashes(self) -> tuple[Finding, ...]:
        """Sessions left out, because something else is in their place."""
        return self.of(FindingKind.CLASH)

    @property
    def errors(self) -> tuple[Finding, ...]:
        """What could not be read or stored."""
        return self.of(FindingKind.ERROR)
