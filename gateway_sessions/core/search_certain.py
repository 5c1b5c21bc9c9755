"""What a message certainly has if it is wanted: what an index is asked for, whatever its language."""

from __future__ import annotations

from typing import NamedTuple

from gateway_sessions.core.search_query import Branch, Phrase, Query
from gateway_sessions.core.search_text import Kind, bare, fold, pieces, runs
from gateway_sessions.core.search_wanted import Literal, Vocabulary, Wanted, Words


class Part(NamedTuple):
    """Letters that some word has."""

    letters: str
    at_end: bool

    @property
    def text(self) -> str:
        """What stands in such a word, a space being put behind it."""
        return f"{self.letters} " if self.at_end else self.letters


class Certain(NamedTuple):
    """What a message certainly has."""

    query: Query | None = None
    part: Part | None = None


def certain_of(wanted: Wanted | Vocabulary) -> Certain:
    """The words of a query, of which it has at least one, or what is certain of a text."""
    match wanted:
        case Words():
            return Certain(wanted.query)
        case Literal():
            return certain_of_literal(wanted.needle)
        case Vocabulary():
            return Certain()


def certain_of_literal(needle: str) -> Certain:
    """What a message has that contains *needle* somewhere.

    The tokens of *needle* stand next to each other in it as well, but for letters at its beginning, which may
    be the end of a longer word, and what stands last, which may go on.
    """
    folded = fold(needle)
    part: Part | None = None
    tokens: list[str] = []
    prefix = False
    for start, end, kind in runs(folded):
        found, is_last = pieces(folded[start:end], kind), end == len(folded)
        if kind is Kind.WORD and start == 0:
            part = Part(bare(folded[start:end]), not is_last) if found else None
            continue
        if kind is Kind.PAIRED and is_last and found[1:]:
            found.pop()
        elif found:
            prefix = is_last and kind is not Kind.SIGN
        tokens += found
    return Certain(_of_phrase(Phrase(tuple(tokens), prefix)) if tokens else None, part)


def _of_phrase(phrase: Phrase) -> Query:
    return Query((Branch((phrase,)),))
