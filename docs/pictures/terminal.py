"""What a terminal shows, as a picture that needs nothing but itself: no font and no host."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from rich.cells import cell_len
from rich.color import ColorType
from rich.console import Console
from rich.style import Style
from rich.text import Text

FONT = "'DejaVu Sans Mono', Menlo, Consolas, monospace"
SIZE, CELL, LINE, MARGIN, BAR = 14, 8.4, 19, 18, 34
GROUND, FRAME, PLAIN, FAINT = "#1c1f26", "#3a3f4b", "#d7dae0", "#8a919e"
COLOURS = ("#4b5263", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d7dae0")
"""The eight of a terminal, in their order; the bright ones are shown like them."""


def picture(title: str, shown: str, columns: int) -> str:
    """An SVG of lines with the colours of a terminal, that many columns wide."""
    lines = [Text.from_ansi(line.rstrip()) for line in shown.strip("\n").splitlines()]
    width = columns * CELL + 2 * MARGIN
    height = BAR + len(lines) * LINE + MARGIN
    drawn = [part for number, line in enumerate(lines) for part in _line(line, BAR + (number + 0.8) * LINE)]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
            f'height="{height:g}" role="img" aria-label="{escape(title)}">',
            f'<rect x="0.5" y="0.5" width="{width - 1:g}" height="{height - 1:g}" rx="8" fill="{GROUND}" '
            f'stroke="{FRAME}"/>',
            *(
                f'<circle cx="{MARGIN + 4 + 18 * place}" cy="17" r="5" fill="{colour}"/>'
                for place, colour in enumerate((COLOURS[1], COLOURS[3], COLOURS[2]))
            ),
            f'<g font-family="{FONT}" font-size="{SIZE}" fill="{PLAIN}" xml:space="preserve">',
            f'<text x="{width / 2:g}" y="21" text-anchor="middle" fill="{FAINT}">{escape(title)}</text>',
            *drawn,
            "</g>",
            "</svg>",
            "",
        ]
    )


def _line(line: Text, y: float) -> Iterator[str]:
    """Each piece stands where its cells are, however wide the font of whoever looks."""
    at = 0
    for text, style, _ in line.render(Console(color_system="standard", force_terminal=True)):
        for begin, piece in _words(text.rstrip("\n")):
            x = MARGIN + (at + begin) * CELL
            length = cell_len(piece) * CELL
            looks = _looks(style or Style())
            yield f'<text x="{x:g}" y="{y:g}" textLength="{length:g}"{looks}>{escape(piece)}</text>'
        at += cell_len(text)


def _words(text: str) -> Iterator[tuple[int, str]]:
    """Pieces between wide gaps, with the cells in front of them.

    No piece begins or ends with a space: a browser drops it, and stretches the letters to the length with it.
    """
    begin = 0
    for piece in text.split("  "):
        stripped = piece.strip(" ")
        if stripped:
            yield begin + len(piece) - len(piece.lstrip(" ")), stripped
        begin += cell_len(piece) + 2


def _looks(style: Style) -> str:
    colour = FAINT if style.dim else None
    if (
        style.color is not None
        and style.color.type is not ColorType.DEFAULT
        and style.color.number is not None
    ):
        colour = COLOURS[style.color.number % len(COLOURS)]
    looks = f' fill="{colour}"' if colour else ""
    looks += ' font-weight="bold"' if style.bold else ""
    return looks + (' font-style="italic"' if style.italic else "")
