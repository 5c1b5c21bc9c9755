"""A bot on WhatsApp within a FastAPI application. Run it with the four WHATSAPP_ variables set."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI

from gateway_sessions import Gateway, SessionStore, TurnContext
from gateway_sessions.adapters.webhooks import WebhookApp
from gateway_sessions.integrations.whatsapp import WhatsApp, WhatsAppSettings

NEEDED = ("phone_number_id", "access_token", "app_secret", "verify_token")
settings = {name: os.environ[f"WHATSAPP_{name.upper()}"] for name in NEEDED}
api_url = os.environ.get("WHATSAPP_API_URL", "https://graph.facebook.com")
whatsapp = WhatsApp(WhatsAppSettings(**settings, api_url=api_url))


async def answer(turn: TurnContext) -> str:
    said = [message["content"] for message in await turn.history() if message["role"] == "user"]
    return f"You have told me {len(said)} things, and first: {said[0]}"


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    async with SessionStore.open("state") as store, Gateway(store, agent=answer, adapters=[whatsapp]):
        yield


app = FastAPI(lifespan=lifespan)
app.mount("/hooks", WebhookApp(whatsapp))  # Meta calls https://your.host/hooks/whatsapp


if __name__ == "__main__":
    uvicorn.run(app, port=int(os.environ.get("PORT", "8080")), log_level="warning")
