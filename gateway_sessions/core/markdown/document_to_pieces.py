"""Layout of a document in the markup of a platform, as pieces that can be cut into messages."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final

from gateway_sessions.core.markdown.dialect import NO_MARK, MarkupDialect, TableStyle, TextMark
from gateway_sessions.core.markdown.document import (
    Align,
    Block,
    CodeBlock,
    CodeSpan,
    Divider,
    Emphasis,
    Heading,
    Inline,
    LineBreak,
    Link,
    ListBlock,
    ListItem,
    Paragraph,
    Quote,
    Strike,
    Strong,
    TableBlock,
    TextRun,
    plain_text,
)
from gateway_sessions.core.markdown.pieces import Close, Cut, CutRank, Inserted, Open, Piece, Word

_BLANKS: Final = re.compile(r"\s+")
_BOXES: Final = {True: "☑ ", False: "☐ ", None: ""}
_CELL: Final = " | "


def pieces_of_document(blocks: Iterable[Block], dialect: MarkupDialect) -> list[Piece]:
    """Return the pieces of a document in the markup of a dialect."""
    layout = _Layout(dialect)
    layout.add_blocks(blocks)
    return layout.pieces


class _Layout:
    """The pieces of a document so far."""

    def __init__(self, dialect: MarkupDialect) -> None:
        self._dialect = dialect
        self._depth = 0
        """The number of lists around the next block."""
        self._open: list[TextMark] = []
        self.pieces: list[Piece] = []

    def add_blocks(self, blocks: Iterable[Block], *, tight: bool = False) -> None:
        """Add blocks, with blank lines between them unless they stand *tight*."""
        for number, block in enumerate(blocks):
            if number:
                self._cut_between_blocks(tight=tight)
            self._add_block(block, tight=tight)

    def _add_block(self, block: Block, *, tight: bool) -> None:
        dialect = self._dialect
        match block:
            case Paragraph(children):
                self._add_line(NO_MARK if tight else dialect.paragraph, children)
            case Heading(level, children):
                marks = dialect.headings or (NO_MARK,)
                self._add_line(marks[min(level, len(marks)) - 1], children)
            case CodeBlock():
                self._add_code(block)
            case Quote(inner):
                is_nested = dialect.quote in self._open and not dialect.nested_quotes
                with_mark = self._begin(NO_MARK if is_nested else dialect.quote)
                self.add_blocks(inner)
                self._end(with_mark)
            case ListBlock():
                self._add_list(block)
            case TableBlock():
                self._add_table(block)
            case Divider():
                self.pieces.append(Inserted(dialect.divider, "———"))

    # Marks

    def _begin(self, mark: TextMark) -> bool:
        """Open a mark; return whether there is one to close."""
        if mark == NO_MARK:
            return False
        self.pieces.append(Open(mark))
        self._open.append(mark)
        return True

    def _end(self, with_mark: bool) -> None:  # noqa: FBT001 -- the answer of `_begin`
        if with_mark:
            self.pieces.append(Close())
            self._open.pop()

    def _cut_between_blocks(self, *, tight: bool) -> None:
        if tight:
            self._cut_line()
        else:
            self.pieces.append(Cut(CutRank.BLOCK, self._dialect.between_blocks, "\n\n"))

    def _cut_line(self) -> None:
        self.pieces.append(Cut(CutRank.LINE, self._dialect.between_blocks[:1], "\n"))

    # Lines

    def _add_line(self, mark: TextMark, children: Sequence[Inline]) -> None:
        with_mark = self._begin(mark)
        first = len(self.pieces)
        self._add_inlines(children)
        if not self._dialect.marks_within_words:
            self.pieces[first:] = without_marks_in_words(self.pieces[first:])
        self._end(with_mark)

    def _add_inlines(self, children: Iterable[Inline]) -> None:
        for one in children:
            match one:
                case TextRun(text):
                    self._add_words(text)
                case CodeSpan(text):
                    self._add_code_span(text)
                case LineBreak():
                    self.pieces.append(Cut(CutRank.LINE, self._dialect.line_break, "\n"))
                case Link(href, inner):
                    self._add_link(href, inner)
                case _:
                    self._add_marked(self._mark_of(one), one.children)

    def _mark_of(self, one: Strong | Emphasis | Strike) -> TextMark:
        match one:
            case Strong():
                return self._dialect.strong
            case Emphasis():
                return self._dialect.emphasis
            case Strike():
                return self._dialect.strike

    def _add_marked(self, mark: TextMark, children: Sequence[Inline]) -> None:
        with_mark = mark not in self._open and self._begin(mark)
        self._add_inlines(children)
        self._end(with_mark)

    def _add_words(self, text: str) -> None:
        for number, word in enumerate(_BLANKS.split(text)):
            if number:
                self.pieces.append(Cut(CutRank.WORD, " ", " "))
            if word:
                self.pieces.append(Word(word))

    def _add_code_span(self, text: str) -> None:
        mark = self._dialect.code(text)
        if mark == NO_MARK:
            self._add_words(text)
            return
        self.pieces += [Open(mark), Word(text, code=True), Close()]

    def _add_link(self, href: str, children: Sequence[Inline]) -> None:
        """Add a link: its text, and its address as text if the platform has no such links."""
        dialect, label = self._dialect, plain_text(tuple(children))
        is_bare = label in (href, _shown_address(href))
        mark = dialect.link(href)
        fits = dialect.unit.length(mark.opening + mark.closing) <= dialect.limit // 4
        if mark == NO_MARK or is_bare or not fits:
            self._add_inlines(children)
            if href and not is_bare:
                self.pieces += [Cut(CutRank.WORD, " ", " "), Word(f"({_shown_address(href)})")]
            return
        with_mark = self._begin(mark)
        self._add_inlines(children)
        self._end(with_mark)
        self.pieces.append(Inserted("", f" ({_shown_address(href)})"))

    # Blocks

    def _add_code(self, block: CodeBlock) -> None:
        with_mark = self._begin(self._dialect.code_block(block))
        for number, line in enumerate(block.text.split("\n")):
            if number:
                self.pieces.append(Cut(CutRank.LINE_OF_CODE, "\n", "\n"))
            self.pieces.append(Word(line, code=with_mark))
        self._end(with_mark)

    def _add_list(self, block: ListBlock) -> None:
        with_mark = self._begin(self._dialect.list_of(block.first))
        for number, item in enumerate(block.items):
            if number:
                self._cut_between_blocks(tight=block.tight)
            self._add_item(
                item, "" if block.first is None else f"{block.first + number}. ", tight=block.tight
            )
        self._end(with_mark)

    def _add_item(self, item: ListItem, number: str, *, tight: bool) -> None:
        bullets, box = self._dialect.bullets, _BOXES[item.checked]
        bullet = number or bullets[min(self._depth, len(bullets) - 1)]
        if box and self._dialect.box_is_bullet:
            bullet, box = box, ""
        mark = self._dialect.item or TextMark(prefix=" " * len(bullet))
        self.pieces.append(Inserted("" if self._dialect.item else bullet, bullet))
        with_mark = self._begin(mark)
        self.pieces.append(Inserted(box, box))
        self._depth += 1
        self.add_blocks(item.blocks, tight=tight)
        self._depth -= 1
        self._end(with_mark)

    # Tables

    def _add_table(self, table: TableBlock) -> None:
        style = self._dialect.table
        if style is TableStyle.HTML:
            self._add_html_table(table)
        elif style is TableStyle.PIPES:
            self._add_pipes(table)
        elif (lines := aligned_lines(table)) and max(map(shown_width, lines)) <= self._dialect.table_width:
            self._add_code(CodeBlock("\n".join(lines)))
        else:
            self._add_list(as_list(table))

    def _add_html_table(self, table: TableBlock) -> None:
        with_table = self._begin(TextMark("<table>", "</table>"))
        for number, row in enumerate((table.header, *table.rows)):
            if number:
                self._cut_line()
            with_row = self._begin(TextMark("<tr>", "</tr>"))
            cell_mark = TextMark("<td>", "</td>") if number else TextMark("<th>", "</th>")
            for column, cell in enumerate(row):
                if column:
                    self.pieces.append(Inserted("", _CELL))
                self._add_line(cell_mark, cell)
            self._end(with_row)
        self._end(with_table)

    def _add_pipes(self, table: TableBlock) -> None:
        rules = {Align.LEFT: "---", Align.CENTRE: ":-:", Align.RIGHT: "--:"}
        for number, row in enumerate((table.header, *table.rows)):
            if number:
                self._cut_line()
            self.pieces.append(Inserted("| ", ""))
            for column, cell in enumerate(row):
                if column:
                    self.pieces.append(Inserted(_CELL, _CELL))
                self._add_inlines(_on_one_line(cell))
            self.pieces.append(Inserted(" |", ""))
            if not number:
                rule = "| " + _CELL.join(rules[one] for one in table.columns) + " |"
                self.pieces.append(Inserted(f"\n{rule}", ""))


def _shown_address(href: str) -> str:
    return href.removeprefix("mailto:").removeprefix("tel:")


def _on_one_line(children: Sequence[Inline]) -> list[Inline]:
    return [TextRun(" ") if isinstance(one, LineBreak) else one for one in children]


def without_marks_in_words(pieces: Sequence[Piece]) -> list[Piece]:
    """Drop the marks that a platform would show as letters, because a letter stands directly beside them."""
    dropped: set[int] = set()
    opened: list[int] = []
    for at, piece in enumerate(pieces):
        if isinstance(piece, Open):
            opened.append(at)
        elif isinstance(piece, Close):
            begun = opened.pop()
            mark = pieces[begun]
            if isinstance(mark, Open) and mark.mark.within_words:
                continue
            if _letter_beside(pieces, begun, -1) or _letter_beside(pieces, at, 1):
                dropped |= {begun, at}
    return [piece for at, piece in enumerate(pieces) if at not in dropped]


def _letter_beside(pieces: Sequence[Piece], at: int, step: int) -> bool:
    """Return whether a letter stands directly before (*step* -1) or behind (1) a mark."""
    at += step
    while 0 <= at < len(pieces) and isinstance(pieces[at], Open | Close):
        at += step
    piece = pieces[at] if 0 <= at < len(pieces) else None
    return isinstance(piece, Word) and piece.text[-1 if step < 0 else 0].isalnum()


def aligned_lines(table: TableBlock) -> list[str]:
    """Return the lines of a table whose columns are aligned by spaces; none if a cell has lines or links."""
    cells = (table.header, *table.rows)
    rows = [[plain_text(cell) for cell in row] for row in cells]
    if any("\n" in text for row in rows for text in row) or any(
        has_link(cell) for row in cells for cell in row
    ):
        return []
    widths = [max(map(shown_width, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(_aligned, row, widths, table.columns)).rstrip() for row in rows]
    return [lines[0], "  ".join("─" * width for width in widths), *lines[1:]]


def has_link(children: Iterable[Inline]) -> bool:
    """Return whether an address stands behind some of a text."""
    return any(
        isinstance(one, Link) or (isinstance(one, Strong | Emphasis | Strike) and has_link(one.children))
        for one in children
    )


def _aligned(text: str, width: int, align: Align) -> str:
    room = width - shown_width(text)
    before = {Align.LEFT: 0, Align.CENTRE: room // 2, Align.RIGHT: room}[align]
    return " " * before + text + " " * (room - before)


def shown_width(text: str) -> int:
    """Return the columns that a text takes where all letters are equally wide, but some as wide as two."""
    return sum(_width(one) for one in text)


def _width(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Cf", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def as_list(table: TableBlock) -> ListBlock:
    """Return a table as a list: each row an item, its cells as lines that begin with the column's name."""
    if not table.rows:
        return ListBlock(tuple(ListItem((Paragraph(name),)) for name in table.header))
    return ListBlock(tuple(ListItem((Paragraph(tuple(_cells(table, row))),)) for row in table.rows))


def _cells(table: TableBlock, row: Sequence[Sequence[Inline]]) -> Iterable[Inline]:
    number = 0
    for name, cell in zip(table.header, row, strict=True):
        if not plain_text(tuple(cell)).strip():
            continue
        if number:
            yield LineBreak()
        if plain_text(name).strip():
            yield Strong((*name, TextRun(":")))
            yield TextRun(" ")
        yield from cell
        number += 1
