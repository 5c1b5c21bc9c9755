"""The adapter for Google Chat that a configuration asks for."""

from __future__ import annotations

from typing import Final

from gateway_sessions.errors import InvalidInputError
from gateway_sessions.integrations.configured import AdapterSettings
from gateway_sessions.integrations.google_chat.adapter import GoogleChatAdapter
from gateway_sessions.integrations.google_chat.platform import GoogleChatSettings

API_URL: Final = "https://chat.googleapis.com"
KEYS_URL: Final = "https://www.googleapis.com"


def google_chat_from_settings(settings: AdapterSettings) -> GoogleChatAdapter:
    """Make the adapter of one app from `audience` and `key_file`, the key of a service account."""
    audience, file = settings.required_text("audience"), settings.folder("key_file")
    settings.required_text("key_file")
    api_url = settings.text("api_url", API_URL) or API_URL
    keys_url = settings.text("keys_url", KEYS_URL) or KEYS_URL
    commands = settings.texts("commands")
    path, unreadable = settings.text("path"), settings.folder("unreadable")
    if audience and not audience.isdigit() and not audience.startswith(("https://", "http://")):
        settings.refuse("audience", "must be the address of the endpoint, or the number of the project")
    settings.check()
    assert file is not None  # noqa: S101 -- without one, the check has raised
    try:
        key = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        problem = f"key_file cannot be read: {getattr(error, 'strerror', None) or 'it is no text'}"
        raise InvalidInputError(problem) from error
    app = GoogleChatSettings.from_key(
        key, audience=audience, api_url=api_url, keys_url=keys_url, commands=commands
    )
    return GoogleChatAdapter(app, name=settings.name, path=path, unreadable=unreadable)
