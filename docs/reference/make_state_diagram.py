"""Writes the two drawings in states.md from the table that the program uses: run it after changing that.

python docs/reference/make_state_diagram.py
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from gateway_sessions import SessionState
from gateway_sessions.core.lifecycle import TRANSITIONS, Event

PAGE = Path(__file__).with_name("states.md")
BEGIN, END = "<!-- drawn by make_state_diagram.py -->\n", "<!-- end of the drawings -->\n"


def moves() -> dict[tuple[SessionState, SessionState], list[Event]]:
    """The events that lead from one state to another, in the order of their definition."""
    found: defaultdict[tuple[SessionState, SessionState], list[Event]] = defaultdict(list)
    for state in SessionState:
        for event in Event:
            if (state, event) in TRANSITIONS:
                found[state, TRANSITIONS[state, event]].append(event)
    return dict(found)


def mermaid() -> str:
    """The diagram that a Markdown viewer draws."""
    lines = [
        f"    {start.value} --> {end.value}: {', '.join(events)}" for (start, end), events in moves().items()
    ]
    return "\n".join(["```mermaid", "stateDiagram-v2", "    [*] --> active", *lines, "```"])


def table() -> str:
    """The same as text: the state that an event leads to; a dot where it is refused."""
    width = max(map(len, SessionState)) + 2
    head = f"{'':<13}" + "".join(f"{state.value:<{width}}" for state in SessionState)
    rows = [
        f"{event.value:<13}"
        + "".join(f"{TRANSITIONS.get((state, event), '.'):<{width}}" for state in SessionState)
        for event in Event
    ]
    return "\n".join(["```", *(line.rstrip() for line in (head, *rows)), "```"])


def drawn(page: str) -> str:
    """The page with drawings that are up to date."""
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n{mermaid()}\n\n{table()}\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(drawn(PAGE.read_text("utf-8")), "utf-8")
