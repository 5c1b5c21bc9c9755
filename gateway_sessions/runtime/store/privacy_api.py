"""Methods of `SessionStore` that export a person's data or erase the person."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

from gateway_sessions._process.background import Resource
from gateway_sessions.core.identity.keys import Isolation, room_of
from gateway_sessions.core.identity.scope import Scope
from gateway_sessions.core.identity.source import SessionSource
from gateway_sessions.core.instants import instant_of
from gateway_sessions.core.progress import OnProgress
from gateway_sessions.core.sessions.erasure import ErasureReceipt
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.runtime.duties.erasure import Erasures
from gateway_sessions.runtime.queue.routing import EntryCache
from gateway_sessions.runtime.store.control import AgentsOfGateway
from gateway_sessions.runtime.store.opening import DATABASE_FILE, Parts
from gateway_sessions.storage.api.erasure import copies_of
from gateway_sessions.storage.database import SessionDB
from gateway_sessions.storage.files.atomic_file import QUARANTINE, backup_path
from gateway_sessions.storage.files.private_files import is_foreign_link
from gateway_sessions.storage.files.threads import in_thread
from gateway_sessions.storage.listener import FilesBeside
from gateway_sessions.storage.search.sqlite_index import INDEX_FILE
from gateway_sessions.storage.sessions_json import FILE_NAME


class PrivacyMethods(Resource):
    """Methods of `SessionStore` about one person."""

    home: Path
    _isolation: Isolation
    _cache: EntryCache
    _erasures: Erasures | None = None
    _agents: AgentsOfGateway

    @property
    def db(self) -> SessionDB:
        """The database."""
        raise NotImplementedError

    @property
    def _parts(self) -> Parts:
        raise NotImplementedError

    async def scope_of(self, source: SessionSource) -> Scope:
        """What the person who wrote may see."""
        raise NotImplementedError

    async def erase(
        self,
        subject: SessionSource | str,
        *,
        keep_copies: bool = False,
        progress: OnProgress | None = None,
    ) -> ErasureReceipt:
        """Forget a person: nothing of them is left in this home when the receipt is there.

        The person is the one who wrote from a source, or an owner as entries and sessions name it.
        `SessionBusyError` while a turn of theirs runs. Once begun, it is finished in the background, even if
        the call fails or is cancelled. See `SessionDB.erase` for what happens to copies.
        """
        owner, finished = await self._person(subject), False
        try:
            receipt = await self.db.erase(owner, keep_copies=keep_copies, progress=progress)
            finished = True
        finally:
            if not finished and self._erasures is not None:
                self._erasures.wake()
        return receipt

    async def export_person(self, subject: SessionSource | str) -> AsyncIterator[dict[str, Any]]:
        """All that is known of a person: first their lanes with what happened there, then every session."""
        async for one in self.db.export_owner(await self._person(subject)):
            yield one

    async def was_erased(self, source: SessionSource, sent_at: object) -> bool:
        """Whether a message that arrives now was sent before its sender was erased, and must be dropped."""
        sent = instant_of("sent_at", sent_at)
        scope = await self.scope_of(source)
        erased = [await self.db.erased_at(owner) for owner in sorted(scope.owners)]
        return any(one is not None and (sent is None or sent <= one) for one in erased)

    async def _person(self, subject: SessionSource | str) -> str:
        if isinstance(subject, str):
            return subject
        room = room_of(subject, self._isolation)
        people = sorted((await self.scope_of(subject)).owners - {room})
        if not people:
            problem = "the source names no person; give the owner of the room to forget the room"
            raise InvalidInputError(problem)
        return people[0]

    async def _rewrite_files(self) -> FilesBeside:
        """Let no other file of the store name who is not in the database any more, but copies."""
        self._cache.forget_all()
        self._agents.evict_all()  # whatever was made from rows that are gone must go as well
        await self._parts.ledger.count()
        snapshot = self._parts.snapshot
        if snapshot is not None:
            await snapshot.flush()
        await self._parts.restart.refresh()
        copies = await in_thread(partial(self._copies, written=snapshot is not None))
        return FilesBeside((FILE_NAME,) if snapshot is not None else (), tuple(copies))

    def _copies(self, *, written: bool) -> list[Path]:
        """Files of the home that may hold what the database held; also a sessions.json that nobody writes."""
        index = self.home / FILE_NAME
        found = [backup_path(index)]
        if not written:
            # An unfinished file belongs to its writer, if there is one, and then shows a later moment.
            found += [index, *self.home.glob(f".{FILE_NAME}.*.tmp")]
        if not is_foreign_link(self.home / QUARANTINE):
            found += (self.home / QUARANTINE).rglob("*")
        if not (self.db.has_upkeep and self.db.path.parent.samefile(self.home)):
            # What a database has left that stood here before, and what was put here all the same.
            found += [*copies_of(self.home / DATABASE_FILE), *self.home.glob(f"{INDEX_FILE}*")]
        return sorted({one for one in found if one.is_file()})
