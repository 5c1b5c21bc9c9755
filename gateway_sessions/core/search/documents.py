"""A message as the search index stores it: its tokens, stems and labels, in a file or in a server.

A label stands for a value that can narrow a search: an owner, a lane, a month.

A database server has a parser, stop words and collations of its own. None of them matters here: the tokens
come from our tokeniser, each with a letter in front that tells its kind, and with its places. The places of a
long message that a server cannot hold are left out, and a mark says that the message must be tested.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from itertools import chain
from typing import Final, NamedTuple, cast

import msgspec

from gateway_sessions.core.instants import clamp_to_calendar
from gateway_sessions.core.search.stems import NO_STEMS, Stems
from gateway_sessions.core.search.tokenizer import GAP, LONGEST_WORD, join_fields, long_words, whole_words

LONGEST_INDEXED: Final = 1 << 20
"""The characters of a text that are indexed; the rest of a longer message is not found."""
LONGEST_LISTED: Final = 1 << 10
"""The letters of a word that is listed for searches for parts of words; a longer one is a file, not a
word."""
DIGITS: Final = 16
"""The digits of a label: 64 bits, so that hardly any two values share one."""
UNLISTED: Final = "unlisted"
"""The label of messages with such a long word: a search for a part of a word must test them."""


class IndexedMessage(NamedTuple):
    """The facts of a message that the index reads, in the order of the queries for them."""

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
        return searched_texts(self.content, self.tool_name, self.tool_calls)


class Document(NamedTuple):
    """The form in which the index keeps a message."""

    message_id: int
    labels: str
    tokens: list[str]
    long_words: frozenset[str] = frozenset()
    """The words that were cut into several tokens."""
    stems: tuple[str, ...] = ()
    """The tokens that stand for all forms of a word."""


@dataclass(frozen=True, slots=True)
class IndexPosition:
    """The position up to which the index has read the database."""

    watermark: int = 0
    """The highest id of an indexed message."""
    changes: int = 0
    """The last change of an indexed message that the index has applied."""


@dataclass(frozen=True, slots=True)
class IndexWork:
    """The changes that the index applies next."""

    position: IndexPosition
    """The position of the index after these changes."""
    messages: tuple[IndexedMessage, ...] = ()
    changed: tuple[tuple[int, int, IndexedMessage | None], ...] = ()
    """The id of each change, the id of its message, and the message as it is now; None: it was removed."""
    complete: bool = True
    """Whether no further changes waited at that moment."""

    @property
    def size(self) -> int:
        """The number of messages among the changes."""
        return len(self.messages) + len(self.changed)


def searched_texts(content: str | None, tool_name: str | None, tool_calls: str | None) -> tuple[str, ...]:
    """Return the searched texts of a message."""
    calls = tool_calls_text(tool_calls) if tool_calls else ""
    return tuple(text[:LONGEST_INDEXED] for text in (content, tool_name, calls) if text)


def searched_text(content: str | None, tool_name: str | None, tool_calls: str | None) -> str:
    """Return the searched texts of a message as one text."""
    if content and not (tool_name or tool_calls):  # as most messages are
        return content[:LONGEST_INDEXED]
    return "\n".join(searched_texts(content, tool_name, tool_calls))


def tool_calls_text(tool_calls: str) -> str:
    """Return the words in the tool calls of a message: names, arguments, values."""
    return "\n".join(_strings_in_json(_decode_json(tool_calls)))


def tokens_of(message: IndexedMessage) -> list[str]:
    """Return the tokens of a message."""
    return join_fields(message.fields)


def document_of(message: IndexedMessage, stems: Stems = NO_STEMS) -> Document:
    """Return the form in which the index keeps a message."""
    tokens, labels, forms = (
        tokens_of(message),
        labels_of(message),
        tuple(stems.stem_tokens_of_texts(message.fields)),
    )
    if max(map(len, tokens), default=0) < LONGEST_WORD:
        return Document(message.message_id, labels, tokens, stems=forms)
    found = frozenset(word for field in message.fields for word in long_words(field))
    listed = frozenset(word for word in found if len(word) <= LONGEST_LISTED)
    if listed != found:
        labels = f"{labels} {UNLISTED}"
    return Document(message.message_id, labels, tokens, listed, forms)


def listed_words(documents: Sequence[Document]) -> set[str]:
    """Return the words of all documents, without words that are too long to be listed."""
    found = whole_words(chain.from_iterable(one.tokens for one in documents))
    return found.union(*(one.long_words for one in documents))


def labels_of(message: IndexedMessage) -> str:
    """Return the labels of a message, joined by spaces."""
    moment = clamp_to_calendar(message.sent_at)
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
    """Return the token for one value of a kind. A search tests values again, since two may share a token.

    Servers compute such labels as well, from the columns of a session, with the same digest.
    """
    return kind[:2] + sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:DIGITS]


def month_label(year: int, month: int) -> str:
    """Return the token for the month in which a message was sent."""
    return f"mo{year:04}{month:02}"


def year_label(year: int) -> str:
    """Return the token for the year in which a message was sent."""
    return f"yr{year:04}"


def _decode_json(text: str) -> object:
    try:
        found: object = msgspec.json.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return text
    return found


def _strings_in_json(value: object) -> Iterator[str]:
    """Yield every text and number in JSON, and in JSON inside its texts."""
    match value:
        case str():
            inner = _decode_json(value) if value[:1] in {"{", "["} else value
            if isinstance(inner, str):
                yield inner
            else:
                yield from _strings_in_json(inner)
        case dict():
            for name, one in cast("dict[str, object]", value).items():
                yield name
                yield from _strings_in_json(one)
        case list():
            for one in cast("list[object]", value):
                yield from _strings_in_json(one)
        case bool() | None:
            return
        case _:
            yield str(value)


TOKEN: Final = "t"  # noqa: S105 -- of a text
BEGINNING: Final = "b"
"""The letter before a single character with which a token begins: a prefix search of one letter would have to
go through too many tokens."""
LONG: Final = "x1"
"""The mark of messages whose places were left out: phrases must be searched in their text."""
VAST: Final = "x2"
"""The mark of messages of which only labels are indexed."""
MOST_PLACES: Final = 16_000
"""The last place that PostgreSQL tells apart; it takes all later places for one."""
MOST_PLACES_OF_ONE: Final = 250
"""The number of places of one token that PostgreSQL keeps."""
MOST_BYTES: Final = 900_000
"""The bytes of a `tsvector`: PostgreSQL holds a megabyte, and labels need some room."""
_PLACE_BYTES: Final = 2
_EACH_BYTES: Final = 4


class Searchable(NamedTuple):
    """The text of a message with its own labels; the other labels belong to its session."""

    session_id: str
    role: str
    sent_at: int
    content: str | None
    tool_name: str | None
    tool_calls: str | None
    author: str | None = None
    """The author, if not the owner of the message's session."""
    from_lane: str | None = None

    @property
    def size(self) -> int:
        """The approximate number of characters that must be read to find the message's tokens."""
        return len(self.content or "") + len(self.tool_calls or "")


class DatabaseCondition(NamedTuple):
    """A condition in the language of a database's search."""

    text: str
    is_exact: bool = True
    """Whether every message that fulfils the condition matches; if not, each must be tested."""


class Lexemes(NamedTuple):
    """The tokens, labels and stems by which a message is found."""

    tokens: list[str]
    """The tokens in order, with a gap between texts."""
    labels: tuple[str, ...]
    stems: tuple[str, ...] = ()
    """The stems, which have no places."""


def lexemes_of(message: Searchable, stems: Stems = NO_STEMS) -> Lexemes:
    """Return the tokens, labels and stems of a message, without the labels of its session."""
    moment = clamp_to_calendar(message.sent_at)
    whose = () if message.author is None else (label("owner", message.author),)
    where = () if message.from_lane is None else (label("lane", message.from_lane),)
    labels = (
        label("role", message.role),
        year_label(moment.year),
        month_label(moment.year, moment.month),
        *whose,
        *where,
    )
    texts = searched_texts(message.content, message.tool_name, message.tool_calls)
    return Lexemes(join_fields(texts), labels, tuple(stems.stem_tokens_of_texts(texts)))


def tsvector_of(message: Lexemes) -> str:
    """Return the lexemes as PostgreSQL writes them: a long message without places, a vast one as labels.

    No lexeme contains a quote or a backslash, so none needs escaping.
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
