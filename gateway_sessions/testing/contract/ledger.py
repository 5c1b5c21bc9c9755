"""What the queue of every database promises, as tests: a class to inherit from, once for each engine."""

from __future__ import annotations

from gateway_sessions.testing.contract.authors import AuthorsContract
from gateway_sessions.testing.contract.ledger_accounts import AccountsContract
from gateway_sessions.testing.contract.ledger_admission import AdmissionContract
from gateway_sessions.testing.contract.ledger_bursts import BurstContract
from gateway_sessions.testing.contract.ledger_changes import ChangedContract
from gateway_sessions.testing.contract.ledger_endings import EndingsContract, SteeringContract
from gateway_sessions.testing.contract.ledger_erasure import ErasedLanesContract
from gateway_sessions.testing.contract.ledger_growing import GrowingContract
from gateway_sessions.testing.contract.ledger_known import KnownLanesContract
from gateway_sessions.testing.contract.ledger_restarts import LedgerRestartsContract
from gateway_sessions.testing.contract.ledger_tries import TriesContract
from gateway_sessions.testing.contract.ledger_turns import TurnsContract
from gateway_sessions.testing.contract.ledger_waiting import WaitingContract


class LedgerContract(
    AdmissionContract,
    TurnsContract,
    EndingsContract,
    SteeringContract,
    WaitingContract,
    ChangedContract,
    BurstContract,
    GrowingContract,
    KnownLanesContract,
    ErasedLanesContract,
    AuthorsContract,
    LedgerRestartsContract,
    AccountsContract,
    TriesContract,
):
    """The whole contract. Inherit from it, and give it the fixture `open_store`."""
