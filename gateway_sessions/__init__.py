"""One durable, ordered, private session for every conversation of a messaging gateway."""

from gateway_sessions.clock import SystemClock
from gateway_sessions.config import Config, load_config, parse_config
from gateway_sessions.core.context import HomeChannel, SessionContext, build_session_context_prompt
from gateway_sessions.core.keys import build_session_key, is_shared_multi_user_session
from gateway_sessions.core.policies import SessionResetPolicy, next_reset, reset_due
from gateway_sessions.core.reasons import EndReason
from gateway_sessions.core.recovery import ResumeReason
from gateway_sessions.core.scope import Scope
from gateway_sessions.core.session import SessionEntry, SessionState
from gateway_sessions.core.source import Platform, SessionSource
from gateway_sessions.errors import (
    ConfigError,
    ConfigProblem,
    ForeignDatabaseError,
    GatewaySessionsError,
    InvalidInputError,
    InvalidPolicyError,
    InvalidSessionIdError,
    InvalidSnapshotError,
    InvalidSourceError,
    InvalidTransitionError,
    NothingToUndoError,
    SchemaTooNewError,
    SessionBusyError,
    SessionNotFoundError,
    SnapshotError,
    StorageCorruptError,
    StorageError,
    StorageFullError,
    StorageUnavailableError,
    StoreBusyError,
    StoreStoppedError,
    UnidentifiedSourceError,
    UnsupportedStorageError,
)
from gateway_sessions.runtime.hooks import SessionFinalized
from gateway_sessions.runtime.session_context import build_session_context
from gateway_sessions.runtime.store import SessionStore
from gateway_sessions.storage.database import SessionDB

__all__ = [
    "Config",
    "ConfigError",
    "ConfigProblem",
    "EndReason",
    "ForeignDatabaseError",
    "GatewaySessionsError",
    "HomeChannel",
    "InvalidInputError",
    "InvalidPolicyError",
    "InvalidSessionIdError",
    "InvalidSnapshotError",
    "InvalidSourceError",
    "InvalidTransitionError",
    "NothingToUndoError",
    "Platform",
    "ResumeReason",
    "SchemaTooNewError",
    "Scope",
    "SessionBusyError",
    "SessionContext",
    "SessionDB",
    "SessionEntry",
    "SessionFinalized",
    "SessionNotFoundError",
    "SessionResetPolicy",
    "SessionSource",
    "SessionState",
    "SessionStore",
    "SnapshotError",
    "StorageCorruptError",
    "StorageError",
    "StorageFullError",
    "StorageUnavailableError",
    "StoreBusyError",
    "StoreStoppedError",
    "SystemClock",
    "UnidentifiedSourceError",
    "UnsupportedStorageError",
    "build_session_context",
    "build_session_context_prompt",
    "build_session_key",
    "is_shared_multi_user_session",
    "load_config",
    "next_reset",
    "parse_config",
    "reset_due",
]
