"""Adapters bring messages in and take replies out; those here need no library of a platform.

- ``_http``: The webhook and the health endpoint speak HTTP/1.1 here: one request on a connection, and one
  answer to it.
- ``console``: The console adapter connects one person at a terminal, or a pipe: lines come in, and replies
  go out.
- ``protocol``: An adapter connects a gateway to one account of a platform, and this is the protocol between
  the two.
- ``set_aside``: Adapters put updates that they cannot read aside in files, so that no update blocks all
  others.
- ``webhook``: The webhook adapter connects any program, which posts signed messages and is posted signed
  replies.
"""

from gateway_sessions._process.background import in_background
from gateway_sessions.adapters.protocol import Adapter, Submit
from gateway_sessions.adapters.set_aside import put_aside
from gateway_sessions.core.delivery.outbound_messages import (
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
