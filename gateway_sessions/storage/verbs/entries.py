"""Reading and writing the current record of a lane."""

from __future__ import annotations

from dataclasses import fields
from datetime import datetime
from typing import Any, Final

import msgspec

from gateway_sessions.core.instants import from_micros, to_micros
from gateway_sessions.core.policies import SessionResetPolicy
from gateway_sessions.core.reasons import EndReason
from gateway_sessions.core.session import SessionEntry, SessionState
from gateway_sessions.core.source import SessionSource
from gateway_sessions.errors import StorageCorruptError
from gateway_sessions.ports import Row, Statement, Verb

_STATES: Final = {str(state): state for state in SessionState}
_KEPT: Final = tuple(
    one.name for one in fields(SessionSource) if one.name not in ("is_bot", "role_authorized", "extra")
)


def load(session_key: str, known: SessionEntry | None = None) -> Verb[SessionEntry | None]:
    """The lane's entry. A *known* copy saves decoding, but only the database says whether it is current."""
    if known is not None:
        current = yield Statement("entry_version", (session_key,))
        if current and tuple(current[0]) == (known.version, known.session_id):
            return known
    rows = yield Statement("entry_by_key", (session_key,))
    return decode(rows[0]) if rows else None


def load_by_session(session_id: str) -> Verb[SessionEntry | None]:
    """The entry that holds the session now."""
    rows = yield Statement("entry_by_session", (session_id,))
    return decode(rows[0]) if rows else None


def put(entry: SessionEntry) -> Verb[SessionEntry]:
    """Write the entry whole."""
    yield Statement("put_entry", encode(entry))
    return entry


def encode(entry: SessionEntry) -> tuple[Any, ...]:
    """The entry as a row, in the order of `put_entry`."""
    return (
        entry.session_key,
        entry.session_id,
        entry.version,
        to_micros(entry.created_at),
        to_micros(entry.updated_at),
        to_micros(entry.last_interaction_at),
        _micros(entry.due_at),
        _micros(entry.deferred_boundary),
        entry.policy_fingerprint,
        entry.platform,
        entry.chat_type,
        entry.owner,
        entry.display_name,
        str(entry.state),
        entry.state_reason,
        _micros(entry.state_since),
        str(entry.opened_by) if entry.opened_by is not None else None,
        int(entry.reset_had_activity),
        entry.previous_session_id,
        entry.input_tokens,
        entry.output_tokens,
        entry.cache_read_tokens,
        entry.cache_write_tokens,
        entry.total_tokens,
        entry.last_prompt_tokens,
        entry.estimated_cost_usd,
        entry.cost_status,
        entry.zone,
        _json(_fields_of(entry.origin) if entry.origin is not None else None),
        _json(dict(entry.model_override) if entry.model_override else None),
        _json(entry.reset_policy.to_dict() if entry.reset_policy is not None else None),
        _json(dict(entry.extra) or None),
    )


def decode(row: Row) -> SessionEntry:
    """The entry in a row; `StorageCorruptError` if it holds what no version of this program writes."""
    try:
        return _entry(row)
    except (KeyError, TypeError, ValueError, OverflowError, msgspec.MsgspecError) as error:
        lane = f"lane {row[0]!r}"
        problem = f"its entry is damaged ({type(error).__name__}: {error}); it was left as it is"
        raise StorageCorruptError(lane, problem) from error


def _entry(row: Row) -> SessionEntry:
    origin, override, policy, extra = (_parsed(text) for text in row[28:32])
    return SessionEntry(
        session_key=row[0],
        session_id=row[1],
        version=row[2],
        created_at=from_micros(row[3]),
        updated_at=from_micros(row[4]),
        last_interaction_at=from_micros(row[5]),
        due_at=_instant(row[6]),
        deferred_boundary=_instant(row[7]),
        policy_fingerprint=row[8],
        platform=row[9],
        chat_type=row[10],
        owner=row[11],
        display_name=row[12],
        state=_STATES[row[13]],
        state_reason=row[14],
        state_since=_instant(row[15]),
        opened_by=EndReason(row[16]) if row[16] is not None else None,
        reset_had_activity=bool(row[17]),
        previous_session_id=row[18],
        input_tokens=row[19],
        output_tokens=row[20],
        cache_read_tokens=row[21],
        cache_write_tokens=row[22],
        total_tokens=row[23],
        last_prompt_tokens=row[24],
        estimated_cost_usd=row[25],
        cost_status=row[26],
        zone=row[27],
        origin=SessionSource(**origin) if origin is not None else None,
        model_override=override,
        reset_policy=SessionResetPolicy.from_dict(policy) if policy is not None else None,
        extra=extra or {},
    )


def archive(entry: SessionEntry) -> str:
    """The entry as text, to be kept with its ended session."""
    return msgspec.json.encode(encode(entry)).decode()


def unarchive(text: str) -> SessionEntry:
    """The entry as it was when its session ended."""
    return decode(msgspec.json.decode(text))


def _fields_of(source: SessionSource) -> dict[str, Any]:
    """The fields that say something, by name. Those of one message are not kept with the lane."""
    said = {name: value for name in _KEPT if (value := getattr(source, name)) is not None}
    return said | ({"extra": dict(source.extra)} if source.extra else {})


def _micros(instant: datetime | None) -> int | None:
    return to_micros(instant) if instant is not None else None


def _instant(micros: int | None) -> datetime | None:
    return from_micros(micros) if micros is not None else None


def _json(value: object) -> str | None:
    return msgspec.json.encode(value).decode() if value is not None else None


def _parsed(text: str | None) -> Any:
    return msgspec.json.decode(text) if text is not None else None
