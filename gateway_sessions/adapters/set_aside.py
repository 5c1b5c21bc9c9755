"""`put_aside`: keeps an unreadable update in a file, so that it does not block all others."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
from pathlib import Path
from typing import Final

from gateway_sessions.adapters.protocol import Adapter

logger: Final = logging.getLogger(__name__)

NAME_DIGITS: Final = 16
"""The digits of the hash in a file's name: 64 bits tell updates apart, and a repeated update is kept once."""


async def put_aside(folder: str | Path, update: object, error: Exception, *, adapter: Adapter) -> Path:
    """Keep an update that could not be read, as it came, in a file of its own, and return that file.

    An error is logged. Call it where the mapping of an update fails; then acknowledge the update and go on.
    """
    problem = f"{type(error).__name__}: {error}"
    facts = {"platform": adapter.platform, "account": adapter.name, "problem": problem, "update": update}
    content = json.dumps(facts, ensure_ascii=True, default=repr, indent=1).encode()
    came = json.dumps(update, ensure_ascii=True, default=repr, sort_keys=True).encode()
    name = f"update-{hashlib.sha256(came).hexdigest()[:NAME_DIGITS]}.json"
    path = await asyncio.to_thread(_write_private_file, Path(folder), name, content)
    logger.error(
        "an update could not be read and was put aside",
        extra={"action": "update_put_aside", "platform": adapter.platform, "path": str(path)},
    )
    return path


def _write_private_file(folder: Path, name: str, content: bytes) -> Path:
    """Write a file that only its owner may read: an update holds what people said."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / name
    # Somebody may have planted a link there: it is not followed.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    try:
        descriptor = os.open(path, flags, 0o600)
    except FileExistsError:  # the platform has delivered the same update again
        return path
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())  # before the platform is told that the update was taken
    return path
