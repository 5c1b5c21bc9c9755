"""The adapter for Microsoft Teams that a configuration asks for."""

from __future__ import annotations

from gateway_sessions.integrations.configured import AdapterSettings
from gateway_sessions.integrations.teams.adapter import TeamsAdapter
from gateway_sessions.integrations.teams.settings import TeamsSettings
from gateway_sessions.integrations.webhook_settings import values_of_record, webhook_place


def teams_from_settings(settings: AdapterSettings) -> TeamsAdapter:
    """Make the adapter of one bot from `app_id`, `app_secret` and maybe `tenant_id`."""
    values, place = values_of_record(settings, TeamsSettings), webhook_place(settings)
    settings.check()
    return TeamsAdapter(
        TeamsSettings(**values),
        name=settings.name,
        path=place.path,
        port=place.port,
        unreadable=place.unreadable,
    )
