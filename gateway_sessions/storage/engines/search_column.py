"""The search column of server databases: the tokens that are written with each message, and queries.

A server keeps the search index in the row of each message. So a statement that writes messages gets one more
parameter for each of them, the tokens of the message, and a search is a condition on that column.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from gateway_sessions.core.search.boolean_query import boolean_query_of, boolean_words_of
from gateway_sessions.core.search.criteria import CertainTerms
from gateway_sessions.core.search.documents import (
    DatabaseCondition,
    Lexemes,
    Searchable,
    lexemes_of,
    tsvector_of,
)
from gateway_sessions.core.search.filters import SearchFilter
from gateway_sessions.core.search.stems import NO_STEMS, Stems
from gateway_sessions.core.search.tsquery import tsquery_of
from gateway_sessions.ports import Statement
from gateway_sessions.storage.files.threads import in_thread


@dataclass(frozen=True, slots=True)
class TokenLanguage:
    """Writes search tokens and search queries in the form that one kind of database understands."""

    spelled: Callable[[Lexemes], str]
    query: Callable[[CertainTerms, SearchFilter], DatabaseCondition | None]

    names_session: bool
    """True if the database needs the id of the session beside the tokens of a message."""
    keeps_moments: bool
    """True if a search in an older snapshot of the database finds the index as it was then; False if it
    finds the newest index."""
    stems: Stems = NO_STEMS
    """The stemmer of the words that are written for a message."""

    def token_values(self, message: Searchable) -> tuple[str, ...]:
        """Return the parameters that are written for a message: its tokens and, if needed, its session id."""
        tokens = self.spelled(lexemes_of(message, self.stems))
        return (tokens, message.session_id) if self.names_session else (tokens,)


TSVECTOR: Final = TokenLanguage(tsvector_of, tsquery_of, names_session=True, keeps_moments=True)
FULLTEXT: Final = TokenLanguage(boolean_words_of, boolean_query_of, names_session=False, keeps_moments=False)


QUICKLY_READ: Final = 4_000
"""The most characters whose tokens are made on the event loop. More are cut up in a thread: the loop has
other lanes to serve."""


async def with_tokens(statement: Statement, language: TokenLanguage) -> Statement:
    """Return the statement with the search tokens of its messages; unchanged if it writes no message."""
    if statement.said is None:
        return statement
    said = statement.said()
    if sum(one.size for one in said) <= QUICKLY_READ:
        return _append_token_values(statement, said, language)
    return await in_thread(partial(_append_token_values, statement, said, language))


def _append_token_values(
    statement: Statement, said: Sequence[Searchable], language: TokenLanguage
) -> Statement:
    more = [language.token_values(one) for one in said]
    if statement.many is None:
        return statement._replace(params=(*statement.params, *more[0]))
    rows = [(*row, *values) for row, values in zip(statement.many, more, strict=True)]
    return statement._replace(many=rows)
