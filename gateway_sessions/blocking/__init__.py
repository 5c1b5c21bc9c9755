"""`BlockingSessionStore` and `BlockingSessionDB`, for callers without an event loop.

Every method is that of the asynchronous class without `await`, and every error passes unchanged. Threads may
share one store: each waits for its own calls only.

- ``_generated_database``: The database for callers without a loop.
- ``_generated_store``: The store for callers without a loop.
- ``_loop_thread``: The thread with an event loop on which the blocking classes run their calls.
"""

from gateway_sessions.blocking._generated_database import BlockingSessionDB
from gateway_sessions.blocking._generated_store import (
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
