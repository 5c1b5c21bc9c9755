"""A message as the search index stores it: its tokens, stems and labels, in a file or in a server.

Messages as the index sees them: their tokens, and labels for all that a search can be narrowed by.

What a message is found by in a database that keeps the search index itself.

A server has a parser, lists of words to leave out, and collations. None of them matters here: tokens come
from our tokeniser, each with a letter in front that says what it is, and with its places. What cannot be held
of a long message is left out, and a mark says that the message must be looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from itertools import chain
from typing import Final, NamedTuple, cast

import msgspec

from gateway_sessions.core.instants import nearest
from gateway_sessions.core.search.stems import NO_STEMS, Stems
from gateway_sessions.core.search.tokenizer import GAP, LONGEST_WORD, join_fields, long_words, words_among

LONGEST_INDEXED: Final = 1 << 20
"""Characters. The rest of a longer message is not found."""
LONGEST_LISTED: Final = 1 << 10
"""Letters. A longer word, which is a file rather than a word, is not listed for those who look for parts."""
DIGITS: Final = 16
"""Of a label: enough that hardly any two values share one."""
UNLISTED: Final = "unlisted"
"""A label of messages with such a word: who looks for a part of a word has to look at them."""


class IndexedMessage(NamedTuple):
    """What the index has to know of a message, in the order of the queries for it."""

    message_id: int
    session_id: str
    role: str
    content: str | None
    tool_name: str | None
    tool_calls: str | None
    sent_at: int
    owner: str
    session_key: str | None
    source: str
    author: str | None = None
    from_lane: str | None = None

    @property
    def fields(self) -> tuple[str, ...]:
        """The texts that are searched."""
        return texts_of(self.content, self.tool_name, self.tool_calls)


class Document(NamedTuple):
    """What the index keeps of a message."""

    message_id: int
    labels: str
    tokens: list[str]
    long_words: frozenset[str] = frozenset()
    """Of these, the tokens are pieces."""
    stems: tuple[str, ...] = ()
    """Tokens that stand for all forms of a word."""


@dataclass(frozen=True, slots=True)
class IndexPosition:
    """How far the index has read the truth."""

    watermark: int = 0
    """The highest id of a message that is indexed."""
    changes: int = 0
    """The last change of an indexed message that was taken in."""


@dataclass(frozen=True, slots=True)
class IndexWork:
    """What the index has to take in next."""

    position: IndexPosition
    """Where the index is afterwards."""
    messages: tuple[IndexedMessage, ...] = ()
    changed: tuple[tuple[int, int, IndexedMessage | None], ...] = ()
    """The id of a change and of its message, and the message as it is now; None: it was removed."""
    complete: bool = True
    """Whether nothing more waited at that moment."""

    @property
    def size(self) -> int:
        """How many messages it brings."""
        return len(self.messages) + len(self.changed)


def texts_of(content: str | None, tool_name: str | None, tool_calls: str | None) -> tuple[str, ...]:
    """The texts of a message that are searched."""
    calls = calls_text(tool_calls) if tool_calls else ""
    return tuple(text[:LONGEST_INDEXED] for text in (content, tool_name, calls) if text)


def text_of(content: str | None, tool_name: str | None, tool_calls: str | None) -> str:
    """The same as one text."""
    if content and not (tool_name or tool_calls):  # as most messages are
        return content[:LONGEST_INDEXED]
    return "\n".join(texts_of(content, tool_name, tool_calls))


def calls_text(tool_calls: str) -> str:
    """The words in the calls of a message: names, arguments, values."""
    return "\n".join(_strings(_decoded(tool_calls)))


def tokens_of(message: IndexedMessage) -> list[str]:
    """What a message is found by."""
    return join_fields(message.fields)


def document_of(message: IndexedMessage, stems: Stems = NO_STEMS) -> Document:
    """What the index keeps of a message."""
    tokens, labels, forms = tokens_of(message), labels_of(message), tuple(stems.of_texts(message.fields))
    if max(map(len, tokens), default=0) < LONGEST_WORD:
        return Document(message.message_id, labels, tokens, stems=forms)
    found = frozenset(word for field in message.fields for word in long_words(field))
    listed = frozenset(word for word in found if len(word) <= LONGEST_LISTED)
    if listed != found:
        labels = f"{labels} {UNLISTED}"
    return Document(message.message_id, labels, tokens, listed, forms)


def words_of(documents: Sequence[Document]) -> set[str]:
    """The words of all documents, but for those that are too long to be listed."""
    found = words_among(chain.from_iterable(one.tokens for one in documents))
    return found.union(*(one.long_words for one in documents))


def labels_of(message: IndexedMessage) -> str:
    """What the message can be filtered by."""
    moment = nearest(message.sent_at)
    lanes = dict.fromkeys(one for one in (message.session_key, message.from_lane) if one is not None)
    owners = dict.fromkeys((message.owner, message.author or message.owner))
    return " ".join(
        (
            *(label("owner", one) for one in owners),
            *(label("lane", one) for one in lanes),
            label("session", message.session_id),
            label("source", message.source),
            label("role", message.role),
            year_label(moment.year),
            month_label(moment.year, moment.month),
        )
    )


@lru_cache(maxsize=4096)
def label(kind: str, value: str) -> str:
    """A token that stands for one value of a kind. Values that share one are told apart in the truth.

    Servers make such labels as well, of what they know of a session: they have this digest.
    """
    return kind[:2] + sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:DIGITS]


def month_label(year: int, month: int) -> str:
    """A token for the month a message was sent in."""
    return f"mo{year:04}{month:02}"


def year_label(year: int) -> str:
    """A token for the year a message was sent in."""
    return f"yr{year:04}"


def _decoded(text: str) -> object:
    try:
        found: object = msgspec.json.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return text
    return found


def _strings(value: object) -> Iterator[str]:
    """Everything in JSON that has words, and in JSON inside its texts."""
    match value:
        case str():
            inner = _decoded(value) if value[:1] in {"{", "["} else value
            if isinstance(inner, str):
                yield inner
            else:
                yield from _strings(inner)
        case dict():
            for name, one in cast("dict[str, object]", value).items():
                yield name
                yield from _strings(one)
        case list():
            for one in cast("list[object]", value):
                yield from _strings(one)
        case bool() | None:
            return
        case _:
            yield str(value)


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
