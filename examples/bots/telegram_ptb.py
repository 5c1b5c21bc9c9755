"""A Telegram bot made with python-telegram-bot. Run it with TELEGRAM_TOKEN set, the token from @BotFather."""

import asyncio
import os

from telegram import Update
from telegram.ext import ApplicationBuilder, CommandHandler, ContextTypes

from gateway_sessions import Gateway, SessionStore, TurnContext
from gateway_sessions.integrations.python_telegram_bot import PtbAdapter

server = os.environ.get("TELEGRAM_API_URL", "https://api.telegram.org")
builder = ApplicationBuilder().token(os.environ["TELEGRAM_TOKEN"]).updater(None)
application = builder.base_url(f"{server}/bot").base_file_url(f"{server}/file/bot").build()


async def about(update: Update, _: ContextTypes.DEFAULT_TYPE) -> None:
    await update.message.reply_text("I remember what you tell me.")


application.add_handler(CommandHandler("about", about))


async def answer(turn: TurnContext) -> str:
    said = [message["content"] for message in await turn.history() if message["role"] == "user"]
    return f"You have told me {len(said)} things, and first: {said[0]}"


async def main() -> None:
    adapter = PtbAdapter(application)
    async with (
        SessionStore.open("state") as store,
        Gateway(store, agent=answer, adapters=[adapter]) as gateway,
    ):
        await gateway.run()


asyncio.run(main())
