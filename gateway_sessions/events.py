"""Events, observers and hooks tell a program what happens in a store and in a gateway."""

from gateway_sessions.runtime.duties.session_hooks import Hook
from gateway_sessions.runtime.gateway.observers import ObservedTurn, Observer
from gateway_sessions.runtime.observability.event_stream import EventKind, Events, GatewayEvent, Listener

__all__ = [
    "EventKind",
    "Events",
    "GatewayEvent",
    "Hook",
    "Listener",
    "ObservedTurn",
    "Observer",
]
