"""What a message is found by in a database that keeps the search index itself.

A server has a parser, lists of words to leave out, and collations. None of them matters here: tokens come
from our tokeniser, each with a letter in front that says what it is, and with its places. What cannot be held
of a long message is left out, and a mark says that the message must be looked at.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from gateway_sessions.core.instants import nearest
from gateway_sessions.core.search_documents import label, month_label, texts_of, year_label
from gateway_sessions.core.search_stems import NO_STEMS, Stems
from gateway_sessions.core.search_text import GAP, join_fields

TOKEN: Final = "t"  # noqa: S105 -- of a text
BEGINNING: Final = "b"
"""In front of one character that a token begins with: too many tokens do to go through all of them."""
LONG: Final = "x1"
"""A mark of messages whose places were left out: phrases have to be looked for in their text."""
VAST: Final = "x2"
"""A mark of messages of which nothing is known but what they can be filtered by."""
MOST_PLACES: Final = 16_000
"""PostgreSQL takes all later places for one."""
MOST_PLACES_OF_ONE: Final = 250
"""It forgets further ones."""
MOST_BYTES: Final = 900_000
"""It holds a megabyte; labels need some room."""
_PLACE_BYTES: Final = 2
_EACH_BYTES: Final = 4


class Searchable(NamedTuple):
    """What is said, as it is written: what it can be filtered by besides belongs to its session."""

    session_id: str
    role: str
    sent_at: int
    content: str | None
    tool_name: str | None
    tool_calls: str | None
    author: str | None = None
    """Whose it is, if not merely the owner's of its session."""
    from_lane: str | None = None

    @property
    def size(self) -> int:
        """About how many characters have to be read to know what it is found by."""
        return len(self.content or "") + len(self.tool_calls or "")


class Asked(NamedTuple):
    """What a database is asked for, in its language."""

    text: str
    is_exact: bool = True
    """Whether everything that is found is wanted; otherwise it must be looked at."""


class Lexemes(NamedTuple):
    """What a message is found by."""

    tokens: list[str]
    """In their order, with a gap between texts."""
    labels: tuple[str, ...]
    stems: tuple[str, ...] = ()
    """Tokens that have no place."""


def lexemes_of(message: Searchable, stems: Stems = NO_STEMS) -> Lexemes:
    """What a message is found by, besides the labels of its session."""
    moment = nearest(message.sent_at)
    whose = () if message.author is None else (label("owner", message.author),)
    where = () if message.from_lane is None else (label("lane", message.from_lane),)
    labels = (
        label("role", message.role),
        year_label(moment.year),
        month_label(moment.year, moment.month),
        *whose,
        *where,
    )
    texts = texts_of(message.content, message.tool_name, message.tool_calls)
    return Lexemes(join_fields(texts), labels, tuple(stems.of_texts(texts)))


def tsvector_of(message: Lexemes) -> str:
    """The same as PostgreSQL writes it: a long message without places, a vast one without tokens.

    Nothing in it has a quote or a backslash.
    """
    places: dict[str, list[int]] = {}
    for at, token in enumerate(message.tokens, start=1):
        places.setdefault(token, []).append(at)
    places.pop(GAP, None)
    found = [f"'{one}'" for one in message.labels]
    size = sum(_EACH_BYTES + len(one.encode()) for one in (*places, *message.stems))
    if size > MOST_BYTES:
        return " ".join((*found, f"'{VAST}'"))
    found += [f"'{BEGINNING}{one}'" for one in dict.fromkeys(one[0] for one in places)]
    found += [f"'{TOKEN}{one}'" for one in message.stems]
    most = max(map(len, places.values()), default=0)
    fits = len(message.tokens) <= MOST_PLACES and most <= MOST_PLACES_OF_ONE
    if fits and size + _PLACE_BYTES * len(message.tokens) <= MOST_BYTES:
        found += [f"'{TOKEN}{one}':{','.join(map(str, at))}" for one, at in places.items()]
    else:
        found += [f"'{LONG}'", *(f"'{TOKEN}{one}'" for one in places)]
    return " ".join(found)
