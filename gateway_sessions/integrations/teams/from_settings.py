"""The adapter for Microsoft Teams that a configuration asks for."""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import Final

from gateway_sessions.integrations.configured import AdapterSettings
from gateway_sessions.integrations.teams.adapter import TeamsAdapter
from gateway_sessions.integrations.teams.settings import (
    PUBLIC_CLOUD,
    US_GOVERNMENT,
    TeamsCloud,
    TeamsSettings,
)


class TeamsCloudName(StrEnum):
    """The clouds of Microsoft that a configuration can name."""

    PUBLIC = "public"
    US_GOVERNMENT = "us-government"


CLOUDS: Final = MappingProxyType[TeamsCloudName, TeamsCloud](
    {TeamsCloudName.PUBLIC: PUBLIC_CLOUD, TeamsCloudName.US_GOVERNMENT: US_GOVERNMENT}
)


def teams_from_settings(settings: AdapterSettings) -> TeamsAdapter:
    """Make the adapter of one bot from `app_id`, `app_secret` and `tenant_id`, and maybe more."""
    app_id = settings.required_text("app_id")
    app_secret = settings.required_text("app_secret")
    tenant_id = settings.required_text("tenant_id")
    cloud = CLOUDS[settings.choice("cloud", TeamsCloudName, TeamsCloudName.PUBLIC)]
    api_url = settings.text("api_url")
    groups = settings.group_rules()
    path = settings.text("path")
    unreadable = settings.folder("unreadable")
    settings.check()
    registration = TeamsSettings(
        app_id=app_id,
        app_secret=app_secret,
        tenant_id=tenant_id,
        cloud=TeamsCloud.at(api_url) if api_url else cloud,
    )
    return TeamsAdapter(registration, name=settings.name, groups=groups, path=path, unreadable=unreadable)
