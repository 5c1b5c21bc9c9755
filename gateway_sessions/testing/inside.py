"""The inside of an open store, which contract tests look at: its queue, transactions and rows.

Names here are for tests of this package and of engines. Programs need none of them.
"""

from gateway_sessions.runtime.store.open_store import queue_of

__all__ = ["queue_of"]
