"""A Mattermost bot. Set MATTERMOST_URL to the server's address, and MATTERMOST_TOKEN to the bot's token."""

import asyncio
import os

from gateway_sessions import Gateway, SessionStore, TurnContext
from gateway_sessions.integrations.mattermost import MattermostAdapter


async def answer(turn: TurnContext) -> str:
    said = [message["content"] for message in await turn.history() if message["role"] == "user"]
    return f"You have told me {len(said)} things, and first: {said[0]}"


async def main() -> None:
    adapter = MattermostAdapter(os.environ["MATTERMOST_URL"], os.environ["MATTERMOST_TOKEN"])
    async with (
        SessionStore.open("state") as store,
        Gateway(store, agent=answer, adapters=[adapter]) as gateway,
    ):
        await gateway.run()


asyncio.run(main())
