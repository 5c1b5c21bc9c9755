"""The commands: each module declares those of a group, and does their work.

What is heavy (storage, runtime, rich, asyncio) is imported in the body of a command that needs it, not at the
top: help, completion and mistakes load all of these modules, and wait for nothing.

- ``sessions``: `sessions list`, `show`, `search`, `stats` and `browse`.
- ``session_changes``: `sessions rename`, `delete`, `prune` and `undo-reset`.
- ``transfer``: `sessions export`, `sessions import` and `import hermes`.
- ``queue``: `queue list`, `cancel` and `requeue`.
- ``sessiondb``: `sessiondb migrate`, `upgrade`, `check`, `repair` and `accounts`.
- ``privacy``: `privacy export` and `privacy erase`.
- ``config``: `config validate` and `config explain`.
- ``insights``: `insights`, `explain` and `simulate`.
- ``doctor``: `doctor`.
- ``top``: `top`.
- ``chat``: `chat`.
- ``serve``: `serve`.
- ``demo``: `demo`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import typer

from gateway_sessions.cli.commands import (
    chat,
    config,
    demo,
    doctor,
    insights,
    privacy,
    queue,
    serve,
    session_changes,
    sessiondb,
    sessions,
    top,
    transfer,
)

ALONE: Final = (demo.app, chat.app, serve.app, insights.app, doctor.app, top.app)
"""The commands that belong to no group, in the order in which help lists them."""
GROUPS: Final[Mapping[str, typer.Typer]] = MappingProxyType(
    {
        "sessions": sessions.app,
        "queue": queue.app,
        "sessiondb": sessiondb.app,
        "import": transfer.app,
        "privacy": privacy.app,
        "config": config.app,
    }
)
"""The others, by the names that people type."""

# Without names of their own, their commands are those of the group.
sessions.app.add_typer(session_changes.app)
sessions.app.add_typer(transfer.files_app)
