"""`FilesRewriter`: lets files beside the database, and what a process remembers, forget erased people."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from gateway_sessions.runtime.queue.routing import EntryCache
from gateway_sessions.runtime.store.control import AgentsOfGateway
from gateway_sessions.runtime.store.database_opening import DATABASE_FILE
from gateway_sessions.runtime.store.opening import StoreParts
from gateway_sessions.storage.api.erasure import copies_of
from gateway_sessions.storage.files.atomic_file import QUARANTINE, backup_path
from gateway_sessions.storage.files.private_files import is_foreign_link
from gateway_sessions.storage.files.threads import in_thread
from gateway_sessions.storage.listener import FilesBeside
from gateway_sessions.storage.search.sqlite_index import INDEX_FILE
from gateway_sessions.storage.sessions_json import FILE_NAME


class FilesRewriter:
    """Rewrites what names people outside of the database, after an erasure."""

    def __init__(self, home: Path, parts: StoreParts, cache: EntryCache, agents: AgentsOfGateway) -> None:
        self._home = home
        self._parts = parts
        self._cache = cache
        self._agents = agents

    async def rewrite_files(self) -> FilesBeside:
        """Let no other file of the store name who is not in the database any more, but copies."""
        parts = self._parts
        self._cache.clear()
        self._agents.evict_all()  # whatever was made from rows that are gone must go as well
        await parts.queue.refresh_counts()
        if parts.snapshot is not None:
            await parts.snapshot.flush()
        await parts.restart.refresh()
        copies = await in_thread(partial(self._find_copies, written=parts.snapshot is not None))
        return FilesBeside((FILE_NAME,) if parts.snapshot is not None else (), tuple(copies))

    def _find_copies(self, *, written: bool) -> list[Path]:
        """Return files that may hold what the database held, also a sessions.json that nobody writes."""
        home, db = self._home, self._parts.context.db
        index = home / FILE_NAME
        found = [backup_path(index)]
        if not written:
            # An unfinished file belongs to its writer, if there is one, and then shows a later moment.
            found += [index, *home.glob(f".{FILE_NAME}.*.tmp")]
        if not is_foreign_link(home / QUARANTINE):
            found += (home / QUARANTINE).rglob("*")
        if not (db.has_upkeep and db.path.parent.samefile(home)):
            # A database that stood here before has left these, or somebody put them here all the same.
            found += [*copies_of(home / DATABASE_FILE), *home.glob(f"{INDEX_FILE}*")]
        return sorted({one for one in found if one.is_file()})
