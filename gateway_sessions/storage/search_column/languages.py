"""How databases that keep the search index themselves are told of messages, and asked for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gateway_sessions.core.search_boolean import boolean_of, words_of
from gateway_sessions.core.search_certain import Certain
from gateway_sessions.core.search_filter import SearchFilter
from gateway_sessions.core.search_lexemes import Asked, Lexemes, Searchable, lexemes_of, tsvector_of
from gateway_sessions.core.search_stems import NO_STEMS, Stems
from gateway_sessions.core.search_tsquery import tsquery_of


@dataclass(frozen=True, slots=True)
class Language:
    """What a database understands."""

    spelled: Callable[[Lexemes], str]
    query: Callable[[Certain, SearchFilter], Asked | None]

    names_session: bool
    """Whether the database has to be told of which session a message is."""
    keeps_moments: bool
    """Whether who looks at one moment finds what the index knew then; else what it was told last."""
    stems: Stems = NO_STEMS
    """The stems of words that are written for a message."""

    def values(self, message: Searchable) -> tuple[str, ...]:
        """What is written for a message: tokens, to which the database adds labels of the session."""
        tokens = self.spelled(lexemes_of(message, self.stems))
        return (tokens, message.session_id) if self.names_session else (tokens,)


TSVECTOR: Final = Language(tsvector_of, tsquery_of, names_session=True, keeps_moments=True)
FULLTEXT: Final = Language(words_of, boolean_of, names_session=False, keeps_moments=False)
