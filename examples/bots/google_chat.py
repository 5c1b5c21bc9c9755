"""An app in Google Chat. Run it with GOOGLE_KEY_FILE (of a service account) and PUBLIC_URL set."""

import asyncio
import os
from pathlib import Path

from gateway_sessions import Gateway, SessionStore, TurnContext
from gateway_sessions.integrations.google_chat import GoogleChatAdapter, GoogleChatSettings

settings = GoogleChatSettings.from_key(
    Path(os.environ["GOOGLE_KEY_FILE"]).read_text("utf-8"),
    audience=os.environ["PUBLIC_URL"],
    api_url=os.environ.get("GOOGLE_CHAT_URL", "https://chat.googleapis.com"),
    keys_url=os.environ.get("GOOGLE_KEYS_URL", "https://www.googleapis.com"),
)


async def answer(turn: TurnContext) -> str:
    said = [message["content"] for message in await turn.history() if message["role"] == "user"]
    return f"You have told me {len(said)} things, and first: {said[0]}"


async def main() -> None:
    adapter = GoogleChatAdapter(settings, port=int(os.environ.get("PORT", "8080")))
    async with (
        SessionStore.open("state") as store,
        Gateway(store, agent=answer, adapters=[adapter]) as gateway,
    ):
        await gateway.run()


asyncio.run(main())
