"""The terminal in raw mode: every key at once, a screen of its own, and all as it was afterwards."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import termios
import tty
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from rich.console import Console
from rich.text import Text

from gateway_sessions.cli.picker.keys import KeyDecoder
from gateway_sessions.cli.picker.model import PickerKey, Press

ESCAPE_SECONDS: Final = 0.05
"""Bytes that follow an Escape within this time belong to its sequence."""
CHUNK: Final = 1 << 12
USUAL_SIZE: Final = (80, 24)
"""The size of a terminal that does not report one."""
# The other screen, no cursor, no wrapping at the edge, and pasted texts marked as such.
ENTER: Final = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[?2004h\x1b[2J"
LEAVE: Final = "\x1b[?2004l\x1b[?7h\x1b[?25h\x1b[?1049l"


class RawTerminal:
    """The terminal in raw mode; only lines that have changed are drawn again."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._shown: list[str] = []
        self._keys = KeyDecoder()

    @property
    def size(self) -> tuple[int, int]:
        """The columns and lines of the terminal."""
        columns, lines = os.get_terminal_size(sys.stdout.fileno())
        return (columns, lines) if columns and lines else USUAL_SIZE

    @contextmanager
    def raw_mode(self, pressed: Callable[[Press], object], resized: Callable[[], object]) -> Generator[None]:
        """Call *pressed* for each key and *resized* for each new size within the block."""
        loop, stdin = asyncio.get_running_loop(), sys.stdin.fileno()
        before = termios.tcgetattr(stdin)
        try:
            tty.setraw(stdin, termios.TCSADRAIN)
            self._write(ENTER)
            loop.add_reader(stdin, self._read_keys, stdin, pressed)
            loop.add_signal_handler(signal.SIGWINCH, resized)
            for ending in (signal.SIGTERM, signal.SIGHUP):
                loop.add_signal_handler(ending, pressed, PickerKey.INTERRUPT)
            yield
        finally:
            loop.remove_reader(stdin)
            for one in (signal.SIGWINCH, signal.SIGTERM, signal.SIGHUP):
                loop.remove_signal_handler(one)
            with suppress(OSError, termios.error):  # there may be no terminal any more
                self._write(LEAVE)
                termios.tcsetattr(stdin, termios.TCSADRAIN, before)  # what was typed ahead stays

    def draw(self, lines: Sequence[Text], *, anew: bool = False) -> None:
        """Show these lines from the top; with *anew*, all of them are drawn again."""
        drawn = [self._render_line(line) for line in lines]
        before = [] if anew else self._shown
        changed = [
            f"\x1b[{place + 1};1H\x1b[2K{line}"
            for place, line in enumerate(drawn)
            if place >= len(before) or before[place] != line
        ]
        self._shown = drawn
        self._write(("\x1b[2J" if anew else "") + "".join(changed))

    def _render_line(self, line: Text) -> str:
        with self._console.capture() as capture:
            self._console.print(line, end="", no_wrap=True, overflow="ignore", crop=False)
        return capture.get()

    def _read_keys(self, stdin: int, pressed: Callable[[Press], object]) -> None:
        try:
            data = os.read(stdin, CHUNK)
        except OSError:  # the terminal is gone
            data = b""
        if not data:
            asyncio.get_running_loop().remove_reader(stdin)
            pressed(PickerKey.LEAVE)
            return
        for one in self._keys.feed(data):
            pressed(one)
        if self._keys.is_incomplete:
            asyncio.get_running_loop().call_later(
                ESCAPE_SECONDS, self._flush_escape, self._keys.times_fed, pressed
            )

    def _flush_escape(self, fed: int, pressed: Callable[[Press], object]) -> None:
        if fed == self._keys.times_fed:
            for one in self._keys.flush():
                pressed(one)

    def _write(self, text: str) -> None:
        sys.stdout.buffer.write(text.encode(self._console.encoding, "replace"))
        sys.stdout.flush()
