"""The excerpt of an earlier conversation that the session search tool gives to an agent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from gateway_sessions.core.search.criteria import Wanted
from gateway_sessions.core.search.results import snippet
from gateway_sessions.core.transcript.messages import Message

LONGEST_MESSAGE: Final = 8_000
"""Of a longer message the place of the match is read, or its beginning."""
MOST_LINES: Final = 5
ELLIPSIS: Final = "..."


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """The part of a conversation that a summary is made of."""

    query: str
    text: str
    """What was said around the matches, a line for each message; a gap is a line with three dots."""
    highlights: tuple[str, ...]
    """The places that match, the best one first."""
    session_id: str
    source: str
    title: str | None
    started_at: datetime


def transcript(messages: Iterable[Message], wanted: Wanted, budget: int) -> str:
    """Messages in their order, one line each, in about *budget* characters; the first ones count most."""
    chosen: dict[tuple[str, int], str] = {}
    left = budget
    for message in messages:
        place = (message.session_id, message.seq)
        if place in chosen or not message.text:
            continue
        line = f"{message.role}: {_shortened(message.text, wanted, min(left, LONGEST_MESSAGE))}"
        if len(line) > left:
            break
        chosen[place] = line
        left -= len(line) + 1
    return "\n".join(_with_gaps(sorted(chosen), chosen))


def highlights(messages: Sequence[Message], wanted: Wanted) -> tuple[str, ...]:
    """The places of messages that match."""
    found = (snippet(message.text, wanted.finder, wanted.hints) for message in messages[: 2 * MOST_LINES])
    return tuple(dict.fromkeys(one for one in found if one))[:MOST_LINES]


def extract(passage: Passage) -> str:
    """A summary that nobody has to think about: the places that match."""
    return "\n".join(f"- {line}" for line in passage.highlights)


def _shortened(text: str, wanted: Wanted, limit: int) -> str:
    if len(text) <= limit:
        return text
    lowered = text.lower()
    places = [at for hint in wanted.hints if (at := lowered.find(hint)) >= 0]
    start = max(0, min(places, default=0) - limit // 4)
    start = min(start, len(text) - limit)
    before = ELLIPSIS if start else ""
    return f"{before}{text[start : start + max(limit - 2 * len(ELLIPSIS), 0)]}{ELLIPSIS}"


def _with_gaps(places: Sequence[tuple[str, int]], lines: dict[tuple[str, int], str]) -> Iterable[str]:
    last: tuple[str, int] | None = None
    for place in places:
        if last is not None and place != (last[0], last[1] + 1):
            yield ELLIPSIS
        yield lines[place]
        last = place
