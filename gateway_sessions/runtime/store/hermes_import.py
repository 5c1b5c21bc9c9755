"""The import of a Hermes home into an open store, with a dry run; a repeated import continues it.

Every session is a transaction of its own and tells by itself that it is here, so an import that was cut off
is simply begun again. A dry run takes the same way and writes nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import tzinfo
from functools import partial
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from gateway_sessions.config import Config
from gateway_sessions.core.export.transfer_reports import FindingKind, ImportReport, Progress
from gateway_sessions.core.identity.keys import Isolation
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.errors import GatewaySessionsError, StorageCorruptError, StorageUnavailableError
from gateway_sessions.runtime.store.open_store import OpenStore
from gateway_sessions.storage.database import SessionDB
from gateway_sessions.storage.files.threads import in_thread
from gateway_sessions.storage.hermes.database import HermesDatabase, Row
from gateway_sessions.storage.hermes.home import HermesHome, HermesLanes, SessionReader, read_lanes
from gateway_sessions.storage.hermes.rows_to_sessions import PROVENANCE, safe_id
from gateway_sessions.storage.tables.change import Actor
from gateway_sessions.storage.transactions.transfer import import_entries as transactions
from gateway_sessions.storage.transactions.transfer.import_entries import KnownSession, LaneState
from gateway_sessions.storage.transactions.transfer.import_session import ImportFate
from gateway_sessions.storage.transfer.import_files import Importer, SessionToImport

PAGE: Final = 100
MAX_BYTES: Final = 8 << 20


@dataclass(slots=True, kw_only=True)
class HermesImport:
    """Imports one Hermes home."""

    db: SessionDB
    path: Path
    flags: Isolation
    zone: tzinfo
    write_entries: Callable[[Sequence[SessionEntry]], Awaitable[object]] | None
    """Lets lanes go on with these sessions; None in a dry run, for which the database is only read."""
    progress: Progress | None = None
    _importer: Importer = field(init=False)
    _new: set[str] = field(default_factory=set[str], init=False)
    _begun: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        dry_run = self.write_entries is None
        self._importer = Importer(
            self.db, self.db.ownership.change_ids, dry_run=dry_run, fill=True, progress=self.progress
        )

    async def run(self) -> ImportReport:
        """Import sessions first, then the lanes that go on with them, and return the report."""
        steps = ExitStack()
        try:
            home = await in_thread(partial(self._find_home))
            database = await in_thread(partial(self._open_database, home, steps))
            lanes = await in_thread(partial(read_lanes, home, database, self.zone, self.flags))
            if database is not None:
                await self._import_sessions(database, lanes)
            written = await self._import_lanes(lanes)
            await in_thread(partial(self._report_left_out, home, database))
        finally:
            await in_thread(steps.close)
        return self._importer.make_report(lanes=written, begun=self._begun)

    def _find_home(self) -> HermesHome:
        try:
            return HermesHome.find_home(self.path.expanduser().absolute())
        except OSError as error:
            raise StorageUnavailableError(str(self.path), error.strerror or str(error)) from error

    def _open_database(self, home: HermesHome, steps: ExitStack) -> HermesDatabase | None:
        if home.database is None:
            return None
        # Whoever only looks leaves nothing in the store's directory, not for a moment.
        scratch = None if self.write_entries is None else self.db.path.parent
        return steps.enter_context(HermesDatabase(home.database, scratch))

    async def _import_sessions(self, database: HermesDatabase, lanes: HermesLanes) -> None:
        reader = await in_thread(partial(SessionReader.for_lanes, database, lanes))
        places = await in_thread(database.session_rowids)
        seen: set[str] = set()
        for start in range(0, len(places), PAGE):
            rows = await in_thread(partial(reader.read_rows, places[start : start + PAGE]))
            for row in rows:
                if isinstance(row, StorageCorruptError):
                    self._importer.add_finding(FindingKind.ERROR, f"a session cannot be read: {row.problem}")
            readable = [row for row in rows if not isinstance(row, StorageCorruptError)]
            seen |= {str(row["id"]) for row in readable}
            await self._import_page(reader, readable)
        orphans = await in_thread(lambda: list(reader.orphaned_sessions(seen)))
        for start in range(0, len(orphans), PAGE):
            await self._import_page(reader, orphans[start : start + PAGE])
        await self._importer.report_missing_parents()

    async def _import_page(self, reader: SessionReader, rows: Sequence[Row]) -> None:
        ids = [safe_id(row["id"]) for row in rows]
        known = await self.db.read(partial(transactions.load_known_sessions, ids, PROVENANCE))
        batch: list[SessionToImport] = []
        for session_id, row in zip(ids, rows, strict=True):
            here = known.get(session_id)
            if here is not None and (here.provenance is not None or not here.empty):
                await self._report_known_session(session_id, here, reader.count_messages(row)._asdict())
                continue
            if session_id != row["id"]:
                self._importer.add_finding(
                    FindingKind.RENAMED, f"Hermes knows it as {row['id']!r}", session_id
                )
            try:
                batch.append(await in_thread(partial(reader.read_candidate, row)))
            except StorageUnavailableError:
                raise
            except GatewaySessionsError as error:
                self._importer.add_finding(FindingKind.ERROR, str(error), session_id)
            if sum(one.size for one in batch) >= MAX_BYTES:
                await self._import_batch(reader, batch)
                batch = []
        await self._import_batch(reader, batch)

    async def _import_batch(self, reader: SessionReader, batch: Sequence[SessionToImport]) -> None:
        await in_thread(reader.database.require_unchanged)
        outcomes = await self._importer.import_batch(batch)
        for one, outcome in zip(batch, outcomes, strict=True):
            if outcome.fate is ImportFate.IMPORTED:
                self._new.add(one.rows.session_id)

    async def _report_known_session(
        self, session_id: str, here: KnownSession, extent: dict[str, int]
    ) -> None:
        """Report a session whose id is known here, unless an earlier import took it in as it is now."""
        if here.provenance is None:
            self._importer.add_finding(FindingKind.CLASH, "another session has its id", session_id)
        elif here.provenance != extent:
            then = here.provenance.get("messages")
            now = extent["messages"]
            detail = f"it had {then} messages in Hermes when it was taken in, and has {now} now"
            self._importer.add_finding(FindingKind.CLASH, f"{detail}; it was left as it is", session_id)
        else:
            await self._importer.skip_existing(session_id, here.parent, here.relation)

    async def _import_lanes(self, lanes: HermesLanes) -> int:
        """Let the lanes go on with their sessions, unless they have others by now."""
        find = self._importer.add_finding
        for problem in lanes.problems:
            find(FindingKind.LEFT_ALONE, problem)
        for one in lanes.rejected:
            find(FindingKind.ERROR, f"lane {one.key or '?'}: {one.reason}")
        shared = {one.session_key: one for one in lanes.shared}
        written = 0
        for start in range(0, len(lanes.entries), PAGE):
            page = lanes.entries[start : start + PAGE]
            states = await self.db.read(partial(transactions.load_lane_states, page))
            free = [one.session_id for one, state in zip(page, states, strict=True) if state.free]
            known = await self.db.read(partial(transactions.load_known_sessions, free, PROVENANCE))
            self._begun += len({*free} - known.keys() - self._new)
            for entry, state in zip(page, states, strict=True):
                written += state.free
                self._report_lane_left(entry, state)
                if state.free and (split := shared.get(entry.session_key)) is not None:
                    detail = f"lane {split.session_key} shared it with {split.kept_by}"
                    detail += f", and goes on as {split.new_session_id}"
                    find(FindingKind.LANE, detail, split.shared_session_id)
            if self.write_entries is not None:
                await self.write_entries(page)
        return written

    def _report_lane_left(self, entry: SessionEntry, state: LaneState) -> None:
        """Report a lane that does not go on with the session that was just imported for it."""
        if not state.free and entry.session_id in self._new:
            there = state.session_id or "nothing"
            held = f"{entry.session_id} is on lane {state.holder}" if state.holder else "it can be resumed"
            detail = f"lane {entry.session_key} has {there} here; {held}"
            self._importer.add_finding(FindingKind.LANE, detail, entry.session_id)

    def _report_left_out(self, home: HermesHome, database: HermesDatabase | None) -> None:
        for table, rows in (database.count_other_rows() if database is not None else {}).items():
            self._importer.add_finding(FindingKind.LEFT_ALONE, f"{rows} rows of table {table}")
        for name in home.unread_files():
            self._importer.add_finding(FindingKind.LEFT_ALONE, name)


async def rehearse_hermes_import(
    db: SessionDB, config: Config, path: str | Path, *, progress: Progress | None = None
) -> ImportReport:
    """Report what `SessionStore.import_hermes` would do in a store with that database, which is only read."""
    policies = await in_thread(config.policy_book)
    zone = ZoneInfo(policies.zone_name)
    flags = config.isolation
    work = HermesImport(db=db, path=Path(path), flags=flags, zone=zone, write_entries=None, progress=progress)
    return await work.run()


class HermesMethods(OpenStore):
    """Methods of `SessionStore` for whoever comes from Hermes."""

    async def import_hermes(
        self, path: str | Path, *, dry_run: bool = False, progress: Progress | None = None
    ) -> ImportReport:
        """Bring a Hermes home along: sessions, messages, use, and lanes that go on with them.

        The home is only read, Hermes may be running. An import that was cut off is simply begun again. See
        the report for what could not be taken in as it was.
        """
        self._check_running()
        context = self._parts.context
        if dry_run:
            return await rehearse_hermes_import(context.db, self.config, path, progress=progress)

        async def let_go_on(entries: Sequence[SessionEntry]) -> None:
            await context.apply(Actor.IMPORT, partial(transactions.import_entries, entries=entries))

        work = HermesImport(
            db=context.db,
            path=Path(path),
            flags=self.isolation,
            zone=ZoneInfo(context.policies.zone_name),
            write_entries=let_go_on,
            progress=progress,
        )
        return await work.run()
