"""What every database of sessions promises, as tests: two classes to inherit from, once for each engine.

It needs pytest and pytest-asyncio, which come with the extra `test`.
"""

from __future__ import annotations

from gateway_sessions.testing.contract.changes import ChangesContract
from gateway_sessions.testing.contract.concurrency import ConcurrencyContract
from gateway_sessions.testing.contract.conversations import ConversationsContract
from gateway_sessions.testing.contract.database import Capability, OpenDB
from gateway_sessions.testing.contract.erasure import ErasureContract
from gateway_sessions.testing.contract.exporting import ExportingContract
from gateway_sessions.testing.contract.importing import ImportingContract
from gateway_sessions.testing.contract.insights import InsightsContract
from gateway_sessions.testing.contract.isolation import IsolationContract
from gateway_sessions.testing.contract.lanes import OpenStore
from gateway_sessions.testing.contract.ledger import LedgerContract
from gateway_sessions.testing.contract.lineage import LineageContract
from gateway_sessions.testing.contract.listing import ListingContract
from gateway_sessions.testing.contract.looking import LookingContract
from gateway_sessions.testing.contract.messages import MessagesContract
from gateway_sessions.testing.contract.metadata import MetadataContract
from gateway_sessions.testing.contract.poison import PoisonContract
from gateway_sessions.testing.contract.resolving import ResolvingContract
from gateway_sessions.testing.contract.restarting import RestartingContract
from gateway_sessions.testing.contract.retention import RetentionContract
from gateway_sessions.testing.contract.round_trips import RoundTripsContract
from gateway_sessions.testing.contract.searching import SearchingContract
from gateway_sessions.testing.contract.session_rows import SessionRowsContract
from gateway_sessions.testing.contract.splitting import SplittingContract
from gateway_sessions.testing.contract.titles import TitlesContract
from gateway_sessions.testing.contract.usage import UsageContract

__all__ = ["Capability", "LedgerContract", "OpenDB", "OpenStore", "SessionDBContract"]


class SessionDBContract(
    SessionRowsContract,
    MessagesContract,
    ChangesContract,
    LookingContract,
    ConversationsContract,
    PoisonContract,
    LineageContract,
    SplittingContract,
    TitlesContract,
    ResolvingContract,
    ListingContract,
    SearchingContract,
    UsageContract,
    InsightsContract,
    ExportingContract,
    ImportingContract,
    RoundTripsContract,
    RetentionContract,
    ErasureContract,
    IsolationContract,
    ConcurrencyContract,
    RestartingContract,
    MetadataContract,
):
    """The whole contract. Inherit from it, and give it the fixture `open_db`."""
