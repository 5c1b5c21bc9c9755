"""The queue of a lane answers with these records, and a turn owes replies in them."""

from gateway_sessions.core.delivery.schedules import (
    MissedTimes,
    SayTask,
    Schedule,
    ScheduleKind,
    ScheduleState,
    Timing,
    TurnTask,
)
from gateway_sessions.core.queue.busy_modes import DropPolicy
from gateway_sessions.core.queue.inbound import Disposition, RejectReason
from gateway_sessions.core.queue.items import DeadLetter, QueuedMessage
from gateway_sessions.runtime.gateway.unprompted.questions import TurnAnswer
from gateway_sessions.runtime.gateway.unprompted.schedules import Schedules
from gateway_sessions.runtime.gateway.unprompted.speaking import SayReceipt
from gateway_sessions.storage.transactions.queue.outbox import Owed, OwedReply
from gateway_sessions.storage.transactions.queue.waiting import Overtaken

__all__ = [
    "DeadLetter",
    "Disposition",
    "DropPolicy",
    "MissedTimes",
    "Overtaken",
    "Owed",
    "OwedReply",
    "QueuedMessage",
    "RejectReason",
    "SayReceipt",
    "SayTask",
    "Schedule",
    "ScheduleKind",
    "ScheduleState",
    "Schedules",
    "Timing",
    "TurnAnswer",
    "TurnTask",
]
