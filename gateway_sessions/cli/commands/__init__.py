"""All commands, by the names that people type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import typer

from gateway_sessions.cli.commands import (
    browse,
    changing,
    chat,
    configuration,
    demo,
    doctor,
    files,
    looking,
    privacy,
    queue,
    serve,
    sessiondb,
    sessions,
    top,
)

for _more in (browse.app, changing.app, files.app):
    sessions.app.add_typer(_more)

COMMANDS: Final[Mapping[str, Callable[..., None]]] = MappingProxyType(
    {
        "demo": demo.demo,
        "chat": chat.chat,
        "serve": serve.serve,
        "insights": looking.insights,
        "explain": looking.explain,
        "simulate": looking.simulate,
        "doctor": doctor.doctor,
        "top": top.top,
    }
)
GROUPS: Final[Mapping[str, typer.Typer]] = MappingProxyType(
    {
        "sessions": sessions.app,
        "queue": queue.app,
        "sessiondb": sessiondb.app,
        "import": files.importing,
        "privacy": privacy.app,
        "config": configuration.app,
    }
)
