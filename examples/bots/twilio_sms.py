"""A number at Twilio. Run it with TWILIO_ACCOUNT_SID, TWILIO_AUTH_TOKEN, TWILIO_NUMBER and PUBLIC_URL set."""

import asyncio
import os

from gateway_sessions import Gateway, SessionStore, TurnContext
from gateway_sessions.integrations.twilio import TwilioAdapter, TwilioSettings

settings = TwilioSettings(
    account_sid=os.environ["TWILIO_ACCOUNT_SID"],
    auth_token=os.environ["TWILIO_AUTH_TOKEN"],
    sender=os.environ["TWILIO_NUMBER"],
    public_url=os.environ["PUBLIC_URL"],
    api_url=os.environ.get("TWILIO_API_URL", "https://api.twilio.com"),
)


async def answer(turn: TurnContext) -> str:
    said = [message["content"] for message in await turn.history() if message["role"] == "user"]
    return f"You have told me {len(said)} things, and first: {said[0]}"


async def main() -> None:
    adapter = TwilioAdapter(settings, port=int(os.environ.get("PORT", "8080")))
    async with (
        SessionStore.open("state") as store,
        Gateway(store, agent=answer, adapters=[adapter]) as gateway,
    ):
        await gateway.run()


asyncio.run(main())
