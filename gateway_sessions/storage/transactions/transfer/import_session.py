"""Import one session: encode its rows, and settle clashes of its id, title and parent.

A session is written as the file has it, unless a session here has its id, title or place already. A note in
`extra` keeps the file's values where the row here differs from them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar, cast

import msgspec

from gateway_sessions.core.export.session_reader import ExportedSession
from gateway_sessions.core.instants import to_micros
from gateway_sessions.core.search.documents import Searchable
from gateway_sessions.core.sessions.record import Relation
from gateway_sessions.core.sessions.titles import (
    MAX_TITLE,
    next_number,
    normalize_title,
    numbered_title,
    split_numbered_title,
)
from gateway_sessions.core.storable_text import StorableEncoder
from gateway_sessions.errors import InvalidInputError, StorageCorruptError
from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.storage.tables import tombstones
from gateway_sessions.storage.tables.column_decoding import decode_json
from gateway_sessions.storage.tables.entries import decode_archive, encode_archive
from gateway_sessions.storage.tables.message_rows import MessageColumns, content_columns, encode_message
from gateway_sessions.storage.tables.sql_files import record_of, row_of
from gateway_sessions.storage.transactions.sessions.remove import remove_earlier_session
from gateway_sessions.storage.transactions.sessions.titles import titles_in_lineage
from gateway_sessions.storage.transactions.transcripts.usage import UsageRow, usage_row
from gateway_sessions.storage.transactions.transfer.export import EarlierVersion

NOTE: Final = "import"
"""The member of `extra` that keeps the file's values where the row here differs from them."""
_LATEST: Final = 1 << 62
"""An instant later than that of any message."""
_TEXTS: Final = ("model", "system_prompt", "billing_provider", "billing_base_url", "billing_mode")


@row_of("session_as_imported")
@record_of("add_imported_session")
class SessionColumns(NamedTuple):
    """All columns of a session that an import writes."""

    session_id: str
    session_key: str | None
    owner: str
    source: str
    user_id: str | None
    parent_session_id: str | None
    relation: str | None
    started_at: int
    ended_at: int | None
    end_reason: str | None
    ends: int
    """The number of times that the session ended."""
    entry: str | None
    """The lane's entry as it was when the session ended."""
    title: str | None
    title_by: str | None
    model: str | None
    model_config: str | None
    system_prompt: str | None
    billing_provider: str | None
    billing_base_url: str | None
    billing_mode: str | None
    pinned: int
    archived: int
    extra: str | None
    title_owner: str | None


@record_of("add_imported_totals")
class TotalsColumns(NamedTuple):
    """The totals of a session, by the names of the fields of its record."""

    session_id: str
    last_active: int
    last_seq: int
    message_count: int
    tool_call_count: int
    text_bytes: int
    rewind_count: int
    preview: str | None
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    api_call_count: int
    estimated_cost_usd: float | None
    actual_cost_usd: float | None
    cost_status: str | None
    cost_source: str | None
    pricing_version: str | None


class EncodedPlace(NamedTuple):
    """A message of a session as columns, and its place."""

    seq: int
    hidden_by: int | None
    """The change that hid the message, as a number counted from 1."""
    columns: MessageColumns


class EncodedVersion(NamedTuple):
    """An earlier version of the message at a place."""

    seq: int
    version: int
    content: str | None
    parts: str | None
    replaced_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedSession:
    """A session as rows."""

    columns: SessionColumns
    totals: TotalsColumns
    messages: Sequence[EncodedPlace]
    versions: Sequence[EncodedVersion]
    usage: Sequence[UsageRow]

    @property
    def session_id(self) -> str:
        """Return the id of the session."""
        return self.columns.session_id

    @property
    def message_count(self) -> int:
        """Return the number of visible messages."""
        return self.totals.message_count

    @property
    def first_instant(self) -> int:
        """Return the beginning of the session, or the time of its first message if that is earlier."""
        return min(self.columns.started_at, *(one.columns.sent_at for one in self.messages), _LATEST)

    @property
    def first_said(self) -> Mapping[str, int]:
        """Return the time of each author's first message, for messages that name an author."""
        found: dict[str, int] = {}
        for _, _, message in self.messages:
            if message.author is not None:
                found[message.author] = min(message.sent_at, found.get(message.author, _LATEST))
        return found

    @property
    def digest(self) -> int:
        """Return a hash that is the same for the same session within this process."""
        return hash((self.columns, tuple(self.messages), tuple(self.versions), tuple(self.usage)))


def encode_session(bundle: ExportedSession, now: datetime) -> EncodedSession:
    """Return the rows of a session; `InvalidInputError` for values that cannot be stored.

    A large session takes long.
    """
    record, intake = bundle.record, StorableEncoder()
    stored = [encode_message(one.message, now) for one in bundle.messages]
    totals = {name: getattr(record, name) for name in TotalsColumns._fields}
    totals |= {
        "last_active": to_micros(record.last_active),
        "text_bytes": sum(one.size for one in stored),
    }
    return EncodedSession(
        columns=_encode_columns(bundle, intake),
        totals=TotalsColumns(**totals),
        messages=[
            EncodedPlace(one.message.seq, one.hidden_by, row.columns)
            for one, row in zip(bundle.messages, stored, strict=True)
        ],
        versions=list(_encode_versions(bundle, intake)),
        usage=[usage_row(one) for one in bundle.usage],
    )


def read_note(extra: str | None) -> dict[str, Any]:
    """Return the file's values that differ from the row, from its column `extra`."""
    note = _decode_extra(extra).get(NOTE)
    members = cast("dict[str, Any]", note) if isinstance(note, dict) else {}
    return {name: value for name, value in members.items() if name in SessionColumns._fields}


def with_note(extra: str | None, note: Mapping[str, Any]) -> str | None:
    """Return `extra` with a note; a note that stood in the file stays inside of the new one."""
    if not note:
        return extra
    members = _decode_extra(extra)
    earlier = {NOTE: members[NOTE]} if NOTE in members else {}
    return StorableEncoder().json("extra", members | {NOTE: dict(note) | earlier})


def without_note(extra: str | None) -> str | None:
    """Return `extra` as it stood in the file."""
    members = _decode_extra(extra)
    note = members.get(NOTE)
    if isinstance(note, dict) and NOTE in note:
        members[NOTE] = note[NOTE]
    else:
        members.pop(NOTE, None)
    return StorableEncoder().json("extra", members or None)


def _decode_extra(extra: str | None) -> dict[str, Any]:
    return decode_json("a session", extra or "{}", dict[str, Any])


def _encode_columns(bundle: ExportedSession, intake: StorableEncoder) -> SessionColumns:
    record = bundle.record
    values: dict[str, Any] = {name: getattr(record, name, None) for name in SessionColumns._fields}
    title = normalize_title(record.title)[:MAX_TITLE].strip() if record.title else None
    values |= {
        "relation": None if record.relation is None else str(record.relation),
        "started_at": to_micros(record.started_at),
        "ended_at": None if record.ended_at is None else to_micros(record.ended_at),
        "ends": bundle.ends,
        "entry": _encode_entry(bundle),
        "title": title or None,
        "title_by": record.title_by if title else None,
        "title_owner": record.title_owner if title else None,
        "model_config": intake.json("model_config", dict(record.model_config) or None),
        "pinned": int(record.pinned),
        "archived": int(record.archived),
        "extra": intake.json("extra", dict(record.extra) or None),
    }
    values |= {name: intake.text(name, values[name]) for name in _TEXTS}
    return SessionColumns(**values)


def _encode_versions(bundle: ExportedSession, intake: StorableEncoder) -> Iterator[EncodedVersion]:
    for one in bundle.messages:
        for version, (content, replaced_at) in enumerate(one.versions, 1):
            columns = content_columns(intake, content)
            yield EncodedVersion(one.message.seq, version, *columns, to_micros(replaced_at))


def _encode_entry(bundle: ExportedSession) -> str | None:
    """Return the archived entry, after a check that it belongs to this session."""
    if bundle.entry is None:
        return None
    try:
        entry = decode_archive(msgspec.json.encode(bundle.entry).decode())
    except StorageCorruptError as error:
        problem = f"entry cannot be used: {error.__cause__}"
        raise InvalidInputError(problem) from error
    record = bundle.record
    if (entry.session_id, entry.session_key) != (record.session_id, record.session_key):
        problem = "entry belongs to another session or lane"
        raise InvalidInputError(problem)
    return encode_archive(entry)


T = TypeVar("T")

LONGEST_DESCENT: Final = 10_000
"""The largest number of ancestors that are followed: a damaged database may have a circle."""
PAGE: Final = 100
"""The number of messages compared at a time."""
OF_THE_LANE: Final = ("session_key", "owner", "ended_at", "end_reason", "ends", "entry")
"""The columns that are kept if a lane has the session already: the lane knows them better than a file."""


class ImportFate(StrEnum):
    """The result of the import of a session."""

    IMPORTED = "imported"
    SKIPPED = "skipped"  # it is here already, as it is in the file
    CLASH = "clash"  # another one is here under its id, or it belongs to somebody who was erased


@dataclass(frozen=True, slots=True)
class ImportedSession:
    """The result for one session."""

    fate: ImportFate
    problem: str | None = None
    """The reason for a clash."""
    title: str | None = None
    """The title that the session was given instead of its own."""
    waits_for: str | None = None
    """The parent that is not here yet."""
    relation: str | None = None
    """The session's relation to that parent."""
    adrift: str | None = None
    """The parent that the session cannot have, because that descends from the session."""
    branched: bool = False
    """True if the session became a branch, because its parent continues in another session."""


@dataclass(slots=True)
class DryRun:
    """The rows that a dry run would have written, because the database does not have them."""

    pretend: bool = False
    parents: dict[str, str | None] = field(default_factory=dict[str, "str | None"])
    digests: dict[str, int] = field(default_factory=dict[str, int])
    titles: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict[str, set[str]](set))
    """The titles by owner."""
    numbers: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    """The next number by owner and base title, so that each lineage of titles is looked up once."""
    continued: set[str] = field(default_factory=set[str])
    events: set[str] = field(default_factory=set[str])

    def add_session(self, one: EncodedSession, placed: SessionColumns) -> None:
        """Remember a session that would be here now."""
        self.digests[one.session_id] = one.digest
        if placed.title:
            self.titles[placed.owner].add(placed.title)
        self.events |= {event.event_id for event in one.usage}
        self.set_parent(one.session_id, placed.parent_session_id, placed.relation)

    def set_parent(self, session_id: str, parent: str | None, relation: str | None) -> None:
        """Remember the parent that a session would have."""
        self.parents[session_id] = parent
        if parent is not None and relation == Relation.CONTINUATION:
            self.continued.add(parent)


def import_session(
    one: EncodedSession, run: DryRun, ids: Iterator[int], *, fill: bool = False
) -> Transaction[ImportedSession]:
    """Write a session, or return the reason why not. With *fill*, an empty session here counts as missing."""
    here = yield from load_session_columns(one.session_id)
    if one.session_id in run.parents:
        same = run.digests.get(one.session_id) == one.digest
        return (
            ImportedSession(ImportFate.SKIPPED)
            if same
            else ImportedSession(ImportFate.CLASH, "it stands in the file twice")
        )
    empty = here is not None and fill and (yield from _has_no_messages(one.session_id))
    if here is not None and not empty:
        return (yield from _compare_with_stored(one, here))
    if problem := (yield from _refusal_reason(one, run)):
        return ImportedSession(ImportFate.CLASH, problem)
    outcome, placed = yield from _fit_to_store(one.columns, here, run)
    if run.pretend:
        run.add_session(one, placed)
        return outcome
    if here is not None:
        yield Statement("forget_empty_session", (one.session_id,))
        yield Statement("forget_empty_totals", (one.session_id,))
    yield from _write_session(replace(one, columns=placed), ids)
    return outcome


def load_session_columns(session_id: str) -> Transaction[SessionColumns | None]:
    """Return the columns of a session that the store has; None if it does not have it."""
    rows = yield Statement("session_as_imported", (session_id,))
    return SessionColumns._make(rows[0]) if rows else None


def run_in_one_commit(transactions: Sequence[Callable[[], Transaction[T]]]) -> Transaction[list[T]]:
    """Return the results of several transactions in one commit; no other write comes between them."""
    found: list[T] = []
    for transaction in transactions:
        found += [(yield from transaction())]
    return found


def attach_to_parent(child: str, parent: str, relation: str | None, run: DryRun) -> Transaction[bool | None]:
    """Give a session the parent that its file names, if it is here by now; None if it would be a circle."""
    comes_from = yield from _descends_from(parent, child, run)
    if comes_from is not False:
        return None if comes_from else False
    relation = yield from _free_relation(relation, parent, run)
    here = yield from load_session_columns(child)
    if run.pretend:
        run.set_parent(child, parent, relation)
    elif here is not None:
        note = read_note(here.extra)
        left = {name: note[name] for name in note if name not in ("parent_session_id", "relation")}
        if relation != note.get("relation"):
            left["relation"] = note.get("relation")
        extra = with_note(without_note(here.extra), left)
        yield Statement("attach_session", (parent, relation, extra, child))
    return True


def _fit_to_store(
    columns: SessionColumns, here: SessionColumns | None, run: DryRun
) -> Transaction[tuple[ImportedSession, SessionColumns]]:
    """Return the row with a title and a parent that are free here; a note keeps the file's values."""
    placed, outcome = columns, ImportedSession(ImportFate.IMPORTED)
    if here is not None:
        placed = placed._replace(**{name: getattr(here, name) for name in OF_THE_LANE})
    placed = placed._replace(title=(yield from _free_title(placed.owner, columns.title, run)))
    if placed.title != columns.title:
        outcome = replace(outcome, title=placed.title)
    parent, relation = columns.parent_session_id, columns.relation
    if parent is not None:
        comes_from = yield from _descends_from(parent, columns.session_id, run)
        if comes_from is False:
            placed = placed._replace(relation=(yield from _free_relation(relation, parent, run)))
            outcome = replace(outcome, branched=placed.relation != relation)
        else:
            placed = placed._replace(parent_session_id=None, relation=None)
            outcome = replace(
                outcome,
                relation=relation,
                adrift=parent if comes_from else None,
                waits_for=None if comes_from else parent,
            )
    note = {name: getattr(columns, name) for name in _differing_columns(placed, columns)}
    return outcome, placed._replace(extra=with_note(columns.extra, note))


def _differing_columns(one: SessionColumns, other: SessionColumns) -> list[str]:
    """Return the names of the columns in which two rows differ."""
    return [name for name in SessionColumns._fields if getattr(one, name) != getattr(other, name)]


def _compare_with_stored(one: EncodedSession, here: SessionColumns) -> Transaction[ImportedSession]:
    """Compare a session with the one here that has its id: skip an unchanged one, else report a clash."""
    columns, wanted = here, one.columns
    note: dict[str, Any] = {}
    if columns != wanted:
        note = read_note(here.extra)
        columns = here._replace(**(note | {"extra": without_note(here.extra)}))
    if columns != wanted:
        names = ", ".join(_differing_columns(columns, wanted))
        return ImportedSession(ImportFate.CLASH, f"another session has its id; they differ in {names}")
    if problem := (yield from _find_difference(one)):
        return ImportedSession(ImportFate.CLASH, f"another session has its id; {problem}")
    return ImportedSession(
        ImportFate.SKIPPED, waits_for=note.get("parent_session_id"), relation=note.get("relation")
    )


def _find_difference(one: EncodedSession) -> Transaction[str | None]:
    """Return the difference between the messages and the use here and those of the file; None if equal."""
    acts = yield Statement("acts_of_hiding", (one.session_id,))
    numbers: dict[int | None, int] = {act: number for number, (act,) in enumerate(acts, 1)}
    at, seq = 0, 0
    while rows := (yield Statement("messages_as_imported", (one.session_id, seq, PAGE))):
        ours = [
            EncodedPlace(place, numbers.get(act), MessageColumns(*columns)) for place, act, *columns in rows
        ]
        if ours != list(one.messages[at : at + len(rows)]):
            return "their messages differ"
        at, seq = at + len(rows), ours[-1].seq
    if at != len(one.messages):
        return "it has fewer messages"
    versions = yield Statement("versions_of_messages", (one.session_id, 0, seq))
    wanted = [EarlierVersion(old.seq, old.content, old.parts, old.replaced_at) for old in one.versions]
    if [EarlierVersion._make(row) for row in versions] != wanted:
        return "earlier versions of their messages differ"
    usage = yield Statement("usage_to_export", (one.session_id,))
    if {UsageRow(*row) for row in usage} != set(one.usage):
        return "their use differs"
    return None


def _refusal_reason(one: EncodedSession, run: DryRun) -> Transaction[str | None]:
    erased = yield from tombstones.erased_since(one.columns.owner, one.first_instant)
    if erased is not None:
        return f"it began before its owner was erased, on {erased:%Y-%m-%d}"
    for author, instant in one.first_said.items():
        erased = yield from tombstones.erased_since(author, instant)
        if erased is not None:
            return f"it holds what somebody said before they were erased, on {erased:%Y-%m-%d}"
    events = [event.event_id for event in one.usage]
    text = msgspec.json.encode(events).decode()
    counted = [event_id for (event_id,) in (yield Statement("usage_elsewhere", (text, one.session_id)))]
    counted += sorted(run.events.intersection(events))
    return f"usage event {counted[0]!r} was counted for another session" if counted else None


def _has_no_messages(session_id: str) -> Transaction[bool]:
    return [stored for _, stored in (yield Statement("stored_messages_of_session", (session_id,)))] == [0]


def _free_title(owner: str, title: str | None, run: DryRun) -> Transaction[str | None]:
    """Return the title, or the next one of its lineage if another session of the owner has it."""
    if title is None:
        return None
    besides = run.titles[owner]
    if not (yield from _is_title_taken(owner, title, besides)):
        return title
    lineage = owner, split_numbered_title(title)[0]
    if lineage not in run.numbers:
        taken = yield from titles_in_lineage(*lineage)
        run.numbers[lineage] = next_number(lineage[1], taken | besides)
    while (
        yield from _is_title_taken(owner, found := numbered_title(lineage[1], run.numbers[lineage]), besides)
    ):
        run.numbers[lineage] += 1
    run.numbers[lineage] += 1
    return found


def _is_title_taken(owner: str, title: str, besides: Collection[str]) -> Transaction[bool]:
    return title in besides or bool((yield Statement("holder_of_title", (owner, title))))


def _descends_from(parent: str, session_id: str, run: DryRun) -> Transaction[bool | None]:
    """Return whether the would-be parent descends from the session itself; None if the parent is not here."""
    current: str | None = parent
    for _ in range(LONGEST_DESCENT):
        if current in (None, session_id):
            return current is not None
        if current in run.parents:
            current = run.parents[current]
            continue
        rows = yield Statement("parent_of_session", (current,))
        if not rows:
            return None if current == parent else False
        ((current, _),) = rows
    return True


def _free_relation(relation: str | None, parent: str, run: DryRun) -> Transaction[str | None]:
    """Return the relation, or that of a branch if the parent has another continuation already."""
    if relation != Relation.CONTINUATION:
        return relation
    taken = yield Statement("continuation_of_session", (parent,))
    return str(Relation.BRANCH) if taken or parent in run.continued else relation


def _write_session(one: EncodedSession, ids: Iterator[int]) -> Transaction[None]:
    yield from remove_earlier_session(one.session_id, ids)
    yield Statement("add_imported_session", one.columns)
    yield Statement("add_imported_totals", one.totals)
    numbers = {message.seq: next(ids) for message in one.messages}
    hidings = sorted({message.hidden_by for message in one.messages if message.hidden_by is not None})
    acts: dict[int | None, int] = {number: next(ids) for number in hidings}
    if one.messages:
        rows = [
            (numbers[seq], one.session_id, seq, acts.get(hidden_by), *columns)
            for seq, hidden_by, columns in one.messages
        ]
        yield Statement("add_imported_message", many=rows, said=partial(_searchable_texts, one))
    if one.versions:
        versions = [(numbers[seq], *version) for seq, *version in one.versions]
        yield Statement("add_imported_version", many=versions)
    if one.usage:
        yield Statement("add_usage", many=[event._replace(session_id=one.session_id) for event in one.usage])


def _searchable_texts(one: EncodedSession) -> list[Searchable]:
    return [message.columns.as_searchable(one.session_id) for message in one.messages]
