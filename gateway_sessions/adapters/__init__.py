"""Where messages come in and replies go out: the port, and adapters that need no library of a platform."""

from gateway_sessions.adapters.protocol import Adapter, Submit, in_background
from gateway_sessions.adapters.set_aside import put_aside
from gateway_sessions.core.inbound import Attachment, AttachmentKind, InboundMessage, MessageKind, ReplyTo
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
    "Attachment",
    "AttachmentKind",
    "InboundMessage",
    "LengthUnit",
    "MessageKind",
    "OutboundMessage",
    "ReplyTarget",
    "ReplyTo",
    "Submit",
    "TextFormat",
    "in_background",
    "put_aside",
]
