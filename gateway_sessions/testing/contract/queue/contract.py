"""`LedgerContract`: all contract tests of the queue in one class."""

from __future__ import annotations

from gateway_sessions.testing.contract.queue.accounts import AccountsContract
from gateway_sessions.testing.contract.queue.admission import AdmissionContract, KnownLanesContract
from gateway_sessions.testing.contract.queue.authors import AuthorsContract
from gateway_sessions.testing.contract.queue.bursts import BurstContract
from gateway_sessions.testing.contract.queue.edits import ChangedContract
from gateway_sessions.testing.contract.queue.endings import EndingsContract, SteeringContract
from gateway_sessions.testing.contract.queue.growing_replies import GrowingContract
from gateway_sessions.testing.contract.queue.observed import ObservedContract
from gateway_sessions.testing.contract.queue.restarts import ErasedLanesContract, LedgerRestartsContract
from gateway_sessions.testing.contract.queue.schedules import AnswersContract, SchedulesContract
from gateway_sessions.testing.contract.queue.turns import TriesContract, TurnsContract
from gateway_sessions.testing.contract.queue.waiting import WaitingContract


class LedgerContract(
    AdmissionContract,
    TurnsContract,
    EndingsContract,
    SteeringContract,
    WaitingContract,
    ChangedContract,
    BurstContract,
    ObservedContract,
    GrowingContract,
    KnownLanesContract,
    ErasedLanesContract,
    AuthorsContract,
    LedgerRestartsContract,
    AccountsContract,
    TriesContract,
    SchedulesContract,
    AnswersContract,
):
    """All contract tests of the queue. Inherit from it, and give it the fixture `open_store`."""
