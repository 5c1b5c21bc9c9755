"""The search column of server databases: the tokens that are written with each message, and queries.

How databases that keep the search index themselves are told of messages, and asked for them.

Messages on their way into a database that keeps the search index: with what they are found by.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from gateway_sessions.core.search.boolean_query import boolean_of, words_of
from gateway_sessions.core.search.criteria import Certain
from gateway_sessions.core.search.documents import Asked, Lexemes, Searchable, lexemes_of, tsvector_of
from gateway_sessions.core.search.filters import SearchFilter
from gateway_sessions.core.search.stems import NO_STEMS, Stems
from gateway_sessions.core.search.tsquery import tsquery_of
from gateway_sessions.ports import Statement
from gateway_sessions.storage.files.threads import in_thread


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


QUICKLY_READ: Final = 4_000
"""Characters. What is found by more of them is made in a thread."""


async def with_tokens(statement: Statement, language: Language) -> Statement:
    """The statement with what is written besides for each message, if it writes any."""
    if statement.said is None:
        return statement
    said = statement.said()
    if sum(one.size for one in said) <= QUICKLY_READ:
        return _told(statement, said, language)
    return await in_thread(partial(_told, statement, said, language))


def _told(statement: Statement, said: Sequence[Searchable], language: Language) -> Statement:
    more = [language.values(one) for one in said]
    if statement.many is None:
        return statement._replace(params=(*statement.params, *more[0]))
    rows = [(*row, *values) for row, values in zip(statement.many, more, strict=True)]
    return statement._replace(many=rows)
