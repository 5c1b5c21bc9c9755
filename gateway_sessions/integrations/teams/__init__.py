"""Microsoft Teams, by the Bot Framework: activities come to a webhook, and the Bot Connector shows messages.

- ``activities``: Reading of Teams' activities: who may send one, which message it brings, and what came with
  it.
- ``adapter``: `TeamsAdapter`: one bot on Teams, whose activities are acknowledged when they are stored.
- ``from_settings``: The adapter for Microsoft Teams that a configuration asks for.
- ``objects``: The objects of the Bot Framework, as far as they are read; what else Teams sends is passed
  over.
- ``platform``: `TeamsPlatform`: what the bytes of a bot on Teams mean, for the engine of webhooks, without
  I/O.
- ``sending``: The calls of the Bot Connector that show, change and announce messages, and what became of
  them.
- ``settings``: The settings of a bot on Teams: its registration, its cloud, and the hosts that may be called.
"""

from gateway_sessions.integrations.teams.adapter import TeamsAdapter
from gateway_sessions.integrations.teams.settings import (
    PUBLIC_CLOUD,
    US_GOVERNMENT,
    TeamsCloud,
    TeamsSettings,
)

__all__ = ["PUBLIC_CLOUD", "US_GOVERNMENT", "TeamsAdapter", "TeamsCloud", "TeamsSettings"]
