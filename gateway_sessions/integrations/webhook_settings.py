"""Settings of platforms that call a webhook: the record of an account, and where its webhook listens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, Final, NamedTuple, get_type_hints

from gateway_sessions.adapters.webhooks.server import WebhookPort
from gateway_sessions.integrations.configured import AdapterSettings

LAST_PORT: Final = 65_535
"""The largest port; 0 is any free one."""


class WebhookPlace(NamedTuple):
    """Where a webhook listens, and where requests are kept that cannot be read."""

    path: str | None
    """The path; None: the usual one of the platform."""
    port: WebhookPort
    unreadable: Path | None


def webhook_place(settings: AdapterSettings) -> WebhookPlace:
    """Return what `host`, `port`, `path` and `unreadable` say. A proxy with TLS stands in front."""
    usual = WebhookPort()
    port = settings.number("port", usual.port, most=LAST_PORT)
    host = settings.text("host", usual.host)
    return WebhookPlace(
        path=settings.text("path"),
        port=WebhookPort(port=usual.port if port is None else port, host=host or usual.host),
        unreadable=settings.folder("unreadable"),
    )


def values_of_record(settings: AdapterSettings, record: type[Any]) -> Mapping[str, Any]:
    """Return the values of a record's texts and flags, which are keys of the same names.

    A text without a default is needed. Fields of other types keep their defaults: programs set those.
    """
    hints, found = get_type_hints(record), dict[str, Any]()
    for field in fields(record):
        allowed = getattr(hints[field.name], "__args__", (hints[field.name],))
        if bool in allowed:
            found[field.name] = settings.flag(field.name, default=bool(field.default))
        elif str in allowed:
            needed = field.default is MISSING and field.default_factory is MISSING
            text = settings.required_text(field.name) if needed else settings.text(field.name)
            found |= {} if text is None else {field.name: text}
    return found
