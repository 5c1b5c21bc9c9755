"""Draws a state machine from the table that the program uses: boxes, and arrows with the events on them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from html import escape
from math import hypot
from textwrap import wrap
from typing import NamedTuple

BOX, TALL = 164, 46
FONT = "'DejaVu Sans', Verdana, Helvetica, sans-serif"
INK, LABEL, LINE, PAPER = "#24292f", "#57606a", "#8c959f", "#ffffff"


class Bend(NamedTuple):
    """How far a line swings to its left, and where its label stands: 0 at the beginning, 1 at the end."""

    swing: float
    at: float = 0.5


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """A state machine, and where everything of it stands."""

    title: str
    width: int
    height: int
    moves: Mapping[tuple[StrEnum, StrEnum], StrEnum]
    fills: Mapping[str, str]
    places: Mapping[str, tuple[int, int]]
    """The middle of each box, in the order in which they are drawn."""
    loops: Mapping[str, tuple[int, int]]
    """On which side of its box an arrow stands that leads nowhere else."""
    bends: Mapping[tuple[str, str], Bend]
    """Every pair of boxes that the table joins: a new one cannot be drawn before it has its place here."""
    inside: Mapping[str, str] = field(default_factory=dict[str, str])
    """States that stand in the box of another one, because they move as that one does."""
    hidden: frozenset[str] = frozenset()
    """States that are not drawn, nor what leads there."""


def picture(drawing: Drawing) -> str:
    """Return the whole drawing."""
    title, width, height = drawing.title, drawing.width, drawing.height
    lines = [
        part for pair, events in sorted(_arrows(drawing).items()) for part in _move(drawing, pair, events)
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" role="img" aria-label="{title}" font-family="{FONT}">',
            f'<rect width="{width}" height="{height}" rx="8" fill="{PAPER}"/>',
            *(_state(drawing, name) for name in drawing.places),
            *(part for part in lines if part.startswith("<path")),
            *(part for part in lines if not part.startswith("<path")),
            "</svg>",
            "",
        ]
    )


def _arrows(drawing: Drawing) -> dict[tuple[str, str], list[str]]:
    """Return the events between each two boxes, in the order of the program."""
    moves = sorted(drawing.moves.items(), key=lambda move: [*type(move[0][1])].index(move[0][1]))
    found: defaultdict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    for (state, event), after in moves:
        before, behind = (drawing.inside.get(one.value, one.value) for one in (state, after))
        if not {before, behind} & drawing.hidden:
            found[before, behind][event.value] = None
    return {pair: [*events] for pair, events in found.items()}


def _state(drawing: Drawing, name: str) -> str:
    x, y = drawing.places[name]
    others = ", ".join(one for one, box in drawing.inside.items() if box == name)
    lower = (
        f'<text x="{x}" y="{y + 17}" text-anchor="middle" font-size="11.5" fill="{INK}">{others}</text>'
        if others
        else ""
    )
    return (
        f'<rect x="{x - BOX / 2:g}" y="{y - TALL / 2:g}" width="{BOX}" height="{TALL}" rx="10" '
        f'fill="{drawing.fills[name]}" stroke="{INK}"/><text x="{x}" y="{y + (0 if others else 5)}" '
        f'text-anchor="middle" font-size="16" font-weight="600" fill="{INK}">{name}</text>{lower}'
    )


def _move(drawing: Drawing, pair: tuple[str, str], events: list[str]) -> Iterator[str]:
    start, end = pair
    if start == end:
        yield from _loop(drawing.places[start], drawing.loops[start], events)
        return
    bend = drawing.bends[pair]
    (ax, ay), (bx, by) = drawing.places[start], drawing.places[end]
    far = hypot(bx - ax, by - ay)
    cx = (ax + bx) / 2 - bend.swing * 2 * (ay - by) / far
    cy = (ay + by) / 2 - bend.swing * 2 * (bx - ax) / far * -1
    begin, stop = _border(ax, ay, cx, cy), _border(bx, by, cx, cy)
    yield from _arrow(f"M{_at(*begin)} Q{_at(cx, cy)} {_at(*stop)}", (cx, cy), stop)
    t = bend.at
    x = (1 - t) ** 2 * begin[0] + 2 * t * (1 - t) * cx + t**2 * stop[0]
    y = (1 - t) ** 2 * begin[1] + 2 * t * (1 - t) * cy + t**2 * stop[1]
    yield from _label(x, y, events)


def _loop(place: tuple[int, int], side: tuple[int, int], events: list[str]) -> Iterator[str]:
    """Draw events that lead nowhere else on the side where nothing else is."""
    (x, y), (right, down) = place, side
    if right:
        edge = x + right * BOX / 2
        far = edge + right * 42
        course = f"M{_at(edge, y - 12)} C{_at(far, y - 34)} {_at(far, y + 34)} {_at(edge, y + 12)}"
        yield from _arrow(course, (far, y + 34), (edge, y + 12))
        yield from _label(edge + right * 12, y + 48, events)
    else:
        edge = y + down * TALL / 2
        far = edge + down * 40
        course = f"M{_at(x - 18, edge)} C{_at(x - 48, far)} {_at(x + 48, far)} {_at(x + 18, edge)}"
        yield from _arrow(course, (x + 48, far), (x + 18, edge))
        yield from _label(x + 96, edge + down * 18, events)


def _border(x: float, y: float, towards_x: float, towards_y: float) -> tuple[float, float]:
    """Where a line from the middle of a box to a point leaves it."""
    dx, dy = towards_x - x, towards_y - y
    scale = min(BOX / 2 / abs(dx) if dx else 9e9, TALL / 2 / abs(dy) if dy else 9e9)
    return x + dx * scale, y + dy * scale


def _arrow(course: str, before: tuple[float, float], tip: tuple[float, float]) -> Iterator[str]:
    """A line with a head that looks away from the point *before* its tip."""
    (x, y), (dx, dy) = tip, (tip[0] - before[0], tip[1] - before[1])
    far = hypot(dx, dy)
    dx, dy = 10 * dx / far, 10 * dy / far
    sides = f"L{_at(x - dx - dy / 2.2, y - dy + dx / 2.2)} L{_at(x - dx + dy / 2.2, y - dy - dx / 2.2)}"
    yield f'<path d="{course}" fill="none" stroke="{LINE}" stroke-width="1.5"/>'
    yield f'<path d="M{_at(x, y)} {sides} z" fill="{LINE}"/>'


def _label(x: float, y: float, events: Iterable[str]) -> Iterator[str]:
    lines = wrap(", ".join(events), 18)
    top = y - (len(lines) - 1) * 7.5
    wide = max(map(len, lines)) * 6.6 + 8
    yield (
        f'<rect x="{x - wide / 2:g}" y="{top - 9:g}" width="{wide:g}" height="{15 * len(lines) + 3}" rx="3" '
        f'fill="{PAPER}" fill-opacity="0.9"/>'
    )
    for number, line in enumerate(lines):
        yield (
            f'<text x="{x:g}" y="{top + 4 + 15 * number:g}" text-anchor="middle" font-size="12.5" '
            f'fill="{LABEL}">{escape(line)}</text>'
        )


def _at(x: float, y: float) -> str:
    return f"{x:.1f} {y:.1f}"
