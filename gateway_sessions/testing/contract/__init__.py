"""Contract tests that every database and adapter must pass, as classes to inherit from.

It needs pytest and pytest-asyncio, which come with the extra `test`.

- ``adapter``: `AdapterContract`: the tests that every adapter must pass, and the bench that plays its
  platform.
- ``database``: Contract tests of `SessionDB` by subject, which every engine must pass.
- ``queue``: Contract tests of a store's queue by subject, which every engine must pass.
"""

from __future__ import annotations

from gateway_sessions.testing.contract.database.bench import Capability, OpenDB
from gateway_sessions.testing.contract.database.isolation import (
    ConcurrencyContract,
    IsolationContract,
    RestartingContract,
)
from gateway_sessions.testing.contract.database.metadata import MetadataContract
from gateway_sessions.testing.contract.database.retention import ErasureContract, RetentionContract
from gateway_sessions.testing.contract.database.search import SearchingContract
from gateway_sessions.testing.contract.database.sessions import (
    LineageContract,
    SessionRowsContract,
    SplittingContract,
)
from gateway_sessions.testing.contract.database.titles_and_lists import (
    ListingContract,
    ResolvingContract,
    TitlesContract,
)
from gateway_sessions.testing.contract.database.transcripts import (
    ChangesContract,
    ConversationsContract,
    LookingContract,
    MessagesContract,
)
from gateway_sessions.testing.contract.database.transfer import (
    ExportingContract,
    ImportingContract,
    RoundTripsContract,
)
from gateway_sessions.testing.contract.database.unstorable_values import PoisonContract
from gateway_sessions.testing.contract.database.usage import InsightsContract, UsageContract
from gateway_sessions.testing.contract.queue.bench import OpenStore
from gateway_sessions.testing.contract.queue.contract import LedgerContract

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
    """All contract tests of a database. Inherit from it, and give it the fixture `open_db`."""
