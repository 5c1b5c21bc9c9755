"""Conversion of Hermes rows of any version to exported sessions.

Unknown columns are kept in `extra`, and so are values that do not fit their column.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final, cast

from gateway_sessions.core.export.session_reader import MESSAGE_MEMBERS, SESSION_MEMBERS, parse_json_text
from gateway_sessions.core.instants import LARGEST_SECONDS
from gateway_sessions.core.sessions.entry import MAX_REASON, check_session_id
from gateway_sessions.core.sessions.record import Relation
from gateway_sessions.core.storable_text import MAX_WORD
from gateway_sessions.core.usage.usage_events import (
    COUNTS,
    MAX_COST_USD,
    MAX_COUNT,
    TURN,
    CostStatus,
    from_nanos,
    to_nanos,
)
from gateway_sessions.errors import InvalidSessionIdError

Row = Mapping[str, Any]

PROVENANCE: Final = "hermes"
"""The member of `extra` that tells how much of a session was there when it was imported."""
UNKNOWN_MODEL: Final = "unknown"
"""Characters of a name; longer names are cut."""

_COUNTERS: Final = (
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
)
_SUMMED: Final = frozenset(
    {*_COUNTERS, "message_count", "tool_call_count", "api_call_count", "estimated_cost_usd",
     "actual_cost_usd", "cost_status", "cost_source", "pricing_version", "preview", "last_active", "last_seq"}
)  # fmt: skip
_PRICES: Final = {"estimated_cost_usd": CostStatus.ESTIMATED, "actual_cost_usd": CostStatus.ACTUAL}
_MARKERS: Final = {"_branched_from": Relation.BRANCH, "_delegate_from": Relation.DELEGATE}
_TIMES: Final = ("started_at", "ended_at")
_WORDS: Final = ("source", "user_id", "end_reason")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    """Holds the facts about a session that are not in its row."""

    owner: str
    session_key: str | None
    relation: Relation | None
    held: bool
    """True if a lane goes on with the session, even if its row says that it ended."""
    provenance: Mapping[str, int]
    """The size of the session, from which a later import tells that Hermes has gone on with it."""


def exported_session(
    row: Row, messages: Iterable[Row], usage: Iterable[Row], place: Lineage
) -> dict[str, Any]:
    """Return the session as an exported one."""
    given = {name: value for name, value in row.items() if value is not None and name not in _SUMMED}
    kept = _take_out_unusual(given, _is_unusual_in_session)
    session_id = safe_id(row["id"])
    if session_id != row["id"]:
        kept["original_id"] = row["id"]
    for name in _WORDS:
        if name in given:
            given[name] = one_line_name(given[name], MAX_REASON)
    if place.held:
        kept |= {f"hermes_{name}": given.pop(name) for name in ("ended_at", "end_reason") if name in given}
    parent = row.get("parent_session_id")
    kept[PROVENANCE] = place.provenance
    return given | {
        "id": session_id,
        "owner": place.owner,
        "session_key": place.session_key,
        "parent_session_id": safe_id(parent) if parent else None,
        "relation": place.relation if parent else None,
        "title_by": "person" if given.get("title") else None,
        "messages": [exported_message(one) for one in messages],
        "usage_events": exported_usage(row, usage, session_id),
        "extra": kept,
    }


def exported_message(row: Row) -> dict[str, Any]:
    """Return a message as an exported one."""
    given = {
        name: value for name, value in row.items() if value is not None and name not in ("id", "session_id")
    }
    given["role"] = one_line_name(given.get("role"), 64) or UNKNOWN_MODEL
    if isinstance(content := given.get("content"), bytes):
        given["content"] = _is_readable(content)
    if kept := _take_out_unusual(given, _is_unusual_in_message):
        given["extra"] = kept
    return given


def exported_usage(row: Row, usage: Iterable[Row], session_id: str) -> list[dict[str, Any]]:
    """Return the use of the session: the rows by model, and what its counters hold beyond them."""
    at = next((row[name] for name in ("ended_at", "started_at") if _is_time(row.get(name))), 0.0)
    events = [_usage_event(one, session_id, at) for one in usage]
    turns = [one for one in events if one["task"] == TURN]
    rest: dict[str, Any] = {
        name: max(_is_count(row.get(name)) - sum(one[name] for one in turns), 0) for name in _COUNTERS
    }
    rest["api_calls"] = max(_is_count(row.get("api_call_count")) - sum(one["api_calls"] for one in turns), 0)
    for name in _PRICES:
        nanos = to_nanos(_is_cost(row.get(name))) - sum(to_nanos(one[name]) for one in turns)
        rest[name] = from_nanos(nanos) if nanos > 0 else None
    if any(rest.values()):
        names = {"model": "model", "provider": "billing_provider", "base_url": "billing_base_url"}
        words = {name: one_line_name(row.get(other)) for name, other in names.items()}
        words |= {
            name: one_line_name(row.get(name)) for name in ("billing_mode", "cost_source", "pricing_version")
        }
        status = _cost_status(row, rest)
        events.append(
            {"event_id": f"{PROVENANCE}:{session_id}", "at": at, "task": TURN} | rest | words | status
        )
    return events


def relation_of(row: Row, parent_end: str | None, continuation: str | None) -> Relation:
    """Return how a session came from its parent; one child at most is the continuation."""
    config = parse_json_text(row.get("model_config"))
    members = cast("dict[str, object]", config) if isinstance(config, dict) else {}
    marked = [kind for mark, kind in _MARKERS.items() if members.get(mark)]
    if marked:
        return marked[0]
    if row.get("source") == "tool":
        return Relation.DELEGATE
    if parent_end != "compression":
        return Relation.SUCCESSION
    return Relation.CONTINUATION if row["id"] == continuation else Relation.BRANCH


def continuation_among(children: Iterable[Row]) -> str | None:
    """Return the child in which a compressed session goes on, by the rules of Hermes."""
    found = [one for one in children if relation_of(one, "compression", one["id"]) is Relation.CONTINUATION]
    return max(found, key=_continuation_rank)["id"] if found else None


def safe_id(session_id: object) -> str:
    """Return the id, or a hash in its place if it could be taken for a path or a line of a log."""
    try:
        return check_session_id(session_id)
    except InvalidSessionIdError:
        digest = blake2b(repr(session_id).encode("utf-8", "backslashreplace"), digest_size=8).hexdigest()
        return f"hermes_{digest}"


def one_line_name(value: object, limit: int = MAX_WORD) -> str | None:
    """Return any value as a name on one line; None if it is empty."""
    text = _is_readable(value) if isinstance(value, bytes) else "" if value is None else str(value)
    shown = " ".join("".join(one if one.isprintable() else " " for one in text).split())
    return shown[:limit].strip() or None


def _usage_event(row: Row, session_id: str, at: float) -> dict[str, Any]:
    route = [
        str(row.get(name) or "") for name in ("model", "billing_provider", "billing_base_url", "billing_mode")
    ]
    task = one_line_name(row.get("task")) or TURN
    digest = blake2b("\0".join([*route, task]).encode("utf-8", "backslashreplace"), digest_size=8).hexdigest()
    when = next((row[name] for name in ("last_seen", "first_seen") if _is_time(row.get(name))), at)
    # Hermes writes 0 for an unknown price; 0 is the price only if the status of the row says so.
    costs = {name: _is_cost(row.get(name)) or None for name in _PRICES}
    for name in (name for name, status in _PRICES.items() if row.get("cost_status") == status):
        costs[name] = _is_cost(row.get(name))
    return {
        "event_id": f"{PROVENANCE}:{session_id}:{digest}",
        "at": when,
        "task": task,
        "model": None if route[0] == UNKNOWN_MODEL else one_line_name(route[0]),
        "provider": one_line_name(route[1]),
        "base_url": one_line_name(route[2]),
        "billing_mode": one_line_name(route[3]),
        "api_calls": _is_count(row.get("api_call_count")),
        "cost_source": one_line_name(row.get("cost_source")),
        **{name: _is_count(row.get(name)) for name in COUNTS if name != "api_calls"},
        **costs,
        **_cost_status(row, costs),
    }


def _cost_status(row: Row, costs: Row) -> dict[str, str]:
    """Return the cost status if the use was paid for already; any other status follows from the prices."""
    included = row.get("cost_status") == CostStatus.INCLUDED and costs.get("actual_cost_usd") is None
    return {"cost_status": CostStatus.INCLUDED.value} if included else {}


def _continuation_rank(child: Row) -> tuple[object, ...]:
    """Return a key that is greatest for the child in which people went on."""
    ended = child.get("ended_at") is not None
    rank = 2 if child.get("end_reason") == "compression" else int(not ended)
    started = _instant_of(child.get("started_at"))
    last = child.get("last_message_at")
    return rank, _instant_of(last) if _is_time(last) else started, started, str(child["id"])


def _take_out_unusual(given: dict[str, Any], unusual: Callable[[str, Any], bool]) -> dict[str, Any]:
    """Remove unknown and unusable values from the row, and return those that are not empty."""
    names = [name for name, value in given.items() if unusual(name, value)]
    found = {name: given.pop(name) for name in names}
    return {name: _plain_value(value) for name, value in found.items() if value not in (0, "")}


def _is_unusual_in_session(name: str, value: Any) -> bool:
    if name in _TIMES:
        return not _is_time(value)
    if name == "archived":
        return value not in (0, 1)
    if name == "rewind_count":
        return bool(_is_count(value) != value)
    return (
        name not in SESSION_MEMBERS
        or isinstance(value, bytes)
        or name in ("extra", "entry", "ends", "format")
    )


def _is_unusual_in_message(name: str, value: Any) -> bool:
    if name == "timestamp":
        return not _is_time(value)
    if name in ("observed", "active", "compacted"):
        return value not in (0, 1)
    if name == "token_count":
        return bool(_is_count(value) != value)
    return (
        name not in MESSAGE_MEMBERS
        or isinstance(value, bytes)
        or name in ("extra", "versions", "seq", "hidden_by")
    )


def _is_count(value: object) -> int:
    return value if type(value) is int and 0 <= value <= MAX_COUNT else 0


def _is_cost(value: object) -> float | None:
    usable = isinstance(value, int | float) and math.isfinite(value) and 0 <= value <= MAX_COST_USD
    return float(value) if usable and isinstance(value, int | float) else None


def _is_time(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value) and abs(value) <= LARGEST_SECONDS


def _instant_of(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _plain_value(value: Any) -> Any:
    if isinstance(value, bytes):
        return _is_readable(value)
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _is_readable(value: bytes) -> str:
    return value.decode("utf-8", "backslashreplace")
