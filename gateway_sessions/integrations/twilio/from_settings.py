"""The adapter for Twilio that a configuration asks for."""

from __future__ import annotations

from gateway_sessions.integrations.configured import AdapterSettings
from gateway_sessions.integrations.twilio.adapter import TwilioAdapter
from gateway_sessions.integrations.twilio.platform import TwilioSettings

API_URL = "https://api.twilio.com"


def twilio_from_settings(settings: AdapterSettings) -> TwilioAdapter:
    """Make the adapter of one sender from `account_sid`, `auth_token`, `sender` and `public_url`."""
    account_sid = settings.required_text("account_sid")
    auth_token = settings.required_text("auth_token")
    sender = settings.required_text("sender")
    public_url = settings.required_text("public_url")
    media = settings.flag("media", default=True)
    api_url = settings.text("api_url", API_URL) or API_URL
    path = settings.text("path")
    unreadable = settings.folder("unreadable")
    if account_sid and not account_sid.isalnum():  # not told with its value: tokens get mixed up
        settings.refuse("account_sid", "must be the id of the account, which begins with AC")
    if public_url and not public_url.startswith(("https://", "http://")):
        settings.refuse("public_url", "must be the address of the webhook as Twilio has it")
    settings.check()
    account = TwilioSettings(
        account_sid=account_sid,
        auth_token=auth_token,
        sender=sender,
        public_url=public_url,
        media=media,
        api_url=api_url,
    )
    return TwilioAdapter(account, name=settings.name, path=path, unreadable=unreadable)
