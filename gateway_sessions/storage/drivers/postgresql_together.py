"""Several queries said as one, which answers in one row: each question is a way to the server and back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Final

from gateway_sessions.storage.queries import Query

_PARAMETER: Final = re.compile(r"\$(\d+)")


@cache
def as_one(queries: tuple[Query, ...]) -> str:
    """A query with a column for each of these: all rows that it finds, or how many it has changed.

    Its parameters are theirs, one after the other. All see the moment before any has changed anything.
    """
    changes: list[str] = []
    columns: list[str] = []
    before = 0
    for number, query in enumerate(queries):
        sql, places = _moved(query.sql, before)
        before += places
        if query.reads:
            columns.append(f"ARRAY(SELECT ROW(found.*) FROM ({sql}) AS found)")  # noqa: S608 -- ours
        else:
            changes.append(f"changed_{number} AS ({sql} RETURNING 1)")
            columns.append(f"(SELECT count(*) FROM changed_{number})")  # noqa: S608 -- ours
    beginning = f"WITH {', '.join(changes)} " if changes else ""
    return f"{beginning}SELECT {', '.join(columns)}"


def _moved(sql: str, before: int) -> tuple[str, int]:
    """The query with so many parameters before its own, and how many those are."""
    numbers: Sequence[int] = [int(one) for one in _PARAMETER.findall(sql)]
    return _PARAMETER.sub(lambda found: f"${int(found[1]) + before}", sql), max(numbers, default=0)
