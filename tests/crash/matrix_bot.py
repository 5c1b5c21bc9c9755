"""A Matrix bot that repeats what it is told: `python -m tests.crash.matrix_bot URL USER TOKEN HOME`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import nio

from gateway_sessions import Gateway, SessionStore
from gateway_sessions.integrations.matrix_nio import MatrixAdapter
from tests.crash.telegram_bot import answer, config


async def main(url: str, user: str, token: str, home: str) -> None:
    client = nio.AsyncClient(url)
    client.restore_login(user, "BOTDEVICE", token)
    async with (
        SessionStore.open(Path(home), config()) as store,
        Gateway(store, agent=answer, adapters=[MatrixAdapter(client)]) as gateway,
    ):
        await gateway.run()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
