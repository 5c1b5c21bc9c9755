"""A bot on a fake Teams: an adapter on a port of its own, as a program makes it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from gateway_sessions.integrations.teams import TeamsAdapter, TeamsCloud, TeamsSettings
from gateway_sessions.testing.contract.adapter import Inbox
from gateway_sessions.testing.fakes.teams import FakeTeams


def settings_of(fake: FakeTeams, **changes: Any) -> TeamsSettings:
    return TeamsSettings(
        **{"app_id": fake.app_id, "app_secret": fake.app_secret, "cloud": TeamsCloud.at(fake.url), **changes}
    )


def adapter_of(fake: FakeTeams, *, settings: TeamsSettings | None = None, **options: Any) -> TeamsAdapter:
    return TeamsAdapter(settings or settings_of(fake), port=0, **options)


@asynccontextmanager
async def connected(fake: FakeTeams, inbox: Inbox, **options: Any) -> AsyncIterator[TeamsAdapter]:
    """Connect an adapter to which the fake delivers."""
    adapter = adapter_of(fake, **options)
    async with adapter.connect(inbox):
        fake.webhook_url = adapter.url
        yield adapter
