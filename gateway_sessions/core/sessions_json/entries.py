"""One entry of the snapshot as JSON, in our dialect and in that of Hermes.

Reading is strict where a guess could revive, hand out or lose a session: the ids, the times, the state, the
owner. An entry that is wrong there is refused with the reason. Elsewhere the default takes the place of a
value that cannot be used, and the value is kept unchanged in the member `set_aside`. So nothing disappears,
with one exception on purpose: of a model override, only the members that hold no credentials are read or
written.

In the dialect of Hermes times are local and name no zone, because Hermes compares them with its own. In the
hour that an autumn night has twice, such a time means the first pass; the times that decide about resets are
then written in full as well.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from datetime import MAXYEAR, MINYEAR, UTC, datetime, tzinfo
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, TypeVar, cast

from gateway_sessions.core.checks import UNSAFE_CHARACTERS
from gateway_sessions.core.damaged_json import decode_json_text, unusable_part
from gateway_sessions.core.identity.source import SessionSource, storable_name
from gateway_sessions.core.instants import as_utc
from gateway_sessions.core.sessions.busy_mode import BusyMode
from gateway_sessions.core.sessions.entry import (
    SessionEntry,
    SessionState,
    check_session_id,
    clean_model_override,
)
from gateway_sessions.core.sessions.reasons import EndReason
from gateway_sessions.core.sessions.reset_policy import SessionResetPolicy
from gateway_sessions.core.sessions.reset_times import zone_named

T = TypeVar("T")

MAX_COUNT: Final = 2**63 - 1
"""The largest whole number that every database holds."""

SET_ASIDE: Final = "set_aside"

_PATH_LIKE = re.compile(r"^[/\\]|^[A-Za-z]:|(?:^|[:/\\])\.\.(?:[:/\\]|$)")


class Dialect(StrEnum):
    """The spelling of times; in a file, the spelling of keys as well."""

    NATIVE = "native"  # UTC, with the offset
    HERMES = "hermes"  # local time without a zone, the only form that Hermes can compare


def entry_to_dict(
    entry: SessionEntry, dialect: Dialect = Dialect.NATIVE, zone: tzinfo = UTC
) -> dict[str, Any]:
    """Return the stored form of an entry; *zone* is the zone of the Hermes that will read it."""
    marked_at, reset_for = entry.last_resume_marked_at, entry.auto_reset_reason
    stored: dict[str, Any] = {
        "session_key": entry.session_key,
        "session_id": entry.session_id,
        "created_at": _spell_instant(entry.created_at, dialect, zone),
        "updated_at": _spell_instant(entry.updated_at, dialect, zone),
        "display_name": entry.display_name,
        "platform": entry.platform,
        "chat_type": entry.chat_type,
        "input_tokens": entry.input_tokens,
        "output_tokens": entry.output_tokens,
        "cache_read_tokens": entry.cache_read_tokens,
        "cache_write_tokens": entry.cache_write_tokens,
        "total_tokens": entry.total_tokens,
        "last_prompt_tokens": entry.last_prompt_tokens,
        "estimated_cost_usd": entry.estimated_cost_usd,
        "cost_status": entry.cost_status,
        "expiry_finalized": entry.expiry_finalized,
        "suspended": entry.suspended,
        "resume_pending": entry.resume_pending,
        "resume_reason": entry.resume_reason,
        "last_resume_marked_at": marked_at and _spell_instant(marked_at, dialect, zone),
        "is_fresh_reset": entry.is_fresh_reset,
        "was_auto_reset": reset_for is not None,
        "auto_reset_reason": reset_for and reset_for.value,
        "reset_had_activity": entry.reset_had_activity,
    }
    if override := clean_model_override(entry.model_override):
        stored["model_override"] = override
    if entry.origin is not None:
        stored["origin"] = entry.origin.to_dict()
    stored.update(_own_members(entry, dialect, zone))
    if entry.extra:
        stored.update((name, value) for name, value in entry.extra.items() if name not in _KNOWN)
    return stored


def entry_from_dict(key: str, stored: Mapping[str, Any], zone: tzinfo = UTC) -> SessionEntry:
    """Return the entry stored under *key*; times that name no zone are read in *zone*.

    Raises `InvalidInputError` if it cannot be an entry. A different `session_key` inside is ignored.
    """
    members = _Members(stored, zone)
    take = members.take_member
    updated_at = members.take_instant("updated_at")
    readable: dict[str, Any] = {name: take(name, _check_count, 0) for name in _COUNTS}
    readable |= {name: take(name, _check_text, None) for name in ("display_name", "platform")}
    state, state_reason, state_since = _read_state(members)
    entry = SessionEntry(
        session_key=check_stored_key(key),
        session_id=check_session_id(stored.get("session_id")),
        created_at=members.take_instant("created_at"),
        updated_at=updated_at,
        last_interaction_at=take("last_interaction_at", members.parse_instant, updated_at),
        origin=_read_origin(members),
        chat_type=take("chat_type", _check_text, "dm"),
        owner=_check_storable_text("owner", "" if (owner := stored.get("owner")) is None else owner),
        state=state,
        state_reason=state_reason,
        state_since=state_since,
        opened_by=_read_opening(members),
        reset_had_activity=take("reset_had_activity", _check_flag, False),  # noqa: FBT003 -- the default of a flag
        previous_session_id=take("previous_session_id", check_session_id, None),
        estimated_cost_usd=take("estimated_cost_usd", _check_amount, 0.0),
        cost_status=take("cost_status", _check_text, "unknown"),
        model_override=_read_model_override(stored.get("model_override")),
        reset_policy=_read_policy(members),
        busy_mode=take("busy_mode", BusyMode, None),
        zone=take("zone", _check_zone_name, None),
        deferred_boundary=take("deferred_boundary", members.parse_instant, None),
        **readable,
    )
    extra = _read_extra(members, entry.origin)
    return entry.altered(extra=extra) if extra else entry


def entry_from_json(key: str, text: bytes, zone: tzinfo = UTC) -> SessionEntry:
    """Return the entry stored as JSON under *key*, in a file or a table, or raise `InvalidInputError`."""
    stored = decode_json_text(text)
    if not isinstance(stored, dict):
        raise unusable_part("entry", "is not an object")
    return entry_from_dict(key, cast("dict[str, Any]", stored), zone)


def check_stored_key(key: str) -> str:
    """Return the key, or raise `InvalidInputError` if it is none or could be taken for a path."""
    if not key or key.startswith("_"):
        raise unusable_part("session_key", "is empty or begins with an underscore")
    if _PATH_LIKE.search(key):
        raise unusable_part("session_key", "could be taken for a path")
    return _check_storable_text("session_key", key)


class _Members:
    """The members of a stored entry, and the members among them that could not be used."""

    def __init__(self, stored: Mapping[str, Any], zone: tzinfo) -> None:
        self.stored = stored
        self.set_aside: dict[str, Any] = {}
        self._zone = zone

    def take_member(self, name: str, convert: Callable[[Any], T], default: T) -> T:
        """Return the member's value, or the default if the member is missing or cannot be used."""
        value = self.stored.get(name)
        if value is None:
            return default
        try:
            return convert(value)
        except ValueError:
            self.set_aside[name] = value
            return default

    def take_instant(self, name: str) -> datetime:
        """Return a time that the entry cannot do without, or raise `InvalidInputError`."""
        try:
            return self.parse_instant(self.stored.get(name))
        except ValueError as error:
            raise unusable_part(name, "is missing or no ISO time") from error

    def take_flag(self, name: str) -> bool:
        """Return a flag that decides about the state, or raise `InvalidInputError`: it is never guessed."""
        value = self.stored.get(name)
        return False if value is None else _check_flag(value, name)

    def keep_overruled(self, *names: str) -> None:
        """Keep the values of these members, although another member overrules them."""
        self.set_aside.update({name: value for name in names if (value := self.stored.get(name))})

    def parse_instant(self, value: object) -> datetime:
        """Return the instant of an ISO text, or raise `InvalidInputError`."""
        if not isinstance(value, str):
            raise unusable_part("time", "is not text")
        try:
            instant = as_utc(datetime.fromisoformat(value), naive_zone=self._zone)
        except OverflowError as error:
            raise unusable_part("time", "is out of range") from error
        # A year is left free at both ends of the calendar, so that every zone can express the instant.
        if not MINYEAR < instant.year < MAXYEAR:
            raise unusable_part("time", "is out of range")
        return instant


def _spell_instant(instant: datetime, dialect: Dialect, zone: tzinfo) -> str:
    if dialect is Dialect.NATIVE:
        return instant.isoformat()
    return instant.astimezone(zone).replace(tzinfo=None).isoformat()


def _is_exact(instant: datetime, dialect: Dialect, zone: tzinfo) -> bool:
    """Return whether the spelling is read as this very instant."""
    return dialect is Dialect.NATIVE or not instant.astimezone(zone).fold


def _own_members(entry: SessionEntry, dialect: Dialect, zone: tzinfo) -> dict[str, Any]:
    """Return the members that Hermes does not know."""
    interaction: datetime | None = entry.last_interaction_at
    if interaction == entry.updated_at and _is_exact(entry.updated_at, dialect, zone):
        interaction = None
    reason, since = entry.state_reason, entry.state_since
    if entry.resume_pending:
        reason = None
        since = None if since is None or _is_exact(since, dialect, zone) else since
    said_by_hermes = entry.was_auto_reset or entry.is_fresh_reset or entry.opened_by is None
    own = {
        "last_interaction_at": interaction and interaction.isoformat(),
        "state_reason": reason,
        "state_since": since and since.isoformat(),
        "opened_by": None if said_by_hermes else entry.opened_by,
        "previous_session_id": entry.previous_session_id,
        "owner": entry.owner or None,
        "reset_policy": entry.reset_policy and entry.reset_policy.to_dict(),
        "busy_mode": entry.busy_mode,
        "zone": entry.zone,
        "deferred_boundary": entry.deferred_boundary and entry.deferred_boundary.isoformat(),
        "version": entry.version or None,
    }
    return {name: value for name, value in own.items() if value is not None}


def _read_state(members: _Members) -> tuple[SessionState, str | None, datetime | None]:
    """Return one state from Hermes' flags: suspended wins, then expired, then waiting to be resumed."""
    suspended, pending = members.take_flag("suspended"), members.take_flag("resume_pending")
    expired = members.take_flag(
        "expiry_finalized" if "expiry_finalized" in members.stored else "memory_flushed"
    )
    since = members.take_member("state_since", members.parse_instant, None)
    if pending and not (suspended or expired):
        marked_at = members.take_member("last_resume_marked_at", members.parse_instant, None)
        return (
            SessionState.RESUME_PENDING,
            members.take_member("resume_reason", _check_text, None),
            since or marked_at,
        )
    members.keep_overruled("resume_pending", "resume_reason", "last_resume_marked_at")
    if suspended:
        members.keep_overruled("expiry_finalized", "memory_flushed")
        return SessionState.SUSPENDED, members.take_member("state_reason", _check_text, None), since
    if expired:
        return SessionState.EXPIRED, members.take_member("state_reason", EndReason, None), since
    return SessionState.ACTIVE, members.take_member("state_reason", _check_text, None), since


def _read_opening(members: _Members) -> EndReason | None:
    """Return the opening reason that the first turn has to tell; an unknown reason stays unknown."""
    automatic = members.take_member("was_auto_reset", _check_flag, False)  # noqa: FBT003 -- the default of a flag
    fresh = members.take_member("is_fresh_reset", _check_flag, False)  # noqa: FBT003 -- the default of a flag
    reason = members.take_member("auto_reset_reason", EndReason, None)
    if automatic and reason is not None and reason.is_automatic:
        members.keep_overruled("is_fresh_reset")
        return reason
    members.keep_overruled("was_auto_reset", "auto_reset_reason")
    return EndReason.SESSION_RESET if fresh else members.take_member("opened_by", EndReason, None)


def _read_origin(members: _Members) -> SessionSource | None:
    """Return the origin, or raise an error for a bad one: the origin decides who is given the session."""
    stored = members.stored.get("origin")
    if isinstance(stored, dict) and stored:
        return SessionSource.from_dict(cast("dict[str, Any]", stored))
    members.keep_overruled("origin")
    return None


def _read_policy(members: _Members) -> SessionResetPolicy | None:
    """Return the session's own policy; if it has unknown members, the original is kept as well."""
    policy = members.take_member("reset_policy", _decode_policy, None)
    if policy is not None and members.stored["reset_policy"].keys() - policy.to_dict().keys():
        members.keep_overruled("reset_policy")
    return policy


def _read_model_override(stored: object) -> dict[str, str] | None:
    """Return the part without credentials. The rest is not set aside: it must not reach the disk again."""
    if not isinstance(stored, dict):
        return None
    members = cast("dict[str, object]", stored).items()
    override = clean_model_override({name: value for name, value in members if isinstance(value, str)})
    return {name: _check_text(value) for name, value in (override or {}).items()} or None


def _read_extra(members: _Members, origin: SessionSource | None) -> Mapping[str, Any]:
    """Return the unknown members and the unusable ones, provided that they can be written again."""
    extra = {name: value for name, value in members.stored.items() if name not in _KNOWN}
    if members.set_aside:
        earlier = extra.get(SET_ASIDE, {})
        kept = cast("dict[str, Any]", earlier) if isinstance(earlier, dict) else {SET_ASIDE: earlier}
        extra[SET_ASIDE] = kept | members.set_aside
    for unknown in (extra, origin.extra if origin else extra):
        if unknown:
            check_writable(unknown)
    return MappingProxyType(extra)


def check_writable(members: Mapping[str, Any]) -> None:
    """Raise `InvalidInputError` unless the members can be written as JSON and read again unchanged."""
    try:
        json.dumps(dict(members), allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise unusable_part("entry", "holds what JSON or UTF-8 cannot express") from error


def _check_text(value: object) -> str:
    return storable_name("text", value)


def _check_storable_text(name: str, value: object) -> str:
    if not isinstance(value, str) or UNSAFE_CHARACTERS.search(value):
        raise unusable_part(name, "is not text, or holds control characters or halves of surrogate pairs")
    return value


def _check_zone_name(value: object) -> str:
    return zone_named(_check_storable_text("zone", value)).key


def _check_flag(value: object, name: str = "flag") -> bool:
    if not isinstance(value, bool):
        raise unusable_part(name, "is neither true nor false")
    return value


def _check_count(value: object) -> int:
    if type(value) is not int or not 0 <= value <= MAX_COUNT:
        raise unusable_part("count", "is not a whole number that a database holds")
    return value


def _check_amount(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= sys.float_info.max:
        raise unusable_part("amount", "is not a number")
    return float(value)


def _decode_policy(value: object) -> SessionResetPolicy:
    if not isinstance(value, dict):
        raise unusable_part("reset_policy", "is not an object")
    return SessionResetPolicy.from_dict(cast("dict[str, Any]", value))


_COUNTS: Final = (
    "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "total_tokens",
    "last_prompt_tokens", "version",
)  # fmt: skip
_KNOWN: Final = frozenset(
    {
        "session_key", "session_id", "created_at", "updated_at", "display_name", "platform", "chat_type",
        *_COUNTS, "estimated_cost_usd", "cost_status",
        "expiry_finalized", "memory_flushed", "suspended", "resume_pending", "resume_reason",
        "last_resume_marked_at", "is_fresh_reset", "was_auto_reset", "auto_reset_reason",
        "reset_had_activity", "model_override", "origin",
        "last_interaction_at", "state_reason", "state_since", "opened_by", "previous_session_id", "owner",
        "reset_policy", "busy_mode", "zone", "deferred_boundary",
    }
)  # fmt: skip
