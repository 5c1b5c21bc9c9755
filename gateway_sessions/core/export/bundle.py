"""A session that is taken in from a file, with everything that belongs to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, cast

from gateway_sessions.core.export.given import Given, unusable
from gateway_sessions.core.export.given_messages import Incoming, messages_of
from gateway_sessions.core.export.members import ESTABLISHED, OWN
from gateway_sessions.core.keys import encode_part
from gateway_sessions.core.messages import Role, preview_of
from gateway_sessions.core.session import check_reason, check_session_id
from gateway_sessions.core.session_record import Relation, SessionRecord
from gateway_sessions.core.storable import check_word
from gateway_sessions.core.titles import TitledBy
from gateway_sessions.core.usage import COUNTS, TURN, CostStatus, Usage, from_nanos, to_nanos, usage_of, worse

UNKNOWN_SOURCE: Final = "import"
MAX_KEY: Final = 4096
MAX_PREVIEW_LENGTH: Final = 100

_MARKERS: Final = {"_branched_from": Relation.BRANCH, "_delegate_from": Relation.DELEGATE}
SESSION_MEMBERS: Final = frozenset(
    {"id", "session_id", "format", "messages", "usage_events", "ends", "entry", *ESTABLISHED, *OWN}
)
_TEXTS: Final = ("model", "system_prompt", "billing_provider", "billing_base_url", "billing_mode")
_FACTS: Final = frozenset(Usage.__struct_fields__) - {"event_id", "at"}
_FREE: Final = (None, "", "unknown")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """A session, its messages and its use."""

    record: SessionRecord
    ends: int
    """How often it has ended so far."""
    entry: Mapping[str, Any] | None
    """The record of its lane as it was when it ended last."""
    messages: tuple[Incoming, ...]
    usage: tuple[Usage, ...]


def bundle_of(session: object, *, owner: str | None = None) -> Bundle:
    """The session in an exported object; `InvalidInputError` says what of it cannot be used.

    With *owner* it becomes theirs, on no lane.
    """
    given = Given.session(session)
    session_id = check_session_id(given.members.get("id", given.members.get("session_id")))
    messages = messages_of(given)
    started_at = _started_at(given, messages)
    messages = tuple(_timed(_handed_over(given, messages, owner), started_at))
    usage = _usage(given, session_id, started_at)
    ended_at, entry = given.time("ended_at"), given.members.get("entry")
    facts: dict[str, Any] = {
        "owner": owner if owner is not None else _owner(given),
        "session_key": None if owner is not None else given.word("session_key", MAX_KEY),
        "user_id": given.word("user_id"),
        "ended_at": ended_at,
        "end_reason": check_reason(reason) if (reason := given.members.get("end_reason")) else None,
        "model_config": given.mapping("model_config"),
        "pinned": given.flag("pinned"),
        "archived": given.flag("archived"),
        "rewind_count": given.count("rewind_count"),
        "extra": given.unknown(SESSION_MEMBERS),
        **{name: given.text(name) for name in _TEXTS},
        **_descent(given),
        **_title(given),
        **_sums(given, usage),
        **_said(given, messages, started_at),
    }
    source = _source(given)
    kept = (
        cast("Mapping[str, Any]", entry) if ended_at and owner is None and isinstance(entry, dict) else None
    )
    return Bundle(
        record=SessionRecord(session_id=session_id, source=source, started_at=started_at, **facts),
        ends=max(given.count("ends"), int(ended_at is not None)),
        entry=kept,
        messages=messages,
        usage=usage,
    )


def _source(given: Given) -> str:
    return check_word("source", given.members.get("source") or UNKNOWN_SOURCE)


def _started_at(given: Given, messages: Sequence[Incoming]) -> datetime:
    sent = (one.message.sent_at for one in messages)
    started_at = given.time("started_at") or min(filter(None, sent), default=None)
    if started_at is None:
        raise unusable("started_at", "is missing")
    return started_at


def _timed(messages: Iterable[Incoming], at: datetime) -> Iterator[Incoming]:
    """Messages that say no time were sent when the one before was, so that every import reads the same."""
    for one in messages:
        at = one.message.sent_at or at
        yield one if one.message.sent_at else replace(one, message=one.message.altered(sent_at=at))


def _handed_over(given: Given, messages: Sequence[Incoming], owner: str | None) -> Iterator[Incoming]:
    """Messages that get another owner say themselves whose they are, as far as the file tells."""
    told = given.members.get("owner") or given.members.get("user_id")
    was, lane = _owner(given), given.word("session_key", MAX_KEY)
    for one in messages:
        if owner is None or not told or was == owner or one.message.author is not None:
            yield one
        else:
            named = one.message.altered(author=was, from_lane=one.message.from_lane or lane)
            yield replace(one, message=named)


def _owner(given: Given) -> str:
    """Whose it says it is, or the person's, as far as one is known."""
    said = given.word("owner", MAX_KEY)
    if said is not None:
        return said
    base, user = f"main:{encode_part(_source(given))}", given.word("user_id")
    return f"{base}:user:{encode_part(user)}" if user else f"{base}:local"


def _descent(given: Given) -> dict[str, Any]:
    """The parent, and how the session came from it."""
    parent = given.members.get("parent_session_id") or None
    if parent is None:
        return {}
    relation = given.members.get("relation")
    if relation is None:
        config = given.mapping("model_config")
        relation = next((kind for mark, kind in _MARKERS.items() if mark in config), Relation.SUCCESSION)
    if relation not in list(Relation):
        raise unusable("relation", f"must be one of {', '.join(Relation)}")
    return {"parent_session_id": check_session_id(parent), "relation": Relation(relation)}


def _title(given: Given) -> dict[str, Any]:
    """The title, and who gave it."""
    title, by = given.text("title"), given.members.get("title_by")
    known = by if by in list(TitledBy) else TitledBy.PERSON
    owner = given.word("title_owner", MAX_KEY) or _owner(given)
    return {"title": title, "title_by": str(known), "title_owner": owner} if title else {}


def _said(given: Given, messages: Sequence[Incoming], started_at: datetime) -> dict[str, Any]:
    """What the messages add up to. An exact export knows better how it began."""
    said = given.members.get("preview")
    texts = (one.message.text for one in messages if one.message.role == Role.USER and one.message.active)
    preview = next((shown for text in texts if (shown := preview_of(text))), None)
    if given.exact and isinstance(said, str) and 0 < len(said) <= MAX_PREVIEW_LENGTH:
        preview = said
    active = [one.message for one in messages if one.message.active]
    return {
        "last_active": given.time("last_active")
        or max([started_at, *(one.message.sent_at or started_at for one in messages)]),
        "last_seq": max(
            given.count("last_seq") if given.exact else 0, messages[-1].message.seq if messages else 0
        ),
        "message_count": len(active),
        "tool_call_count": sum(_calls(one.tool_calls) for one in active),
        "preview": preview,
    }


def _calls(tool_calls: object) -> int:
    return len(cast("list[object]", tool_calls)) if isinstance(tool_calls, list) else int(bool(tool_calls))


def _usage(given: Given, session_id: str, at: datetime) -> tuple[Usage, ...]:
    """Every use of a model; where there are only counters, one that stands for all."""
    if given.members.get("usage_events") is None:
        return _all_in_one(given, session_id, at)
    found: list[Usage] = []
    for one in given.all_of("usage_events"):
        event = Given.part(one, exact=True)
        facts: Any = {name: value for name, value in event.members.items() if name in _FACTS}
        found.append(usage_of(event.members.get("event_id", ""), event.time("at") or at, **facts))
    if len({one.event_id for one in found}) < len(found):
        raise unusable("usage_events", "hold two with the same event_id")
    return tuple(found)


def _all_in_one(given: Given, session_id: str, at: datetime) -> tuple[Usage, ...]:
    facts: dict[str, Any] = {name: given.count(name) for name in COUNTS if name != "api_calls"}
    facts["api_calls"] = given.count("api_call_count")
    for name in ("estimated_cost_usd", "actual_cost_usd"):
        cost = given.members.get(name)
        # Elsewhere a price that nobody knows is written as nothing to pay.
        facts[name] = cost if cost or given.members.get("cost_status") not in _FREE else None
    if not any(facts.values()):
        return ()
    if given.members.get("cost_status") == CostStatus.INCLUDED:
        facts |= {"actual_cost_usd": None, "cost_status": CostStatus.INCLUDED}
    words = {"model": "model", "provider": "billing_provider", "base_url": "billing_base_url"}
    facts |= {name: given.members.get(other) for name, other in words.items()}
    facts |= {name: given.members.get(name) for name in ("billing_mode", "cost_source", "pricing_version")}
    return (usage_of(f"import:{session_id}", at, **facts),)


def _sums(given: Given, usage: Sequence[Usage]) -> dict[str, Any]:
    """What the turns have used: always the sum of the events, whatever the file says."""
    turns = [one for one in usage if one.task == TURN]
    sums: dict[str, Any] = {name: sum(getattr(one, name) for one in turns) for name in COUNTS}
    sums["api_call_count"] = sums.pop("api_calls")
    for name in ("estimated_cost_usd", "actual_cost_usd"):
        known = [to_nanos(cost) for one in turns if (cost := getattr(one, name)) is not None]
        sums[name] = from_nanos(sum(known)) if known else None
    sums["cost_status"] = str(worse(*(one.cost_status for one in turns))) if turns else None
    for name in ("cost_source", "pricing_version"):
        told = [value for one in turns if (value := getattr(one, name)) is not None]
        said = given.members.get(name)
        sums[name] = said if said in told else next(reversed(told), None)
    return sums
