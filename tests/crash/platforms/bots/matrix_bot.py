"""A Matrix bot that repeats what it is told, with `encrypted` in encrypted rooms as well."""

from __future__ import annotations

from pathlib import Path

from gateway_sessions.integrations.matrix_nio import DeviceStore, MatrixAdapter, logged_in_client
from tests.crash.platforms.bots.repeating_bot import repeat_all

DEVICE = "BOTDEVICE"


async def main(home: str, url: str, user: str, token: str, encrypted: str = "") -> None:
    keys = DeviceStore(Path(home, "keys"), DEVICE, "a passphrase") if encrypted else None
    client = logged_in_client(url, user, token, device=DEVICE, store=keys)
    await repeat_all(home, MatrixAdapter(client))
