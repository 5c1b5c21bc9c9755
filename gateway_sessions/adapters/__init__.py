"""Adapters bring messages in and take replies out; those here need no library of a platform.

- `protocol`: what an adapter offers a gateway, and work that runs while it is connected.
- `console`: one person at a terminal, or a pipe.
- `webhook`: any program that posts signed messages and takes signed replies.
- `set_aside`: updates that cannot be read are kept in files.
- `_http`: HTTP/1.1 for the webhook and the health endpoint, on top of `h11`.
"""

from gateway_sessions.adapters.protocol import Adapter, Submit, in_background
from gateway_sessions.adapters.set_aside import put_aside
from gateway_sessions.core.delivery.outbound import (
    AdapterCapabilities,
    LengthUnit,
    OutboundMessage,
    ReplyTarget,
    TextFormat,
)
from gateway_sessions.core.queue.inbound import (
    Attachment,
    AttachmentKind,
    InboundMessage,
    MessageKind,
    ReplyTo,
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
