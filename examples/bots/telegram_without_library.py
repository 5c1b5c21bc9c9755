"""A Telegram bot without a library for it. Run it with TELEGRAM_TOKEN set to the token from @BotFather."""

import asyncio
import os

from gateway_sessions import Gateway, SessionStore, TurnContext
from gateway_sessions.integrations.telegram import TelegramAdapter
from gateway_sessions.integrations.telegram.client import API_URL, TelegramBot

bot = TelegramBot(os.environ["TELEGRAM_TOKEN"], api_url=os.environ.get("TELEGRAM_API_URL", API_URL))


async def answer(turn: TurnContext) -> str:
    said = [message["content"] for message in await turn.history() if message["role"] == "user"]
    return f"You have told me {len(said)} things, and first: {said[0]}"


async def main() -> None:
    adapter = TelegramAdapter(bot)
    async with (
        SessionStore.open("state") as store,
        Gateway(store, agent=answer, adapters=[adapter]) as gateway,
    ):
        await gateway.run()


asyncio.run(main())
