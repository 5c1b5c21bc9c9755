"""What a package needs that brings a kind of database along: see docs/how-to/write-a-provider.md."""

from gateway_sessions.storage.engine import Engine
from gateway_sessions.storage.providers import CONTRACT, SessionDBProvider, Wanted

__all__ = ["CONTRACT", "Engine", "SessionDBProvider", "Wanted"]
