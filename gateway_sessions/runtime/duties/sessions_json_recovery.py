"""Reading of sessions.json at a start: checked against the database, imported, or quarantined.

If there was a database, the database is right and the file is only verified. If there was none, the file is
all that is left, and is imported. What cannot be read goes to the quarantine, and is never thrown away.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import tzinfo
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from gateway_sessions._process.failpoints import failpoint
from gateway_sessions.core.identity.keys import Isolation
from gateway_sessions.core.sessions_json.file_format import (
    MAX_TAIL,
    RejectedEntry,
    SnapshotContent,
    parse_snapshot,
    read_tail,
    verify_checksum,
)
from gateway_sessions.core.sessions_json.import_plan import plan_import
from gateway_sessions.errors import InvalidSnapshotError, StorageUnavailableError
from gateway_sessions.runtime.context import StoreContext
from gateway_sessions.runtime.observability.incidents import Incidents
from gateway_sessions.storage.files.atomic_file import (
    QUARANTINE,
    backup_path,
    file_name_time,
    move_to_quarantine,
    read_bytes_tail,
    read_whole_file,
    remove_temporaries_in,
    remove_temporaries_of,
    write_atomically,
)
from gateway_sessions.storage.files.private_files import make_private_directory
from gateway_sessions.storage.files.threads import in_thread
from gateway_sessions.storage.hermes.home import with_routing_table
from gateway_sessions.storage.sessions_json import FILE_NAME
from gateway_sessions.storage.tables import meta
from gateway_sessions.storage.tables.change import Actor
from gateway_sessions.storage.transactions.transfer import import_entries

logger: Final = logging.getLogger(__name__)

PAGE: Final = 200
_EMPTY: Final = SnapshotContent((), (), None, intact=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotRecovery:
    """Reads the file once, before the store serves anybody."""

    context: StoreContext
    home: Path
    zone: tzinfo
    flags: Isolation
    new_ids: Iterator[str]
    incidents: Incidents

    async def run(self) -> int | None:
        """Import or verify the file; return the generation that it is known to show, None if unknown."""
        try:
            await in_thread(partial(remove_temporaries_of, self._file_path))
            await in_thread(partial(remove_temporaries_in, self.home / QUARANTINE))
            await self._quarantine_links()
            if await self.context.db.read(partial(meta.get_fact, import_entries.IMPORTED)) is None:
                await self._import_files()
                return None
            return await self._verified_generation()
        except OSError as error:
            # The file may hold all sessions, so going on without it would look like a loss.
            raise StorageUnavailableError(
                str(error.filename or self._file_path), os.strerror(error.errno or 0)
            ) from error

    @property
    def _file_path(self) -> Path:
        return self.home / FILE_NAME

    async def _quarantine_links(self) -> None:
        """Quarantine links, which could lead to files of other users: no link is followed."""
        for path in (self._file_path, await in_thread(partial(backup_path, self._file_path))):
            if await in_thread(path.is_symlink):
                kept = await self._quarantine_file(path)
                self.incidents.report(
                    "snapshot_quarantined", f"{path.name}: is a link; none is followed", kept
                )

    async def _verified_generation(self) -> int | None:
        """Read the end of the file; read all of it only if file and database may differ."""
        found = await in_thread(partial(read_bytes_tail, self._file_path, MAX_TAIL))
        if found is None:
            return None
        tail = read_tail(found[1], found[0])
        opening = self.context.db.ownership.opening
        if opening.settled and tail is not None and tail.generation == opening.generation:
            return opening.generation
        await self._verify_or_quarantine(opening.generation)
        return None

    async def _verify_or_quarantine(self, generation: int) -> None:
        """Verify the whole file: an earlier generation is late; a later or broken one is quarantined."""
        try:
            written = await in_thread(lambda: verify_checksum(read_whole_file(self._file_path) or b""))
        except InvalidSnapshotError as error:
            kept = await self._quarantine_file()
            self.incidents.report("snapshot_quarantined", f"{FILE_NAME}: {error}", kept)
            return
        if written.generation > generation:
            kept = await self._quarantine_file()
            detail = f"{FILE_NAME} shows generation {written.generation}, the database has only {generation}"
            self.incidents.report("database_older_than_snapshot", detail, kept)
            self.context.db.generation.go_on_above(written.generation)

    async def _import_files(self) -> None:
        """Import the files into a new database."""
        content = await self._read_both_files()
        content = await in_thread(partial(with_routing_table, content, self.home, self.zone))
        if content.meta is not None:
            self.context.db.generation.go_on_above(content.meta.generation)
        plan = plan_import(content.entries, self.new_ids, self.flags)
        for start in range(0, len(plan.entries), PAGE):
            page = plan.entries[start : start + PAGE]
            await self.context.apply(Actor.IMPORT, partial(import_entries.import_entries, entries=page))
            failpoint("import_page")
        for one in plan.continuations:
            detail = f"{one.session_key} shared session {one.shared_session_id} with {one.kept_by}"
            self.incidents.report("shared_session_split", f"{detail}; it goes on as {one.new_session_id}")
        if content.rejected:
            await self._quarantine_rejected(content.rejected)
        failpoint("import_done")
        await self.context.db.write(import_entries.mark_import_done)
        if plan.entries:
            logger.info(
                "an index was taken in", extra={"action": "index_imported", "entries": len(plan.entries)}
            )

    async def _read_both_files(self) -> SnapshotContent:
        """Return the content of the file; of a damaged file, completed by the generation before it."""
        content = _EMPTY
        for path in (await in_thread(partial(backup_path, self._file_path)), self._file_path):
            found = await self._read_file(path)
            if found is not None and path == self._file_path and not found.damaged:
                return found
            if found is not None:
                content = _add_missing_lanes(found, by=content)
        return content

    async def _read_file(self, path: Path) -> SnapshotContent | None:
        """Return the content of one file, which goes to the quarantine if it is damaged."""
        raw = await in_thread(partial(read_whole_file, path))
        if raw is None:
            return None
        content: SnapshotContent | None = None
        problem = "the file is damaged; the entries in it that can be read are used"
        try:
            content = await in_thread(partial(parse_snapshot, raw, self.zone))
        except InvalidSnapshotError as error:
            problem = str(error)
        if content is None or content.damaged:
            kept = await self._quarantine_file(path)
            failpoint("index_set_aside")
            self.incidents.report("snapshot_quarantined", f"{path.name}: {problem}", kept)
        return content

    async def _quarantine_rejected(self, rejected: tuple[RejectedEntry, ...]) -> None:
        """Write the members that could not become entries into a file in the quarantine."""
        path = self.home / QUARANTINE / f"{FILE_NAME}.{self._current_stamp()}.rejected.json"
        lines = [
            msgspec.json.encode(
                {"key": one.key, "reason": one.reason, "raw": one.raw.decode("utf-8", "backslashreplace")}
            )
            for one in rejected
        ]
        await in_thread(partial(_write_private, path, b"[\n" + b",\n".join(lines) + b"\n]\n"))
        for one in rejected:
            self.incidents.report("entry_quarantined", f"{one.key or FILE_NAME}: {one.reason}", path)

    async def _quarantine_file(self, path: Path | None = None) -> Path:
        return await in_thread(
            partial(
                move_to_quarantine, path or self._file_path, self.home / QUARANTINE, self._current_stamp()
            )
        )

    def _current_stamp(self) -> str:
        return file_name_time(self.context.clock.now())


def _write_private(path: Path, content: bytes) -> None:
    make_private_directory(path.parent)
    write_atomically(path, content)


def _add_missing_lanes(content: SnapshotContent, *, by: SnapshotContent) -> SnapshotContent:
    """Return the content with the lanes that only the earlier generation has."""
    entries = {entry.session_key: entry for entry in (*by.entries, *content.entries)}
    return SnapshotContent(
        tuple(entries.values()), (*by.rejected, *content.rejected), content.meta, intact=False
    )
