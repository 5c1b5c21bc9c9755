"""The adapter for Mattermost that a configuration asks for."""

from __future__ import annotations

from gateway_sessions.errors import InvalidInputError
from gateway_sessions.integrations.configured import AdapterSettings
from gateway_sessions.integrations.mattermost.adapter import MattermostAdapter


def mattermost_from_settings(settings: AdapterSettings) -> MattermostAdapter:
    """Make the adapter of one bot from `url` and `token`, and maybe `groups`, `threads` and `unreadable`."""
    url, token = settings.required_text("url"), settings.required_text("token")
    groups = settings.group_rules()
    threads, unreadable = settings.flag("threads", default=True), settings.folder("unreadable")
    settings.check()
    try:
        return MattermostAdapter(
            url,
            token,
            name=settings.name,
            groups=groups,
            threads=threads,
            unreadable=unreadable,
        )
    except InvalidInputError as error:
        settings.refuse("token" if "token" in str(error) else "url", str(error))
        settings.check()
        raise
