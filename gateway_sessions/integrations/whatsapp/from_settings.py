"""The adapter for WhatsApp that a configuration asks for, on a port of its own."""

from __future__ import annotations

from gateway_sessions.adapters.webhooks.server import LOOPBACK, WebhookPort
from gateway_sessions.integrations.configured import AdapterSettings
from gateway_sessions.integrations.whatsapp.adapter import WhatsApp
from gateway_sessions.integrations.whatsapp.rules import API_VERSION, GRAPH_URL, WhatsAppSettings

DEFAULT_PORT = 8080
MOST_PORT = 65535


def whatsapp_from_settings(settings: AdapterSettings) -> WhatsApp:
    """Make the adapter of one number from its four values, and maybe `port`, `host`, `path` …."""
    needed = {
        name: settings.required_text(name)
        for name in ("phone_number_id", "access_token", "app_secret", "verify_token")
    }
    api_url = settings.text("api_url", GRAPH_URL) or GRAPH_URL
    api_version = settings.text("api_version", API_VERSION) or API_VERSION
    port = settings.number("port", DEFAULT_PORT, most=MOST_PORT)
    host = settings.text("host", LOOPBACK) or LOOPBACK
    path, unreadable = settings.text("path"), settings.folder("unreadable")
    settings.check()
    number = WhatsAppSettings(**needed, api_url=api_url, api_version=api_version)
    where = WebhookPort(DEFAULT_PORT if port is None else port, host)
    return WhatsApp(number, name=settings.name, path=path, port=where, unreadable=unreadable)
