"""Integrations of platforms: each a folder of functions without I/O, and thin doors to client libraries.

- ``aiogram``: `AiogramAdapter`: the door for bots that are made with aiogram.
- ``configured``: `AdapterSettings`: what a configuration says of one adapter, for the function that makes
  the adapter.
- ``discord``: Discord: what its messages and interactions bring, how replies are shown, and what was missed
  meanwhile.
- ``discord_from_settings``: The adapter for Discord that a configuration asks for: a connected bot, or
  interactions at a webhook.
- ``discord_py``: The door for bots that are made with discord.py: `DiscordAdapter`.
- ``first_configuration``: The first configuration of a bot: a few lines with comments, for `gsess init`.
- ``google_chat``: Google Chat: events come to a webhook, and messages are created under names of their own.
- ``line``: LINE, by its Messaging API: events come to a webhook, replies go by a token or are pushed.
- ``matrix``: Matrix, through a library that a bot is made with.
- ``matrix_from_settings``: The adapter for Matrix that a configuration asks for, with a client of matrix-nio.
- ``matrix_nio``: `MatrixAdapter`: the door for bots that are made with matrix-nio.
- ``matrix_nio_encryption``: `NioEncryption`: encrypted rooms with the keys that a client of matrix-nio keeps.
- ``mattermost``: Mattermost, by its REST API: no library of it is needed.
- ``python_telegram_bot``: `PtbAdapter`: the door for bots that are made with python-telegram-bot.
- ``registry``: The registry of adapters: which function makes the adapter of a platform from its settings.
- ``slack``: Slack, through Bolt or by a webhook of ours: what both share, and the adapter without Bolt.
- ``slack_bolt``: `SlackBoltAdapter`: the door for apps that are made with Bolt, by HTTP or by Socket Mode.
- ``slack_from_settings``: The adapter for Slack that a configuration asks for: by Socket Mode, or with
  events at a webhook.
- ``teams``: Microsoft Teams, by the Bot Framework: activities come to a webhook, and the Bot Connector shows
  messages.
- ``telegram``: Telegram, by a client of ours or through a library that a bot is made with.
- ``tokens``: Tokens of OAuth 2: checks of signed tokens that platforms send, and access tokens for our own
  calls.
- ``twilio``: Twilio, for SMS, MMS and WhatsApp: messages come to a webhook, and replies are sent by calls.
- ``whatsapp``: WhatsApp, through the WhatsApp Business Platform that Meta hosts, without a client library.
"""
