"""A Matrix bot made with matrix-nio. Set MATRIX_HOMESERVER, MATRIX_USER, MATRIX_DEVICE and MATRIX_TOKEN."""

import asyncio
import os

import nio

from gateway_sessions import Gateway, SessionStore, TurnContext
from gateway_sessions.integrations.matrix_nio import MatrixAdapter

user, device, token = (os.environ[f"MATRIX_{name}"] for name in ("USER", "DEVICE", "TOKEN"))


async def answer(turn: TurnContext) -> str:
    said = [message["content"] for message in await turn.history() if message["role"] == "user"]
    return f"You have told me {len(said)} things, and first: {said[0]}"


async def main() -> None:
    client = nio.AsyncClient(os.environ["MATRIX_HOMESERVER"])
    client.restore_login(user, device, token)

    async def about(room: nio.MatrixRoom, event: nio.RoomMessageText) -> None:
        if event.body == "!about":
            content = {"msgtype": "m.notice", "body": "I remember what you tell me."}
            await client.room_send(room.room_id, "m.room.message", content, tx_id=event.event_id[1:])

    client.add_event_callback(about, nio.RoomMessageText)
    adapter = MatrixAdapter(
        client, taken=lambda event: event["content"].get("body") == "!about", join_invites=True
    )
    async with (
        SessionStore.open("state") as store,
        Gateway(store, agent=answer, adapters=[adapter]) as gateway,
    ):
        await gateway.run()
    await client.close()


asyncio.run(main())
