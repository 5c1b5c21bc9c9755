"""Find the session of a message, keep it or replace it, or begin the first one, in one transaction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeAlias, assert_never

import msgspec

from gateway_sessions.core.identity.keys import (
    NO_ALIASES,
    Isolation,
    identity_key,
    ids_to_resolve,
    same_conversation,
    session_owner,
)
from gateway_sessions.core.identity.source import SessionSource
from gateway_sessions.core.instants import to_micros
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.core.sessions.policy_rules import ResolvedPolicy
from gateway_sessions.core.sessions.reasons import EndReason
from gateway_sessions.core.sessions.reset_policy import AskActiveWork
from gateway_sessions.core.sessions.state_machine import (
    AccessRules,
    Event,
    Keep,
    Replace,
    advance,
    is_not_due_yet,
    plan_access,
    policy_for,
)
from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.storage.tables.change import Change, LaneEvent
from gateway_sessions.storage.tables.entries import load, put
from gateway_sessions.storage.tables.index_notes import note_moved_session
from gateway_sessions.storage.tables.lanes import is_busy, lane_lease
from gateway_sessions.storage.tables.statements import lane_lock
from gateway_sessions.storage.transactions.sessions.session_transitions import (
    begin_entry,
    interaction_at,
    replace_entry,
    transition_statement,
)


class SessionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request for the session of a message."""

    source: SessionSource
    key: str
    """The plain key of the lane."""
    flags: Isolation
    new_session_id: str
    aliases: Mapping[str, str] = msgspec.field(default_factory=lambda: NO_ALIASES)
    touch: bool = True
    """True for a person's message; a heartbeat or a cron job does not move the policy's clock."""
    force_new: bool = False
    active_work: bool | None = None
    asked_version: int | None = None
    """The version of the entry for which `active_work` was asked; for any other version it is unknown."""
    known: SessionEntry | None = None
    known_owner: str | None = None
    """The owner of the lane, if it was found out before."""

    @property
    def identity(self) -> str:
        """Return the full key, which no other origin can have."""
        return identity_key(self.source, self.flags, self.aliases)

    @property
    def owner(self) -> str:
        """Return the owner of the session."""
        return self.known_owner or session_owner(self.source, self.flags, self.aliases)


@dataclass(frozen=True, slots=True)
class GrantedSession:
    """The session that the message belongs to, as it is stored now."""

    entry: SessionEntry


@dataclass(frozen=True, slots=True)
class ActiveWorkUnknown:
    """A reset is due: ask whether work is running on the lane, then come again."""

    session_key: str
    version: int


@dataclass(frozen=True, slots=True)
class AliasesUnknown:
    """The lane's owner may be the same person by another name: look its names up, then come again."""

    owner: SessionSource


@dataclass(frozen=True, slots=True)
class SessionIdTaken:
    """The new session's id exists already: come again with another one."""


AccessOutcome: TypeAlias = GrantedSession | ActiveWorkUnknown | AliasesUnknown | SessionIdTaken


def find_or_create_session(
    request: SessionRequest, change: Change, *, alone: bool = True
) -> Transaction[AccessOutcome]:
    """Return the session that goes on, or the new one that answers the message.

    *Alone*, the caller yields no statement after this one, so the statement may be sent by itself.
    """
    known = request.known
    if known is not None and only_touches_session(request, change, known):
        ((moved,),) = yield touch_statement(known, change.now, alone=alone)
        if moved:
            return GrantedSession(known.evolve(change.now, last_interaction_at=change.now))
        known = None
    holder = yield from load(request.key, known, locked=True)
    if holder is not None and holder is not known and only_touches_session(request, change, holder):
        yield touch_statement(holder, change.now, alone=alone)
        return GrantedSession(holder.evolve(change.now, last_interaction_at=change.now))
    return (yield from _decide_by_policy(request, change, holder))


def _decide_by_policy(
    request: SessionRequest, change: Change, holder: SessionEntry | None
) -> Transaction[AccessOutcome]:
    if holder is not None and (owner := _owner_with_unknown_aliases(holder, request)):
        return AliasesUnknown(owner)
    key, entry = yield from _find_lane_and_entry(request, holder)
    if entry is None:
        return (yield from _create_first_session(request, change, key))
    if request.force_new:
        return (yield from _replace_session(request, change, entry, EndReason.SESSION_RESET, told=True))
    rules = _access_rules(request, change, entry)
    plan = plan_access(entry, rules)
    if not isinstance(plan, Keep) and (yield from is_busy(key)):
        plan = plan_access(entry, replace(rules, active_work=True))
    match plan:
        case Keep():
            return GrantedSession((yield from _keep_session(request, change, entry, plan)))
        case Replace(reason=reason):
            return (yield from _replace_session(request, change, entry, reason))
        case AskActiveWork():
            return ActiveWorkUnknown(key, entry.version)
    assert_never(plan)


def find_lane_key(request: SessionRequest) -> Transaction[str | AliasesUnknown]:
    """Return the key of the lane that the message belongs to, whether or not the lane has a session."""
    holder = yield from load(request.key, locked=True)
    if holder is not None and (owner := _owner_with_unknown_aliases(holder, request)):
        return AliasesUnknown(owner)
    key, _ = yield from _find_lane_and_entry(request, holder)
    return key


def find_lane_and_owner(request: SessionRequest, _: Change) -> Transaction[tuple[str, str] | AliasesUnknown]:
    """Return the lane of a source and its owner, or that aliases have to be loaded first."""
    key = yield from find_lane_key(request)
    return key if isinstance(key, AliasesUnknown) else (key, request.owner)


def only_touches_session(request: SessionRequest, change: Change, holder: SessionEntry) -> bool:
    """Return whether the lane's session goes on, and only its clocks move.

    Then one statement takes the place of a decision: see `KnownLane` for what shows the gain and holds both
    ways equal.
    """
    if request.force_new or not request.touch:
        return False
    asks = (request.source, request.flags, request.aliases)
    return needs_only_touch(holder, asks, policy_for(holder, change.policies), change.now)


def only_touches_at_end(change: Change, entry: SessionEntry, last_prompt_tokens: int | None) -> bool:
    """Return whether the end of a turn of that session moves only the entry's clocks."""
    same = last_prompt_tokens is None or last_prompt_tokens == entry.last_prompt_tokens
    return (
        same
        and entry.opened_by is None
        and is_not_due_yet(entry, policy_for(entry, change.policies), change.now)
    )


def needs_only_touch(
    entry: SessionEntry,
    asks: tuple[SessionSource, Isolation, Mapping[str, str]],
    policy: ResolvedPolicy,
    now: datetime,
) -> bool:
    """Return whether a message goes on with the session without any decision or other write."""
    origin = entry.origin
    return origin is not None and is_not_due_yet(entry, policy, now) and same_conversation(origin, *asks)


def _access_rules(request: SessionRequest, change: Change, entry: SessionEntry) -> AccessRules:
    answered = request.asked_version == entry.version
    return AccessRules(
        now=interaction_at(entry, change),
        policy=policy_for(entry, change.policies),
        freshness=change.freshness,
        active_work=request.active_work if answered else None,
    )


def _find_lane_and_entry(
    request: SessionRequest, holder: SessionEntry | None
) -> Transaction[tuple[str, SessionEntry | None]]:
    """Return the lane's key and entry: the full identity if another origin has the plain key."""
    if holder is not None and _same_origin(holder, request):
        return request.key, holder
    exact = request.identity
    other = yield from load(exact, locked=True)
    return (exact, other) if other is not None or holder is not None else (request.key, None)


def _owner_with_unknown_aliases(holder: SessionEntry, request: SessionRequest) -> SessionSource | None:
    """Return the plain key's owner if only the owner's aliases tell whether the message is theirs."""
    owner = holder.origin
    if owner is None or not request.aliases or request.aliases.keys() >= set(ids_to_resolve(owner)):
        return None
    return None if _same_origin(holder, request) else owner


def _same_origin(entry: SessionEntry, request: SessionRequest) -> bool:
    origin = entry.origin
    return origin is None or same_conversation(origin, request.source, request.flags, request.aliases)


def _keep_session(
    request: SessionRequest, change: Change, entry: SessionEntry, plan: Keep
) -> Transaction[SessionEntry]:
    advance(entry.state, Event.KEPT)
    if entry.origin is None:
        entry = yield from _claim_ownerless_lane(request, change, entry)
    if not request.touch:
        return entry
    touched = entry.evolve(
        change.now,
        last_interaction_at=interaction_at(entry, change),
        deferred_boundary=plan.deferred_boundary,
    )
    if not plan.fast or touched.last_interaction_at != change.now:
        return (yield from put(change.with_due_instant(touched)))
    yield touch_statement(entry, change.now, alone=False)
    return touched


def _claim_ownerless_lane(
    request: SessionRequest, change: Change, entry: SessionEntry
) -> Transaction[SessionEntry]:
    """Store the owner of a lane whose imported entry named none: from now on no one else gets the lane."""
    claimed = entry.evolve(change.now, origin=request.source.lasting, owner=request.owner)
    yield from note_moved_session(claimed.session_id, claimed.session_key, claimed.owner, change.ids)
    yield Statement("reopen_session", (claimed.session_key, claimed.owner, claimed.session_id))
    return (yield from put(change.with_due_instant(claimed)))


def touch_statement(entry: SessionEntry, now: datetime, *, alone: bool = True) -> Statement:
    """Return the statement that moves the clocks of a session; it changes nothing if the entry was replaced.

    Nearly every message needs only this statement, so it can also be sent by itself.
    """
    which = (to_micros(now), entry.entry_id, entry.version)
    return Statement("touch_entry", which, alone=alone, lock=lane_lock(entry.session_key))


def begin_session(
    request: SessionRequest, change: Change, entry: SessionEntry | None, reason: EndReason | None
) -> Transaction[GrantedSession | SessionIdTaken]:
    """Begin the lane's first session, or for *reason* another one in place of the current one."""
    if entry is None or reason is None:
        return (yield from _create_first_session(request, change, request.key))
    return (yield from _replace_session(request, change, entry, reason))


def _create_first_session(
    request: SessionRequest, change: Change, key: str
) -> Transaction[GrantedSession | SessionIdTaken]:
    if (yield Statement("session_exists", (request.new_session_id,))):
        return SessionIdTaken()
    lane = yield from lane_lease(key)
    moved = lane.moved_session_id if lane is not None else None
    new = _new_entry(request, change, key)
    if moved:
        new = new.altered(opened_by=EndReason.MOVED, previous_session_id=moved)
        yield Statement("forget_moved", (key,))
    written = yield from begin_entry(change, new, parent=moved)
    why = EndReason.MOVED if moved else None
    yield transition_statement(change, written, LaneEvent.CREATED, reason=why, replaced=moved)
    return GrantedSession(written)


def _replace_session(
    request: SessionRequest, change: Change, entry: SessionEntry, reason: EndReason, *, told: bool = False
) -> Transaction[GrantedSession | SessionIdTaken]:
    if (yield Statement("session_exists", (request.new_session_id,))):
        return SessionIdTaken()
    new = _new_entry(request, change, entry.session_key).altered(
        entry_id=entry.entry_id,
        version=entry.version + 1,
        opened_by=None if told else reason,
        reset_had_activity=entry.had_activity,
        previous_session_id=entry.session_id,
        zone=entry.zone,
    )
    return GrantedSession((yield from replace_entry(change, entry, new, reason)))


def _new_entry(request: SessionRequest, change: Change, key: str) -> SessionEntry:
    source, now = request.source, change.now
    return SessionEntry(
        session_key=key,
        session_id=request.new_session_id,
        created_at=now,
        updated_at=now,
        last_interaction_at=now,
        origin=source.lasting,
        display_name=source.chat_name,
        platform=source.platform,
        chat_type=source.chat_type,
        owner=request.owner,
        version=1,
    )
