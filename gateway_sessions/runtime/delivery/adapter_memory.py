"""`StoredMemory`: the durable memory of an adapter, in the store beside the sessions."""

from __future__ import annotations

from typing import Protocol

from gateway_sessions.adapters.protocol import Adapter
from gateway_sessions.storage.transactions.upkeep.adapter_notes import ADAPTERS


class FactDatabase(Protocol):
    """Where facts are kept by name."""

    async def get_meta(self, key: str) -> str | None:
        """Return the text that was kept under that name."""
        ...

    async def set_meta(self, key: str, value: str | None) -> None:
        """Keep a text under that name."""
        ...


class StoredMemory:
    """Keeps the texts of one adapter by name."""

    def __init__(self, db: FactDatabase, adapter: Adapter) -> None:
        self._db = db
        self._account = f"{ADAPTERS}:{adapter.platform}:{adapter.name}"

    async def get(self, name: str) -> str | None:
        """Return the text that was kept under that name; None if there is none."""
        return await self._db.get_meta(f"{self._account}:{name}")

    async def put(self, name: str, value: str | None) -> None:
        """Keep a text, durably; None forgets it."""
        await self._db.set_meta(f"{self._account}:{name}", value)
