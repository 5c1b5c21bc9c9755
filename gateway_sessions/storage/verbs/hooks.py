"""Calls of hooks that are owed: counted before each attempt, kept until they succeed or are given up."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from gateway_sessions.core.instants import from_micros, to_micros
from gateway_sessions.ports import Row, Statement, Verb

PAGE = 100


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


def owed(now: datetime) -> Verb[list[HookCall]]:
    """Calls whose time has come."""
    rows = yield Statement("owed_hook_calls", (to_micros(now), PAGE))
    return [_call(row) for row in rows]


def begin_attempt(call: HookCall, retry_at: datetime) -> Verb[None]:
    """Count the attempt; should the process die in it, the call is due again at *retry_at*."""
    yield Statement("begin_hook_call", (to_micros(retry_at), call.idempotency_key))


def succeeded(call: HookCall) -> Verb[None]:
    """The call is done."""
    yield Statement("delete_hook_call", (call.idempotency_key,))


def failed(call: HookCall, error: str, retry_at: datetime | None) -> Verb[None]:
    """Try again at *retry_at*, or give the call up where everybody can see it."""
    state = "dead" if retry_at is None else "owed"
    when = to_micros(retry_at) if retry_at is not None else 0
    yield Statement("fail_hook_call", (state, when, error, call.idempotency_key))


def dead(limit: int) -> Verb[list[HookCall]]:
    """Calls that were given up, the newest first."""
    rows = yield Statement("dead_hook_calls", (limit,))
    return [_call(row) for row in rows]


def requeue(idempotency_key: str, now: datetime) -> Verb[None]:
    """Owe a given-up call again, with all its attempts."""
    yield Statement("requeue_hook_call", (to_micros(now), idempotency_key))


def next_try() -> Verb[datetime | None]:
    """When the next call is due."""
    rows = yield Statement("next_hook_try")
    return from_micros(rows[0][0]) if rows[0][0] is not None else None


def _call(row: Row) -> HookCall:
    key, hook, session_key, session_id, event, payload, attempts, created_at, *rest = row
    return HookCall(
        idempotency_key=key,
        hook=hook,
        session_key=session_key,
        session_id=session_id,
        event=event,
        payload=msgspec.json.decode(payload),
        attempts=attempts,
        created_at=from_micros(created_at),
        last_error=rest[0] if rest else None,
    )
