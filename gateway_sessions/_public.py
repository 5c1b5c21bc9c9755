"""The names that `gateway_sessions` itself hands out, loaded when the first is asked for."""

from gateway_sessions._process.clock import SystemClock
from gateway_sessions.config import Config, load_config
from gateway_sessions.core.delivery.outbound_messages import Reply
from gateway_sessions.core.identity.keys import build_session_key
from gateway_sessions.core.identity.scope import Scope
from gateway_sessions.core.identity.source import Platform, SessionSource
from gateway_sessions.core.notices.notice import Notice
from gateway_sessions.core.queue.busy_modes import BusyRules
from gateway_sessions.core.queue.inbound import (
    Accepted,
    Attachment,
    AttachmentKind,
    Duplicate,
    InboundMessage,
    Receipt,
    Rejected,
)
from gateway_sessions.core.queue.state_machine import TurnOutcome
from gateway_sessions.core.sessions.busy_mode import BusyMode
from gateway_sessions.core.sessions.entry import SessionEntry, SessionState
from gateway_sessions.core.sessions.reasons import EndReason
from gateway_sessions.core.sessions.reset_policy import ResetMode, SessionResetPolicy
from gateway_sessions.core.transcript.messages import Message
from gateway_sessions.errors import (
    FencedError,
    GatewaySessionsError,
    InvalidInputError,
    SessionBusyError,
    SessionNotFoundError,
    StorageError,
    StoreBusyError,
)
from gateway_sessions.ports import Clock
from gateway_sessions.runtime.agents.protocol import (
    Agent,
    AgentFactory,
    AgentFunction,
    SessionEnding,
    current_turn,
)
from gateway_sessions.runtime.agents.turn_context import TurnContext, TurnStream
from gateway_sessions.runtime.duties.session_hooks import SessionFinalized
from gateway_sessions.runtime.gateway.commands.protocol import Command, CommandCall
from gateway_sessions.runtime.gateway.gateway import Gateway
from gateway_sessions.runtime.queue.turn import Turn
from gateway_sessions.runtime.store.store import SessionStore
from gateway_sessions.storage.database import SessionDB

__all__ = [
    "Accepted",
    "Agent",
    "AgentFactory",
    "AgentFunction",
    "Attachment",
    "AttachmentKind",
    "BusyMode",
    "BusyRules",
    "Clock",
    "Command",
    "CommandCall",
    "Config",
    "Duplicate",
    "EndReason",
    "FencedError",
    "Gateway",
    "GatewaySessionsError",
    "InboundMessage",
    "InvalidInputError",
    "Message",
    "Notice",
    "Platform",
    "Receipt",
    "Rejected",
    "Reply",
    "ResetMode",
    "Scope",
    "SessionBusyError",
    "SessionDB",
    "SessionEnding",
    "SessionEntry",
    "SessionFinalized",
    "SessionNotFoundError",
    "SessionResetPolicy",
    "SessionSource",
    "SessionState",
    "SessionStore",
    "StorageError",
    "StoreBusyError",
    "SystemClock",
    "Turn",
    "TurnContext",
    "TurnOutcome",
    "TurnStream",
    "build_session_key",
    "current_turn",
    "load_config",
]
