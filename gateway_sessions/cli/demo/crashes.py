"""SIGKILL between answer and send, in a tool call, and again and again; and what people see."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from gateway_sessions.cli.demo import bot_process
from gateway_sessions.cli.demo.bot_process import CHAT, LIVES, TAXIS
from gateway_sessions.cli.demo.paint import (
    WIDTH,
    Style,
    bad,
    begin_scene,
    dim,
    good,
    in_columns,
    say,
    strong,
    told,
    wrapped,
)

INDENT = 10
FOUND = {"doubted": "replies in doubt", "resumed": "turns cut off", "suspended": "sessions suspended"}
Facts: TypeAlias = Mapping[str, Any]


async def crash_and_recover(place: Path) -> None:
    """Run one bot six times, kill it five times, and count what people have seen."""
    begin_scene(
        4,
        "kill -9, five times",
        "Six processes on one store, one after the other. What people see is in a file that outlives them.",
    )
    lived = [await BotProcess(number).run_and_show(place) for number in range(1, LIVES + 1)]
    if [life.killed for life in lived] != [True] * (LIVES - 1) + [False]:
        sys.exit("This must not happen: please tell us.")
    shown = [json.loads(line) for line in (place / CHAT).read_text("utf-8").splitlines()]
    asked = [facts for life in lived for facts in life.reports_of("says")]
    answers = [one for one in shown if not one["notice"]]
    dead = lived[-1].reports_of("ended")[0]["dead"]
    say("")
    figures = {
        "messages accepted": len(asked),
        "answers that people have seen": len(answers),
        "kept as a dead letter": len(dead),
        "lost": len(asked) - len(answers) - len(dead),
        "taxis ordered": len((place / TAXIS).read_text("utf-8").splitlines()),
    }
    for name, figure in figures.items():
        say(in_columns(name, strong(str(figure)), widths=(31,)))


class BotProcess:
    """One process of the bot, and its reports."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.reported: list[Facts] = []
        self.killed: bool = False
        self._doom = ""

    def reports_of(self, event: str) -> list[Facts]:
        """Return all reports of one kind."""
        return [facts for facts in self.reported if facts["event"] == event]

    async def run_and_show(self, place: Path) -> BotProcess:
        """Run the process, and show each report as it comes."""
        say(strong(f"process {self.number}"))
        command = (sys.executable, "-m", bot_process.__name__, place, str(self.number))
        child = await asyncio.create_subprocess_exec(*command, stdout=PIPE)
        assert child.stdout is not None  # noqa: S101 -- asked for above
        async for line in child.stdout:
            facts = json.loads(line)
            self.reported.append(facts)
            self._show_report(facts)
        self.killed = await child.wait() == -signal.SIGKILL
        if self.killed:
            show_line(bad("SIGKILL"), self._doom)
        return self

    def _show_report(self, facts: Facts) -> None:
        match facts["event"]:
            case "doomed":
                self._doom = facts["where"]
            case "started" if not facts["clean"]:
                found = [f"{name}: {facts[key]}" for key, name in FOUND.items() if facts[key]]
                show_line("start", f"after a crash; {', '.join(found)}", dim)
            case "says":
                show_line(facts["person"].capitalize(), f"“{facts['text']}”")
            case "turn" if facts["attempt"] > 1:
                show_line("agent", f"attempt {facts['attempt']}", strong)
                if facts["last"]["role"] == "tool":
                    show_line("is told", facts["recovered"], dim)
                    show_line("sees", f"the call, and as its result: {facts['last']['content']}", dim)
            case "shown":
                show_line(
                    f"to {facts['person'].capitalize()}", facts["text"], told if facts["notice"] else good
                )
            case _:
                pass


def show_line(who: str, what: str, style: Style = str) -> None:
    """Show a line that says who does what; a long one goes on below."""
    for line in wrapped(what, WIDTH - INDENT - 5, style):
        say(f"  {in_columns(who, line, widths=(INDENT,))}")
        who = ""
