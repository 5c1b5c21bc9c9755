"""A Discord bot made with discord.py. Set DISCORD_TOKEN, and switch Message Content Intent on for the bot."""

import asyncio
import os

import discord
from discord.ext import commands

from gateway_sessions import Gateway, SessionStore, TurnContext
from gateway_sessions.integrations.discord_py import DiscordAdapter

intents = discord.Intents.default()
intents.message_content = True
bot = commands.Bot("!", intents=intents)


@bot.command()
async def about(context: commands.Context[commands.Bot]) -> None:
    await context.send("I remember what you tell me.")


async def answer(turn: TurnContext) -> str:
    said = [message["content"] for message in await turn.history() if message["role"] == "user"]
    return f"You have told me {len(said)} things, and first: {said[0]}"


async def main() -> None:
    adapter = DiscordAdapter(bot, os.environ["DISCORD_TOKEN"])
    async with (
        SessionStore.open("state") as store,
        Gateway(store, agent=answer, adapters=[adapter]) as gateway,
    ):
        await gateway.run()


asyncio.run(main())
