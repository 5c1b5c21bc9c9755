"""A bar is for those who wait: it comes after a moment, fits, and leaves nothing behind."""

import asyncio
import contextlib
from io import StringIO

import pytest
from rich.console import Console

from gateway_sessions.cli.output.terminal import progress_bar

ERASED = "\x1b[2K"
CURSOR_BACK = "\x1b[?25h"


class Paper(StringIO):
    """Keeps what is drawn, by whatever thread, and tells of it."""

    def __init__(self) -> None:
        super().__init__()
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()

    def write(self, text: str) -> int:
        self._loop.call_soon_threadsafe(self._news.set)
        return super().write(text)

    async def until(self, text: str) -> None:
        while text not in self.getvalue():
            self._news.clear()
            await self._news.wait()


def terminal(paper: Paper, width: int) -> Console:
    return Console(file=paper, force_terminal=True, width=width, _environ={"TERM": "xterm", "NO_COLOR": "1"})


async def test_what_takes_no_time_shows_nothing():
    paper = Paper()
    with progress_bar(terminal(paper, 80), "Checking") as tell:
        tell(1, 2, "Reading")
    await asyncio.sleep(0)
    assert paper.getvalue() == ""


@pytest.mark.parametrize("width", [30, 50, 120])
async def test_what_takes_longer_is_shown_on_one_line_and_gone_afterwards(width: int):
    paper = Paper()
    with progress_bar(terminal(paper, width), "Checking") as tell:
        await paper.until("Checking")
        tell(1_234, 5_678, "Reading")
        await paper.until("1,234 of 5,678" if width > 30 else "Reading")
        tell(2_345, None)
        await paper.until("2,345")
        assert "\n" not in paper.getvalue()
        assert "2,345 of" not in paper.getvalue()
    assert paper.getvalue().endswith(ERASED)


async def test_what_fails_leaves_nothing_behind_either():
    paper = Paper()
    with contextlib.suppress(KeyError), progress_bar(terminal(paper, 80), "Checking"):
        await paper.until("Checking")
        raise KeyError
    assert CURSOR_BACK in paper.getvalue().rpartition("Checking")[2]
