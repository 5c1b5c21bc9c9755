"""Methods of `SessionDB` that keep facts by name for the embedding program."""

from __future__ import annotations

from functools import partial

from gateway_sessions.core.storable_text import StorableEncoder, check_word
from gateway_sessions.storage.transaction_runner_protocol import TransactionRunner
from gateway_sessions.storage.transactions.upkeep import metadata


class MetadataMethods(TransactionRunner):
    """Facts by name, in the same database and the same backups as the sessions."""

    async def get_meta(self, key: str) -> str | None:
        """Return the text that was kept under that name; None if there is none."""
        return await self.read(partial(metadata.get_metadata, check_word("key", key)))

    async def set_meta(self, key: str, value: str | None) -> None:
        """Keep a text under that name, in place of an earlier one; None forgets it."""
        text = StorableEncoder().text("value", value)
        await self.write(partial(metadata.set_metadata, check_word("key", key), text))
