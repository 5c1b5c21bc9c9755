"""The stems of an open store: chosen when it is opened, and followed by its engine and search index."""

from __future__ import annotations

import logging
from functools import partial
from typing import Final

from gateway_sessions.core.search.stems import NO_STEMS, Stemming, Stems, stemming_of
from gateway_sessions.storage.engines.protocol import Engine
from gateway_sessions.storage.files.threads import in_thread
from gateway_sessions.storage.ownership import Ownership
from gateway_sessions.storage.search.protocol import SearchIndex
from gateway_sessions.storage.tables import meta
from gateway_sessions.storage.transactions.search.stemming import change_stemming, load_stems

logger: Final = logging.getLogger(__name__)


class StoreStems:
    """Keeps the stems by which words are found in all their forms, for an owner of the store."""

    def __init__(self, engine: Engine, index: SearchIndex, asked: Stemming | str | None) -> None:
        """*asked* is the language to change to; None keeps the present one."""
        self._engine = engine
        self._index = index
        self._asked = None if asked is None else stemming_of(asked)
        self._stems = NO_STEMS

    async def read_current(self) -> Stems:
        """Return the stems of the store."""
        return self._stems

    def use_stems_of(self, opening: meta.StoreOpening) -> None:
        """Use the stems that a store was found to have."""
        self._use(load_stems(opening.stemming, self._engine.place))

    async def choose_stems(self, ownership: Ownership) -> None:
        """Change the stems as asked for, unless other nodes have the store open: then use theirs."""
        stems = load_stems(ownership.opening.stemming, self._engine.place)
        asked = stems if self._asked is None else Stems(self._asked)
        if asked.made_by != ownership.opening.stemming:
            change = partial(change_stemming, asked, ownership.living_nodes)
            if await ownership.retry.run_with_retries(partial(self._engine.write, change)):
                stems = asked
            else:
                facts = {
                    "action": "stemming_kept",
                    "stemming": str(stems.stemming),
                    "asked": str(asked.stemming),
                }
                logger.warning("other nodes have the store open, so its search.stemming stays", extra=facts)
        await self._load_and_use(stems)

    async def _load_and_use(self, stems: Stems) -> None:
        await in_thread(
            partial(stems.stem_tokens_of_word, "")
        )  # in a thread, because the import of its rules takes long
        self._use(stems)

    def _use(self, stems: Stems) -> None:
        if stems.made_by != self._stems.made_by:
            self._stems = stems
            self._engine.stem_with(stems)
            self._index.stem_with(stems)


class ReadersStems(StoreStems):
    """Reads the stems before each search, because the owner of the store may have changed them."""

    async def read_current(self) -> Stems:
        """Return the stems that the store has now."""
        rules = await self._engine.read(meta.stored_stemming)
        if rules != self._stems.made_by:
            await self._load_and_use(load_stems(rules, self._engine.place))
        return self._stems
