"""A Telegram bot made with aiogram. Run it with TELEGRAM_TOKEN set to the token from @BotFather."""

import asyncio
import os

from aiogram import Bot, Dispatcher, types
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.filters import Command

from gateway_sessions import Gateway, SessionStore, TurnContext
from gateway_sessions.integrations.aiogram import AiogramAdapter

server = TelegramAPIServer.from_base(os.environ.get("TELEGRAM_API_URL", "https://api.telegram.org"))
bot = Bot(os.environ["TELEGRAM_TOKEN"], session=AiohttpSession(api=server))
dispatcher = Dispatcher()


@dispatcher.message(Command("about"))
async def about(message: types.Message) -> None:
    await message.answer("I remember what you tell me.")


async def answer(turn: TurnContext) -> str:
    said = [message["content"] for message in await turn.history() if message["role"] == "user"]
    return f"You have told me {len(said)} things, and first: {said[0]}"


async def main() -> None:
    adapter = AiogramAdapter(bot, dispatcher=dispatcher)
    async with (
        SessionStore.open("state") as store,
        Gateway(store, agent=answer, adapters=[adapter]) as gateway,
    ):
        await gateway.run()


asyncio.run(main())
