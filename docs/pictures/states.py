"""The states of a session and what leads from one to another, drawn from the table that the program uses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from html import escape
from math import hypot
from textwrap import wrap
from typing import NamedTuple

from gateway_sessions import SessionState
from gateway_sessions.core.sessions.state_machine import TRANSITIONS, Event

WIDTH, HEIGHT, BOX, TALL = 940, 464, 164, 46
FONT = "'DejaVu Sans', Verdana, Helvetica, sans-serif"
INK, LABEL, LINE, PAPER = "#24292f", "#57606a", "#8c959f", "#ffffff"
FILL = {"active": "#dafbe1", "resume_pending": "#fff8c5", "expired": "#eaeef2", "suspended": "#ffebe9"}
PLACE = {"active": (165, 240), "resume_pending": (470, 80), "expired": (470, 410), "suspended": (775, 240)}


class Bend(NamedTuple):
    """How far a line swings to its left, and where its label stands: 0 at the beginning, 1 at the end."""

    swing: float
    at: float = 0.5


LOOPS = {"active": (-1, 0), "resume_pending": (0, -1), "suspended": (1, 0)}
BENDS = {
    ("active", "resume_pending"): Bend(-40, 0.55),
    ("resume_pending", "active"): Bend(-40, 0.4),
    ("active", "expired"): Bend(40, 0.55),
    ("expired", "active"): Bend(40, 0.4),
    ("active", "suspended"): Bend(-18, 0.68),
    ("suspended", "active"): Bend(-18, 0.32),
    ("resume_pending", "expired"): Bend(0, 0.25),
    ("resume_pending", "suspended"): Bend(-30),
    ("expired", "suspended"): Bend(30),
}
"""Every pair that the table has: a new one cannot be drawn before it has got its place here."""


def picture() -> str:
    """The whole drawing."""
    moves: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for (state, event), after in sorted(TRANSITIONS.items(), key=lambda move: [*Event].index(move[0][1])):
        moves[state.value, after.value].append(event.value)
    lines = [part for pair, events in sorted(moves.items()) for part in _move(*pair, events)]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
            f'height="{HEIGHT}" role="img" aria-label="The states of a session" font-family="{FONT}">',
            f'<rect width="{WIDTH}" height="{HEIGHT}" rx="8" fill="{PAPER}"/>',
            *(_state(state.value) for state in SessionState),
            *(part for part in lines if part.startswith("<path")),
            *(part for part in lines if not part.startswith("<path")),
            "</svg>",
            "",
        ]
    )


def _state(name: str) -> str:
    x, y = PLACE[name]
    return (
        f'<rect x="{x - BOX / 2:g}" y="{y - TALL / 2:g}" width="{BOX}" height="{TALL}" rx="10" '
        f'fill="{FILL[name]}" stroke="{INK}"/><text x="{x}" y="{y + 5}" text-anchor="middle" font-size="16" '
        f'font-weight="600" fill="{INK}">{name}</text>'
    )


def _move(start: str, end: str, events: list[str]) -> Iterator[str]:
    if start == end:
        yield from _loop(start, events)
        return
    bend = BENDS[start, end]
    (ax, ay), (bx, by) = PLACE[start], PLACE[end]
    far = hypot(bx - ax, by - ay)
    cx = (ax + bx) / 2 - bend.swing * 2 * (ay - by) / far
    cy = (ay + by) / 2 - bend.swing * 2 * (bx - ax) / far * -1
    begin, stop = _border(ax, ay, cx, cy), _border(bx, by, cx, cy)
    yield from _arrow(f"M{_at(*begin)} Q{_at(cx, cy)} {_at(*stop)}", (cx, cy), stop)
    t = bend.at
    x = (1 - t) ** 2 * begin[0] + 2 * t * (1 - t) * cx + t**2 * stop[0]
    y = (1 - t) ** 2 * begin[1] + 2 * t * (1 - t) * cy + t**2 * stop[1]
    yield from _label(x, y, events)


def _loop(name: str, events: list[str]) -> Iterator[str]:
    """An event that leads nowhere else, drawn on the side where nothing else is."""
    (x, y), (right, down) = PLACE[name], LOOPS[name]
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
