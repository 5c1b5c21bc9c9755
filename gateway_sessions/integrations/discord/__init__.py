"""Discord: what its messages and interactions bring, how replies are shown, and what was missed meanwhile.

- ``api``: The port to Discord's REST API: what a client has to do for the adapter, and what failures mean.
- ``interactions``: Presses on buttons and commands from Discord's menu: what they bring, and how they are
  answered.
- ``interactions_adapter``: `DiscordInteractionsAdapter`: an application that gets its commands and presses by
  a webhook.
- ``interactions_platform``: `DiscordInteractionsPlatform`: what interactions mean that Discord posts to a
  webhook, without any I/O.
- ``menu``: The commands of a gateway in Discord's menu, beside those that the bot has itself.
- ``objects``: The objects of Discord's API, as far as they are read; what else Discord sends is passed over.
- ``reading``: Reading of Discord's messages: for whom one is, what it says, and what came with it.
- ``receiving``: `DiscordReceiver`: takes messages in, those of one channel in their order, and those that
  nobody brought.
- ``sender``: `DiscordSender`: shows messages, in channels or where a command waits for its answer.
- ``sending``: The requests that show a message to people on Discord.
"""

from gateway_sessions.integrations.discord.api import (
    DiscordApi,
    DiscordApiError,
    DiscordNotSentError,
    DiscordRequest,
    DiscordUpload,
)
from gateway_sessions.integrations.discord.objects import DiscordMessage

__all__ = [
    "DiscordApi",
    "DiscordApiError",
    "DiscordMessage",
    "DiscordNotSentError",
    "DiscordRequest",
    "DiscordUpload",
]
