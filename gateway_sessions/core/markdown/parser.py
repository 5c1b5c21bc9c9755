"""Parsing of Markdown (CommonMark with tables, strikethrough and lists of tasks) into a document.

HTML is text here: a model that writes `<b>` means the letters, but for `<br>`, which ends a line in tables.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

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

_BREAK: Final = re.compile(r"\s*<br\s*/?>\s*", re.IGNORECASE)
_TASK: Final = re.compile(r"\[([ xX])\] +")
_ALIGNED: Final = {
    "text-align:center": Align.CENTRE,
    "text-align:right": Align.RIGHT,
}
DEEPEST: Final = 40
"""The parser leaves out what is nested more deeply, so that it cannot be made to recurse; we show it."""


@lru_cache(maxsize=1)
def _markdown() -> MarkdownIt:
    options = {"html": False, "linkify": False, "maxNesting": DEEPEST}
    return MarkdownIt("commonmark", options).enable(["table", "strikethrough"])


def parse_markdown(text: str) -> tuple[Block, ...]:
    """Return the blocks of a text in Markdown; every text is Markdown, so that nothing is refused."""
    tokens = _markdown().parse(text)
    if any(token.level >= DEEPEST - 1 for token in tokens):  # what lies deeper is missing
        return tuple(Paragraph(tuple(_lines(part))) for part in re.split(r"\n\s*\n", text) if part.strip())
    return _blocks(SyntaxTreeNode(tokens).children)


def _lines(text: str) -> Iterator[Inline]:
    for number, line in enumerate(text.strip().splitlines()):
        if number:
            yield LineBreak()
        yield TextRun(line)


def _blocks(nodes: Iterable[SyntaxTreeNode]) -> tuple[Block, ...]:
    return tuple(block for node in nodes if (block := _BLOCKS.get(node.type, _paragraph)(node)) is not None)


def _paragraph(node: SyntaxTreeNode) -> Paragraph | None:
    content = _content(node)
    return Paragraph(content) if content else None


def _heading(node: SyntaxTreeNode) -> Heading | None:
    content = _content(node)
    return Heading(int(node.tag[1:]), content) if content else None


def _quote(node: SyntaxTreeNode) -> Quote | None:
    blocks = _blocks(node.children)
    return Quote(blocks) if blocks else None


def _code_block(node: SyntaxTreeNode) -> CodeBlock:
    language, *_ = [*node.info.split(maxsplit=1), ""]
    return CodeBlock(node.content.rstrip("\n"), language)


def _content(node: SyntaxTreeNode) -> tuple[Inline, ...]:
    """Return the runs of a paragraph, a heading or a cell, from the first that people see to the last."""
    runs = [run for inline in node.children for run in _runs(inline.children)]
    shown = [at for at, run in enumerate(runs) if plain_text((run,)).strip()]
    return tuple(runs[shown[0] : shown[-1] + 1]) if shown else ()


def _runs(nodes: Iterable[SyntaxTreeNode]) -> tuple[Inline, ...]:
    return tuple(run for node in nodes for run in _runs_of(node))


def _runs_of(node: SyntaxTreeNode) -> Iterable[Inline]:
    if node.type == "em" and _stands_in_a_word(node):
        return (TextRun("*"), *_runs(node.children), TextRun("*"))
    return _INLINES.get(node.type, _texts)(node)


def _stands_in_a_word(node: SyntaxTreeNode) -> bool:
    """Return whether letters or digits stand on both sides: `2*3*4` is a product, whatever Markdown says."""
    before, behind = node.previous_sibling, node.next_sibling
    return (
        before is not None
        and behind is not None
        and before.content[-1:].isalnum()
        and behind.content[:1].isalnum()
    )


def _link(node: SyntaxTreeNode) -> Iterator[Inline]:
    yield Link(str(node.attrGet("href") or ""), _runs(node.children))


def _image(node: SyntaxTreeNode) -> Iterator[Inline]:
    yield Link(str(node.attrGet("src") or ""), (TextRun(node.content or "image"),))


def _texts(node: SyntaxTreeNode) -> Iterator[Inline]:
    for number, part in enumerate(_BREAK.split(node.content)):
        if number:
            yield LineBreak()
        if part:
            yield TextRun(part)


def _list(node: SyntaxTreeNode) -> ListBlock:
    first = int(node.attrGet("start") or 1) if node.type == "ordered_list" else None
    items = tuple(_item(_blocks(item.children)) for item in node.children)
    hidden = [child.hidden for item in node.children for child in item.children if child.type == "paragraph"]
    return ListBlock(items, first, tight=all(hidden))


def _item(blocks: tuple[Block, ...]) -> ListItem:
    """Return an item, of a list of tasks if its text begins with a box."""
    match blocks:
        case (Paragraph((TextRun(text), *others)), *rest) if task := _TASK.match(text):
            words = TextRun(text[task.end() :])
            return ListItem((Paragraph((words, *others)), *rest), checked=task[1] != " ")
        case _:
            return ListItem(blocks)


def _table(node: SyntaxTreeNode) -> TableBlock:
    rows = [row.children for part in node.children for row in part.children]
    columns = tuple(_ALIGNED.get(str(cell.attrGet("style")), Align.LEFT) for cell in rows[0])
    header, *body = [tuple(_content(cell) for cell in row) for row in rows]
    return TableBlock(columns, header, tuple(body))


_BLOCKS: Final[dict[str, Callable[[SyntaxTreeNode], Block | None]]] = {
    "heading": _heading,
    "fence": _code_block,
    "code_block": _code_block,
    "blockquote": _quote,
    "bullet_list": _list,
    "ordered_list": _list,
    "table": _table,
    "hr": lambda _: Divider(),
}
_INLINES: Final[dict[str, Callable[[SyntaxTreeNode], Iterable[Inline]]]] = {
    "code_inline": lambda node: [CodeSpan(node.content)],
    "softbreak": lambda _: [LineBreak()],
    "hardbreak": lambda _: [LineBreak()],
    "strong": lambda node: [Strong(_runs(node.children))],
    "em": lambda node: [Emphasis(_runs(node.children))],
    "s": lambda node: [Strike(_runs(node.children))],
    "link": _link,
    "image": _image,
}
