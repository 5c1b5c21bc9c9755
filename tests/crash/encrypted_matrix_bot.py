"""A bot in encrypted rooms: `python -m tests.crash.encrypted_matrix_bot URL USER TOKEN HOME`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from gateway_sessions import Gateway, SessionStore
from gateway_sessions.integrations.matrix_nio import DeviceStore, MatrixAdapter, logged_in_client
from tests.crash.telegram_bot import answer, config


async def main(url: str, user: str, token: str, home: str) -> None:
    keys = DeviceStore(Path(home, "keys"), "BOTDEVICE", "a passphrase")
    client = logged_in_client(url, user, token, store=keys)
    async with (
        SessionStore.open(Path(home), config()) as store,
        Gateway(store, agent=answer, adapters=[MatrixAdapter(client)]) as gateway,
    ):
        await gateway.run()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
