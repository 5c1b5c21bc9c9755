"""Adapters receive messages and send replies; those here need no library of a platform.

- ``_http``: HTTP/1.1 for the webhook and the health endpoint, with one request on each connection.
- ``channel_marks``: `ChannelMarks`: the places up to which the messages of channels are taken, kept in an
  adapter's memory.
- ``console``: `Console`: the adapter for one person at a terminal or a pipe, where each line is a message.
- ``file_sizes``: `check_size`: refuses a file that is known to be too large before anybody asks for its
  content.
- ``group_talk``: `GroupRules`: decides for every platform which messages of a group are for the bot.
- ``known_names``: `KnownNames`: remembers the names of people and places where events carry none but ids.
- ``memory``: `ProcessMemory`: the memory of an adapter that no gateway has given a durable one.
- ``protocol``: `Adapter`: the protocol between a gateway and the adapter of one account of a platform.
- ``set_aside``: `put_aside`: keeps an unreadable update in a file, so that it does not block all others.
- ``webhook``: `Webhook`: the adapter for any program that posts signed messages and receives signed
  replies.
- ``webhooks``: Webhooks of platforms: one engine, and for each platform a part of pure functions.
"""

from gateway_sessions._process.background import in_background
from gateway_sessions.adapters.group_talk import (
    Address,
    GroupRules,
    Groups,
    GroupTalk,
    Hearing,
    as_group_rules,
    without_mention,
)
from gateway_sessions.adapters.memory import ProcessMemory
from gateway_sessions.adapters.protocol import (
    Adapter,
    AdapterMemory,
    AdvisingAdapter,
    CommandMenuAdapter,
    DraftingAdapter,
    FetchingAdapter,
    FindingAdapter,
    RememberingAdapter,
    Submit,
)
from gateway_sessions.adapters.set_aside import put_aside
from gateway_sessions.core.delivery.adapter_capabilities import AdapterCapabilities, ReceiveClass
from gateway_sessions.core.delivery.outbound_messages import Button, OutboundMessage, ReplyTarget, TextFormat
from gateway_sessions.core.queue.inbound import (
    Attachment,
    AttachmentKind,
    InboundMessage,
    MessageKind,
    ReplyTo,
)
from gateway_sessions.core.text_length import LengthUnit

__all__ = [
    "Adapter",
    "AdapterCapabilities",
    "AdapterMemory",
    "Address",
    "AdvisingAdapter",
    "Attachment",
    "AttachmentKind",
    "Button",
    "CommandMenuAdapter",
    "DraftingAdapter",
    "FetchingAdapter",
    "FindingAdapter",
    "GroupRules",
    "GroupTalk",
    "Groups",
    "Hearing",
    "InboundMessage",
    "LengthUnit",
    "MessageKind",
    "OutboundMessage",
    "ProcessMemory",
    "ReceiveClass",
    "RememberingAdapter",
    "ReplyTarget",
    "ReplyTo",
    "Submit",
    "TextFormat",
    "as_group_rules",
    "in_background",
    "put_aside",
    "without_mention",
]
