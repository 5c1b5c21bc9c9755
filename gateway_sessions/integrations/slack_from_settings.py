"""The adapter for Slack that a configuration asks for: by Socket Mode with Bolt, or by HTTP without it."""

from __future__ import annotations

from typing import Any, Final

from gateway_sessions.adapters.protocol import Adapter
from gateway_sessions.integrations.configured import AdapterSettings
from gateway_sessions.integrations.slack.reading import ChannelTalk, ThreadSessions
from gateway_sessions.integrations.slack.sending import API_URL

USUAL_PORT: Final = 3000


def slack_from_settings(settings: AdapterSettings) -> Adapter:
    """Make the adapter of one app from `token`, and `app_token` or `signing_secret` with `port`."""
    token = settings.required_text("token")
    app_token, secret = settings.text("app_token"), settings.text("signing_secret")
    port = settings.number("port", USUAL_PORT, most=65535)
    host = settings.text("host", "127.0.0.1") or "127.0.0.1"
    api_url = settings.text("api_url", API_URL) or API_URL
    options: dict[str, Any] = {
        "name": settings.name,
        "channels": settings.choice("channels", ChannelTalk, ChannelTalk.ADDRESSED),
        "threads": settings.choice("threads", ThreadSessions, ThreadSessions.CHANNELS),
        "command": settings.text("command", "") or "",
        "unfurl": settings.flag("unfurl"),
        "unreadable": settings.folder("unreadable"),
    }
    if (app_token is None) == (secret is None):
        settings.refuse("app_token", "is needed for Socket Mode, or in its place signing_secret for HTTP")
    settings.check()
    if app_token is not None:
        return _by_socket_mode(token, app_token, api_url, options)
    return _by_http(token, secret or "", (host, port or 0), {**options, "api_url": api_url})


def _by_socket_mode(token: str, app_token: str, api_url: str, options: dict[str, Any]) -> Adapter:
    # Only who uses Socket Mode needs Bolt; the adapter's own error says how to install it.
    from gateway_sessions.integrations.slack_bolt import SlackBoltAdapter, app_with  # noqa: PLC0415

    return SlackBoltAdapter(app_with(token, api_url), app_token=app_token, **options)


def _by_http(token: str, secret: str, address: tuple[str, int], options: dict[str, Any]) -> Adapter:
    from gateway_sessions.adapters.webhooks import WebhookPort  # noqa: PLC0415 -- only who uses HTTP
    from gateway_sessions.integrations.slack.adapter import SlackAdapter  # noqa: PLC0415 -- the same

    host, port = address
    return SlackAdapter(token, secret, port=WebhookPort(port, host), **options)
