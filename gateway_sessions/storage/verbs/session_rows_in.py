"""A session from a file as the rows it comes to, and the note of what it said otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, cast

import msgspec

from gateway_sessions.core.export.bundle import Bundle
from gateway_sessions.core.instants import to_micros
from gateway_sessions.core.storable import Intake
from gateway_sessions.core.titles import MAX_TITLE, one_line
from gateway_sessions.core.usage import COUNTS, Usage
from gateway_sessions.errors import InvalidInputError, StorageCorruptError
from gateway_sessions.ports import Row
from gateway_sessions.storage.verbs.entries import archive, unarchive
from gateway_sessions.storage.verbs.message_codec import content_columns, encode
from gateway_sessions.storage.verbs.stored import from_json

Columns = Mapping[str, Any]
"""The row of a session."""

NOTE: Final = "import"
"""The member of `extra` that keeps what the file said where the session here differs from it."""
COLUMNS: Final[tuple[str, ...]] = (
    "session_id", "session_key", "owner", "source", "user_id", "parent_session_id", "relation", "started_at",
    "ended_at", "end_reason", "ends", "entry", "title", "title_by", "model", "model_config", "system_prompt",
    "billing_provider", "billing_base_url", "billing_mode", "pinned", "archived", "extra", "title_owner",
)  # fmt: skip
"""In the order of the statements that write and read them."""
_MESSAGE_COUNT: Final = 3
"""The place of the count in the totals."""
_SENT_AT: Final = 9
"""The place of the instant in the row of a message."""
_AUTHOR: Final = 24
"""The place of the author."""
_LATEST: Final = 1 << 62
_TEXTS: Final = ("model", "system_prompt", "billing_provider", "billing_base_url", "billing_mode")
_SUMS: Final = (
    "rewind_count", "preview", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens",
    "reasoning_tokens", "api_call_count", "estimated_cost_usd", "actual_cost_usd", "cost_status",
    "cost_source", "pricing_version",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """A session as rows."""

    columns: Columns
    totals: tuple[Any, ...]
    messages: Sequence[tuple[Any, ...]]
    """From `seq` on; the act that hid a message is a number counted from 1."""
    versions: Sequence[tuple[Any, ...]]
    """With the place of their message in front."""
    usage: Sequence[tuple[Any, ...]]

    @property
    def session_id(self) -> str:
        """Its id."""
        return str(self.columns["session_id"])

    @property
    def message_count(self) -> int:
        """How many messages the session shows: those that are hidden are not counted, here as anywhere."""
        return int(self.totals[_MESSAGE_COUNT])

    @property
    def first_instant(self) -> int:
        """When it began, or its first message was sent."""
        return min(int(self.columns["started_at"]), *(int(row[_SENT_AT]) for row in self.messages), _LATEST)

    @property
    def first_said(self) -> Mapping[str, int]:
        """When each person, where a message tells who that is, said something first."""
        found: dict[str, int] = {}
        for row in self.messages:
            if row[_AUTHOR] is not None:
                found[row[_AUTHOR]] = min(int(row[_SENT_AT]), found.get(row[_AUTHOR], _LATEST))
        return found

    @property
    def digest(self) -> int:
        """The same for the same session, within this process."""
        rows = (tuple(self.columns.values()), tuple(self.messages), tuple(self.versions), tuple(self.usage))
        return hash(rows)


def encoded(bundle: Bundle, now: datetime) -> Encoded:
    """The rows of a session; `InvalidInputError` for what cannot be stored. Heavy for a large one."""
    record, intake = bundle.record, Intake()
    stored = [encode(one.message, now) for one in bundle.messages]
    counts = (record.last_seq, record.message_count, record.tool_call_count, sum(one.size for one in stored))
    totals = (record.session_id, to_micros(record.last_active), *counts)
    return Encoded(
        columns=_columns(bundle, intake),
        totals=(*totals, *(getattr(record, name) for name in _SUMS)),
        messages=[
            (one.message.seq, one.hidden_by, *row.columns)
            for one, row in zip(bundle.messages, stored, strict=True)
        ],
        versions=list(_versions(bundle, intake)),
        usage=[_usage(one) for one in bundle.usage],
    )


def columns_of(row: Row) -> dict[str, Any]:
    """The row of a session by the names of its columns."""
    return dict(zip(COLUMNS, row, strict=True))


def note_in(columns: Columns) -> dict[str, Any]:
    """What the file had said otherwise."""
    note = _members(columns["extra"]).get(NOTE)
    members = cast("dict[str, Any]", note) if isinstance(note, dict) else {}
    return {name: value for name, value in members.items() if name in COLUMNS}


def with_note(extra: str | None, note: Mapping[str, Any]) -> str | None:
    """`extra` with a note; a note that stood in the file stays inside of it."""
    if not note:
        return extra
    members = _members(extra)
    earlier = {NOTE: members[NOTE]} if NOTE in members else {}
    return Intake().json("extra", members | {NOTE: dict(note) | earlier})


def without_note(extra: str | None) -> str | None:
    """`extra` as it stood in the file."""
    members = _members(extra)
    note = members.get(NOTE)
    if isinstance(note, dict) and NOTE in note:
        members[NOTE] = note[NOTE]
    else:
        members.pop(NOTE, None)
    return Intake().json("extra", members or None)


def _members(extra: str | None) -> dict[str, Any]:
    return from_json("a session", extra or "{}", dict[str, Any])


def _columns(bundle: Bundle, intake: Intake) -> dict[str, Any]:
    record = bundle.record
    values: dict[str, Any] = {name: getattr(record, name, None) for name in COLUMNS}
    title = one_line(record.title)[:MAX_TITLE].strip() if record.title else None
    values |= {
        "relation": None if record.relation is None else str(record.relation),
        "started_at": to_micros(record.started_at),
        "ended_at": None if record.ended_at is None else to_micros(record.ended_at),
        "ends": bundle.ends,
        "entry": _entry(bundle),
        "title": title or None,
        "title_by": record.title_by if title else None,
        "title_owner": record.title_owner if title else None,
        "model_config": intake.json("model_config", dict(record.model_config) or None),
        "pinned": int(record.pinned),
        "archived": int(record.archived),
        "extra": intake.json("extra", dict(record.extra) or None),
    }
    return values | {name: intake.text(name, values[name]) for name in _TEXTS}


def _versions(bundle: Bundle, intake: Intake) -> Iterator[tuple[Any, ...]]:
    for one in bundle.messages:
        for version, (content, replaced_at) in enumerate(one.versions, 1):
            columns = content_columns(intake, content)
            yield (one.message.seq, version, *columns, to_micros(replaced_at))


def _usage(one: Usage) -> tuple[Any, ...]:
    words = (one.task, one.model, one.provider, one.base_url, one.billing_mode)
    counts = (getattr(one, name) for name in COUNTS)
    costs = (one.estimated_cost_usd, one.actual_cost_usd, str(one.cost_status))
    return (one.event_id, to_micros(one.at), *words, *counts, *costs, one.cost_source, one.pricing_version)


def _entry(bundle: Bundle) -> str | None:
    """The record of the lane, provided that it is one and belongs to this session."""
    if bundle.entry is None:
        return None
    try:
        entry = unarchive(msgspec.json.encode(bundle.entry).decode())
    except StorageCorruptError as error:
        problem = f"entry cannot be used: {error.__cause__}"
        raise InvalidInputError(problem) from error
    record = bundle.record
    if (entry.session_id, entry.session_key) != (record.session_id, record.session_key):
        problem = "entry belongs to another session or lane"
        raise InvalidInputError(problem)
    return archive(entry)
