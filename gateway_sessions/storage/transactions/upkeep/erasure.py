"""Erase a person from every table in repeatable steps, with a plan that outlives the process.

The first commit takes the sessions from the person's lanes and sets a tombstone, so that no message sent
before comes in any more. Then everything that began until then is removed in small commits, so that other
writes never wait long. A note in `meta` keeps the plan until all files are clean, so that the next owner of
the store can go on if this one is cut off. The note loses the person's name as soon as no row and no copy has
it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec

from gateway_sessions.core.identity.source import SessionSource
from gateway_sessions.core.instants import from_micros, to_micros
from gateway_sessions.core.sessions.erasure import ErasureSubject, tombstone_of
from gateway_sessions.errors import SessionBusyError
from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.storage.tables import meta
from gateway_sessions.storage.tables.column_decoding import decode_json, escape_like_pattern
from gateway_sessions.storage.tables.entries import load, put, remove
from gateway_sessions.storage.tables.lanes import lane_lease
from gateway_sessions.storage.tables.sql_files import row_of
from gateway_sessions.storage.tables.tombstones import ERASING
from gateway_sessions.storage.transactions.queue import erasure
from gateway_sessions.storage.transactions.sessions.remove import load_group, remove_session
from gateway_sessions.storage.transactions.sessions.session_transitions import end_session_statement
from gateway_sessions.storage.transactions.upkeep import message_erasure

PAGE: Final = 5
"""The number of sessions removed in one commit."""
_BEHIND: Final = "erasing;"
ERASED: Final = "erased"
"""The end reason of sessions that are about to be removed."""
_OF_THE_PERSON: Final = ("user_id", "user_id_alt", "user_name")


class ErasurePlan(msgspec.Struct, frozen=True, kw_only=True):
    """The remaining steps of an erasure; stored as a note, so that it outlives the process."""

    tombstone: str
    erased_at: int
    keep_copies: bool
    owner: str | None = None
    """The person; None once no row names them."""
    lanes: tuple[str, ...] = ()
    """The person's lanes."""
    last_message_id: int = 0
    """The highest id of a message when the erasure began."""
    ids: tuple[str, ...] = ()
    """Other ids by which rooms know the person."""

    @property
    def until(self) -> datetime:
        """Return the instant of the erasure; rows that began later stay."""
        return from_micros(self.erased_at)


@row_of("lanes_of_owner")
class OwnedLane(NamedTuple):
    """A lane of a person, its session, and the opening that runs a turn there, if one runs."""

    session_key: str
    session_id: str
    lease_epoch: int | None


@row_of("transitions_of_owner_lane")
class TransitionRow(NamedTuple):
    """A row of the transition log, by the names that a person is shown."""

    at: int
    session_id: str
    event: str
    from_state: str | None
    to_state: str
    reason: str | None
    actor: str


@dataclass(frozen=True, slots=True)
class BegunErasure:
    """The plan, and the rows that the first step removed."""

    plan: ErasurePlan
    rows: Counter[str] = field(default_factory=Counter[str])


def begin_erasure(
    subject: ErasureSubject,
    erased_at: datetime,
    ids: Iterator[int],
    *,
    keep_copies: bool,
    known_as: Sequence[str] = (),
) -> Transaction[BegunErasure]:
    """End the person's sessions and refuse earlier messages; `SessionBusyError` while their turn runs."""
    secret = yield from meta.install_secret()
    current = yield from _current_lanes(subject.owner)
    for lane in current:
        if lane.lease_epoch is not None:
            raise SessionBusyError(lane.session_key, lane.session_id)
    earlier = yield from _earlier_lanes(subject.owner)
    mine = sorted({lane.session_key for lane in current} | earlier)
    waiting = yield from erasure.erase_waiting(subject, mine, ids)
    tombstone = tombstone_of(secret, subject.owner)
    yield Statement("put_tombstone", (tombstone, to_micros(erased_at)))
    for lane in current:
        entry = yield from load(lane.session_key)
        if entry is not None:
            yield from remove(entry)
            yield end_session_statement(entry, erased_at, ERASED)
    noted = yield from meta.get_fact(f"{ERASING}{tombstone}")
    known = _read_plan(noted).lanes if noted is not None else ()
    ((last_message_id, *_),) = yield Statement("index_limits")
    plan = ErasurePlan(
        tombstone=tombstone,
        erased_at=to_micros(erased_at),
        keep_copies=keep_copies,
        owner=subject.owner,
        lanes=tuple(sorted({*mine, *known})),
        last_message_id=int(last_message_id or 0),
        ids=tuple(known_as),
    )
    yield from _plan_as_json(plan)
    return BegunErasure(plan, Counter(entries=len(current)) + waiting)


def forget_name(plan: ErasurePlan) -> Transaction[None]:
    """Remove the person's name from the plan, once no row is left to remove."""
    yield from _plan_as_json(msgspec.structs.replace(plan, owner=None, lanes=(), ids=()))


def finish_erasure(plan: ErasurePlan) -> Transaction[None]:
    """Remove the plan of a finished erasure."""
    yield Statement("forget_meta", (f"{ERASING}{plan.tombstone}",))


def unfinished_erasures() -> Transaction[list[ErasurePlan]]:
    """Return the plans of erasures that were begun and not finished."""
    rows = yield Statement("unfinished_erasures", (ERASING, _BEHIND))
    return [_read_plan(text) for (text,) in rows]


def erase_sessions(
    subject: ErasureSubject, erased_at: datetime, ids: Iterator[int]
) -> Transaction[Counter[str]]:
    """Remove some of the person's sessions; an empty count means that none is left."""
    rows = yield Statement("sessions_of_owner_until", (subject.owner, to_micros(erased_at), PAGE))
    removed: Counter[str] = Counter()
    for (session_id,) in rows:
        group = yield from load_group(session_id, unended=True)
        ids_of_group = [one.session_id for one in group.members] if group is not None else [session_id]
        for one in ids_of_group:
            removed += yield from _take_from_lane(one)
            removed += yield from remove_session(one, ids)
    return removed


def erase_lane(session_key: str, erased_at: datetime) -> Transaction[Counter[str]]:
    """Remove the log, the hook calls and the row of a lane, as far as they are from before the erasure."""
    until = (session_key, to_micros(erased_at))
    removed: Counter[str] = Counter()
    for table in ("transitions", "hook_calls"):
        ((count,),) = yield Statement(f"delete_{table}_of_lane_until", until)
        removed[table] += count
    ((count,),) = yield Statement("delete_lane_without_session", (session_key,))
    removed["lanes"] += count
    return removed


def user_ids_in_rooms(subject: ErasureSubject) -> Transaction[list[str]]:
    """Return the ids of all people who began other owners' sessions on the person's platform."""
    rows = yield Statement("users_of_sessions_of_others", (subject.owner, subject.platform))
    return [user_id for (user_id,) in rows]


def scrub_ids(subject: ErasureSubject, also: Sequence[str] = ()) -> Transaction[Counter[str]]:
    """Remove each id of the person from other owners' entries and sessions that name them as the opener."""
    if subject.user_id is None:
        return Counter()
    changed = 0
    for user_id in dict.fromkeys((subject.user_id, *also)):
        changed += yield from _scrub_id(subject, user_id)
    return Counter({erasure.SCRUBBED: changed})


def _scrub_id(subject: ErasureSubject, user_id: str) -> Transaction[int]:
    """Remove one id of a person from other owners' rows; return how many rows named it."""
    whose = (subject.owner, subject.platform)
    named = f"%{escape_like_pattern(msgspec.json.encode(user_id).decode())}%"
    changed = 0
    for (session_key,) in (yield Statement("entries_that_name", (*whose, named))):
        entry = yield from load(session_key)
        if entry is None or entry.origin is None or not _is_from_user(entry.origin, user_id):
            continue
        nobody = replace(entry.origin, user_id=None, user_id_alt=None, user_name=None)
        yield from put(entry.altered(origin=nobody, version=entry.version + 1))
        changed += 1
    for session_id, archived in (yield Statement("archives_that_name", (*whose, named))):
        record: dict[str, Any] = decode_json(f"session {session_id!r}", archived, dict[str, Any])
        origin: dict[str, Any] = record.get("origin") or {}
        if user_id in (origin.get("user_id"), origin.get("user_id_alt")):
            record["origin"] = {name: value for name, value in origin.items() if name not in _OF_THE_PERSON}
            yield Statement("set_archived_entry", (msgspec.json.encode(record).decode(), session_id))
            changed += 1
    ((forgotten,),) = yield Statement("forget_user_of_sessions", (*whose, user_id))
    return changed + int(forgotten)


def lane_history(session_key: str) -> Transaction[list[dict[str, Any]]]:
    """Return the whole transition log of a lane, for an export."""
    rows = yield Statement("transitions_of_owner_lane", (session_key,))
    return [
        {**one._asdict(), "at": from_micros(one.at).isoformat()} for one in map(TransitionRow._make, rows)
    ]


def lanes_of(subject: ErasureSubject) -> Transaction[list[str]]:
    """Return the lanes that are or were the person's."""
    current = yield from _current_lanes(subject.owner)
    return sorted({lane.session_key for lane in current} | (yield from _earlier_lanes(subject.owner)))


def messages_to_erase(subject: ErasureSubject, plan: ErasurePlan) -> message_erasure.MessagesOfPerson:
    """Return the bounds of the person's messages that an erasure removes from other owners' sessions."""
    return message_erasure.MessagesOfPerson(subject.owner, plan.last_message_id, plan.erased_at)


def _current_lanes(owner: str) -> Transaction[list[OwnedLane]]:
    """Return the lanes that are a person's now, with their sessions and leases."""
    rows = yield Statement("lanes_of_owner", (owner,))
    return [OwnedLane._make(row) for row in rows]


def _earlier_lanes(owner: str) -> Transaction[set[str]]:
    """Return lanes that were the person's and have no other owner now, whatever became of their sessions."""
    had = yield Statement("lanes_that_were_of_owner", (owner, owner))
    left = yield Statement("lanes_left_by", (owner, owner))
    return {session_key for (session_key,) in (*had, *left)}


def _take_from_lane(session_id: str) -> Transaction[Counter[str]]:
    """Take a session from the lane that has resumed it since the first step."""
    entry = None
    for (session_key,) in (yield Statement("lane_of_session", (session_id,))):
        entry = yield from load(session_key)
    if entry is None:
        return Counter()
    lane = yield from lane_lease(entry.session_key)
    if lane is not None and lane.lease_epoch is not None:
        raise SessionBusyError(entry.session_key, session_id)
    yield from remove(entry)
    return Counter(entries=1)


def _plan_as_json(plan: ErasurePlan) -> Transaction[None]:
    yield from meta.set_fact(f"{ERASING}{plan.tombstone}", msgspec.json.encode(plan).decode())


def _read_plan(text: str) -> ErasurePlan:
    return decode_json("the plan of an erasure", text, ErasurePlan)


def _is_from_user(origin: SessionSource, user_id: str) -> bool:
    return user_id in (origin.user_id, origin.user_id_alt)
