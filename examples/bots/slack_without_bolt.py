"""An app of Slack without Bolt, by HTTP. Set SLACK_BOT_TOKEN (xoxb-…) and SLACK_SIGNING_SECRET."""

import asyncio
import os

from gateway_sessions import Gateway, SessionStore, TurnContext
from gateway_sessions.integrations.slack.adapter import API_URL, SlackAdapter

adapter = SlackAdapter(
    os.environ["SLACK_BOT_TOKEN"],
    os.environ["SLACK_SIGNING_SECRET"],
    api_url=os.environ.get("SLACK_API_URL", API_URL),
    port=int(os.environ.get("PORT", "3000")),
)


async def answer(turn: TurnContext) -> str:
    said = [message["content"] for message in await turn.history() if message["role"] == "user"]
    return f"You have told me {len(said)} things, and first: {said[0]}"


async def main() -> None:
    async with (
        SessionStore.open("state") as store,
        Gateway(store, agent=answer, adapters=[adapter]) as gateway,
    ):
        await gateway.run()


asyncio.run(main())
