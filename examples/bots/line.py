"""An official account of LINE. Run it with LINE_CHANNEL_SECRET and LINE_CHANNEL_ACCESS_TOKEN set."""

import asyncio
import os

from gateway_sessions import Gateway, SessionStore, TurnContext
from gateway_sessions.integrations.line import LineAdapter, LineSettings

settings = LineSettings(
    channel_secret=os.environ["LINE_CHANNEL_SECRET"],
    channel_access_token=os.environ["LINE_CHANNEL_ACCESS_TOKEN"],
    api_url=os.environ.get("LINE_API_URL", "https://api.line.me"),
)


async def answer(turn: TurnContext) -> str:
    said = [message["content"] for message in await turn.history() if message["role"] == "user"]
    return f"You have told me {len(said)} things, and first: {said[0]}"


async def main() -> None:
    adapter = LineAdapter(settings, port=int(os.environ.get("PORT", "8080")))
    async with (
        SessionStore.open("state") as store,
        Gateway(store, agent=answer, adapters=[adapter]) as gateway,
    ):
        await gateway.run()


asyncio.run(main())
