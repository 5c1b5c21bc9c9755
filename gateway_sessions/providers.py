"""The names that a package needs to provide a kind of database; see docs/how-to/prove-a-database.md."""

from gateway_sessions.storage.engines.protocol import Engine
from gateway_sessions.storage.engines.registry import CONTRACT, SessionDBProvider, Wanted

__all__ = ["CONTRACT", "Engine", "SessionDBProvider", "Wanted"]
