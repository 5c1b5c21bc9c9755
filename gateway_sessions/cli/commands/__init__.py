"""The commands: each module declares those of a group, and does their work.

What is heavy (storage, runtime, rich, asyncio) is imported in the body of a command that needs it, not at the
top: help, completion and mistakes load all of these modules, and wait for nothing.

- ``chat``: `chat`: talk to an agent here, and go on with any conversation.
- ``config``: `config validate` and `config explain`: is the configuration right, and where does each value
  come from.
- ``demo``: `demo`: all that the package is for, in a few seconds.
- ``doctor``: `doctor`: how the store is, and what to do about it.
- ``insights``: `insights`, `explain` and `simulate`: what happened, why, and what would have happened.
- ``privacy``: `privacy export` and `privacy erase`: what is known of a person, and how they are forgotten.
- ``queue``: `queue list`, `cancel` and `requeue`: what waits, and what was given up.
- ``serve``: `serve`: run a gateway as its configuration says, until it is told to end.
- ``session_changes``: `sessions rename`, `delete`, `prune` and `undo-reset`: change sessions, remove them
  and bring them back.
- ``sessiondb``: `sessiondb`: check, repair, move and upgrade the database, and give lanes to named
  accounts.
- ``sessions``: `sessions list`, `show`, `search`, `stats` and `browse`: look at sessions.
- ``top``: `top`: what a store does just now.
- ``transfer``: `sessions export`, `sessions import` and `import hermes`: sessions to files and from
  elsewhere.
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

UNGROUPED: Final = (demo.app, chat.app, serve.app, insights.app, doctor.app, top.app)
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
