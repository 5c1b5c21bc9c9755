"""The adapter for WhatsApp that a configuration asks for."""

from __future__ import annotations

from gateway_sessions.integrations.configured import AdapterSettings
from gateway_sessions.integrations.whatsapp.adapter import WhatsApp
from gateway_sessions.integrations.whatsapp.rules import API_VERSION, GRAPH_URL, WhatsAppSettings


def whatsapp_from_settings(settings: AdapterSettings) -> WhatsApp:
    """Make the adapter of one number from `phone_number_id`, `access_token`, `app_secret` …."""
    phone_number_id = settings.required_text("phone_number_id")
    access_token = settings.required_text("access_token")
    app_secret = settings.required_text("app_secret")
    verify_token = settings.required_text("verify_token")
    api_url = settings.text("api_url", GRAPH_URL) or ""
    api_version = settings.text("api_version", API_VERSION) or ""
    path = settings.text("path")
    unreadable = settings.folder("unreadable")
    if phone_number_id and not phone_number_id.isdigit():  # not told with its value: tokens get mixed up
        settings.refuse("phone_number_id", "must be the id of the number, in digits")
    settings.check()
    number = WhatsAppSettings(
        phone_number_id=phone_number_id,
        access_token=access_token,
        app_secret=app_secret,
        verify_token=verify_token,
        api_url=api_url,
        api_version=api_version,
    )
    return WhatsApp(number, name=settings.name, path=path, unreadable=unreadable)
