"""Packing of pieces into messages within a platform's limit: what is cut is closed, and opened again behind.

Cuts between blocks come before cuts between lines, then words, then letters; a visible character stays whole.
The first half of a message is cut only if there is no other way, so that no message is tiny.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from gateway_sessions.core.markdown.dialect import NO_MARK, MarkupDialect, TextMark
from gateway_sessions.core.markdown.pieces import Close, Cut, CutRank, Inserted, Open, Piece, Word
from gateway_sessions.core.text_length import character_boundary
from gateway_sessions.errors import InvalidInputError

LEAST_LIMIT: Final = 64
"""The least limit: room for some marks that are opened and closed again, and for text between."""


class Part(NamedTuple):
    """One message: its markup, and the same as plain text for a platform that refuses the markup."""

    markup: str
    plain: str


class _Passed(NamedTuple):
    """A cut that was passed: how much of the message stood before it, and where the text goes on."""

    rank: CutRank
    length: int
    markup: int
    plain: int
    open: tuple[_Opened, ...]
    next_piece: int


class _Opened(NamedTuple):
    """A mark that is open, and the number of strings that stood before it."""

    mark: TextMark
    at: int


def pack(pieces: Sequence[Piece], dialect: MarkupDialect, limit: int | None = None) -> tuple[Part, ...]:
    """Return the messages of a text in order, none longer than *limit*; only blanks at cuts are dropped."""
    limit = dialect.limit if limit is None else min(limit, dialect.limit)
    if limit < LEAST_LIMIT:
        problem = f"a text cannot be cut into messages of {limit}, at least {LEAST_LIMIT} are needed"
        raise InvalidInputError(problem)
    return tuple(part for part in _Packing(pieces, dialect, limit).parts() if part.plain.strip())


class _Packing:
    """The message that grows, and the place in the text that it has reached."""

    def __init__(self, pieces: Sequence[Piece], dialect: MarkupDialect, limit: int) -> None:
        self._pieces = list(pieces)
        self._at = 0
        self._dialect = dialect
        self._limit = limit
        self._begin(())

    def parts(self) -> Iterator[Part]:
        """Yield the messages."""
        while self._at < len(self._pieces):
            piece = self._pieces[self._at]
            if self._fits(piece):
                self._add(piece)
                self._at += 1
            else:
                yield self._end_message(piece)
        yield self._finished()

    def _begin(self, open_marks: Sequence[TextMark]) -> None:
        """Begin a message in which some marks are open already."""
        self._markup: list[str] = []
        self._plain: list[str] = []
        self._open: list[_Opened] = []
        self._length = self._marks = 0
        self._begins_line = True
        self._has_text = False
        self._waiting_cut: Cut | None = None
        self._passed: list[_Passed] = []
        for mark in open_marks:
            # The text goes on within a line of a list or a quote: its indentation stands for its bullet.
            self._open_mark(mark._replace(opening=mark.prefix) if not mark.closing else mark)
            self._open[-1] = self._open[-1]._replace(mark=mark)

    # What a piece takes

    def _fits(self, piece: Piece) -> bool:
        match piece:
            case Close() | Cut():
                return True
            case Open(mark):
                most = self._dialect.most_marks
                if mark.closing and most is not None and self._marks >= most:
                    return not self._has_text
                return self._has_room(self._counted(mark.opening + mark.closing, "")) or not self._has_text
            case Word(text):
                return self._has_room(self._counted(self._escaped(piece), text))
            case Inserted(markup, shown):
                return self._has_room(self._counted(markup, shown)) or not self._has_text

    def _has_room(self, length: int) -> bool:
        return self._length + self._cost_of_cut() + length + self._cost_of_closing() <= self._limit

    def _counted(self, markup: str, shown: str) -> int:
        """Return what a piece takes of the limit."""
        if not self._dialect.counts_markup:
            return self._dialect.unit.length(_with_prefix(shown, self._line_prefix))
        return self._dialect.unit.length(_with_prefix(markup, self._line_prefix))

    def _cost_of_cut(self) -> int:
        cut = self._waiting_cut
        return 0 if cut is None else self._counted(cut.markup, cut.shown)

    def _cost_of_closing(self) -> int:
        return sum(self._counted(one.mark.closing, "") for one in self._open)

    def _escaped(self, word: Word) -> str:
        if word.code:
            return self._dialect.escape_code(word.text)
        return self._dialect.escape(word.text, self._begins_line or self._waiting_line)

    @property
    def _waiting_line(self) -> bool:
        return self._waiting_cut is not None and "\n" in self._waiting_cut.shown

    @property
    def _line_prefix(self) -> str:
        """What each line begins with: the marks of quotes, the indentation of lists."""
        return self._line_prefix_inside(NO_MARK)

    def _line_prefix_inside(self, mark: TextMark) -> str:
        prefixes = [one.mark.prefix for one in self._open]
        if mark.flush or any(one.mark.flush for one in self._open):
            prefixes = [one for one in prefixes if not one.isspace()]
        return "".join(prefixes)

    # Growing

    def _add(self, piece: Piece) -> None:
        match piece:
            case Word(text):
                if text or self._has_text:
                    self._write_cut()
                    self._write(self._escaped(piece), text)
                    self._begins_line = not text
                self._has_text = self._has_text or bool(text)
            case Inserted(markup, shown):
                self._write_cut()
                self._write(markup, shown)
                self._has_text = self._has_text or bool(shown.strip())
            case Open(mark):
                self._write_cut(within=mark)
                self._open_mark(mark)
            case Close():
                self._close_mark()
            case Cut():
                self._pass(piece)

    def _write(self, markup: str, shown: str, *, within: TextMark = NO_MARK) -> None:
        self._length += self._counted(markup, shown)
        prefix = self._line_prefix_inside(within)
        self._markup.append(_with_prefix(markup, prefix))
        self._plain.append(_with_prefix(shown, prefix if prefix.isspace() else ""))

    def _write_cut(self, *, within: TextMark = NO_MARK) -> None:
        """Write the space or line break that waits, for a line *within* a mark that is opened now."""
        if (cut := self._waiting_cut) is not None:
            self._waiting_cut = None
            self._write(cut.markup, cut.shown, within=within)
            self._begins_line = "\n" in cut.shown

    def _open_mark(self, mark: TextMark) -> None:
        if self._taken_by_marks(mark) > self._limit // 2:
            mark = NO_MARK  # a message of nothing but marks would be the alternative
        at = len(self._markup)
        self._write(mark.opening, mark.opening if mark.opening.isspace() else "", within=mark)
        self._open.append(_Opened(mark, at))
        self._marks += bool(mark.closing)

    def _close_mark(self) -> None:
        mark, at = self._open.pop()
        if mark.closing and len(self._markup) == at + 1:
            self._markup.pop()  # nothing stands within it
            self._length -= self._counted(mark.opening, "")
            return
        self._write(mark.closing, "", within=mark)

    def _taken_by_marks(self, mark: TextMark) -> int:
        """Return what the open marks and one more take of a message that begins within them."""
        marks = [*(one.mark for one in self._open), mark]
        return sum(self._dialect.unit.length(one.opening + one.closing + one.prefix) for one in marks)

    def _pass(self, cut: Cut) -> None:
        """Note a place for a cut; the space or line break is written when something follows."""
        if not self._has_text:
            return
        self._passed.append(
            _Passed(
                cut.rank, self._length, len(self._markup), len(self._plain), tuple(self._open), self._at + 1
            )
        )
        if self._waiting_cut is not None:  # an empty line of code stands between the two
            self._write_cut()
        self._waiting_cut = cut

    # Ending

    def _end_message(self, piece: Piece) -> Part:
        """End the message at the best cut, and go on behind it with the next one."""
        if (cut := self._best_cut()) is not None:
            del self._markup[cut.markup :], self._plain[cut.plain :]
            self._open = list(cut.open)
            self._at = cut.next_piece
        elif isinstance(piece, Word):
            self._write_beginning(piece)
        open_marks, part = [one.mark for one in self._open], self._finished()
        self._begin(open_marks)
        return part

    def _best_cut(self) -> _Passed | None:
        """Return the last cut of the best rank in the second half, else the last of any."""
        late = [one for one in self._passed if one.length >= self._limit // 2]
        if late:
            best = min(one.rank for one in late)
            return [one for one in late if one.rank is best][-1]
        return self._passed[-1] if self._passed else None

    def _write_beginning(self, word: Word) -> None:
        """Write as much of a long word as fits, and leave the rest of it to the next message."""
        text = word.text

        def cost(end: int) -> int:
            return self._counted(self._escaped(word._replace(text=text[:end])), text[:end])

        room = self._limit - self._length - self._cost_of_cut() - self._cost_of_closing()
        ends = range(min(len(text), room) + 1)
        longest = ends[bisect_right(ends, room, key=cost) - 1] if room > 0 else 0
        end = character_boundary(text, 0, longest) or (0 if self._has_text else max(longest, 1))
        if end:
            self._add(word._replace(text=text[:end]))
            self._pieces[self._at] = word._replace(text=text[end:])

    def _finished(self) -> Part:
        while self._open:
            self._close_mark()
        return Part("".join(self._markup), "".join(self._plain))


def _with_prefix(text: str, prefix: str) -> str:
    """Return a text whose lines but the first begin with a prefix; that of an empty line ends in no blank."""
    *between, last = text.split("\n")
    if not between:
        return text
    first, *lines = between
    return "\n".join(
        [first, *((prefix + line if line else prefix.rstrip()) for line in lines), prefix + last]
    )
