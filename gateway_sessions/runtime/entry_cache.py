"""The entries that were used last, so that most messages need not read theirs from the database.

A copy in here may be out of date: whoever writes by it lets the database compare its version.
"""

from __future__ import annotations

from collections import OrderedDict

from gateway_sessions.core.session import SessionEntry


class EntryCache:
    """As many entries as there is room for, by session key; the one kept longest ago makes room."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._entries: OrderedDict[str, SessionEntry] = OrderedDict()

    def get(self, session_key: str) -> SessionEntry | None:
        """The lane's entry as it was when it was kept."""
        return self._entries.get(session_key)

    def keep(self, entry: SessionEntry) -> None:
        """Remember this as the lane's entry, longer than any other."""
        self._entries[entry.session_key] = entry
        self._entries.move_to_end(entry.session_key)
        if len(self._entries) > self._room:
            self._entries.popitem(last=False)

    def forget_all(self) -> None:
        """Remember nothing."""
        self._entries.clear()
