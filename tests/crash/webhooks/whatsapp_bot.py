"""A bot on WhatsApp that repeats what it is told: `python -m tests.crash.webhooks.whatsapp_bot URL HOME`.

It prints the address at which it listens.
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import anyio

from gateway_sessions import Gateway, SessionStore, TurnContext
from gateway_sessions.integrations.whatsapp import WhatsApp, WhatsAppSettings
from gateway_sessions.testing.fakes.whatsapp import ACCESS_TOKEN, APP_SECRET, PHONE_NUMBER_ID
from tests.crash.telegram_bot import config


async def answer(turn: TurnContext) -> str:
    return f"A:{turn.text}"


async def tell_address(adapter: WhatsApp) -> None:
    while adapter.address is None:  # noqa: ASYNC110 -- an adapter has no event for that
        await anyio.sleep(0.01)
    print(adapter.url, flush=True)  # noqa: T201 -- the sweep reads it


async def main(url: str, home: str) -> None:
    settings = WhatsAppSettings(
        phone_number_id=PHONE_NUMBER_ID, access_token=ACCESS_TOKEN, app_secret=APP_SECRET, verify_token="v"
    )
    adapter = WhatsApp(replace(settings, api_url=url), port=0, report_wait=timedelta(seconds=1))
    async with (
        SessionStore.open(Path(home), config()) as store,
        Gateway(store, agent=answer, adapters=[adapter]) as gateway,
        asyncio.TaskGroup() as tasks,
    ):
        tasks.create_task(tell_address(adapter))
        await gateway.run()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
