"""Hook calls that are owed: claimed with a counted attempt, then done, retried or given up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from gateway_sessions.core.instants import clamp_to_calendar, to_micros
from gateway_sessions.errors import StorageCorruptError
from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.storage.tables.column_decoding import decode_json
from gateway_sessions.storage.tables.sql_files import row_of


@row_of("owed_hook_calls", "dead_hook_calls")
class HookCallRow(NamedTuple):
    """A call of a hook as it is stored."""

    idempotency_key: str
    hook: str
    session_key: str
    session_id: str
    event: str
    payload: str
    attempts: int
    created_at: int
    last_error: str | None = None
    """Of calls that were given up."""


@dataclass(frozen=True, slots=True)
class HookCall:
    """One call of one hook for one event of one session."""

    idempotency_key: str
    hook: str
    session_key: str
    session_id: str
    event: str
    payload: dict[str, Any]
    attempts: int
    created_at: datetime
    last_error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HookCapacity:
    """The number of calls of one hook that may begin."""

    hook: str
    room: int
    running: tuple[str, ...] = ()
    """The keys of calls that are running."""

    @property
    def excluded(self) -> str:
        """Return the keys of the running calls as a parameter."""
        return msgspec.json.encode(self.running).decode()


@dataclass(frozen=True, slots=True)
class ClaimedCalls:
    """The calls whose attempt has been counted, and the calls that were given up instead."""

    calls: list[HookCall]
    given_up: list[HookCall]


def next_try_times(hooks: Sequence[HookCapacity]) -> Transaction[dict[str, datetime]]:
    """Return the instant of the next call of each hook that owes one."""
    found: dict[str, datetime] = {}
    for one in hooks:
        ((next_try_at,),) = yield Statement("next_hook_try", (one.hook, one.excluded))
        if next_try_at is not None:
            found[one.hook] = clamp_to_calendar(next_try_at)
    return found


def claim_hook_calls(
    capacity: HookCapacity, now: datetime, *, retry_at: datetime, max_attempts: int
) -> Transaction[ClaimedCalls]:
    """Count an attempt of each due call; if the process dies, the call is due again at *retry_at*.

    A call is given up if all its attempts were counted and none came to an end: perhaps the call itself ends
    the process.
    """
    rows = yield Statement(
        "owed_hook_calls", (capacity.hook, to_micros(now), capacity.excluded, capacity.room)
    )
    owed: list[HookCall] = []
    for row in (HookCallRow(*row) for row in rows):
        try:
            owed.append(_call_from_row(row))
        except StorageCorruptError as error:  # the others do not wait for it
            yield Statement("fail_hook_call", ("dead", 0, str(error), row.idempotency_key))
    calls = [call for call in owed if call.attempts < max_attempts]
    given_up = [call for call in owed if call.attempts >= max_attempts]
    begun = [(to_micros(retry_at), call.idempotency_key) for call in calls]
    yield Statement("begin_hook_call", many=begun)
    yield Statement("bury_hook_call", many=[(call.idempotency_key,) for call in given_up])
    return ClaimedCalls(calls, given_up)


def remove_made_call(call: HookCall) -> Transaction[None]:
    """Remove a call that was made."""
    yield Statement("delete_hook_call", (call.idempotency_key,))


def withdraw_attempt(call: HookCall, now: datetime) -> Transaction[None]:
    """Take an attempt back that the program itself broke off: it does not count."""
    yield Statement("withdraw_hook_call", (to_micros(now), call.idempotency_key))


def note_failed_call(call: HookCall, error: str, retry_at: datetime | None) -> Transaction[None]:
    """Let a call be tried again at *retry_at*; without an instant, give it up and keep it for operators."""
    state = "dead" if retry_at is None else "owed"
    when = to_micros(retry_at) if retry_at is not None else 0
    yield Statement("fail_hook_call", (state, when, error, call.idempotency_key))


def dead_hook_calls(limit: int) -> Transaction[list[HookCall]]:
    """Return calls that were given up, the newest first."""
    rows = yield Statement("dead_hook_calls", (limit,))
    return [_given_up_call(HookCallRow(*row)) for row in rows]


def requeue_hook_call(idempotency_key: str, now: datetime) -> Transaction[None]:
    """Owe a given-up call again, with all its attempts."""
    yield Statement("requeue_hook_call", (to_micros(now), idempotency_key))


def _given_up_call(row: HookCallRow) -> HookCall:
    """Return a call that was given up; of a damaged one, the fields that can be read."""
    try:
        return _call_from_row(row)
    except StorageCorruptError:
        return _call_from_row(row, payload={})


def _call_from_row(row: HookCallRow, payload: dict[str, Any] | None = None) -> HookCall:
    """Return the call in a row; a *payload* takes the place of the stored one."""
    if payload is None:
        payload = decode_json(f"hook call {row.idempotency_key!r}", row.payload, dict[str, Any])
    return HookCall(
        idempotency_key=row.idempotency_key,
        hook=row.hook,
        session_key=row.session_key,
        session_id=row.session_id,
        event=row.event,
        payload=payload,
        attempts=row.attempts,
        created_at=clamp_to_calendar(row.created_at),
        last_error=row.last_error,
    )
