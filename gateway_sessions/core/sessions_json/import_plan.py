"""The plan of an import of snapshot entries: which lane keeps a session that several lanes name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product

from gateway_sessions.core.identity.keys import (
    Isolation,
    encode_part,
    session_key,
    session_owner,
    unencoded_key,
)
from gateway_sessions.core.identity.source import SessionSource
from gateway_sessions.core.sessions.entry import SessionEntry, SessionState
from gateway_sessions.core.sessions.reasons import EndReason


@dataclass(frozen=True, slots=True)
class Continuation:
    """A lane that shared its session with another lane, and now has a new session linked to it."""

    session_key: str
    """The key of the lane."""
    shared_session_id: str
    new_session_id: str
    kept_by: str
    """The key of the lane that keeps the shared session."""


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """The entries to write, and the lanes that could not keep their session."""

    entries: tuple[SessionEntry, ...]
    continuations: tuple[Continuation, ...]


def plan_import(found: Iterable[SessionEntry], new_ids: Iterator[str], flags: Isolation) -> ImportPlan:
    """Return the plan that leaves each session to the lane that used it last.

    Every other lane that names the session goes on with a new one linked to it.
    """
    lanes = _under_our_keys(tuple(found), flags)
    newest_first = sorted(
        lanes, key=lambda entry: (entry.last_interaction_at, entry.session_key), reverse=True
    )
    holders: dict[str, SessionEntry] = {}
    entries: list[SessionEntry] = []
    continuations: list[Continuation] = []
    for one in newest_first:
        entry = _with_owner(one, flags)
        holder = holders.setdefault(entry.session_id, entry)
        if holder is entry:
            entries.append(entry)
            continue
        new_id = next(new_ids)
        continuations.append(Continuation(entry.session_key, entry.session_id, new_id, holder.session_key))
        entries.append(_with_linked_session(entry, new_id))
    return ImportPlan(tuple(entries), tuple(continuations))


def _with_linked_session(entry: SessionEntry, session_id: str) -> SessionEntry:
    """Return the lane's entry with a new session that is linked to the shared one."""
    return entry.altered(
        session_id=session_id,
        previous_session_id=entry.session_id,
        opened_by=EndReason.MOVED,
        state=SessionState.ACTIVE,
        state_reason=None,
        state_since=None,
    )


def _with_owner(entry: SessionEntry, flags: Isolation) -> SessionEntry:
    """Return the entry with an owner: its own, else its origin's, else one that no person has.

    An owner that no person has makes the session visible on its lane only.
    """
    if entry.owner:
        return entry
    if entry.origin is not None:
        return entry.altered(owner=session_owner(entry.origin, flags))
    return entry.altered(owner=f"lane:{encode_part(entry.session_key)}")


def _under_our_keys(found: tuple[SessionEntry, ...], flags: Isolation) -> Iterator[SessionEntry]:
    """Yield the entries under the keys that this package makes.

    Hermes does not encode separators inside ids: under its keys such lanes would not be found again.
    """
    taken = {entry.session_key for entry in found}
    for entry in found:
        key = our_key(entry.session_key, entry.origin, flags)
        yield entry if key in taken else entry.altered(session_key=key)
        taken.add(key)


def our_key(session_key_there: str, origin: SessionSource | None, flags: Isolation) -> str:
    """Return the key that this package gives to a lane of Hermes, as far as the lane's origin tells."""
    if origin is None:
        return session_key_there
    for group, thread in product((True, False), repeat=2):
        # The flags may have been others when the lane was made: its key tells which.
        then = replace(flags, group_sessions_per_user=group, thread_sessions_per_user=thread)
        if unencoded_key(origin, then) == session_key_there:
            return session_key(origin, then)
    return session_key_there
