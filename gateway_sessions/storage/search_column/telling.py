"""Messages on their way into a database that keeps the search index: with what they are found by."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from gateway_sessions.core.search_lexemes import Searchable
from gateway_sessions.ports import Statement
from gateway_sessions.storage.in_thread import in_thread
from gateway_sessions.storage.search_column.languages import Language

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
