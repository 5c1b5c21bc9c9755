"""What a search looks for: the words of a query, or a text as it stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from gateway_sessions.core.search_query import Query, matches, parse_query
from gateway_sessions.core.search_ranking import READ_CHARACTERS, Counter, Features, counter_of
from gateway_sessions.core.search_text import fold, join_fields
from gateway_sessions.core.snippets import Finder, marks_of_literal, marks_of_query


@dataclass(frozen=True)
class Words:
    """Messages that fit a query."""

    query: Query

    def found_in(self, fields: Sequence[str]) -> bool:
        """Whether a message with these texts is wanted."""
        return matches(self.query, join_fields(fields))

    @cached_property
    def features(self) -> Counter:
        """Counts what the order is made from."""
        return counter_of(self.query)

    @property
    def finder(self) -> Finder:
        """Finds what is to be marked."""
        return marks_of_query(self.query)

    @property
    def hints(self) -> tuple[str, ...]:
        """Texts of which one stands near the match."""
        return tuple(phrase.tokens[0] for phrase in self.query.phrases)


@dataclass(frozen=True)
class Literal:
    """Messages that contain a text, in any case."""

    needle: str

    def found_in(self, fields: Sequence[str]) -> bool:
        """Whether a message with these texts is wanted."""
        wanted = self.folded
        return any(wanted in fold(field) for field in fields)

    def features(self, texts: Sequence[str]) -> list[Features]:
        """Counts what the order is made from."""
        folded = [fold(text[:READ_CHARACTERS]) for text in texts]
        return [Features((text.count(self.folded),), len(text)) for text in folded]

    @property
    def finder(self) -> Finder:
        """Finds what is to be marked."""
        return marks_of_literal(self.needle)

    @property
    def hints(self) -> tuple[str, ...]:
        """Texts of which one stands near the match."""
        return (self.needle.lower(),)

    @cached_property
    def folded(self) -> str:
        """The text as it is compared."""
        return fold(self.needle)


Wanted: TypeAlias = Words | Literal


def wanted_of(text: str, *, literal: bool) -> Wanted | None:
    """What a query asks for; None: nothing at all. Without any word in it, it is looked for as it stands."""
    query = parse_query(text)  # also refuses what is too long
    if not text.strip():
        return None
    if literal:
        return Literal(text)
    return Words(query) if query.branches else Literal(text.strip())
