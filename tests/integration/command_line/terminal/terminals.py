"""A terminal with a person at it: what a command draws becomes a screen, and what they press reaches it."""

import codecs
import os
import pty
import re
import select
import struct
import sys
import termios
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from fcntl import ioctl
from pathlib import Path
from typing import IO

import pytest
from rich.cells import cell_len

from tests.programs import PATIENCE, Program, warm_python

UP, DOWN, PAGE_DOWN, HOME, END = "\x1b[A", "\x1b[B", "\x1b[6~", "\x1b[H", "\x1b[F"
ENTER, ESCAPE, BACKSPACE, CTRL_C, CTRL_D = "\r", "\x1b", "\x7f", "\x03", "\x04"
OTHER_SCREEN, CURSOR, WRAPS, MARKS_PASTES = "1049", "25", "7", "2004"

GSESS = Path(sys.executable).with_name("gsess")
_SEQUENCE = re.compile(r"\x1b\[([?>]?)([0-9;]*)([A-Za-z])|\x1b\][^\x07]*\x07|\x1b[=>()][0B]?")


class Screen:
    """As much of a terminal as our commands use."""

    def __init__(self, columns: int, lines: int) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending = ""
        self._row = self._column = 0
        self._cells = [[" "] * columns for _ in range(lines)]
        self._main = self._cells
        self._unknown_size = False
        """Whether the command has drawn nothing yet that is meant for the present size."""
        self.on = {CURSOR, WRAPS}
        """Modes of the terminal that are switched on."""
        self.colours = False
        """Whether there has been any."""

    @property
    def lines(self) -> list[str]:
        """What stands there now."""
        return ["".join(row).rstrip() for row in self._cells]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def resize(self, columns: int, lines: int) -> None:
        self._unknown_size = True
        for screen in (self._main, self._cells):
            screen[:] = [(row + [" "] * columns)[:columns] for row in screen][-lines:]
            screen += [[" "] * columns for _ in range(lines - len(screen))]
        self._row, self._column = min(self._row, lines - 1), min(self._column, columns - 1)

    def draw(self, data: bytes) -> None:
        text = self._pending + self._decoder.decode(data)
        place = 0
        while place < len(text):
            if text[place] == "\x1b":
                found = _SEQUENCE.match(text, place)
                if found is None:
                    break
                self._apply_control(found)
                place = found.end()
            else:
                self._put_character(text[place])
                place += 1
        self._pending = text[place:]

    def _apply_control(self, found: re.Match[str]) -> None:
        kind, given, end = found[1] or "", found[2] or "", found[3] or "-"
        numbers = [int(one or 0) for one in given.split(";")] if given else []
        count = max(numbers[0] if numbers else 1, 1)
        if kind == "?":
            self._switch_mode(given, on=end == "h")
        elif end == "H":
            self._row = min(count, len(self._cells)) - 1
            self._column = (numbers[1] if len(numbers) > 1 else 1) - 1
        elif end in "AB":
            self._row = max(self._row + (count if end == "B" else -count), 0)
        elif end in "CD":
            self._column = max(self._column + (count if end == "C" else -count), 0)
        elif end in "JK":
            self._erase_line(end, whole=numbers == [2])
        elif end == "m":
            self.colours |= any(30 <= one <= 49 or one >= 90 for one in numbers)

    def _erase_line(self, end: str, *, whole: bool) -> None:
        if end == "K":
            # Behind the last column, the cursor of a terminal still stands on it.
            first = 0 if whole else min(self._column, len(self._cells[self._row]) - 1)
            self._cells[self._row][first:] = [" "] * (len(self._cells[self._row]) - first)
            return
        self._unknown_size &= not whole
        for row in self._cells if whole else self._cells[self._row + 1 :]:
            row[:] = [" "] * len(row)

    def _switch_mode(self, mode: str, *, on: bool) -> None:
        if mode == OTHER_SCREEN:
            self._cells = [[" "] * len(row) for row in self._main] if on else self._main
        self.on = self.on | {mode} if on else self.on - {mode}

    def _put_character(self, character: str) -> None:
        width = cell_len(character)
        if character == "\r":
            self._column = 0
        elif character == "\n":
            self._row += 1
        elif character == "\x08":
            self._column = max(self._column - 1, 0)
        elif width and character.isprintable():
            self._scroll_for(width)
            row = self._cells[self._row]
            row[self._column : self._column + width] = [character, *[""] * (width - 1)]
            self._column += width
        while self._row >= len(self._cells):
            self._cells.append([" "] * len(self._cells.pop(0)))
            self._row -= 1

    def _scroll_for(self, width: int) -> None:
        columns = len(self._cells[self._row])
        if self._column + width <= columns:
            return
        if self._unknown_size:  # what is drawn before the command has heard of it is cut off
            self._column = columns - width
            return
        assert WRAPS in self.on, "a line was drawn beyond the edge"
        self._row, self._column = self._row + 1, 0
        while self._row >= len(self._cells):
            self._cells.append([" "] * len(self._cells.pop(0)))
            self._row -= 1


class TerminalSession:
    """A command at a terminal of its own, and the person in front of it."""

    def __init__(self, process: Program | None, terminal: int, columns: int, lines: int) -> None:
        self.process = process
        self.screen = Screen(columns, lines)
        self.drawn = b""
        """All that was ever drawn."""
        self._terminal = terminal

    def press(self, *keys: str) -> None:
        """One key after the other."""
        for key in keys:
            os.write(self._terminal, key.encode())

    def resize(self, columns: int, lines: int) -> None:
        """The system tells the command."""
        self.screen.resize(columns, lines)
        ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def watch_until(self, seen: str | Callable[[Screen], bool]) -> str:
        """Watch until something is seen; what is seen then."""
        fits = seen if callable(seen) else lambda screen: seen in screen.text
        end = time.monotonic() + PATIENCE
        while not fits(self.screen):
            assert select.select([self._terminal], [], [], max(end - time.monotonic(), 0))[0], (
                self.screen.text
            )
            assert self._read(), f"it has ended:\n{self.screen.text}"
        return self.screen.text

    def watch_to_end(self) -> int:
        """Watch to the end; its exit code."""
        end = time.monotonic() + PATIENCE
        while select.select([self._terminal], [], [], max(end - time.monotonic(), 0))[0] and self._read():
            pass
        assert self.process is not None
        return self.process.wait(PATIENCE)

    def watch_last_output(self) -> None:
        """Watch what was drawn at the end, and leave."""
        with suppress(OSError):
            while select.select([self._terminal], [], [], 0)[0] and self._read():
                pass
            os.close(self._terminal)

    def hang_up(self) -> None:
        """The terminal is gone."""
        os.close(self._terminal)

    @property
    def is_raw(self) -> bool:
        """Whether the terminal hands over every key at once."""
        return not termios.tcgetattr(self._terminal)[3] & (termios.ICANON | termios.ECHO)

    def _read(self) -> bool:
        try:
            data = os.read(self._terminal, 1 << 16)
        except OSError:  # everybody at the other end has closed it
            return False
        self.drawn += data
        self.screen.draw(data)
        return bool(data)


def open_pty(columns: int, lines: int) -> tuple[int, int]:
    """Both ends of a terminal of that size: ours, and that of a program."""
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    return ours, theirs


def run_at_terminal_here(
    command: Callable[[], int], play: Callable[[TerminalSession], None], *, size: tuple[int, int] = (80, 24)
) -> tuple[int, TerminalSession]:
    """Carry a command out here, where it is measured, while *play* sits in front of it: how it ended."""
    ours, theirs = open_pty(*size)
    person = TerminalSession(None, ours, 80, 24)

    def sit() -> None:
        try:
            play(person)
        finally:
            with suppress(OSError):
                person.press(CTRL_C)

    with ExitStack() as stack:
        stack.callback(os.close, theirs)
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
            stream = open(theirs, mode, closefd=False)  # noqa: SIM115 -- closed below
            stack.callback(_closed, stream)
            patch.setattr(sys, name, stream)
        played = stack.enter_context(ThreadPoolExecutor(1)).submit(sit)
        code = command()
        played.result()
    person.watch_last_output()
    return code, person


@contextmanager
def terminal_session(
    *arguments: object, columns: int = 80, lines: int = 24, **environment: str
) -> Iterator[TerminalSession]:
    """Start a command on a terminal; whatever happens, it has ended afterwards."""
    ours, theirs = open_pty(columns, lines)
    unwanted = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES")
    clean = {name: value for name, value in os.environ.items() if name not in unwanted}
    process = warm_python().start_at(
        theirs, GSESS, *arguments, environment=clean | {"TERM": "xterm-256color"} | environment
    )
    os.close(theirs)
    try:
        with process:
            yield TerminalSession(process, ours, columns, lines)
    finally:
        os.close(ours)


def _closed(stream: IO[str]) -> None:
    with suppress(OSError):  # the other end may be gone
        stream.close()
