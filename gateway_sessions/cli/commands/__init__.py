"""The commands: each module declares the commands of one group, and does their work.

Heavy modules (storage, runtime, rich, asyncio) are imported in the body of a command that needs them, not at
the top: help, completion and messages about mistakes load all of these modules, and must be fast.


- ``chat``: `chat`: talk to an agent here, and go on with any conversation.
- ``config``: `config validate` and `config explain`: check the configuration, and tell where each value
  comes from.
- ``demo``: `demo`: a tour of the package in a few seconds.
- ``doctor``: `doctor`: the health of a store, and advice for each problem.
- ``fake``: `fake`: a platform on this machine, to try a bot without an account and without the network.
- ``init``: `init`: write a small configuration to begin with.
- ``insights``: `insights`, `explain` and `simulate`: what happened, why, and what other policies would have
  done.
- ``privacy``: `privacy export` and `privacy erase`: export and erase the data of a person.
- ``queue``: `queue list`, `cancel` and `requeue`: waiting messages, owed replies and dead letters.
- ``serve``: `serve`: run a gateway from its configuration until a signal ends it.
- ``session_changes``: `sessions rename`, `delete`, `prune` and `undo-reset`: change, remove and restore
  sessions.
- ``sessiondb``: `sessiondb`: check, repair, move and upgrade the database, and give lanes to named
  accounts.
- ``sessions``: `sessions list`, `show`, `search`, `stats` and `browse`: look at sessions.
- ``top``: `top`: what a store is doing now.
- ``transfer``: `sessions export`, `sessions import` and `import hermes`: move sessions to files and from
  files.
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
    fake,
    init,
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

UNGROUPED: Final = (
    demo.app,
    init.app,
    chat.app,
    serve.app,
    fake.app,
    insights.app,
    doctor.app,
    top.app,
)
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
"""The groups of commands, by the names that people type."""

# Without names of their own, their commands are those of the group.
sessions.app.add_typer(session_changes.app)
sessions.app.add_typer(transfer.files_app)
