"""The excerpt of an earlier conversation that the session search tool gives to an agent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from gateway_sessions.core.search.criteria import Criterion
from gateway_sessions.core.search.results import snippet
from gateway_sessions.core.transcript.messages import Message

LONGEST_MESSAGE: Final = 8_000
"""The characters that an excerpt reads of one message: around the match, or from the beginning."""
MOST_LINES: Final = 5
ELLIPSIS: Final = "..."


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """The part of a conversation from which a summary is made."""

    query: str
    """The query of the search."""
    text: str
    """The messages around the matches, a line for each; a gap is a line with three dots."""
    highlights: tuple[str, ...]
    """The matching places, the best one first."""
    session_id: str
    source: str
    """The platform on which the conversation took place."""
    title: str | None
    started_at: datetime


def excerpt_of_transcript(messages: Iterable[Message], wanted: Criterion, budget: int) -> str:
    """Return messages in order, one line each, in about *budget* characters; the first ones have priority."""
    chosen: dict[tuple[str, int], str] = {}
    left = budget
    for message in messages:
        place = (message.session_id, message.seq)
        if place in chosen or not message.text:
            continue
        line = f"{message.role}: {_shorten_around_match(message.text, wanted, min(left, LONGEST_MESSAGE))}"
        if len(line) > left:
            break
        chosen[place] = line
        left -= len(line) + 1
    return "\n".join(_lines_with_gaps(sorted(chosen), chosen))


def matching_places(messages: Sequence[Message], wanted: Criterion) -> tuple[str, ...]:
    """Return the matching places of messages, each once."""
    found = (snippet(message.text, wanted.finder, wanted.hints) for message in messages[: 2 * MOST_LINES])
    return tuple(dict.fromkeys(one for one in found if one))[:MOST_LINES]


def extractive_summary(passage: Passage) -> str:
    """Return a summary without a model: the matching places."""
    return "\n".join(f"- {line}" for line in passage.highlights)


def _shorten_around_match(text: str, wanted: Criterion, limit: int) -> str:
    if len(text) <= limit:
        return text
    lowered = text.lower()
    places = [at for hint in wanted.hints if (at := lowered.find(hint)) >= 0]
    start = max(0, min(places, default=0) - limit // 4)
    start = min(start, len(text) - limit)
    before = ELLIPSIS if start else ""
    return f"{before}{text[start : start + max(limit - 2 * len(ELLIPSIS), 0)]}{ELLIPSIS}"


def _lines_with_gaps(places: Sequence[tuple[str, int]], lines: dict[tuple[str, int], str]) -> Iterable[str]:
    last: tuple[str, int] | None = None
    for place in places:
        if last is not None and place != (last[0], last[1] + 1):
            yield ELLIPSIS
        yield lines[place]
        last = place
