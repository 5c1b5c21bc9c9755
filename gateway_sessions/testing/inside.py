"""The inside of a store, as far as contract tests look at it: its queue, transactions, rows and texts.

Neither programs nor those who run the contracts need these names, and no release promises them.
"""

from gateway_sessions.core.delivery.message_parts import split_message
from gateway_sessions.core.delivery.outbound_messages import Growing
from gateway_sessions.core.delivery.retry_policy import SendFailure, classify_failure
from gateway_sessions.core.delivery.schedules import RunPlan, plan_run
from gateway_sessions.core.export.session_members import ESTABLISHED
from gateway_sessions.core.identity.account_lane_assignment import LaneChoice
from gateway_sessions.core.identity.keys import key_at_account, session_owner
from gateway_sessions.core.notices.notice_texts import GIVEN_UP, UNFINISHED, cut_off_notice
from gateway_sessions.core.queue.items import ItemKind, Outcome
from gateway_sessions.core.transcript.messages import STEERED
from gateway_sessions.core.transcript.model_history import BEGINNING
from gateway_sessions.core.usage.usage_events import add_usage_sums, make_usage, sum_of_event
from gateway_sessions.ports import Transaction
from gateway_sessions.runtime.queue.admission import LocalLane
from gateway_sessions.runtime.queue.listener import QueueListener
from gateway_sessions.runtime.store.open_store import queue_of
from gateway_sessions.storage.tables.lanes import load_lane, put_lane
from gateway_sessions.storage.transactions.queue import (
    admit,
    answers,
    clock_set_back,
    edits,
    outbox,
    schedules,
    waiting,
)
from gateway_sessions.storage.transactions.queue.admit import NotedItem, RunningTurnFacts
from gateway_sessions.storage.transactions.queue.claim import transcript_version
from gateway_sessions.storage.transactions.queue.edits import EditResult
from gateway_sessions.storage.transactions.queue.outbox import SentReply, mark_sent
from gateway_sessions.storage.transactions.sessions import lists
from gateway_sessions.storage.transactions.sessions.account_lanes import give_lanes
from gateway_sessions.storage.transactions.upkeep import consistency, copy_store, status

__all__ = [
    "BEGINNING",
    "ESTABLISHED",
    "GIVEN_UP",
    "STEERED",
    "UNFINISHED",
    "EditResult",
    "Growing",
    "ItemKind",
    "LaneChoice",
    "LocalLane",
    "NotedItem",
    "Outcome",
    "QueueListener",
    "RunPlan",
    "RunningTurnFacts",
    "SendFailure",
    "SentReply",
    "Transaction",
    "add_usage_sums",
    "admit",
    "answers",
    "classify_failure",
    "clock_set_back",
    "consistency",
    "copy_store",
    "cut_off_notice",
    "edits",
    "give_lanes",
    "key_at_account",
    "lists",
    "load_lane",
    "make_usage",
    "mark_sent",
    "outbox",
    "plan_run",
    "put_lane",
    "queue_of",
    "schedules",
    "session_owner",
    "split_message",
    "status",
    "sum_of_event",
    "transcript_version",
    "waiting",
]
