"""Many rows for one statement: as much in one message as a server takes, and says that it understands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

MOST_CHARACTERS: Final = 1 << 20
"""In one message. A single row may have more: then it is alone in its message."""


def portions(rows: Sequence[Sequence[object]]) -> Iterator[Sequence[Sequence[object]]]:
    """The rows in their order, each time as many as one message should hold."""
    first = size = 0
    for number, row in enumerate(rows):
        length = sum(len(value) for value in row if isinstance(value, str))
        if number > first and size + length > MOST_CHARACTERS:
            yield rows[first:number]
            first, size = number, 0
        size += length
    if first < len(rows):
        yield rows[first:]


def filled(sql: str, rows: Sequence[Sequence[object]]) -> tuple[str, list[tuple[object, ...]]]:
    """The same statement and rows without the columns that are empty in all of them.

    A server wants to know of what kind the values of a column are; of nothing, nobody can tell.
    """
    used = [any(value is not None for value in column) for column in zip(*rows, strict=True)]
    before, *behind = sql.split("?")
    said = "".join(f"{'?' if use else 'NULL'}{text}" for use, text in zip(used, behind, strict=True))
    return before + said, [tuple(value for value, use in zip(row, used, strict=True) if use) for row in rows]
