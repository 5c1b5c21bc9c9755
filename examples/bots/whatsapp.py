"""A bot on WhatsApp, on a port of its own behind a proxy. Run it with the four WHATSAPP_ variables set."""

import asyncio
import os

from gateway_sessions import Gateway, SessionStore, TurnContext
from gateway_sessions.integrations.whatsapp import WhatsApp, WhatsAppSettings

settings = WhatsAppSettings(
    phone_number_id=os.environ["WHATSAPP_PHONE_NUMBER_ID"],
    access_token=os.environ["WHATSAPP_ACCESS_TOKEN"],
    app_secret=os.environ["WHATSAPP_APP_SECRET"],
    verify_token=os.environ["WHATSAPP_VERIFY_TOKEN"],
    api_url=os.environ.get("WHATSAPP_API_URL", "https://graph.facebook.com"),
)


async def answer(turn: TurnContext) -> str:
    said = [message["content"] for message in await turn.history() if message["role"] == "user"]
    return f"You have told me {len(said)} things, and first: {said[0]}"


async def main() -> None:
    adapter = WhatsApp(settings, port=int(os.environ.get("PORT", "8080")))
    async with (
        SessionStore.open("state") as store,
        Gateway(store, agent=answer, adapters=[adapter]) as gateway,
    ):
        await gateway.run()


asyncio.run(main())
