"""A session has a lane, a title, a context and a time to end; these names are about that."""

from gateway_sessions.core.identity.keys import Isolation, is_shared_multi_user_session
from gateway_sessions.core.sessions.record import Relation, SessionRecord, SessionSummary
from gateway_sessions.core.sessions.recovery import ResumeReason
from gateway_sessions.core.sessions.reset_policy import PRESETS, Require, next_reset, reset_due
from gateway_sessions.core.transcript.session_context_prompt import (
    HomeChannel,
    SessionContext,
    build_session_context_prompt,
)
from gateway_sessions.ports import AliasResolver
from gateway_sessions.runtime.duties.titles import FirstExchange, Titler, plain_titler
from gateway_sessions.runtime.observability.explain import Explanation
from gateway_sessions.runtime.queue.aliases import CachedAliases, WhatsAppAliasFiles
from gateway_sessions.runtime.session_prompt import build_session_context

__all__ = [
    "PRESETS",
    "AliasResolver",
    "CachedAliases",
    "Explanation",
    "FirstExchange",
    "HomeChannel",
    "Isolation",
    "Relation",
    "Require",
    "ResumeReason",
    "SessionContext",
    "SessionRecord",
    "SessionSummary",
    "Titler",
    "WhatsAppAliasFiles",
    "build_session_context",
    "build_session_context_prompt",
    "is_shared_multi_user_session",
    "next_reset",
    "plain_titler",
    "reset_due",
]
