"""Integrations of platforms: each a folder of functions without I/O, and thin doors to client libraries.

- ``aiogram``: `AiogramAdapter`: the door for bots that are made with aiogram.
- ``python_telegram_bot``: `PtbAdapter`: the door for bots that are made with python-telegram-bot.
- ``telegram``: Telegram, by a client of ours or through a library that a bot is made with.
"""
