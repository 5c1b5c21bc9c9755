"""Writes the tables in states.md from the tables that the program uses: run it after changing those.

python docs/reference/make_state_diagram.py

The pictures beside them are made from the same tables: `make pictures`.
"""

from __future__ import annotations

import inspect
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Final

from gateway_sessions import SessionState
from gateway_sessions.core.queue.state_machine import (
    ITEM_CAUSES,
    ITEM_MOVES,
    REPLY_CAUSES,
    REPLY_MOVES,
    TURN_ENDS,
    Cause,
    ItemEvent,
    ItemState,
    ReplyEvent,
    ReplyState,
    TurnOutcome,
)
from gateway_sessions.core.sessions.state_machine import TRANSITIONS, Event

PAGE = Path(__file__).with_name("states.md")
BEGIN, END = "<!-- {} drawn by make_state_diagram.py -->\n", "<!-- end of {} -->\n"
_MEMBER: Final = re.compile(r"^    \w+ = \"(?P<word>\w+)\"  # (?P<means>.+)$", re.MULTILINE)


def session_moves() -> str:
    """Return the state that an event leads to; a dot where it is refused."""
    width = max(map(len, SessionState)) + 2
    head = f"{'':<13}" + "".join(f"{state.value:<{width}}" for state in SessionState)
    rows = [
        f"{event.value:<13}"
        + "".join(f"{TRANSITIONS.get((state, event), '.'):<{width}}" for state in SessionState)
        for event in Event
    ]
    return "\n".join(["```", *(line.rstrip() for line in (head, *rows)), "```"])


def words(kind: type[StrEnum], title: str) -> str:
    """Return the words of an enum with what their comments say."""
    means = {found["word"]: found["means"] for found in _MEMBER.finditer(inspect.getsource(kind))}
    return _table((title, "Means"), [(f"`{one.value}`", means[one.value]) for one in kind])


def moves(
    events: type[StrEnum],
    table: Mapping[tuple[StrEnum, StrEnum], StrEnum],
    causes: Mapping[StrEnum, tuple[Cause, ...]],
) -> str:
    """Return for each event what it means, where it leads from and to, and who causes it."""
    means = {found["word"]: found["means"] for found in _MEMBER.finditer(inspect.getsource(events))}
    rows = [
        (f"`{event.value}`", means[event.value], _ways(event, table), ", ".join(causes[event]))
        for event in events
    ]
    return _table(("Event", "What happens", "Leads", "Who causes it"), rows)


def turn_ends() -> str:
    """Return what each end of a turn means, and what it is for the messages of the turn."""
    means = {found["word"]: found["means"] for found in _MEMBER.finditer(inspect.getsource(TurnOutcome))}
    rows = [
        (f"`{one.value}`", means[one.value], "" if (event := TURN_ENDS[one]) is None else f"`{event.value}`")
        for one in TurnOutcome
    ]
    return _table(("Outcome", "Means", "For its messages"), rows)


def _ways(event: StrEnum, table: Mapping[tuple[StrEnum, StrEnum], StrEnum]) -> str:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for state in type(next(iter(table))[0]):
        if (after := table.get((state, event))) is not None:
            found[after.value].append(f"`{state.value}`")
    return "; ".join(f"{', '.join(before)} → `{after}`" for after, before in found.items())


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = ["|" + "".join(f" {cell} |" if cell else " |" for cell in row) for row in (head, *rows)]
    lines.insert(1, "|" + "---|" * len(head))
    return "\n".join(lines)


DRAWINGS: Final[Mapping[str, Callable[[], str]]] = MappingProxyType(
    {
        "session moves": session_moves,
        "item states": lambda: words(ItemState, "State"),
        "item moves": lambda: moves(ItemEvent, ITEM_MOVES, ITEM_CAUSES),
        "turn outcomes": turn_ends,
        "reply states": lambda: words(ReplyState, "State"),
        "reply moves": lambda: moves(ReplyEvent, REPLY_MOVES, REPLY_CAUSES),
        "causes": lambda: words(Cause, "Who"),
    }
)


def drawn(page: str) -> str:
    """Return the page with tables that are up to date."""
    for name, draw in DRAWINGS.items():
        begin, end = BEGIN.format(name), END.format(name)
        before, rest = page.split(begin)
        page = f"{before}{begin}\n{draw()}\n\n{end}{rest.split(end)[1]}"
    return page


if __name__ == "__main__":
    PAGE.write_text(drawn(PAGE.read_text("utf-8")), "utf-8")
