"""Methods of `SessionDB` that export or erase a person: rows, search index, log, then every copy."""

from __future__ import annotations

import asyncio
import glob
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import anyio

from gateway_sessions.core.identity.keys import normalize_whatsapp
from gateway_sessions.core.identity.scope import Scope
from gateway_sessions.core.identity.source import Platform
from gateway_sessions.core.progress import OnProgress, WorkProgress
from gateway_sessions.core.sessions.erasure import ErasureReceipt, Kept, Subject, kept_in_rooms
from gateway_sessions.core.sessions_json.entries import entry_to_dict
from gateway_sessions.ports import AliasResolver
from gateway_sessions.storage.api.retention import RetentionMethods, TransferMethods
from gateway_sessions.storage.api.search import SearchMethods
from gateway_sessions.storage.engines.protocol import VacuumReport
from gateway_sessions.storage.engines.sqlite.backup import BACKUPS
from gateway_sessions.storage.files.atomic_file import QUARANTINE, remove
from gateway_sessions.storage.files.private_files import is_foreign_link
from gateway_sessions.storage.files.threads import in_thread
from gateway_sessions.storage.tables import entries, tombstones
from gateway_sessions.storage.transactions.queue import erasure
from gateway_sessions.storage.transactions.upkeep import erasure as transactions
from gateway_sessions.storage.transactions.upkeep import message_erasure
from gateway_sessions.storage.transactions.upkeep.erasure import ErasurePlan
from gateway_sessions.storage.transactions.upkeep.message_erasure import Said

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


@dataclass(frozen=True, slots=True)
class Beside:
    """Files of a store besides its database."""

    rewritten: tuple[str, ...] = ()
    copies: tuple[Path, ...] = ()
    """Files that may hold rows of the database."""


class ErasureMethods(SearchMethods, TransferMethods, RetentionMethods):
    """Export and erasure of everything that a store knows of a person."""

    _erasing: asyncio.Lock
    """Held by the one erasure that is running."""
    _copying: asyncio.Lock
    """Held while a copy is made and while copies are removed: no older copy may appear after the removal."""
    rewrite_beside: Callable[[], Awaitable[Beside]] | None = None
    """Rewrites the files of the store besides the database, once the rows are gone."""
    alias_of: AliasResolver | None = None
    """Returns the one id that all ids of a person share, where a store knows it."""

    async def erase(
        self, owner: str, *, keep_copies: bool = False, progress: OnProgress | None = None
    ) -> ErasureReceipt:
        """Forget an owner of sessions, in every table and file of the database; return a receipt.

        Raise `SessionBusyError` while a turn of theirs runs. A second erasure does no harm. Backups and
        quarantined files are removed, unless *keep_copies*: then the receipt lists them. An erasure that is
        cut off is finished when the store is opened again, or by `finish_erasures`.
        """
        subject = Subject.named(owner)
        async with self._erasing, self._overwriting():
            moment = self._clock.now()
            also = await self._other_ids(subject)
            begin = partial(transactions.begin, subject, moment, self.change_ids)
            begun = await self.write(partial(begin, keep_copies=keep_copies, known_as=also))
            return await self._carry_out(begun.plan, begun.rows, progress)

    async def unfinished_erasures(self) -> int:
        """Return the number of erasures that were begun and not finished."""
        return len(await self.read(transactions.unfinished))

    async def finish_erasures(self) -> int:
        """Finish the erasures that were cut off; return how many. Messages sent since the erasure stay."""
        async with self._erasing, self._overwriting():
            plans = await self.read(transactions.unfinished)
            for plan in plans:
                await self._carry_out(plan, Counter())
            return len(plans)

    async def export_owner(self, owner: str) -> AsyncIterator[dict[str, Any]]:
        """Yield all that is known of an owner: their lanes with log, queue and replies, and every session.

        Then come rooms that they share, with their messages that wait and the replies that they are owed;
        then their messages in other owners' sessions, be it in a room or because their session was moved or
        forked; and last the titles that they gave to these sessions.
        """
        subject = Subject.named(owner)
        lanes = await self.read(partial(transactions.lanes_of, subject))
        waiting = await self.read(partial(erasure.waiting_of, subject, lanes))
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
        async for elsewhere in self._said_elsewhere(subject.owner):
            yield elsewhere
        last = ""
        while titles := await self.read(partial(message_erasure.titles_of, subject.owner, last, SESSIONS)):
            for title in titles:
                yield title
            last = titles[-1]["titled"]

    async def count_said_elsewhere(self, owner: str) -> int:
        """Return how many messages of an owner are in sessions of others."""
        return await self.read(partial(message_erasure.count, Said(Subject.named(owner).owner)))

    async def erased_at(self, owner: str) -> datetime | None:
        """Return the time at which an owner was erased: messages sent until then must not be taken in."""
        return await self.read(partial(tombstones.erased_at, owner))

    @property
    def has_upkeep(self) -> bool:
        """Return whether this program maintains the database file."""
        raise NotImplementedError

    async def overwrite_deleted(self, *, overwrite: bool) -> None:
        """Overwrite the space of deleted rows with zeros from now on, or stop doing so."""
        raise NotImplementedError

    async def vacuum(self) -> VacuumReport:
        """Rewrite the database file without gaps."""
        raise NotImplementedError

    async def empty_log(self) -> bool:
        """Cut the write-ahead log to nothing."""
        raise NotImplementedError

    async def back_up(self, *, keep: int | None = None) -> Path:
        """Copy the database as it is now."""
        raise NotImplementedError

    async def _other_ids(self, subject: Subject) -> tuple[str, ...]:
        """Return the ids by which rooms name a person besides their own: on WhatsApp people have several."""
        if subject.platform != Platform.WHATSAPP or subject.user_id is None:
            return ()
        found: list[str] = []
        for user_id in await self.read(partial(transactions.ids_in_rooms, subject)):
            bare = normalize_whatsapp(user_id)
            goes_by = bare if self.alias_of is None else await self.alias_of(subject.platform, bare)
            found += [user_id] if goes_by == subject.user_id else []
        return tuple(found)

    async def _said_elsewhere(self, owner: str) -> AsyncIterator[dict[str, Any]]:
        said, last = Said(owner), ""
        while found := await self.read(partial(message_erasure.sessions_with, said, last, SESSIONS)):
            for session_id, platform in found:
                told = await self.read(partial(message_erasure.told, said, session_id, platform))
                if told is not None:
                    yield told
            last = found[-1][0]

    async def _rewritten(self) -> bool:
        """Rewrite the database file and empty its log; False if a reader held an old moment all the while."""
        emptied = (await self.vacuum()).log_emptied
        for _ in range(TRIES):
            if emptied:
                break
            await anyio.sleep(PAUSE_SECONDS)
            emptied = await self.empty_log()
        return emptied

    @asynccontextmanager
    async def _overwriting(self) -> AsyncGenerator[None]:
        if not self.has_upkeep:
            yield
            return
        await self.overwrite_deleted(overwrite=True)
        try:
            yield
        finally:
            await self.overwrite_deleted(overwrite=False)

    async def _carry_out(
        self, plan: ErasurePlan, begun: Counter[str], progress: OnProgress | None = None
    ) -> ErasureReceipt:
        """Carry out all steps after the first; each may be repeated."""
        tell = progress or _nobody
        rows = begun
        if plan.owner is not None:
            rows = begun + await self._erase_rows(Subject.named(plan.owner), plan, tell)
        tell(WorkProgress(doing="Removing copies"))
        async with self._copying:
            beside = await self.rewrite_beside() if self.rewrite_beside is not None else Beside()
            copies = [*await in_thread(partial(copies_of, self.path)), *beside.copies]
            if not plan.keep_copies:
                await in_thread(partial(remove_all, copies))
            await self.write(partial(transactions.forget_name, plan))
        kept = [*kept_in_rooms(Subject.named(plan.owner))] if plan.owner is not None else []
        kept += await in_thread(partial(_not_looked_into, self.path.parent))
        rewritten: list[str] = []
        if not self.has_upkeep:
            kept += ON_A_SERVER
        else:
            rewritten.append(self.path.name)
            tell(WorkProgress(doing="Writing the file anew"))
            if not await self._rewritten():
                name = f"{self.path.name}-wal"
                kept.append(Kept(name, "a reader looks at an old moment; it is emptied once that has ended"))
        await self.write(partial(transactions.finish, plan))
        if plan.keep_copies:
            kept += [Kept(str(one), "the caller wanted to keep copies") for one in copies]
            copies = []
        elif self.has_upkeep and any(one.parent.name == BACKUPS for one in copies):
            tell(WorkProgress(doing="Taking a new copy"))
            rewritten.append(str((await self.back_up()).relative_to(self.path.parent)))
        return ErasureReceipt(
            owner=plan.owner or "",
            erased_at=plan.until,
            rows={table: count for table, count in sorted(rows.items()) if count},
            rewritten=(*rewritten, *beside.rewritten),
            removed=tuple(map(str, copies)),
            kept=tuple(kept),
        )

    async def _erase_rows(self, subject: Subject, plan: ErasurePlan, tell: OnProgress) -> Counter[str]:
        rows: Counter[str] = Counter()
        moment = plan.until
        tell(WorkProgress(doing="Removing sessions"))
        while removed := await self.write(
            partial(transactions.erase_sessions, subject, moment, self.change_ids)
        ):
            rows += removed
            tell(WorkProgress(doing="Removing sessions", done=rows["sessions"]))
        rows[MESSAGES] += await self.finish_removals()
        said = partial(message_erasure.erase_some, transactions.said_before(subject, plan), self.change_ids)
        while removed := await self.write(said):
            rows += removed
        rows += await self.write(partial(message_erasure.forget_titles, subject.owner))
        settled = partial(erasure.erase_settled, subject, plan.lanes, plan.erased_at, self.change_ids)
        while removed := await self.write(settled):
            rows += removed
        for session_key in plan.lanes:
            rows += await self.write(partial(transactions.erase_lane, session_key, moment))
        rows += await self.write(partial(transactions.scrub, subject, plan.ids))
        await self._index.forget_removed()  # even if no message was left
        return rows


def _nobody(_: WorkProgress) -> None:
    """Ignore progress."""


def copies_of(database: Path) -> list[Path]:
    """Return every file beside the database that may hold its rows: backups, exports, quarantined files."""
    home, name = database.parent, glob.escape(database.name)
    beside = [*home.glob(f"{name}.*.bak"), *home.glob(f"{name}.rebu*")]
    inside = [
        one for folder in FOLDERS if not is_foreign_link(home / folder) for one in (home / folder).rglob("*")
    ]
    return sorted(one for one in (*beside, *inside) if one.is_file() or one.is_symlink())


def _not_looked_into(home: Path) -> list[Kept]:
    """Return the folders that are links of other users: the files behind them are not removed."""
    why = "it is a link that another user made or could have made; nothing behind it was removed"
    return [Kept(str(home / one), why) for one in FOLDERS if is_foreign_link(home / one)]


def remove_all(paths: Iterable[Path]) -> None:
    """Remove files for good."""
    for path in paths:
        remove(path)
