"""The adapter for LINE that a configuration asks for."""

from __future__ import annotations

from gateway_sessions.integrations.configured import AdapterSettings
from gateway_sessions.integrations.line.adapter import LineAdapter
from gateway_sessions.integrations.line.platform import LineSettings
from gateway_sessions.integrations.webhook_settings import values_of_record, webhook_place


def line_from_settings(settings: AdapterSettings) -> LineAdapter:
    """Make the adapter of one account from `channel_secret` and `channel_access_token`."""
    values, place = values_of_record(settings, LineSettings), webhook_place(settings)
    settings.check()
    return LineAdapter(
        LineSettings(**values),
        name=settings.name,
        path=place.path,
        port=place.port,
        unreadable=place.unreadable,
    )
