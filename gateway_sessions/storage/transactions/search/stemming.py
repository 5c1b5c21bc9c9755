"""The stemming language of a store, which all its nodes share and which changes with one node only."""

from __future__ import annotations

from typing import Final

from gateway_sessions.core.search.stems import NO_STEMS, Stemming, Stems
from gateway_sessions.errors import UnsupportedStorageError
from gateway_sessions.ports import Transaction
from gateway_sessions.storage.tables import meta
from gateway_sessions.storage.tables.nodes import LivingQuery

IN_THE_DATABASE: Final = "tokens_stemmed_by"
"""The rules by which the stems in the database's own index were made."""
BEING_FORGOTTEN: Final = "tokens_being_forgotten"
"""Set while the index in the database is being emptied."""
OF_THE_INDEX: Final = (IN_THE_DATABASE, BEING_FORGOTTEN)
"""Facts that are not copied when a store moves: its index is made again in the new place."""
UNKNOWN: Final = "finds words by the rules {!r}, which this version does not know; open it with a newer one"


def change_stemming(stems: Stems, census: LivingQuery) -> Transaction[bool]:
    """Change the stemming of the store, unless other nodes have it open; return whether it was changed.

    The other nodes would go on making the old stems.
    """
    if len((yield from census()).epochs) > 1:
        return False
    yield from meta.set_fact(meta.STEMMING, stems.made_by)
    return True


def database_stems() -> Transaction[str]:
    """Return the rules by which the stems in the database were made."""
    return str((yield from meta.get_fact(IN_THE_DATABASE)) or NO_STEMS.made_by)


def set_database_stems(stems: Stems) -> Transaction[None]:
    """Store that the database has no other stems any more."""
    if (yield from database_stems()) != stems.made_by:
        yield from meta.set_fact(IN_THE_DATABASE, stems.made_by)


def load_stems(rules: str, place: str) -> Stems:
    """Return the stems for these rules; `UnsupportedStorageError` if this version does not know them."""
    try:
        return Stems(Stemming(rules.partition(" ")[0]))
    except ValueError:
        raise UnsupportedStorageError(place, UNKNOWN.format(rules)) from None
