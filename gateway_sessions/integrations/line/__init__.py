"""LINE, by its Messaging API: events come to a webhook, replies go by a token or are pushed.

- ``adapter``: `LineAdapter`: one official account of LINE, whose events are acknowledged when they are
  stored.
- ``events``: Reading of LINE's events: which message one brings, for whom it is, and what came with it.
- ``from_settings``: The adapter for LINE that a configuration asks for.
- ``names``: `LineNames`: the names of people and groups, which LINE's events do not carry.
- ``objects``: The objects of LINE's Messaging API, as far as they are read; what else LINE sends is passed
  over.
- ``platform``: `LinePlatform`: what the bytes of one account of LINE mean, for the engine of webhooks,
  without I/O.
- ``sending``: The calls of LINE's Messaging API that show a message, and what became of them.
"""

from gateway_sessions.integrations.line.adapter import LineAdapter
from gateway_sessions.integrations.line.platform import LineSettings

__all__ = ["LineAdapter", "LineSettings"]
