"""A bot on Microsoft Teams. Run it with TEAMS_APP_ID, TEAMS_APP_SECRET and TEAMS_TENANT_ID set."""

import asyncio
import os

from gateway_sessions import Gateway, SessionStore, TurnContext
from gateway_sessions.integrations.teams import PUBLIC_CLOUD, TeamsAdapter, TeamsCloud, TeamsSettings

fake = os.environ.get("TEAMS_URL")
settings = TeamsSettings(
    app_id=os.environ["TEAMS_APP_ID"],
    app_secret=os.environ["TEAMS_APP_SECRET"],
    tenant_id=os.environ["TEAMS_TENANT_ID"],
    cloud=TeamsCloud.at(fake) if fake else PUBLIC_CLOUD,
)


async def answer(turn: TurnContext) -> str:
    said = [message["content"] for message in await turn.history() if message["role"] == "user"]
    return f"You have told me {len(said)} things, and first: {said[0]}"


async def main() -> None:
    adapter = TeamsAdapter(settings, port=int(os.environ.get("PORT", "8080")))
    async with (
        SessionStore.open("state") as store,
        Gateway(store, agent=answer, adapters=[adapter]) as gateway,
    ):
        await gateway.run()


asyncio.run(main())
