"""Where messages come in and replies go out: the port, and adapters that need no library of a platform."""

from gateway_sessions.adapters.port import Adapter, Submit
from gateway_sessions.core.outbound import (
    AdapterCapabilities,
    LengthUnit,
    OutboundMessage,
    ReplyTarget,
    TextFormat,
)

__all__ = [
    "Adapter",
    "AdapterCapabilities",
    "LengthUnit",
    "OutboundMessage",
    "ReplyTarget",
    "Submit",
    "TextFormat",
]
