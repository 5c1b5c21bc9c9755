"""Reports of exports and imports: how many sessions and messages, and what an import found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferProgress:
    """The progress of an export or an import."""

    sessions: int = 0
    messages: int = 0
    total_sessions: int | None = None
    """The number of all sessions; None: unknown."""


Progress: TypeAlias = Callable[[TransferProgress], object]
"""A function that is called now and then with the progress; it is not awaited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportReport:
    """The numbers of what an export wrote."""

    sessions: int = 0
    messages: int = 0
    bytes: int = 0


class FindingKind(StrEnum):
    """The kind of a finding of an import."""

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
    """A finding of an import, and its place."""

    kind: FindingKind
    """The kind of the finding."""
    detail: str
    """The finding in words."""
    session_id: str | None = None
    line: int | None = None
    """The number of the line in the file, from 1."""

    def __str__(self) -> str:
        place = f"line {self.line}: " if self.line is not None else ""
        who = f"session {self.session_id}: " if self.session_id is not None else ""
        return f"{place}{who}{self.detail}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """The result of an import; in a dry run, the result that it would have."""

    imported: int = 0
    """The number of imported sessions."""
    skipped: int = 0
    """The number of sessions that the store had already, equal to those in the file."""
    messages: int = 0
    """The number of messages in the imported sessions, without hidden ones, as everywhere."""
    hidden: int = 0
    """The number of hidden messages that were imported: rewound, replaced or compacted ones."""
    lanes: int = 0
    """The number of lanes that go on with an imported session."""
    begun: int = 0
    """The number of sessions that began for lanes whose own session had no row; `imported` leaves them
    out."""
    findings: tuple[Finding, ...] = ()
    more_findings: int = 0
    """The number of findings beyond those that are listed."""
    dry_run: bool = False

    def of(self, kind: FindingKind) -> tuple[Finding, ...]:
        """Return the findings of one kind."""
        return tuple(one for one in self.findings if one.kind is kind)

    @property
    def clashes(self) -> tuple[Finding, ...]:
        """The sessions that were left out because another one is in their place."""
        return self.of(FindingKind.CLASH)

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings about things that could not be read or stored."""
        return self.of(FindingKind.ERROR)
