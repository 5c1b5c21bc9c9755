"""What the queue of every database promises, as tests: a class to inherit from, once for each engine."""

from __future__ import annotations

from gateway_sessions.testing.contract.ledger_admission import AdmissionContract
from gateway_sessions.testing.contract.ledger_changes import ChangedContract
from gateway_sessions.testing.contract.ledger_endings import EndingsContract, SteeringContract
from gateway_sessions.testing.contract.ledger_erasure import ErasedLanesContract
from gateway_sessions.testing.contract.ledger_known import KnownLanesContract
from gateway_sessions.testing.contract.ledger_restarts import LedgerRestartsContract
from gateway_sessions.testing.contract.ledger_turns import TurnsContract
from gateway_sessions.testing.contract.ledger_waiting import WaitingContract


class LedgerContract(
    AdmissionContract,
    TurnsContract,
    EndingsContract,
    SteeringContract,
    WaitingContract,
    ChangedContract,
    KnownLanesContract,
    ErasedLanesContract,
    LedgerRestartsContract,
):
    """The whole contract. Inherit from it, and give it the fixture `open_store`."""
