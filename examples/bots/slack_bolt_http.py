"""An app of Slack made with Bolt, by HTTP. Set SLACK_BOT_TOKEN (xoxb-…) and SLACK_SIGNING_SECRET."""

import asyncio
import os

from slack_bolt.async_app import AsyncApp

from gateway_sessions import Gateway, SessionStore, TurnContext
from gateway_sessions.integrations.slack_bolt import SlackBoltAdapter

app = AsyncApp()  # it reads the variables by itself
app.client.base_url = os.environ.get("SLACK_API_URL", app.client.base_url)


@app.message("about")
async def about(say) -> None:
    await say("I remember what you tell me.")


async def answer(turn: TurnContext) -> str:
    said = [message["content"] for message in await turn.history() if message["role"] == "user"]
    return f"You have told me {len(said)} things, and first: {said[0]}"


async def main() -> None:
    adapter = SlackBoltAdapter(app, port=int(os.environ.get("PORT", "3000")))
    async with (
        SessionStore.open("state") as store,
        Gateway(store, agent=answer, adapters=[adapter]) as gateway,
    ):
        await gateway.run()


asyncio.run(main())
