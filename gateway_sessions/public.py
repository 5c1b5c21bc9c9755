"""Every public name: `gateway_sessions` hands them out, and loads this when the first is asked for."""

from gateway_sessions.clock import SystemClock
from gateway_sessions.config import Config, load_config, parse_config
from gateway_sessions.core.account_lanes import LanesReport, LeftLane, LinkedLane, MovedLane
from gateway_sessions.core.budgets import (
    Allowed,
    BudgetLimit,
    BudgetOf,
    BudgetPlan,
    Budgets,
    BudgetUnit,
    BudgetUse,
    Spent,
    Stop,
    UnknownPrices,
    Warn,
    plan_budget,
)
from gateway_sessions.core.busy import BusyRules, DropPolicy
from gateway_sessions.core.busy_mode import BusyMode
from gateway_sessions.core.context import HomeChannel, SessionContext, build_session_context_prompt
from gateway_sessions.core.erasure import ErasureReceipt, Kept
from gateway_sessions.core.export.reports import (
    ExportReport,
    Finding,
    FindingKind,
    ImportReport,
    TransferProgress,
)
from gateway_sessions.core.inbound import Attachment, AttachmentKind, InboundMessage, MessageKind, ReplyTo
from gateway_sessions.core.insights import (
    Activity,
    Insights,
    PlatformUse,
    ToolUse,
    TopSession,
    TopSessions,
)
from gateway_sessions.core.keys import Isolation, build_session_key, is_shared_multi_user_session
from gateway_sessions.core.messages import (
    AnchoredView,
    Hidden,
    Message,
    MessageVersion,
    MessageWindow,
    Rewind,
    Role,
    UserTurn,
)
from gateway_sessions.core.outbound import AdapterCapabilities, OutboundMessage, ReplyTarget
from gateway_sessions.core.policies import (
    PRESETS,
    Require,
    ResetMode,
    SessionResetPolicy,
    next_reset,
    reset_due,
)
from gateway_sessions.core.queue import DeadLetter, QueuedMessage
from gateway_sessions.core.reasons import EndReason
from gateway_sessions.core.recall import Passage
from gateway_sessions.core.receipts import Accepted, Disposition, Duplicate, Receipt, Rejected, RejectReason
from gateway_sessions.core.recovery import ResumeReason
from gateway_sessions.core.reply import Reply
from gateway_sessions.core.retention import PruneReport
from gateway_sessions.core.scope import Scope
from gateway_sessions.core.search_results import (
    ContextLine,
    FoundMessage,
    SearchHit,
    SearchResult,
    SessionMatch,
    SessionSearchResult,
)
from gateway_sessions.core.session import SessionEntry, SessionState
from gateway_sessions.core.session_record import Relation, SessionRecord
from gateway_sessions.core.session_summary import SessionSummary
from gateway_sessions.core.source import Platform, SessionSource
from gateway_sessions.core.usage import CostStatus, ModelUsage, SessionUsage, Usage, UsageSum
from gateway_sessions.core.work_progress import WorkProgress
from gateway_sessions.error_details import ConfigProblem, SessionCandidate
from gateway_sessions.errors import (
    AdapterError,
    AdapterUnavailableError,
    AliasUnknownError,
    AmbiguousSessionError,
    CancelledItselfError,
    ConfigError,
    ControlError,
    DeliveryRefusedError,
    EventLoopRunningError,
    FencedError,
    ForeignDatabaseError,
    GatewaySessionsError,
    InvalidInputError,
    InvalidPolicyError,
    InvalidSessionIdError,
    InvalidSnapshotError,
    InvalidSourceError,
    InvalidTitleError,
    InvalidTransitionError,
    MigrationError,
    NoStoreError,
    NotGivenUpError,
    NothingToUndoError,
    NoTurnError,
    RateLimitedError,
    SchemaTooNewError,
    SentBeforeErasureError,
    SessionBusyError,
    SessionEndedError,
    SessionNotFoundError,
    SessionOnLaneError,
    SnapshotError,
    StorageCorruptError,
    StorageError,
    StorageFullError,
    StorageLockedError,
    StorageUnavailableError,
    StoreBusyError,
    StoreStoppedError,
    TitleTakenError,
    TurnEndedError,
    UnidentifiedSourceError,
    UnsupportedStorageError,
)
from gateway_sessions.ports import AliasResolver, Clock
from gateway_sessions.runtime.agents import Agent, AgentFactory, AgentFunction, SessionEnding, current_turn
from gateway_sessions.runtime.aliases import CachedAliases, WhatsAppAliasFiles
from gateway_sessions.runtime.command import Command, CommandCall
from gateway_sessions.runtime.control import Control, OwnerStatus
from gateway_sessions.runtime.events import EventKind, Events, GatewayEvent, Listener
from gateway_sessions.runtime.explain import Explanation
from gateway_sessions.runtime.gateway import Gateway
from gateway_sessions.runtime.hooks import Hook, SessionFinalized
from gateway_sessions.runtime.incidents import Incident
from gateway_sessions.runtime.observers import ObservedTurn, Observer
from gateway_sessions.runtime.restart import StartReport
from gateway_sessions.runtime.seat import Seat, connect
from gateway_sessions.runtime.session_context import build_session_context
from gateway_sessions.runtime.session_search import SessionSearch, Summariser
from gateway_sessions.runtime.store import SessionStore
from gateway_sessions.runtime.titling import FirstExchange, Titler, plain_titler
from gateway_sessions.runtime.turn import Turn
from gateway_sessions.runtime.turn_context import TurnContext, TurnStream
from gateway_sessions.storage.database import SessionDB
from gateway_sessions.storage.engine import VacuumReport
from gateway_sessions.storage.index_port import IndexReport, IndexState
from gateway_sessions.storage.moving import MigrationProgress, MigrationReport, migrate_store
from gateway_sessions.storage.repair import CheckReport, RepairReport, check_store, repair_store
from gateway_sessions.storage.verbs.outbox import Owed, OwedReply
from gateway_sessions.storage.verbs.queue import Overtaken
from gateway_sessions.storage_errors import MissingRightError, OperatorsTaskError, SchemaTooOldError

__all__ = [
    "PRESETS",
    "Accepted",
    "Activity",
    "AdapterCapabilities",
    "AdapterError",
    "AdapterUnavailableError",
    "Agent",
    "AgentFactory",
    "AgentFunction",
    "AliasResolver",
    "AliasUnknownError",
    "Allowed",
    "AmbiguousSessionError",
    "AnchoredView",
    "Attachment",
    "AttachmentKind",
    "BudgetLimit",
    "BudgetOf",
    "BudgetPlan",
    "BudgetUnit",
    "BudgetUse",
    "Budgets",
    "BusyMode",
    "BusyRules",
    "CachedAliases",
    "CancelledItselfError",
    "CheckReport",
    "Clock",
    "Command",
    "CommandCall",
    "Config",
    "ConfigError",
    "ConfigProblem",
    "ContextLine",
    "Control",
    "ControlError",
    "CostStatus",
    "DeadLetter",
    "DeliveryRefusedError",
    "Disposition",
    "DropPolicy",
    "Duplicate",
    "EndReason",
    "ErasureReceipt",
    "EventKind",
    "EventLoopRunningError",
    "Events",
    "Explanation",
    "ExportReport",
    "FencedError",
    "Finding",
    "FindingKind",
    "FirstExchange",
    "ForeignDatabaseError",
    "FoundMessage",
    "Gateway",
    "GatewayEvent",
    "GatewaySessionsError",
    "Hidden",
    "HomeChannel",
    "Hook",
    "ImportReport",
    "InboundMessage",
    "Incident",
    "IndexReport",
    "IndexState",
    "Insights",
    "InvalidInputError",
    "InvalidPolicyError",
    "InvalidSessionIdError",
    "InvalidSnapshotError",
    "InvalidSourceError",
    "InvalidTitleError",
    "InvalidTransitionError",
    "Isolation",
    "Kept",
    "LanesReport",
    "LeftLane",
    "LinkedLane",
    "Listener",
    "Message",
    "MessageKind",
    "MessageVersion",
    "MessageWindow",
    "MigrationError",
    "MigrationProgress",
    "MigrationReport",
    "MissingRightError",
    "ModelUsage",
    "MovedLane",
    "NoStoreError",
    "NoTurnError",
    "NotGivenUpError",
    "NothingToUndoError",
    "ObservedTurn",
    "Observer",
    "OperatorsTaskError",
    "OutboundMessage",
    "Overtaken",
    "Owed",
    "OwedReply",
    "OwnerStatus",
    "Passage",
    "Platform",
    "PlatformUse",
    "PruneReport",
    "QueuedMessage",
    "RateLimitedError",
    "Receipt",
    "RejectReason",
    "Rejected",
    "Relation",
    "RepairReport",
    "Reply",
    "ReplyTarget",
    "ReplyTo",
    "Require",
    "ResetMode",
    "ResumeReason",
    "Rewind",
    "Role",
    "SchemaTooNewError",
    "SchemaTooOldError",
    "Scope",
    "SearchHit",
    "SearchResult",
    "Seat",
    "SentBeforeErasureError",
    "SessionBusyError",
    "SessionCandidate",
    "SessionContext",
    "SessionDB",
    "SessionEndedError",
    "SessionEnding",
    "SessionEntry",
    "SessionFinalized",
    "SessionMatch",
    "SessionNotFoundError",
    "SessionOnLaneError",
    "SessionRecord",
    "SessionResetPolicy",
    "SessionSearch",
    "SessionSearchResult",
    "SessionSource",
    "SessionState",
    "SessionStore",
    "SessionSummary",
    "SessionUsage",
    "SnapshotError",
    "Spent",
    "StartReport",
    "Stop",
    "StorageCorruptError",
    "StorageError",
    "StorageFullError",
    "StorageLockedError",
    "StorageUnavailableError",
    "StoreBusyError",
    "StoreStoppedError",
    "Summariser",
    "SystemClock",
    "TitleTakenError",
    "Titler",
    "ToolUse",
    "TopSession",
    "TopSessions",
    "TransferProgress",
    "Turn",
    "TurnContext",
    "TurnEndedError",
    "TurnStream",
    "UnidentifiedSourceError",
    "UnknownPrices",
    "UnsupportedStorageError",
    "Usage",
    "UsageSum",
    "UserTurn",
    "VacuumReport",
    "Warn",
    "WhatsAppAliasFiles",
    "WorkProgress",
    "build_session_context",
    "build_session_context_prompt",
    "build_session_key",
    "check_store",
    "connect",
    "current_turn",
    "is_shared_multi_user_session",
    "load_config",
    "migrate_store",
    "next_reset",
    "parse_config",
    "plain_titler",
    "plan_budget",
    "repair_store",
    "reset_due",
]
