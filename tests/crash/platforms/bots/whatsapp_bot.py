"""A bot on WhatsApp that repeats what it is told; `main` has its arguments."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from gateway_sessions.integrations.whatsapp import WhatsApp, WhatsAppSettings
from gateway_sessions.testing.fakes.whatsapp import ACCESS_TOKEN, APP_SECRET, PHONE_NUMBER_ID
from tests.crash.platforms.bots.repeating_bot import repeat_all


async def main(home: str, port: str, url: str) -> None:
    settings = WhatsAppSettings(
        phone_number_id=PHONE_NUMBER_ID, access_token=ACCESS_TOKEN, app_secret=APP_SECRET, verify_token="v"
    )
    settings = replace(settings, api_url=url)
    await repeat_all(home, WhatsApp(settings, port=int(port), report_wait=timedelta(seconds=1)))
