"""The reader of exported sessions: each member of an untrusted JSON object is checked or refused.

Anybody may have written the file. So each member is used as a value of its type, or the session is refused
with the name of the member.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, cast

from gateway_sessions.core.damaged_json import unusable_part
from gateway_sessions.core.export.session_members import (
    ESTABLISHED,
    FORMAT,
    IN_MESSAGE,
    MICROS,
    OTHER_NAMES,
    OWN,
    Version,
)
from gateway_sessions.core.identity.keys import encode_part
from gateway_sessions.core.instants import EPOCH, parse_instant
from gateway_sessions.core.sessions.entry import check_one_line_reason, check_session_id, check_tokens
from gateway_sessions.core.sessions.record import Relation, SessionRecord
from gateway_sessions.core.sessions.titles import TitledBy
from gateway_sessions.core.storable_text import MAX_WORD, check_word
from gateway_sessions.core.transcript.messages import Hidden, Message, Role, preview_of
from gateway_sessions.core.usage.usage_events import (
    COUNTS,
    TURN,
    CostStatus,
    Usage,
    from_nanos,
    least_certain_status,
    make_usage,
    to_nanos,
)
from gateway_sessions.errors import InvalidInputError


@dataclass(frozen=True, slots=True)
class ExportedObject:
    """One object of a file. Our exports are exact; others have numbers for flags, and JSON in text."""

    members: Mapping[str, Any]
    exact: bool

    @classmethod
    def of_session(cls, value: object) -> ExportedObject:
        """Return an exported session, with whether it is exact by its own mark."""
        given = cls.of_member(value, exact=True)
        return cls(given.members, exact=given.members.get("format") == FORMAT)

    @classmethod
    def of_member(cls, value: object, *, exact: bool) -> ExportedObject:
        """Return an object within another one."""
        if not isinstance(value, Mapping):
            raise unusable_part("value", f"must be an object, not {type(value).__name__}")
        return cls(cast("Mapping[str, Any]", value), exact=exact)

    def time(self, name: str) -> datetime | None:
        """Return an instant, to the microsecond."""
        micros = self.members.get(name + MICROS)
        if type(micros) is int:
            try:
                return EPOCH + timedelta(microseconds=micros)
            except OverflowError as error:
                raise unusable_part(name, "is out of range") from error
        return parse_instant(name, self.members.get(name))

    def text(self, name: str) -> str | None:
        """Return a text of any length."""
        value = self.members.get(name)
        if value is not None and not isinstance(value, str):
            raise unusable_part(name, f"must be text, not {type(value).__name__}")
        return value

    def word(self, name: str, limit: int = MAX_WORD) -> str | None:
        """Return a name on one line; None for an empty one."""
        value = self.members.get(name)
        if type(value) is int and not self.exact:
            value = str(value)
        return check_word(name, value, limit) if value not in (None, "") else None

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Return a flag, also given as a number."""
        value = self.members.get(name)
        if value is None:
            return default
        if value not in (0, 1):
            raise unusable_part(name, "is neither true nor false")
        return bool(value)

    def count(self, name: str) -> int:
        """Return a whole number; 0 for an absent one."""
        value = self.members.get(name)
        return 0 if value is None else check_tokens(name, value)

    def mapping(self, name: str) -> Mapping[str, Any]:
        """Return an object, also given as JSON in text; another value is kept under its name."""
        value: object = self.members.get(name)
        decoded = parse_json_text(value) if not self.exact else value
        if isinstance(decoded, dict):
            return cast("dict[str, Any]", decoded)
        if value in (None, ""):
            return {}
        if self.exact:
            raise unusable_part(name, "must be an object")
        return {name: value}

    def items_of(self, name: str) -> list[Any]:
        """Return a list; an absent one is empty."""
        value: object = self.members.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise unusable_part(name, "must be a list")
        return value  # pyright: ignore[reportUnknownVariableType]  # each item is looked at by itself

    def unknown_members(self, known: Collection[str]) -> dict[str, Any]:
        """Return the unknown members, together with those that an earlier import did not know."""
        extra: object = self.members.get("extra")
        if extra is not None and not isinstance(extra, Mapping):
            raise unusable_part("extra", "must be an object")
        found = dict(cast("Mapping[str, Any]", extra or {}))
        return found | {
            name: value
            for name, value in self.members.items()
            if value is not None and name.removesuffix(MICROS) not in known
        }


def parse_json_text(value: object) -> Any:
    """Return the value of JSON in a text, or the text itself if it holds no JSON."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


# All messages of a session are held in memory at once; no real session has as many.
MAX_MESSAGES: Final = 1_000_000
MAX_ROLE: Final = 64
MAX_KEY: Final = 2560
JSON_MARK: Final = "\x00json:"
"""The mark before content that is JSON, in the text columns of Hermes."""

_PACKED: Final = ("tool_calls", "reasoning_details", "codex_reasoning_items", "codex_message_items")
_WHOSE: Final = frozenset({"author", "from_lane", "people"})
"""The members whose meaning is certain only in our own exports."""
MESSAGE_MEMBERS: Final = frozenset(
    {"id", "session_id", "timestamp", "active", "compacted", "hidden_by", "versions", *IN_MESSAGE}
)


@dataclass(frozen=True, slots=True)
class ImportedMessage:
    """A message with the number of the act that hid it, and its replaced contents."""

    message: Message
    hidden_by: int | None = None
    versions: tuple[Version, ...] = ()


def _read_messages(session: ExportedObject) -> tuple[ImportedMessage, ...]:
    """Return all messages in order; if their places do not rise, they get new ones."""
    listed = session.items_of("messages")
    if len(listed) > MAX_MESSAGES:
        raise unusable_part("messages", f"are more than {MAX_MESSAGES}")
    found: list[ImportedMessage] = []
    for number, one in enumerate(listed, 1):
        try:
            found.append(_read_message(ExportedObject.of_member(one, exact=session.exact)))
        except InvalidInputError as error:
            what = f"message {number}:"
            raise unusable_part(what, str(error)) from error
    if not session.exact:
        found = list(_number_rewinds(found))
    places = [one.message.seq for one in found]
    if all(before < after for before, after in zip([0, *places], places, strict=False)):
        return tuple(found)
    return tuple(replace(one, message=one.message.altered(seq=seq)) for seq, one in enumerate(found, 1))


def _number_rewinds(messages: Iterable[ImportedMessage]) -> Iterator[ImportedMessage]:
    """Yield the messages with numbers of acts: adjacent rewound messages count as rewound together.

    The file does not tell the acts, so this is the best guess.
    """
    act, before = 0, None
    for one in messages:
        hidden = one.message.hidden_because
        act += hidden is Hidden.REWOUND and before is not Hidden.REWOUND
        before = hidden
        yield replace(one, hidden_by=act) if hidden is Hidden.REWOUND else one


def _read_message(given: ExportedObject) -> ImportedMessage:
    members = given.members
    apart = _WHOSE | {"extra"}
    known = {
        name: members[name] for name in IN_MESSAGE if members.get(name) is not None and name not in apart
    }
    if not given.exact:
        known |= _parse_packed_members(known)
    else:
        known |= _read_authorship(given)
    hidden = _read_hidden_reason(given)
    known |= {
        "role": check_word("role", members.get("role") or "unknown", MAX_ROLE),
        "seq": given.count("seq"),
        "sent_at": given.time(OTHER_NAMES["sent_at"]) or given.time("sent_at"),
        "edited_at": given.time("edited_at"),
        "observed": given.flag("observed"),
        "hidden_because": hidden,
        "extra": given.unknown_members(MESSAGE_MEMBERS if given.exact else MESSAGE_MEMBERS - _WHOSE),
    }
    earlier = [ExportedObject.of_member(one, exact=given.exact) for one in given.items_of("versions")]
    versions = tuple((one.members.get("content"), one.time("replaced_at") or EPOCH) for one in earlier)
    hidden_by = given.count("hidden_by") or None
    return ImportedMessage(Message(**known), hidden_by if hidden else None, versions)


def _read_authorship(given: ExportedObject) -> dict[str, Any]:
    people = given.members.get("people")
    if people is not None and not (isinstance(people, list) and all(isinstance(one, str) for one in people)):  # pyright: ignore[reportUnknownVariableType]  # a file
        raise unusable_part("people", "must be a list of names")
    return {
        "author": given.word("author", MAX_KEY),
        "from_lane": given.word("from_lane", MAX_KEY),
        "people": None if people is None else tuple(people),  # pyright: ignore[reportUnknownArgumentType]  # checked
    }


def _read_hidden_reason(given: ExportedObject) -> Hidden | None:
    because = given.members.get("hidden_because")
    if because is not None:
        if because not in list(Hidden):
            raise unusable_part("hidden_because", f"must be one of {', '.join(Hidden)}")
        return Hidden(because)
    if given.flag("active", default=True):
        return None
    return Hidden.COMPACTED if given.flag("compacted") else Hidden.REWOUND


def _parse_packed_members(known: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members that another program keeps as JSON in text."""
    found: dict[str, Any] = {name: parse_json_text(known[name]) for name in _PACKED if name in known}
    calls = found.get("tool_calls")
    if calls is not None and not isinstance(calls, list | dict):
        found["tool_calls"] = [calls]
    content = known.get("content")
    if isinstance(content, str) and content.startswith(JSON_MARK):
        decoded = parse_json_text(content.removeprefix(JSON_MARK))
        found["content"] = decoded if isinstance(decoded, list | dict) else content
    elif isinstance(content, int | float):
        found["content"] = str(content)
    return found


UNKNOWN_SOURCE: Final = "import"
MAX_LANE_KEY: Final = 4096
MAX_PREVIEW_LENGTH: Final = 100

_MARKERS: Final = {"_branched_from": Relation.BRANCH, "_delegate_from": Relation.DELEGATE}
SESSION_MEMBERS: Final = frozenset(
    {"id", "session_id", "format", "messages", "usage_events", "ends", "entry", *ESTABLISHED, *OWN}
)
_TEXTS: Final = ("model", "system_prompt", "billing_provider", "billing_base_url", "billing_mode")
_FACTS: Final = frozenset(Usage.__struct_fields__) - {"event_id", "at"}
_FREE: Final = (None, "", "unknown")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedSession:
    """A session, its messages and its use."""

    record: SessionRecord
    ends: int
    """The number of times that the session has ended."""
    entry: Mapping[str, Any] | None
    """The stored entry of the session's lane at its last end."""
    messages: tuple[ImportedMessage, ...]
    usage: tuple[Usage, ...]


def read_session(session: object, *, owner: str | None = None) -> ExportedSession:
    """Return the session in an exported object, or raise `InvalidInputError` with the unusable member.

    With *owner* the session becomes that owner's, on no lane.
    """
    given = ExportedObject.of_session(session)
    session_id = check_session_id(given.members.get("id", given.members.get("session_id")))
    messages = _read_messages(given)
    started_at = _read_started_at(given, messages)
    messages = tuple(_fill_missing_times(_keep_authors_for_new_owner(given, messages, owner), started_at))
    usage = _read_usage(given, session_id, started_at)
    ended_at, entry = given.time("ended_at"), given.members.get("entry")
    facts: dict[str, Any] = {
        "owner": owner if owner is not None else _read_owner(given),
        "session_key": None if owner is not None else given.word("session_key", MAX_LANE_KEY),
        "user_id": given.word("user_id"),
        "ended_at": ended_at,
        "end_reason": check_one_line_reason(reason) if (reason := given.members.get("end_reason")) else None,
        "model_config": given.mapping("model_config"),
        "pinned": given.flag("pinned"),
        "archived": given.flag("archived"),
        "rewind_count": given.count("rewind_count"),
        "extra": given.unknown_members(SESSION_MEMBERS),
        **{name: given.text(name) for name in _TEXTS},
        **_read_parent(given),
        **_read_title(given),
        **_sum_usage(given, usage),
        **_sum_messages(given, messages, started_at),
    }
    source = _read_source(given)
    kept = (
        cast("Mapping[str, Any]", entry) if ended_at and owner is None and isinstance(entry, dict) else None
    )
    return ExportedSession(
        record=SessionRecord(session_id=session_id, source=source, started_at=started_at, **facts),
        ends=max(given.count("ends"), int(ended_at is not None)),
        entry=kept,
        messages=messages,
        usage=usage,
    )


def _read_source(given: ExportedObject) -> str:
    return check_word("source", given.members.get("source") or UNKNOWN_SOURCE)


def _read_started_at(given: ExportedObject, messages: Sequence[ImportedMessage]) -> datetime:
    sent = (one.message.sent_at for one in messages)
    started_at = given.time("started_at") or min(filter(None, sent), default=None)
    if started_at is None:
        raise unusable_part("started_at", "is missing")
    return started_at


def _fill_missing_times(messages: Iterable[ImportedMessage], at: datetime) -> Iterator[ImportedMessage]:
    """Yield the messages with times: a message without one gets the time of the message before.

    So every import of a file reads the same.
    """
    for one in messages:
        at = one.message.sent_at or at
        yield one if one.message.sent_at else replace(one, message=one.message.altered(sent_at=at))


def _keep_authors_for_new_owner(
    given: ExportedObject, messages: Sequence[ImportedMessage], owner: str | None
) -> Iterator[ImportedMessage]:
    """Yield the messages with their authors if the session gets another owner, as far as known."""
    tells_owner = given.members.get("owner") or given.members.get("user_id")
    old_owner, lane = _read_owner(given), given.word("session_key", MAX_LANE_KEY)
    for one in messages:
        if owner is None or not tells_owner or old_owner == owner or one.message.author is not None:
            yield one
        else:
            named = one.message.altered(author=old_owner, from_lane=one.message.from_lane or lane)
            yield replace(one, message=named)


def _read_owner(given: ExportedObject) -> str:
    """Return the owner in the file, else the person as an owner, else one without a person."""
    owner = given.word("owner", MAX_LANE_KEY)
    if owner is not None:
        return owner
    base, user = f"main:{encode_part(_read_source(given))}", given.word("user_id")
    return f"{base}:user:{encode_part(user)}" if user else f"{base}:local"


def _read_parent(given: ExportedObject) -> dict[str, Any]:
    """Return the parent, and the way in which the session came from it."""
    parent = given.members.get("parent_session_id") or None
    if parent is None:
        return {}
    relation = given.members.get("relation")
    if relation is None:
        config = given.mapping("model_config")
        relation = next((kind for mark, kind in _MARKERS.items() if mark in config), Relation.SUCCESSION)
    if relation not in list(Relation):
        raise unusable_part("relation", f"must be one of {', '.join(Relation)}")
    return {"parent_session_id": check_session_id(parent), "relation": Relation(relation)}


def _read_title(given: ExportedObject) -> dict[str, Any]:
    title, by = given.text("title"), given.members.get("title_by")
    known = by if by in list(TitledBy) else TitledBy.PERSON
    owner = given.word("title_owner", MAX_LANE_KEY) or _read_owner(given)
    return {"title": title, "title_by": str(known), "title_owner": owner} if title else {}


def _sum_messages(
    given: ExportedObject, messages: Sequence[ImportedMessage], started_at: datetime
) -> dict[str, Any]:
    """Return the sums over the messages. An exact export's own preview takes precedence."""
    preview_given = given.members.get("preview")
    texts = (one.message.text for one in messages if one.message.role == Role.USER and one.message.active)
    preview = next((shown for text in texts if (shown := preview_of(text))), None)
    if given.exact and isinstance(preview_given, str) and 0 < len(preview_given) <= MAX_PREVIEW_LENGTH:
        preview = preview_given
    active = [one.message for one in messages if one.message.active]
    return {
        "last_active": given.time("last_active")
        or max([started_at, *(one.message.sent_at or started_at for one in messages)]),
        "last_seq": max(
            given.count("last_seq") if given.exact else 0, messages[-1].message.seq if messages else 0
        ),
        "message_count": len(active),
        "tool_call_count": sum(_count_calls(one.tool_calls) for one in active),
        "preview": preview,
    }


def _count_calls(tool_calls: object) -> int:
    return len(cast("list[object]", tool_calls)) if isinstance(tool_calls, list) else int(bool(tool_calls))


def _read_usage(given: ExportedObject, session_id: str, at: datetime) -> tuple[Usage, ...]:
    """Return every use of a model; if the file has only counters, one use that stands for all."""
    if given.members.get("usage_events") is None:
        return _usage_from_counters(given, session_id, at)
    found: list[Usage] = []
    for one in given.items_of("usage_events"):
        event = ExportedObject.of_member(one, exact=True)
        facts: Any = {name: value for name, value in event.members.items() if name in _FACTS}
        found.append(make_usage(event.members.get("event_id", ""), event.time("at") or at, **facts))
    if len({one.event_id for one in found}) < len(found):
        raise unusable_part("usage_events", "hold two with the same event_id")
    return tuple(found)


def _usage_from_counters(given: ExportedObject, session_id: str, at: datetime) -> tuple[Usage, ...]:
    facts: dict[str, Any] = {name: given.count(name) for name in COUNTS if name != "api_calls"}
    facts["api_calls"] = given.count("api_call_count")
    for name in ("estimated_cost_usd", "actual_cost_usd"):
        cost = given.members.get(name)
        # Other programs write an unknown price as 0.
        facts[name] = cost if cost or given.members.get("cost_status") not in _FREE else None
    if not any(facts.values()):
        return ()
    if given.members.get("cost_status") == CostStatus.INCLUDED:
        facts |= {"actual_cost_usd": None, "cost_status": CostStatus.INCLUDED}
    words = {"model": "model", "provider": "billing_provider", "base_url": "billing_base_url"}
    facts |= {name: given.members.get(other) for name, other in words.items()}
    facts |= {name: given.members.get(name) for name in ("billing_mode", "cost_source", "pricing_version")}
    return (make_usage(f"import:{session_id}", at, **facts),)


def _sum_usage(given: ExportedObject, usage: Sequence[Usage]) -> dict[str, Any]:
    """Return the use of the turns: always the sum of the events, whatever the file says."""
    turns = [one for one in usage if one.task == TURN]
    sums: dict[str, Any] = {name: sum(getattr(one, name) for one in turns) for name in COUNTS}
    sums["api_call_count"] = sums.pop("api_calls")
    for name in ("estimated_cost_usd", "actual_cost_usd"):
        known = [to_nanos(cost) for one in turns if (cost := getattr(one, name)) is not None]
        sums[name] = from_nanos(sum(known)) if known else None
    sums["cost_status"] = str(least_certain_status(*(one.cost_status for one in turns))) if turns else None
    for name in ("cost_source", "pricing_version"):
        known_values = [value for one in turns if (value := getattr(one, name)) is not None]
        stated = given.members.get(name)
        sums[name] = stated if stated in known_values else next(reversed(known_values), None)
    return sums
