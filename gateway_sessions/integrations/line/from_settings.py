"""The adapter for LINE that a configuration asks for."""

from __future__ import annotations

from gateway_sessions.integrations.configured import AdapterSettings
from gateway_sessions.integrations.line.adapter import LineAdapter
from gateway_sessions.integrations.line.platform import API_URL, DATA_URL, LineSettings


def line_from_settings(settings: AdapterSettings) -> LineAdapter:
    """Make the adapter of one account from `channel_secret` and `channel_access_token`, and maybe more."""
    secret = settings.required_text("channel_secret")
    token = settings.required_text("channel_access_token")
    use_reply_tokens = settings.flag("use_reply_tokens", default=True)
    api_url = settings.text("api_url", API_URL) or ""
    data_url = settings.text("data_url", DATA_URL) or ""
    groups = settings.group_rules()
    path = settings.text("path")
    unreadable = settings.folder("unreadable")
    settings.check()
    channel = LineSettings(
        channel_secret=secret,
        channel_access_token=token,
        use_reply_tokens=use_reply_tokens,
        api_url=api_url.rstrip("/"),
        data_url=data_url.rstrip("/"),
    )
    return LineAdapter(channel, name=settings.name, groups=groups, path=path, unreadable=unreadable)
