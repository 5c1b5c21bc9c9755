"""A bot on WhatsApp within a FastAPI application. Run it with the four WHATSAPP_ variables set."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI

from gateway_sessions import Gateway, SessionStore, TurnContext
from gateway_sessions.adapters.webhooks import WebhookApp
from gateway_sessions.integrations.whatsapp import WhatsApp, WhatsAppSettings

whatsapp = WhatsApp(
    WhatsAppSettings(
        phone_number_id=os.environ["WHATSAPP_PHONE_NUMBER_ID"],
        access_token=os.environ["WHATSAPP_ACCESS_TOKEN"],
        app_secret=os.environ["WHATSAPP_APP_SECRET"],
        verify_token=os.environ["WHATSAPP_VERIFY_TOKEN"],
        api_url=os.environ.get("WHATSAPP_API_URL", "https://graph.facebook.com"),
    )
)


async def answer(turn: TurnContext) -> str:
    said = [message["content"] for message in await turn.history() if message["role"] == "user"]
    return f"You have told me {len(said)} things, and first: {said[0]}"


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    async with SessionStore.open("state") as store, Gateway(store, agent=answer, adapters=[whatsapp]):
        yield


app = FastAPI(lifespan=lifespan)
app.mount("/hooks", WebhookApp(whatsapp))  # Meta calls https://your.host/hooks/whatsapp


@app.get("/")
async def home() -> dict[str, str]:
    return {"this": "is the rest of the application"}


if __name__ == "__main__":
    uvicorn.run(app, port=int(os.environ.get("PORT", "8080")), log_level="warning")
