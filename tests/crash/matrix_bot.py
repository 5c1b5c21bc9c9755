"""A Matrix bot that repeats what it is told, with `encrypted` in encrypted rooms as well.

`python -m tests.crash.matrix_bot URL USER TOKEN HOME [encrypted]`
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from gateway_sessions import Gateway, SessionStore
from gateway_sessions.integrations.matrix_nio import DeviceStore, MatrixAdapter, logged_in_client
from tests.crash.telegram_bot import answer, config

DEVICE = "BOTDEVICE"


async def main(url: str, user: str, token: str, home: str, encrypted: str = "") -> None:
    keys = DeviceStore(Path(home, "keys"), DEVICE, "a passphrase") if encrypted else None
    client = logged_in_client(url, user, token, device=DEVICE, store=keys)
    async with (
        SessionStore.open(Path(home), config()) as store,
        Gateway(store, agent=answer, adapters=[MatrixAdapter(client)]) as gateway,
    ):
        await gateway.run()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
