"""The same for callers without an event loop: a store or a database on the loop of a thread of its own.

Every method is that of the asynchronous class without `await`, and every error passes unchanged. Threads may
share one store: each waits for its own calls only.
"""

from gateway_sessions.blocking.database import BlockingSessionDB
from gateway_sessions.blocking.store import (
    BlockingExpiryWatcher,
    BlockingHooks,
    BlockingSessionStore,
    BlockingTurn,
)

__all__ = [
    "BlockingExpiryWatcher",
    "BlockingHooks",
    "BlockingSessionDB",
    "BlockingSessionStore",
    "BlockingTurn",
]
