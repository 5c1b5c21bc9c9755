"""Opens the peer's store on lanes that we wrote, at a moment that we chose."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

from gateway.config import (  # type: ignore[import-not-found]  # only in the peer's environment
    GatewayConfig,
    Platform,
    SessionResetPolicy,
)
from gateway.session import (  # type: ignore[import-not-found]  # only in the peer's environment
    SessionSource,
    SessionStore,
    build_session_key,
)

Fields = dict[str, Any]


def direct_chat(chat_id: str, **more: Any) -> Any:
    """The source of a direct chat; `more` are fields of the peer's record."""
    fields = {"platform": Platform("telegram"), "chat_id": chat_id, "user_id": "u1", "user_name": "Alice"}
    return SessionSource(**fields | more)


def stored_entry(chat_id: str, updated_at: datetime, **more: Any) -> Fields:
    """An entry as a file would hold it: what is left out takes the peer's defaults."""
    source = direct_chat(chat_id)
    return {
        "session_key": build_session_key(source),
        "session_id": f"old_{chat_id}",
        "created_at": updated_at.isoformat(),
        "updated_at": updated_at.isoformat(),
        "platform": "telegram",
        "chat_type": "dm",
        "origin": source.to_dict(),
    } | more


def open_store(folder: Path, entries: Iterable[Fields], policy: Fields, *, active: bool = False) -> Any:
    """A store of the peer whose file holds these entries."""
    folder.mkdir()
    lanes = {entry["session_key"]: entry for entry in entries}
    (folder / "sessions.json").write_text(json.dumps(lanes))
    return reopened_store(folder, policy, active=active)


def reopened_store(folder: Path, policy: Fields, *, active: bool = False) -> Any:
    """A store of the peer over what the folder holds."""
    config = GatewayConfig(sessions_dir=folder, default_reset_policy=SessionResetPolicy(**policy))
    return SessionStore(folder, config, has_active_processes_fn=lambda _key: active)
