"""`SessionEntry`: the record of a lane's current session, its state, and checks of its fields."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

import msgspec

from gateway_sessions.core.checks import is_whole_number, plain_text
from gateway_sessions.core.identity.source import SessionSource
from gateway_sessions.core.sessions.busy_mode import BusyMode
from gateway_sessions.core.sessions.reasons import EndReason
from gateway_sessions.core.sessions.reset_policy import SessionResetPolicy
from gateway_sessions.core.storable_text import check_word, storable_text
from gateway_sessions.errors import InvalidInputError, InvalidSessionIdError

# Room for the ids of other programs, and short enough for an indexed column of every database.
MAX_SESSION_ID: Final = 128
MAX_REASON: Final = 256
# The largest whole number that every database holds.
MAX_TOKENS: Final = 2**63 - 1
MODEL_OVERRIDE_KEYS: Final = ("model", "provider", "base_url")

_UNSAFE_ID = re.compile(r"[\x00-\x20\x7f-\x9f\u2028\u2029\ud800-\udfff/\\]|\.\.|^[A-Za-z]:")
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class SessionState(StrEnum):
    """The state of a session, which decides what its next message does; the comments say what ends it."""

    ACTIVE = "active"  # the policy, a person or a crash ends it
    RESUME_PENDING = "resume_pending"  # a successful turn ends it; it ages out
    EXPIRED = "expired"  # finalised by the watcher; the next message replaces the session
    SUSPENDED = "suspended"  # the next message replaces the session


class SessionEntry(msgspec.Struct, frozen=True, kw_only=True, gc=False, repr_omit_defaults=True):
    """One lane's current session. A change is a new value; the database decides which value is current.

    The entry is a struct and not a dataclass: an entry is made anew for every message, and a struct is ten
    times cheaper.
    """

    session_key: str
    session_id: str
    created_at: datetime
    updated_at: datetime
    """The instant of the last write; listings and pruning read it."""
    last_interaction_at: datetime
    """The instant of the last person's message, or of the end of the turn that answers it; policies read it.
    """
    origin: SessionSource | None = None
    """The source of the message with which the session began."""
    display_name: str | None = None
    platform: str | None = None
    chat_type: str = "dm"
    owner: str = ""
    """The owner: the person for a private lane, the room for a shared one."""

    state: SessionState = SessionState.ACTIVE
    state_reason: str | None = None
    """The reason of the state, such as the one of a suspension."""
    state_since: datetime | None = None
    """The instant at which the state began."""

    opened_by: EndReason | None = None
    """The reason why the session before this one ended; None once the first turn has told the person."""
    reset_had_activity: bool = False
    """Whether anything was said in the session before."""
    previous_session_id: str | None = None

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    total_tokens: int = 0
    last_prompt_tokens: int = 0
    estimated_cost_usd: float = 0.0
    cost_status: str = "unknown"

    model_override: Mapping[str, str] | None = None
    """The model that a person chose for this session, with provider and address where chosen."""
    reset_policy: SessionResetPolicy | None = None
    """This session's own reset policy; None: the configuration's policy applies."""
    busy_mode: BusyMode | None = None
    """This session's own busy mode; None: the configuration's mode applies."""
    zone: str | None = None
    """The chat's time zone by its IANA name; it survives resets."""
    deferred_boundary: datetime | None = None
    """A daily or cron boundary that has passed and waits for grace or active work to end."""
    due_at: datetime | None = None
    """The instant before which the session is not due for a reset; None: never due by policy."""
    policy_fingerprint: str = ""
    """The fingerprint of the policy by which `due_at` was worked out."""

    entry_id: int = 0
    """The id of the entry's row, which no other entry ever gets; 0: not stored yet."""
    version: int = 0
    """The number of writes; a change that was planned for another version is refused."""
    extra: Mapping[str, Any] = msgspec.field(default_factory=lambda: _NOTHING)
    """The members of a stored entry that this version does not know; they are written back unchanged."""

    @property
    def suspended(self) -> bool:
        """Whether the next message must start afresh."""
        return self.state is SessionState.SUSPENDED

    @property
    def resume_pending(self) -> bool:
        """Whether a turn was cut off and the session waits to be resumed."""
        return self.state is SessionState.RESUME_PENDING

    @property
    def expiry_finalized(self) -> bool:
        """Whether the watcher has ended this session already."""
        return self.state is SessionState.EXPIRED

    @property
    def resume_reason(self) -> str | None:
        """The reason why the session waits to be resumed; None if it does not wait."""
        return self.state_reason if self.resume_pending else None

    @property
    def last_resume_marked_at(self) -> datetime | None:
        """The instant since which the session waits to be resumed; None if it does not wait."""
        return self.state_since if self.resume_pending else None

    @property
    def was_auto_reset(self) -> bool:
        """Whether this session replaced another one automatically, and no notice has told the person yet."""
        return self.opened_by is not None and self.opened_by.is_automatic

    @property
    def auto_reset_reason(self) -> EndReason | None:
        """The reason of that automatic reset; None without one."""
        return self.opened_by if self.was_auto_reset else None

    @property
    def is_fresh_reset(self) -> bool:
        """Whether a person asked for this new session and its first turn is still to come."""
        return self.opened_by is EndReason.SESSION_RESET

    @property
    def had_activity(self) -> bool:
        """Whether a model was ever asked in this session."""
        return self.total_tokens > 0 or self.last_prompt_tokens > 0

    def evolve(self, now: datetime, **changes: Any) -> SessionEntry:
        """Return the next version of the entry, written at *now*."""
        return self.altered(updated_at=now, version=self.version + 1, **changes)

    def altered(self, **changes: Any) -> SessionEntry:
        """Return the entry with other values in some fields."""
        return msgspec.structs.replace(self, **changes)


def session_id_at(now: datetime, suffix: str) -> str:
    """Return the id of a session created at *now* (UTC), made unique by a random *suffix*."""
    return f"{_format_second(now.replace(microsecond=0))}_{suffix}"


@lru_cache(maxsize=16)
def _format_second(moment: datetime) -> str:
    """Return the second as ids begin with it; cached, because many ids are made in one second."""
    return f"{moment:%Y%m%d_%H%M%S}"


def check_session_id(session_id: object) -> str:
    """Return the id, or raise `InvalidSessionIdError` if it could be taken for a path or a line of log."""
    if not isinstance(session_id, str):
        raise InvalidSessionIdError(session_id, f"must be text, not {type(session_id).__name__}")
    if not session_id:
        raise InvalidSessionIdError(session_id, "is empty")
    if len(session_id) > MAX_SESSION_ID:
        raise InvalidSessionIdError(f"{session_id[:16]}…", f"is longer than {MAX_SESSION_ID} characters")
    if _UNSAFE_ID.search(session_id):
        raise InvalidSessionIdError(session_id, "holds spaces, control characters or parts of a path")
    return session_id


def check_one_line_reason(reason: object) -> str:
    """Return the reason, or raise `InvalidInputError` unless it is one short line."""
    return check_word("the reason", reason, MAX_REASON)


def check_tokens(name: str, tokens: object) -> int:
    """Return a number of tokens, or raise `InvalidInputError` for a number that no database holds."""
    if not is_whole_number(tokens, 0, MAX_TOKENS):
        problem = f"{name} must be a whole number from 0 to {MAX_TOKENS}"
        raise InvalidInputError(problem)
    return tokens


def clean_model_override(override: Mapping[str, object] | None) -> dict[str, str] | None:
    """Return only the keys that may reach the disk: credentials never do."""
    kept = {
        key: storable_text(plain_text(value) if isinstance(value, str) else str(value))
        for key in MODEL_OVERRIDE_KEYS
        if override is not None and (value := override.get(key))
    }
    return kept or None
