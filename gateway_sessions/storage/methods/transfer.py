"""Sessions as files: written, and taken in again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from functools import partial
from typing import Any, Final, Literal

from gateway_sessions.core.export.rendering import renderer
from gateway_sessions.core.export.reports import ExportReport, ImportReport, Progress
from gateway_sessions.core.scope import Scope
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.storage.transfer.files import Lines, Target, reading, writing
from gateway_sessions.storage.transfer.importing import Importer
from gateway_sessions.storage.transfer.writing import SessionWriter
from gateway_sessions.storage.verb_runner import VerbRunner
from gateway_sessions.storage.verbs import exporting
from gateway_sessions.storage.verbs.exporting import BEGINNING, Wanted

PAGE: Final = 200
_BESIDE_THE_DATABASE: Final = ("", "-wal", "-shm", "-journal")


class TransferMethods(VerbRunner):
    """Export and import of sessions."""

    async def export_session(
        self, session_id: str, *, scope: Scope, include_hidden: bool = True
    ) -> dict[str, Any]:
        """A session with its messages; `SessionNotFoundError` if *scope* cannot see it."""
        wanted = Wanted(scope=scope, include_hidden=include_hidden)
        return await self.read(partial(exporting.whole, session_id, wanted))

    async def export_all(
        self, *, scope: Scope, source: str | None = None, include_hidden: bool = True
    ) -> AsyncIterator[dict[str, Any]]:
        """Every session that *scope* may see, the oldest first, each as it is when it is read.

        `write_export` shows all of them as of one moment.
        """
        wanted = Wanted(scope=scope, source=source, include_hidden=include_hidden)
        after = BEGINNING
        while page := await self.read(partial(exporting.ids, wanted, after, PAGE)):
            for after, _ in page:
                found = await self.read(partial(exporting.whole_if_there, after[1], wanted))
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

        With *lineage* "logical" a compressed conversation stands together, from its beginning to its tip.
        """
        if lineage not in ("single", "logical"):
            problem = f"lineage must be 'single' or 'logical', not {lineage!r}"
            raise InvalidInputError(problem)
        made = renderer(format)
        wanted = Wanted(scope=scope, source=source, include_hidden=include_hidden)
        database = [self.path.with_name(self.path.name + end) for end in _BESIDE_THE_DATABASE]
        async with self.view() as reader, writing(target, database) as write:
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
        """Take sessions in from a file of JSON Lines, or from lines or objects: the inverse of an export.

        Nothing that is here is changed: see the report for clashes. With *owner* all become theirs.
        """
        importer = Importer(self, dry_run=dry_run, progress=progress)
        async with aclosing(reading(lines)) as found:
            return await importer.take_lines(found, owner)
