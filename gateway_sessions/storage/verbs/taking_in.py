"""Taking a session in from a file: as it stands, unless something here already has its id, title or place."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import Any, Final, TypeVar

import msgspec

from gateway_sessions.core.search_lexemes import Searchable
from gateway_sessions.core.session_record import Relation
from gateway_sessions.core.titles import base_title, next_number, numbered
from gateway_sessions.ports import Row, Statement, Verb
from gateway_sessions.storage.verbs import tombstones
from gateway_sessions.storage.verbs.message_codec import searchable
from gateway_sessions.storage.verbs.retention import make_way
from gateway_sessions.storage.verbs.session_rows_in import (
    COLUMNS,
    Columns,
    Encoded,
    columns_of,
    note_in,
    with_note,
    without_note,
)
from gateway_sessions.storage.verbs.titles import taken_in_lineage

T = TypeVar("T")

LONGEST_DESCENT: Final = 10_000
_ROLE: Final = 4
"""The place of the role in the row of a message."""
PAGE: Final = 100
OF_THE_LANE: Final = ("session_key", "owner", "ended_at", "end_reason", "ends", "entry")
"""What a lane that has the session already knows better than any file."""


class Fate(StrEnum):
    """What becomes of a session in a file."""

    IMPORTED = "imported"
    SKIPPED = "skipped"  # it is here already, as it is in the file
    CLASH = "clash"  # another one is here under its id, or it belongs to somebody who was erased


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one session."""

    fate: Fate
    problem: str | None = None
    """Why there is a clash."""
    title: str | None = None
    """The title that it was given instead of its own."""
    waits_for: str | None = None
    """The parent that is not here, or not yet."""
    relation: str | None = None
    """How it came from that parent."""
    adrift: str | None = None
    """The parent that it cannot have: it comes from it itself."""
    branched: bool = False
    """It became a branch, because its parent goes on in another session."""


@dataclass(slots=True)
class Run:
    """What a run that writes nothing has to remember, because the database will not know it."""

    pretend: bool = False
    parents: dict[str, str | None] = field(default_factory=dict[str, "str | None"])
    digests: dict[str, int] = field(default_factory=dict[str, int])
    titles: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict[str, set[str]](set))
    """By owner."""
    numbers: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    """By owner and the base of a lineage of titles: the next number in it, so that it is looked up once."""
    continued: set[str] = field(default_factory=set[str])
    events: set[str] = field(default_factory=set[str])

    def note(self, one: Encoded, placed: Columns) -> None:
        """A session that would be here now."""
        self.digests[one.session_id] = one.digest
        if placed["title"]:
            self.titles[placed["owner"]].add(placed["title"])
        self.events |= {row[0] for row in one.usage}
        self.place(one.session_id, placed["parent_session_id"], placed["relation"])

    def place(self, session_id: str, parent: str | None, relation: str | None) -> None:
        """It would have that parent."""
        self.parents[session_id] = parent
        if parent is not None and relation == Relation.CONTINUATION:
            self.continued.add(parent)


def take_in(one: Encoded, run: Run, ids: Iterator[int], *, fill: bool = False) -> Verb[Outcome]:
    """Write a session, or say why not. With *fill*, one that is here and empty counts as missing."""
    here = yield Statement("session_as_taken_in", (one.session_id,))
    if one.session_id in run.parents:
        same = run.digests.get(one.session_id) == one.digest
        return Outcome(Fate.SKIPPED) if same else Outcome(Fate.CLASH, "it stands in the file twice")
    empty = bool(here) and fill and (yield from _is_empty(one.session_id))
    if here and not empty:
        return (yield from _met(one, here[0]))
    if problem := (yield from _refusal(one, run)):
        return Outcome(Fate.CLASH, problem)
    outcome, placed = yield from _placed(one.columns, here[0] if here else None, run)
    if run.pretend:
        run.note(one, placed)
        return outcome
    if here:
        yield Statement("forget_empty_session", (one.session_id,))
        yield Statement("forget_empty_totals", (one.session_id,))
    yield from _write(replace(one, columns=placed), ids)
    return outcome


def one_after_another(verbs: Sequence[Callable[[], Verb[T]]]) -> Verb[list[T]]:
    """What each of them finds; nothing is written in between."""
    found: list[T] = []
    for verb in verbs:
        found += [(yield from verb())]
    return found


def attach(child: str, parent: str, relation: str | None, run: Run) -> Verb[bool | None]:
    """Give a session the parent that its file names, if it is here by now; None if that would be a circle."""
    comes_from = yield from _comes_from(parent, child, run)
    if comes_from is not False:
        return None if comes_from else False
    relation = yield from _free_relation(relation, parent, run)
    rows = yield Statement("session_as_taken_in", (child,))
    if run.pretend:
        run.place(child, parent, relation)
    elif rows:
        columns = columns_of(rows[0])
        note = note_in(columns)
        left = {name: note[name] for name in note if name not in ("parent_session_id", "relation")}
        if relation != note.get("relation"):
            left["relation"] = note.get("relation")
        extra = with_note(without_note(columns["extra"]), left)
        yield Statement("attach_session", (parent, relation, extra, child))
    return True


def _placed(columns: Columns, here: Row | None, run: Run) -> Verb[tuple[Outcome, Columns]]:
    """The title and the parent that it can have here; what the file said otherwise is kept in a note."""
    placed, outcome = dict(columns), Outcome(Fate.IMPORTED)
    if here is not None:
        known = columns_of(here)
        placed |= {name: known[name] for name in OF_THE_LANE}
    placed["title"] = yield from _free_title(placed["owner"], columns["title"], run)
    if placed["title"] != columns["title"]:
        outcome = replace(outcome, title=placed["title"])
    parent, relation = columns["parent_session_id"], columns["relation"]
    if parent is not None:
        comes_from = yield from _comes_from(parent, columns["session_id"], run)
        if comes_from is False:
            placed["relation"] = yield from _free_relation(relation, parent, run)
            outcome = replace(outcome, branched=placed["relation"] != relation)
        else:
            placed |= {"parent_session_id": None, "relation": None}
            why = "adrift" if comes_from else "waits_for"
            outcome = replace(outcome, relation=relation, **{why: parent})
    note = {name: columns[name] for name in COLUMNS if placed[name] != columns[name]}
    placed["extra"] = with_note(columns["extra"], note)
    return outcome, placed


def _met(one: Encoded, here: Row) -> Verb[Outcome]:
    """A session with that id is here: the same one, if nothing has happened to it since it was taken in."""
    columns, wanted = columns_of(here), dict(one.columns)
    note: dict[str, Any] = {}
    if columns != wanted:
        note = note_in(columns)
        columns |= {**note, "extra": without_note(columns["extra"])}
    if columns != wanted:
        names = ", ".join(name for name in COLUMNS if columns[name] != wanted[name])
        return Outcome(Fate.CLASH, f"another session has its id; they differ in {names}")
    if problem := (yield from _difference(one)):
        return Outcome(Fate.CLASH, f"another session has its id; {problem}")
    return Outcome(Fate.SKIPPED, waits_for=note.get("parent_session_id"), relation=note.get("relation"))


def _difference(one: Encoded) -> Verb[str | None]:
    """How the messages and the use here differ from the file's, if they do."""
    acts = yield Statement("acts_of_hiding", (one.session_id,))
    numbers: dict[int | None, int] = {row[0]: number for number, row in enumerate(acts, 1)}
    at, seq = 0, 0
    while rows := (yield Statement("messages_as_taken_in", (one.session_id, seq, PAGE))):
        ours = [(row[0], numbers.get(row[1]), *row[2:]) for row in rows]
        if ours != list(one.messages[at : at + len(rows)]):
            return "their messages differ"
        at, seq = at + len(rows), rows[-1][0]
    if at != len(one.messages):
        return "it has fewer messages"
    versions = yield Statement("versions_of_messages", (one.session_id, 0, seq))
    if [tuple(row) for row in versions] != [(row[0], *row[2:]) for row in one.versions]:
        return "earlier versions of their messages differ"
    usage = yield Statement("usage_to_export", (one.session_id,))
    if {row[0]: tuple(row) for row in usage} != {row[0]: row for row in one.usage}:
        return "their use differs"
    return None


def _refusal(one: Encoded, run: Run) -> Verb[str | None]:
    erased = yield from tombstones.erased_since(one.columns["owner"], one.first_instant)
    if erased is not None:
        return f"it began before its owner was erased, on {erased:%Y-%m-%d}"
    for author, instant in one.first_said.items():
        erased = yield from tombstones.erased_since(author, instant)
        if erased is not None:
            return f"it holds what somebody said before they were erased, on {erased:%Y-%m-%d}"
    events = [row[0] for row in one.usage]
    text = msgspec.json.encode(events).decode()
    counted = [row[0] for row in (yield Statement("usage_elsewhere", (text, one.session_id)))]
    counted += sorted(run.events.intersection(events))
    return f"usage event {counted[0]!r} was counted for another session" if counted else None


def _is_empty(session_id: str) -> Verb[bool]:
    rows = yield Statement("stored_messages_of_session", (session_id,))
    return bool(rows) and rows[0][1] == 0


def _free_title(owner: str, title: str | None, run: Run) -> Verb[str | None]:
    """The title, or the next one of its lineage if somebody has it."""
    if title is None:
        return None
    besides = run.titles[owner]
    if not (yield from _has(owner, title, besides)):
        return title
    lineage = owner, base_title(title)[0]
    if lineage not in run.numbers:
        taken = yield from taken_in_lineage(*lineage)
        run.numbers[lineage] = next_number(lineage[1], taken | besides)
    while (yield from _has(owner, found := numbered(lineage[1], run.numbers[lineage]), besides)):
        run.numbers[lineage] += 1
    run.numbers[lineage] += 1
    return found


def _has(owner: str, title: str, besides: Collection[str]) -> Verb[bool]:
    return title in besides or bool((yield Statement("holder_of_title", (owner, title))))


def _comes_from(parent: str, session_id: str, run: Run) -> Verb[bool | None]:
    """Whether the would-be parent comes from the session itself; None if it is not here."""
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
        current = rows[0][0]
    return True


def _free_relation(relation: str | None, parent: str, run: Run) -> Verb[str | None]:
    """The relation, or that of a branch if the parent goes on elsewhere already."""
    if relation != Relation.CONTINUATION:
        return relation
    taken = yield Statement("continuation_of_session", (parent,))
    return str(Relation.BRANCH) if taken or parent in run.continued else relation


def _write(one: Encoded, ids: Iterator[int]) -> Verb[None]:
    yield from make_way(one.session_id, ids)
    yield Statement("take_in_session", tuple(one.columns[name] for name in COLUMNS))
    yield Statement("take_in_totals", one.totals)
    numbers = {row[0]: next(ids) for row in one.messages}
    acts = {number: next(ids) for number in sorted({row[1] for row in one.messages if row[1] is not None})}
    rows = _message_rows(one, numbers, acts)
    if rows:
        yield Statement("take_in_message", many=rows, said=partial(_said, one.session_id, rows))
    if one.versions:
        yield Statement("take_in_version", many=[(numbers[row[0]], *row[1:]) for row in one.versions])
    if one.usage:
        yield Statement("add_usage", many=[(row[0], one.session_id, *row[1:]) for row in one.usage])


def _said(session_id: str, rows: Sequence[tuple[Any, ...]]) -> list[Searchable]:
    return [searchable(session_id, row[_ROLE:]) for row in rows]


def _message_rows(
    one: Encoded, numbers: dict[int, int], acts: dict[int | None, int]
) -> Sequence[tuple[Any, ...]]:
    return [(numbers[row[0]], one.session_id, row[0], acts.get(row[1]), *row[2:]) for row in one.messages]
