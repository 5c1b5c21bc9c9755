"""Writes the table in states.md from the table that the program uses: run it after changing that.

python docs/reference/make_state_diagram.py

The picture above it is made from the same table: `make pictures`.
"""

from __future__ import annotations

from pathlib import Path

from gateway_sessions import SessionState
from gateway_sessions.core.sessions.state_machine import TRANSITIONS, Event

PAGE = Path(__file__).with_name("states.md")
BEGIN, END = "<!-- drawn by make_state_diagram.py -->\n", "<!-- end of the drawings -->\n"


def table() -> str:
    """The state that an event leads to; a dot where it is refused."""
    width = max(map(len, SessionState)) + 2
    head = f"{'':<13}" + "".join(f"{state.value:<{width}}" for state in SessionState)
    rows = [
        f"{event.value:<13}"
        + "".join(f"{TRANSITIONS.get((state, event), '.'):<{width}}" for state in SessionState)
        for event in Event
    ]
    return "\n".join(["```", *(line.rstrip() for line in (head, *rows)), "```"])


def drawn(page: str) -> str:
    """The page with a table that is up to date."""
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n{table()}\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(drawn(PAGE.read_text("utf-8")), "utf-8")
