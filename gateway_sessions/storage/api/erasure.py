"""Methods of `SessionDB` that export or erase a person: rows, search index, log, then every copy."""

from __future__ import annotations

import asyncio
import glob
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import anyio

from gateway_sessions.core.identity.keys import normalize_whatsapp_id
from gateway_sessions.core.identity.scope import Scope
from gateway_sessions.core.identity.source import Platform
from gateway_sessions.core.progress import OnProgress, WorkProgress
from gateway_sessions.core.sessions.erasure import ErasureReceipt, ErasureSubject, Kept, list_kept_in_rooms
from gateway_sessions.core.sessions_json.entries import entry_to_dict
from gateway_sessions.ports import Clock
from gateway_sessions.storage.api.retention import RetentionMethods, TransferMethods
from gateway_sessions.storage.engines.protocol import Upkeep
from gateway_sessions.storage.engines.sqlite.backup import BACKUPS
from gateway_sessions.storage.files.atomic_file import QUARANTINE, remove_file
from gateway_sessions.storage.files.private_files import is_foreign_link
from gateway_sessions.storage.files.threads import in_thread
from gateway_sessions.storage.listener import DatabaseListener
from gateway_sessions.storage.ownership import Ownership
from gateway_sessions.storage.search.protocol import SearchIndex
from gateway_sessions.storage.tables import entries, tombstones
from gateway_sessions.storage.transactions.queue import erasure
from gateway_sessions.storage.transactions.upkeep import erasure as transactions
from gateway_sessions.storage.transactions.upkeep import message_erasure
from gateway_sessions.storage.transactions.upkeep.adapter_notes import forget_in_adapter_notes
from gateway_sessions.storage.transactions.upkeep.erasure import ErasurePlan
from gateway_sessions.storage.transactions.upkeep.message_erasure import MessagesOfPerson

EXPORTS: Final = "exports"
"""The directory beside the database for the store's own exports: an erasure removes all files in it."""
FOLDERS: Final = (BACKUPS, EXPORTS, QUARANTINE)
"""Directories beside the database that hold only copies of its rows."""
MESSAGES: Final = "messages"
SESSIONS: Final = 100
"""The number of sessions read in one page."""
TRIES: Final = 100
PAUSE_SECONDS: Final = 0.05
"""The log is emptied once a reader has ended: so many tries, with this pause between them."""

ON_A_SERVER: Final = (
    Kept("dead rows on the database server", "the server gives them up when it vacuums its tables"),
    Kept(
        "the server's write-ahead log, replicas and base backups",
        "they are the server's; its operator decides how long they are kept",
    ),
)
"""The remains on a server, which no client can remove."""


class Eraser:
    """Carries out erasures, one at a time; each step after the first can be repeated."""

    def __init__(
        self,
        db: RetentionMethods,
        ownership: Ownership,
        clock: Clock,
        upkeep: Upkeep | None,
        index: SearchIndex,
        listener: DatabaseListener,
    ) -> None:
        self.copying: asyncio.Lock = asyncio.Lock()
        """Held while a copy is made and while copies are removed: none may appear after the removal."""
        self._db = db
        self._ownership = ownership
        self._clock = clock
        self._upkeep = upkeep
        self._index = index
        self._listener = listener
        self._erasing = asyncio.Lock()
        """Held by the one erasure that is running."""

    async def erase(
        self, subject: ErasureSubject, *, keep_copies: bool, progress: OnProgress
    ) -> ErasureReceipt:
        """Forget an owner of sessions in every table and file; return a receipt."""
        async with self._erasing, self._overwriting_deleted():
            moment = self._clock.now()
            also = await self._aliases_in_rooms(subject)
            begin = partial(transactions.begin_erasure, subject, moment, self._change_ids)
            begun = await self._db.write(partial(begin, keep_copies=keep_copies, known_as=also))
            return await self._carry_out(begun.plan, begun.rows, progress)

    async def finish_cut_off(self) -> int:
        """Finish the erasures that were cut off; return how many."""
        async with self._erasing, self._overwriting_deleted():
            plans = await self._db.read(transactions.unfinished_erasures)
            for plan in plans:
                await self._carry_out(plan, Counter(), _ignore_progress)
            return len(plans)

    @property
    def _change_ids(self) -> Iterator[int]:
        return self._ownership.change_ids

    async def _aliases_in_rooms(self, subject: ErasureSubject) -> tuple[str, ...]:
        """Return the ids by which rooms name a person besides their own: on WhatsApp people have several."""
        if subject.platform != Platform.WHATSAPP or subject.user_id is None:
            return ()
        found: list[str] = []
        for user_id in await self._db.read(partial(transactions.user_ids_in_rooms, subject)):
            bare = normalize_whatsapp_id(user_id)
            goes_by = await self._listener.resolve_alias(subject.platform, bare)
            found += [user_id] if goes_by == subject.user_id else []
        return tuple(found)

    async def _rewrite_database(self, upkeep: Upkeep) -> bool:
        """Rewrite the database file and empty its log; False if a reader held an old moment all the while."""
        emptied = (await upkeep.vacuum()).log_emptied
        for _ in range(TRIES):
            if emptied:
                break
            await anyio.sleep(PAUSE_SECONDS)
            emptied = await upkeep.empty_log()
        return emptied

    @asynccontextmanager
    async def _overwriting_deleted(self) -> AsyncGenerator[None]:
        """Overwrite the space of deleted rows with zeros until the end of the block."""
        if self._upkeep is None:
            yield
            return
        await self._upkeep.overwrite_deleted(overwrite=True)
        try:
            yield
        finally:
            await self._upkeep.overwrite_deleted(overwrite=False)

    async def _carry_out(
        self, plan: ErasurePlan, begun: Counter[str], progress: OnProgress
    ) -> ErasureReceipt:
        """Carry out all steps after the first; each may be repeated."""
        rows = begun
        if plan.owner is not None:
            rows = begun + await self._erase_rows(ErasureSubject.named(plan.owner), plan, progress)
        progress(WorkProgress(doing="Removing copies"))
        async with self.copying:
            beside = await self._listener.purge_erased_from_files()
            copies = [*await in_thread(partial(copies_of, self._db.path)), *beside.copies]
            if not plan.keep_copies:
                await in_thread(partial(remove_files, copies))
            await self._db.write(partial(transactions.forget_name, plan))
        kept = [*list_kept_in_rooms(ErasureSubject.named(plan.owner))] if plan.owner is not None else []
        kept += await in_thread(partial(_foreign_links, self._db.path.parent))
        rewritten: list[str] = []
        if self._upkeep is None:
            kept += ON_A_SERVER
        else:
            rewritten.append(self._db.path.name)
            progress(WorkProgress(doing="Writing the file anew"))
            if not await self._rewrite_database(self._upkeep):
                name = f"{self._db.path.name}-wal"
                kept.append(Kept(name, "a reader looks at an old moment; it is emptied once that has ended"))
        await self._db.write(partial(transactions.finish_erasure, plan))
        if plan.keep_copies:
            kept += [Kept(str(one), "the caller wanted to keep copies") for one in copies]
            copies = []
        elif self._upkeep is not None and any(one.parent.name == BACKUPS for one in copies):
            progress(WorkProgress(doing="Taking a new copy"))
            rewritten.append(await self._back_up(self._upkeep))
        return ErasureReceipt(
            owner=plan.owner or "",
            erased_at=plan.until,
            rows={table: count for table, count in sorted(rows.items()) if count},
            rewritten=(*rewritten, *beside.rewritten),
            removed=tuple(map(str, copies)),
            kept=tuple(kept),
        )

    async def _back_up(self, upkeep: Upkeep) -> str:
        """Take the only backup that is left, of a database without the rows; return its place in the home."""
        async with self.copying:
            copy = await upkeep.back_up(self._clock.now(), keep=None)
        return str(copy.relative_to(self._db.path.parent))

    async def _erase_rows(
        self, subject: ErasureSubject, plan: ErasurePlan, progress: OnProgress
    ) -> Counter[str]:
        rows: Counter[str] = Counter()
        moment = plan.until
        progress(WorkProgress(doing="Removing sessions"))
        while removed := await self._db.write(
            partial(transactions.erase_sessions, subject, moment, self._change_ids)
        ):
            rows += removed
            progress(WorkProgress(doing="Removing sessions", done=rows["sessions"]))
        rows[MESSAGES] += await self._db.finish_removals()
        said = partial(
            message_erasure.erase_some, transactions.messages_to_erase(subject, plan), self._change_ids
        )
        while removed := await self._db.write(said):
            rows += removed
        rows += await self._db.write(partial(message_erasure.forget_titles, subject.owner))
        settled = partial(erasure.erase_settled, subject, plan.lanes, plan.erased_at, self._change_ids)
        while removed := await self._db.write(settled):
            rows += removed
        for session_key in plan.lanes:
            rows += await self._db.write(partial(transactions.erase_lane, session_key, moment))
        rows += await self._db.write(partial(transactions.scrub_ids, subject, plan.ids))
        rows += await self._db.write(partial(forget_in_adapter_notes, subject, plan.lanes))
        await self._index.forget_removed()  # even if no message was left
        return rows


class ErasureMethods(TransferMethods, RetentionMethods):
    """Export and erasure of everything that a store knows of a person."""

    _eraser: Eraser

    async def erase(
        self, owner: str, *, keep_copies: bool = False, progress: OnProgress | None = None
    ) -> ErasureReceipt:
        """Forget an owner of sessions, in every table and file of the database; return a receipt.

        Raise `SessionBusyError` while a turn of theirs runs. A second erasure does no harm. Backups and
        quarantined files are removed, unless *keep_copies*: then the receipt lists them. An erasure that is
        cut off is finished when the store is opened again, or by `finish_erasures`.
        """
        subject = ErasureSubject.named(owner)
        self._check_running()
        return await self._eraser.erase(
            subject, keep_copies=keep_copies, progress=progress or _ignore_progress
        )

    async def unfinished_erasures(self) -> int:
        """Return the number of erasures that were begun and not finished."""
        return len(await self.read(transactions.unfinished_erasures))

    async def finish_erasures(self) -> int:
        """Finish the erasures that were cut off; return how many. Messages sent since the erasure stay."""
        self._check_running()
        return await self._eraser.finish_cut_off()

    async def export_owner(self, owner: str) -> AsyncIterator[dict[str, Any]]:
        """Yield all that is known of an owner: their lanes with log, queue and replies, and every session.

        Then come rooms that they share, with their messages that wait and the replies that they are owed;
        then their messages in other owners' sessions, be it in a room or because their session was moved or
        forked; and last the titles that they gave to these sessions.
        """
        subject = ErasureSubject.named(owner)
        lanes = await self.read(partial(transactions.lanes_of, subject))
        waiting = await self.read(partial(erasure.export_queue_of_person, subject, lanes))
        for session_key in lanes:
            entry = await self.read(partial(entries.load, session_key))
            current = entry_to_dict(entry) if entry is not None else None
            history = await self.read(partial(transactions.lane_history, session_key))
            known = {"lane": session_key, "entry": current, "history": history}
            yield known | waiting.pop(session_key, {})
        for session_key, theirs in waiting.items():
            yield {"room": session_key, **theirs}
        async for session in self.export_all(scope=Scope(owners=frozenset({subject.owner}))):
            yield session
        async for elsewhere in self._messages_elsewhere(subject.owner):
            yield elsewhere
        last = ""
        while titles := await self.read(
            partial(message_erasure.titles_given_by, subject.owner, last, SESSIONS)
        ):
            for title in titles:
                yield title
            last = titles[-1]["titled"]

    async def count_said_elsewhere(self, owner: str) -> int:
        """Return how many messages of an owner are in sessions of others."""
        return await self.read(
            partial(message_erasure.count_messages_of, MessagesOfPerson(ErasureSubject.named(owner).owner))
        )

    async def erased_at(self, owner: str) -> datetime | None:
        """Return the time at which an owner was erased: messages sent until then must not be taken in."""
        return await self.read(partial(tombstones.erased_at, owner))

    async def _messages_elsewhere(self, owner: str) -> AsyncIterator[dict[str, Any]]:
        said, last = MessagesOfPerson(owner), ""
        while found := await self.read(partial(message_erasure.sessions_with, said, last, SESSIONS)):
            for session_id, platform in found:
                told = await self.read(
                    partial(message_erasure.export_messages_of, said, session_id, platform)
                )
                if told is not None:
                    yield told
            last = found[-1][0]


def _ignore_progress(_: WorkProgress) -> None:
    """Ignore progress."""


def copies_of(database: Path) -> list[Path]:
    """Return every file beside the database that may hold its rows: backups, exports, quarantined files."""
    home, name = database.parent, glob.escape(database.name)
    beside = [*home.glob(f"{name}.*.bak"), *home.glob(f"{name}.rebu*")]
    inside = [
        one for folder in FOLDERS if not is_foreign_link(home / folder) for one in (home / folder).rglob("*")
    ]
    return sorted(one for one in (*beside, *inside) if one.is_file() or one.is_symlink())


def _foreign_links(home: Path) -> list[Kept]:
    """Return the folders that are links of other users: the files behind them are not removed."""
    why = "it is a link that another user made or could have made; nothing behind it was removed"
    return [Kept(str(home / one), why) for one in FOLDERS if is_foreign_link(home / one)]


def remove_files(paths: Iterable[Path]) -> None:
    """Remove files for good."""
    for path in paths:
        remove_file(path)
