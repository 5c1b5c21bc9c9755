"""Forgetting somebody: rows first, then the index, the file and its log, then every copy of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import anyio

from gateway_sessions.core.entry_codec import entry_to_dict
from gateway_sessions.core.erasure import ErasureReceipt, Kept, Subject, kept_in_rooms
from gateway_sessions.core.scope import Scope
from gateway_sessions.storage.atomic_file import remove
from gateway_sessions.storage.drivers.sqlite_backup import BACKUPS
from gateway_sessions.storage.drivers.sqlite_upkeep import VacuumReport
from gateway_sessions.storage.in_thread import in_thread
from gateway_sessions.storage.methods.retention import RetentionMethods
from gateway_sessions.storage.methods.searching import SearchMethods
from gateway_sessions.storage.methods.transfer import TransferMethods
from gateway_sessions.storage.verbs import entries, tombstones
from gateway_sessions.storage.verbs import erasure as verbs

QUARANTINE: Final = "quarantine"
MESSAGES: Final = "messages"
TRIES: Final = 100
PAUSE_SECONDS: Final = 0.05
"""So often, and so far apart, it is tried to empty a log that somebody reads."""


class ErasureMethods(SearchMethods, TransferMethods, RetentionMethods):
    """Telling a person what is known of them, and forgetting it."""

    async def erase(self, owner: str, *, keep_copies: bool = False) -> ErasureReceipt:
        """Forget an owner of sessions, in every table and file of the database; a receipt tells of it.

        `SessionBusyError` while a turn of theirs runs. Erasing again does no harm. Backups and what is in
        quarantine are removed, unless they shall be kept: then the receipt lists them. A store that has a
        sessions.json is asked itself: `SessionStore.erase`.
        """
        subject, moment = Subject.named(owner), self._clock.now()
        await self.overwrite_deleted(overwrite=True)
        try:
            rows = await self._erase_rows(subject, moment)
        finally:
            await self.overwrite_deleted(overwrite=False)
        kept = [kept_in_rooms(subject)]
        if not await self._rewritten():
            name = f"{self.path.name}-wal"
            kept.append(Kept(name, "a reader looks at an old moment; it is emptied once that has ended"))
        copies = await in_thread(partial(copies_of, self.path))
        if keep_copies:
            kept += [Kept(str(one), "the caller wanted to keep copies") for one in copies]
            return _receipt(subject, moment, rows, kept)
        await in_thread(partial(remove_all, copies))
        rewritten = [self.path.name]
        if any(one.parent.name == BACKUPS for one in copies):
            rewritten.append(str((await self.back_up()).relative_to(self.path.parent)))
        return _receipt(subject, moment, rows, kept, rewritten=rewritten, removed=copies)

    async def export_owner(self, owner: str) -> AsyncIterator[dict[str, Any]]:
        """All that is known of an owner: their lanes, what happened there, and every session."""
        subject = Subject.named(owner)
        for session_key in await self.read(partial(verbs.lanes_of, subject)):
            entry = await self.read(partial(entries.load, session_key))
            current = entry_to_dict(entry) if entry is not None else None
            history = await self.read(partial(verbs.lane_history, session_key))
            yield {"lane": session_key, "entry": current, "history": history}
        async for session in self.export_all(scope=Scope(owners=frozenset({owner}))):
            yield session

    async def erased_at(self, owner: str) -> datetime | None:
        """When an owner was erased: what they sent until then must not be taken in."""
        return await self.read(partial(tombstones.erased_at, owner))

    async def overwrite_deleted(self, *, overwrite: bool) -> None:
        """Whether the room of deleted rows is overwritten with zeros from now on."""
        raise NotImplementedError

    async def vacuum(self) -> VacuumReport:
        """Write the file anew without gaps."""
        raise NotImplementedError

    async def empty_log(self) -> bool:
        """Cut the write-ahead log to nothing."""
        raise NotImplementedError

    async def back_up(self, *, keep: int | None = None) -> Path:
        """Copy the database as it is now."""
        raise NotImplementedError

    async def _rewritten(self) -> bool:
        """Write the file anew and empty its log; False if somebody reads an old moment all the while."""
        emptied = (await self.vacuum()).log_emptied
        for _ in range(TRIES):
            if emptied:
                break
            await anyio.sleep(PAUSE_SECONDS)
            emptied = await self.empty_log()
        return emptied

    async def _erase_rows(self, subject: Subject, moment: datetime) -> Counter[str]:
        begun = await self.write(partial(verbs.begin, subject, moment))
        rows = Counter(begun.rows)
        while removed := await self.write(partial(verbs.erase_sessions, subject, moment, self.change_ids)):
            rows += removed
        rows[MESSAGES] += await self.finish_removals()
        for session_key in begun.lanes:
            rows += await self.write(partial(verbs.erase_lane, session_key, moment))
        rows += await self.write(partial(verbs.scrub, subject))
        if rows[MESSAGES] or begun.resumed:
            await self.rebuild_search_index()
        await self.write(partial(verbs.finish, subject))
        return rows


def copies_of(database: Path) -> list[Path]:
    """Every file beside the database that may hold what it held: backups, and what was set aside."""
    home = database.parent
    beside = [*home.glob(f"{database.name}.*.bak"), *home.glob(f"{database.name}.rebu*")]
    inside = [one for name in (BACKUPS, QUARANTINE) for one in (home / name).rglob("*")]
    return sorted(one for one in (*beside, *inside) if one.is_file() or one.is_symlink())


def remove_all(paths: Iterable[Path]) -> None:
    """Take files away for good."""
    for path in paths:
        remove(path)


def _receipt(
    subject: Subject,
    moment: datetime,
    rows: Counter[str],
    kept: Iterable[Kept],
    *,
    rewritten: Iterable[str] = (),
    removed: Iterable[Path] = (),
) -> ErasureReceipt:
    return ErasureReceipt(
        owner=subject.owner,
        erased_at=moment,
        rows={table: count for table, count in sorted(rows.items()) if count},
        rewritten=tuple(rewritten),
        removed=tuple(map(str, removed)),
        kept=tuple(kept),
    )
