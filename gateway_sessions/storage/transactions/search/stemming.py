"""The stemming language of a store, which all its nodes share and which changes with one node only."""

from __future__ import annotations

from typing import Final

from gateway_sessions.core.search.stems import NO_STEMS, Stemming, Stems
from gateway_sessions.errors import UnsupportedStorageError
from gateway_sessions.ports import Transaction
from gateway_sessions.storage.tables import meta
from gateway_sessions.storage.tables.nodes import Census

IN_THE_DATABASE: Final = "tokens_stemmed_by"
"""The rules by which the stems were made that an index in the database has."""
BEING_FORGOTTEN: Final = "tokens_being_forgotten"
"""Set while an index in the database forgets what it knew."""
OF_THE_INDEX: Final = (IN_THE_DATABASE, BEING_FORGOTTEN)
"""These facts do not move: where a store moves to, its index is made anew."""
UNKNOWN: Final = "finds words by the rules {!r}, which this version does not know; open it with a newer one"


def want(stems: Stems, census: Census) -> Transaction[bool]:
    """Let these stems be made from now on, unless others have the store open; whether they are."""
    if len((yield from census()).epochs) > 1:
        return False
    yield from meta.remember(meta.STEMMING, stems.made_by)
    return True


def in_the_database() -> Transaction[str]:
    """The rules by which the stems were made that are in the database."""
    return str((yield from meta.get(IN_THE_DATABASE)) or NO_STEMS.made_by)


def only_these_are_in_the_database(stems: Stems) -> Transaction[None]:
    """No other stems are left."""
    if (yield from in_the_database()) != stems.made_by:
        yield from meta.remember(IN_THE_DATABASE, stems.made_by)


def stems_by(rules: str, place: str) -> Stems:
    """The stems that are made by these rules."""
    try:
        return Stems(Stemming(rules.partition(" ")[0]))
    except ValueError:
        raise UnsupportedStorageError(place, UNKNOWN.format(rules)) from None
