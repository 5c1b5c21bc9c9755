"""The adapter for Twilio that a configuration asks for."""

from __future__ import annotations

from gateway_sessions.integrations.configured import AdapterSettings
from gateway_sessions.integrations.twilio.adapter import TwilioAdapter
from gateway_sessions.integrations.twilio.platform import TwilioSettings
from gateway_sessions.integrations.webhook_settings import values_of_record, webhook_place


def twilio_from_settings(settings: AdapterSettings) -> TwilioAdapter:
    """Make the adapter of one sender from `account_sid`, `auth_token`, `sender` and `public_url`."""
    values, place = values_of_record(settings, TwilioSettings), webhook_place(settings)
    settings.check()
    return TwilioAdapter(
        TwilioSettings(**values),
        name=settings.name,
        path=place.path,
        port=place.port,
        unreadable=place.unreadable,
    )
