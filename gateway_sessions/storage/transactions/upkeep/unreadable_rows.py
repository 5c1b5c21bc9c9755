"""Find rows and facts whose columns cannot be decoded, and the values that replace them.

Only columns with a form are checked: instants, JSON, members of enums. A column of text may hold any text.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from gateway_sessions.core.delivery.outbound_messages import OutboundMessage, ReplyTarget
from gateway_sessions.core.delivery.schedules import ScheduleState, Timing
from gateway_sessions.core.instants import from_micros, to_micros
from gateway_sessions.core.queue.inbound import InboundMessage
from gateway_sessions.core.queue.state_machine import (
    UNSETTLED_REPLIES,
    ItemEvent,
    ItemState,
    ReplyEvent,
    ReplyState,
    advance_reply,
    outcome_after,
)
from gateway_sessions.core.sessions.entry import SessionEntry, SessionState
from gateway_sessions.core.sessions.record import Relation
from gateway_sessions.core.transcript.messages import Hidden
from gateway_sessions.core.usage.usage_events import CostStatus
from gateway_sessions.ports import Row, Statement, Transaction
from gateway_sessions.storage.tables import entries, meta
from gateway_sessions.storage.tables.column_decoding import DAMAGE
from gateway_sessions.storage.tables.tombstones import ERASING
from gateway_sessions.storage.transactions.upkeep.copy_store import BEGINNINGS, Key
from gateway_sessions.storage.transactions.upkeep.erasure import ErasurePlan

PAGE: Final = 500
"""The number of rows read in one page."""
SET_ASIDE: Final = "it was damaged, and set aside by a repair"
Values: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairContext:
    """The facts that a repair knows."""

    now: datetime
    entries: Mapping[str, SessionEntry] = field(default_factory=lambda: MappingProxyType({}))
    """The entries of sessions.json, by their lanes."""


class Remedy(NamedTuple):
    """The new values of a row's columns."""

    values: Values
    lost: bool = True
    """True if the old value is known nowhere else."""


class ColumnForm(NamedTuple):
    """The decoder of a column, whose errors are among `DAMAGE`, and its remedy. NULL is never decoded."""

    read: Callable[[Any], object]
    remedy: Callable[[str, Values, RepairContext], Remedy]


class CheckedTable(NamedTuple):
    """The columns of a table that are checked."""

    columns: tuple[str, ...]
    """The columns in the order of the statement, the key first."""
    forms: Mapping[str, ColumnForm]


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A row with columns that cannot be decoded."""

    table: str
    key: Key
    values: Values
    columns: tuple[str, ...]
    """The columns that cannot be decoded."""

    @property
    def name(self) -> str:
        """Return the name by which people know the row."""
        return str(self.values.get("session_key", self.key[0]))

    def remedy(self, circumstances: RepairContext) -> Remedy:
        """Return the values that make all columns readable."""
        forms, values, lost = TABLES[self.table].forms, dict[str, Any](), False
        for column in self.columns:
            remedy = forms[column].remedy(column, self.values, circumstances)
            values |= remedy.values
            lost |= remedy.lost
        return Remedy(values, lost)


def key_columns(table: str) -> tuple[str, ...]:
    """Return the names of the columns of a table's key."""
    return TABLES[table].columns[: len(BEGINNINGS[table])]


def find_unreadable(table: str) -> Transaction[list[Unreadable]]:
    """Return the rows of a table with columns that cannot be decoded."""
    after, found = BEGINNINGS[table], list[Unreadable]()
    while True:
        rows = yield Statement(f"forms_of_{table}", (*after, PAGE))
        found += [one for row in rows if (one := _check_row(table, row)) is not None]
        if len(rows) < PAGE:
            return found
        after = tuple(rows[-1][: len(after)])


def _check_row(table: str, row: Row) -> Unreadable | None:
    columns, forms = TABLES[table]
    bad: list[str] = []
    for column, value in zip(columns, row, strict=True):
        if value is not None and (form := forms.get(column)) is not None:
            try:
                form.read(value)
            except DAMAGE:
                bad.append(column)
    if not bad:
        return None
    key, values = tuple(row[: len(BEGINNINGS[table])]), dict(zip(columns, row, strict=True))
    return Unreadable(table, key, values, tuple(bad))


def _set_null(column: str, _: Values, __: RepairContext) -> Remedy:
    return Remedy({column: None})


def _set_to_now(column: str, _: Values, circumstances: RepairContext) -> Remedy:
    """Return now, the latest certain instant: nothing is forgotten too early, and nothing waits for ever."""
    return Remedy({column: to_micros(circumstances.now)})


def _clear_schedule(column: str, _: Values, __: RepairContext) -> Remedy:
    """Return no instant and no fingerprint, so that the next start schedules the entry again."""
    return Remedy({column: None, "policy_fingerprint": ""}, lost=False)


def _bury_item(column: str, row: Values, circumstances: RepairContext) -> Remedy:
    """Settle a message that no turn can have; it is kept for people to see, as far as it can be decoded."""
    if row["outcome"] is not None:
        return Remedy({column: None})
    # Only a message can have a turn, and a running one ends in the same outcome as a waiting one.
    before = ItemState.WAITING if row["kind"] in ("message", "internal") else ItemState.NOTED
    outcome = outcome_after(before, ItemEvent.SET_ASIDE)
    settled = {"outcome": str(outcome), "settled_at": to_micros(circumstances.now), "settled_by": "repair"}
    return Remedy({column: None, "problem": SET_ASIDE, **settled})


def _give_up_reply(column: str, row: Values, circumstances: RepairContext) -> Remedy:
    """Remove the content or the target of a reply; if it was owed, people see that it was given up."""
    nowhere = ReplyTarget(platform=row["platform"], account=row["account"])
    values = {column: None if column == "content" else msgspec.json.encode(nowhere).decode()}
    if row["state"] not in UNSETTLED_REPLIES:
        return Remedy(values)
    state = str(advance_reply(ReplyState(row["state"]), ReplyEvent.GIVEN_UP))
    settled_at = to_micros(circumstances.now)
    return Remedy({**values, "state": state, "problem": SET_ASIDE, "settled_at": settled_at})


def _give_up_hook_call(column: str, _: Values, __: RepairContext) -> Remedy:
    return Remedy({column: "{}", "state": "dead", "last_error": SET_ASIDE})


def _end_schedule(column: str, _: Values, circumstances: RepairContext) -> Remedy:
    """End a schedule of which nobody knows what it says, or when."""
    ended = {"state": str(ScheduleState.DONE), "settled_at": to_micros(circumstances.now), "due_at": None}
    return Remedy({column: None, **ended, "problem": SET_ASIDE})


def _restore_record(column: str, row: Values, circumstances: RepairContext) -> Remedy:
    """Return the record that sessions.json shows for the same session; else an empty one that begins now."""
    if (known := _entry_in_snapshot(row, circumstances)) is not None:
        return Remedy({column: entries.encode_record(known)}, lost=False)
    return Remedy({column: entries.encode_blank_record(circumstances.now)})


def _restore_state(column: str, row: Values, circumstances: RepairContext) -> Remedy:
    """Return the state that sessions.json shows since the same moment; else suspend the session.

    A person may have stopped the session for good, and a program that went on with it would never know. A
    session that is suspended without need costs a new session, of which the people are told, and they can
    bring the old one back. Expired would do the same, but needs a reason, which nobody knows.
    """
    known = _entry_in_snapshot(row, circumstances)
    since = to_micros(known.state_since) if known is not None and known.state_since is not None else None
    if known is not None and since == row["state_since"]:
        return Remedy({column: str(known.state)}, lost=False)
    due = _clear_schedule(
        "due_at", row, circumstances
    )  # the stored instant follows from a state that it may not have had
    return Remedy({column: str(SessionState.SUSPENDED), **due.values})


def _entry_in_snapshot(row: Values, circumstances: RepairContext) -> SessionEntry | None:
    """Return the entry of the same session in sessions.json."""
    known = circumstances.entries.get(row["session_key"])
    return known if known is not None and known.session_id == row["session_id"] else None


def _constant_remedy(value: str) -> Callable[[str, Values, RepairContext], Remedy]:
    return lambda column, _, __: Remedy({column: value})


def _json_form(kind: Any = Any) -> ColumnForm:
    return ColumnForm(msgspec.json.Decoder(kind).decode, _set_null)


_INSTANT: Final = ColumnForm(from_micros, _set_to_now)
_DUE: Final = ColumnForm(from_micros, _clear_schedule)
_ANY_JSON: Final = _json_form()
_OBJECT: Final = _json_form(dict[str, Any])
TABLES: Final[Mapping[str, CheckedTable]] = MappingProxyType(
    {
        "lanes": CheckedTable(
            ("session_key", "leased_at", "ready_at"), {"leased_at": _INSTANT, "ready_at": _INSTANT}
        ),
        "sessions": CheckedTable(
            ("session_id", "relation", "started_at", "ended_at", "entry", "model_config", "extra"),
            {
                "relation": ColumnForm(Relation, _constant_remedy(Relation.SUCCESSION)),
                "started_at": _INSTANT,
                "ended_at": _INSTANT,
                "entry": ColumnForm(entries.decode_archive, _set_null),
                "model_config": _OBJECT,
                "extra": _OBJECT,
            },
        ),
        "entries": CheckedTable(
            ("entry_id", "session_key", "session_id", "state", "state_since", "due_at", "record"),
            {
                "state": ColumnForm(SessionState, _restore_state),
                "state_since": _INSTANT,
                "due_at": _DUE,
                "record": ColumnForm(entries.read_record, _restore_record),
            },
        ),
        "clocks": CheckedTable(
            ("entry_id", "updated_at", "last_interaction_at"),
            {"updated_at": _INSTANT, "last_interaction_at": _INSTANT},
        ),
        "transitions": CheckedTable(("change_id", "at"), {"at": _INSTANT}),
        "hook_calls": CheckedTable(
            ("idempotency_key", "payload", "created_at", "next_try_at"),
            {
                "payload": ColumnForm(_OBJECT.read, _give_up_hook_call),
                "created_at": _INSTANT,
                "next_try_at": _INSTANT,
            },
        ),
        "totals": CheckedTable(("session_id", "last_active"), {"last_active": _INSTANT}),
        "messages": CheckedTable(
            (
                *("message_id", "sent_at", "edited_at", "hidden_because", "parts", "tool_calls"),
                *(
                    "reasoning_details",
                    "codex_reasoning_items",
                    "codex_message_items",
                    "api_content",
                    "platform_messages",
                    "extra",
                ),
            ),
            {
                "sent_at": _INSTANT,
                "edited_at": _INSTANT,
                "hidden_because": ColumnForm(Hidden, _constant_remedy(Hidden.COMPACTED)),
                "parts": _ANY_JSON,
                "tool_calls": _ANY_JSON,
                "reasoning_details": _ANY_JSON,
                "codex_reasoning_items": _ANY_JSON,
                "codex_message_items": _ANY_JSON,
                "api_content": _ANY_JSON,
                "platform_messages": ColumnForm(msgspec.json.Decoder(list[Any]).decode, _set_null),
                "extra": _OBJECT,
            },
        ),
        "message_versions": CheckedTable(
            ("message_id", "version", "parts", "replaced_at"),
            {"parts": _ANY_JSON, "replaced_at": _INSTANT},
        ),
        "usage_events": CheckedTable(
            ("event_id", "at", "cost_status"),
            {"at": _INSTANT, "cost_status": ColumnForm(CostStatus, _constant_remedy(CostStatus.UNKNOWN))},
        ),
        "tombstones": CheckedTable(("subject", "erased_at"), {"erased_at": _INSTANT}),
        "inbox": CheckedTable(
            ("item_id", "kind", "outcome", "admitted_at", "last_at", "ready_at", "settled_at", "payload"),
            {
                "admitted_at": _INSTANT,
                "last_at": _INSTANT,
                "ready_at": _INSTANT,
                "settled_at": _INSTANT,
                "payload": ColumnForm(msgspec.json.Decoder(InboundMessage).decode, _bury_item),
            },
        ),
        "outbox": CheckedTable(
            (
                *("reply_id", "platform", "account", "state", "created_at", "next_try_at"),
                *("settled_at", "target", "content"),
            ),
            {
                "created_at": _INSTANT,
                "next_try_at": _INSTANT,
                "settled_at": _INSTANT,
                "target": ColumnForm(msgspec.json.Decoder(ReplyTarget).decode, _give_up_reply),
                "content": ColumnForm(msgspec.json.Decoder(OutboundMessage).decode, _give_up_reply),
            },
        ),
        "schedules": CheckedTable(
            (
                *("name", "session_key", "state", "due_at", "last_at"),
                *("created_at", "settled_at", "task", "timing"),
            ),
            {
                "state": ColumnForm(ScheduleState, _constant_remedy(ScheduleState.PAUSED)),
                "due_at": _INSTANT,
                "last_at": _INSTANT,
                "created_at": _INSTANT,
                "settled_at": _INSTANT,
                "task": ColumnForm(msgspec.json.Decoder(dict[str, Any]).decode, _end_schedule),
                "timing": ColumnForm(msgspec.json.Decoder(Timing).decode, _end_schedule),
            },
        ),
    }
)
"""Every table that has such columns."""


MOST_OPENINGS: Final = 1 << 31
"""The largest epoch: ids of entries have the epoch above 32 bits, and numbers of a database have 63 bits."""
UNKNOWN_SECRET: Final = "no copy of the store tells it"  # noqa: S105 -- what is said of it
UNKNOWN_PLAN: Final = "nobody knows what was still to be erased: ask for that erasure again"


def damaged_facts(guessed: Collection[str] = ()) -> Transaction[dict[str, Any]]:
    """Return the stored facts that would keep the store from being opened.

    The plan of an erasure among the *guessed* facts, whose text was not valid, counts as damaged: it may name
    a person whom it never named.
    """
    rows = yield Statement("all_facts")
    return {
        name: value
        for name, value in rows
        if not _can_decode_fact(name, value) or (name in guessed and name.startswith(ERASING))
    }


def mend_fact(name: str, secret: bytes | None) -> Transaction[str | None]:
    """Mend a fact so that the store can be opened; return what is lost by it, in words, or None.

    *secret* is the store's own, if a copy of the store has it. A removed fact is found out again: a
    generation counts on above that of any file, and an index that lacks notes is made again. Only the plan of
    an erasure cannot be found out again.
    """
    if name == meta.EPOCH:
        ((epoch,),) = yield Statement("highest_epoch")
        yield from meta.set_fact(name, epoch or 0)
    elif name != meta.OWN_SECRET:
        yield Statement("forget_meta", (name,))
    elif secret is None:
        return UNKNOWN_SECRET
    else:
        yield from meta.set_fact(name, secret)
    return UNKNOWN_PLAN if name.startswith(ERASING) else None


def _can_decode_fact(name: str, value: Any) -> bool:
    try:
        if name.startswith(ERASING):  # a plan under another name would never be removed
            return f"{ERASING}{_READ_PLAN(value).tombstone}" == name
        read = _READERS.get(name)
        return read is None or read(value) is not None
    except DAMAGE:
        return False


def _decode_epoch(stored: Any) -> int:
    epoch = int(stored)
    if not 0 <= epoch < MOST_OPENINGS:
        raise ValueError(epoch)
    return epoch


_READ_PLAN: Final = msgspec.json.Decoder(ErasurePlan).decode
_READERS: Final[Mapping[str, Callable[[Any], object]]] = {
    meta.EPOCH: _decode_epoch,
    meta.OWN_SECRET: meta.fact_as_bytes,
    meta.GENERATION: int,
    meta.SETTLED_EPOCH: int,
    meta.CLEARED: int,
    meta.LIVED_AT: int,
}
