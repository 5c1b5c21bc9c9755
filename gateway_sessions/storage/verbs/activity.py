"""When people wrote, lane by lane: what a simulation of policies is fed with."""

from __future__ import annotations

from datetime import datetime

from gateway_sessions.core.instants import from_micros, to_micros
from gateway_sessions.ports import Statement, Verb


def lanes_since(since: datetime, after: str, limit: int) -> Verb[list[str]]:
    """Lanes behind one on which anything was said since then, in the order of their keys."""
    rows = yield Statement("lanes_in_use_since", (after, to_micros(since), limit))
    return [row[0] for row in rows]


def moments_on(session_key: str, since: datetime) -> Verb[list[datetime]]:
    """When people wrote on a lane since then, in their order."""
    rows = yield Statement("moments_on_lane", (session_key, to_micros(since)))
    return [from_micros(row[0]) for row in rows]
