"""The console, tables that fit its width, progress bars, and harmless forms of strangers' texts."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn
from rich.table import Column as RichColumn
from rich.table import Table
from rich.text import Text

from gateway_sessions.core.display_text import visible_text

PIPED_WIDTH: Final = 4096
"""The width of a pipe, whose lines are not cut."""
NONE: Final = "—"
GAP: Final = 2
SMALLEST: Final = 10
"""The width below which no column shrinks: less of a text would tell nothing."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table."""

    name: str
    widest: int | None = None
    """The greatest width; on a narrow terminal, texts are cut earlier."""
    whole: bool = False
    """Whether texts are never cut, because people copy them."""
    right: bool = False
    leaves: int = 0
    """The order in which columns are left out on a narrow terminal, the highest number first; 0: never."""

    def least_width(self, width: int) -> int:
        """Return the least width of the column."""
        return width if self.whole or self.right else min(width, SMALLEST)


def open_console(*, to_errors: bool = False) -> Console:
    """Open a console on an output stream, with colours only on a terminal without NO_COLOR."""
    stream = sys.stderr if to_errors else sys.stdout
    width = None if stream.isatty() else PIPED_WIDTH
    return Console(file=stream, width=width, highlight=False, markup=False, emoji=False, soft_wrap=False)


def print_answer(console: Console, shown: RenderableType) -> None:
    """Print an answer; in a pipe, without the blanks at the ends of lines."""
    if console.is_terminal:
        # The terminal itself wraps a line of words, so that it can be resized and selected as one line.
        console.print(shown, soft_wrap=isinstance(shown, Text))
        return
    with console.capture() as capture:
        console.print(shown)
    console.file.write("".join(f"{line.rstrip()}\n" for line in capture.get().splitlines()))


def safe_line(text: object) -> str:
    """Return a text of a stranger as one line without control characters."""
    return " ".join(visible_text(str(text)).split()) if text not in (None, "") else NONE


def table_cell(value: object) -> Text:
    """Return a value as a cell of a table; a text with a style keeps it."""
    return value if isinstance(value, Text) else Text(safe_line(value))


@dataclass(frozen=True, slots=True)
class FittedRows:
    """A table that fits the width of the console: texts to copy stay whole, the others are cut."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Text]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table that rich prints."""
        del console
        widths = self._natural_widths()
        left = self._columns_that_stay(widths, options.max_width)
        fitting = fit_widths(
            [self.columns[place].least_width(widths[place]) for place in left],
            [widths[place] for place in left],
            options.max_width,
            GAP,
        )
        shown = {left[place]: width for place, width in fitting.items()}
        _shrink_to_room(shown, options.max_width)
        table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
        for place, width in shown.items():
            one = self.columns[place]
            side: Literal["left", "right"] = "right" if one.right else "left"
            table.add_column(one.name, width=width, no_wrap=True, overflow="ellipsis", justify=side)
        for row in self.rows:
            table.add_row(*(self._shorten_middle(row[place], place, width) for place, width in shown.items()))
        yield table

    def _columns_that_stay(self, widths: Sequence[int], room: int) -> list[int]:
        left = list(range(len(widths)))
        while sum(widths[place] + GAP for place in left) - GAP > room:
            leaving = max(left, key=lambda place: (self.columns[place].leaves, place))
            if not self.columns[leaving].leaves:
                break
            left.remove(leaving)
        return left

    def _shorten_middle(self, text: Text, place: int, width: int) -> Text:
        """Shorten a value in its middle, because ids differ at both ends."""
        if not self.columns[place].whole or text.cell_len <= width:
            return text
        half = (width - 1) // 2
        return Text.assemble(text[: width - 1 - half], "…", text[len(text) - half :])

    def _natural_widths(self) -> list[int]:
        widths: list[int] = []
        for place, one in enumerate(self.columns):
            widest = max([len(one.name), *(row[place].cell_len for row in self.rows)])
            widths.append(widest if one.widest is None else min(widest, one.widest))
        return widths


def rows_table(columns: Sequence[Column], rows: Iterable[Sequence[object]]) -> FittedRows:
    """Return rows under headings."""
    return FittedRows(columns, [[table_cell(value) for value in row] for row in rows])


def fit_widths(least: Sequence[int], widths: Sequence[int], room: int, gap: int) -> dict[int, int]:
    """Return the width of each column that is shown, by its index.

    The widest column shrinks first; if all have their least width, the last one that can shrink is left out.
    """
    shown = dict(enumerate(widths))
    while sum(shown.values()) + gap * (len(shown) - 1) > room:
        shrinking = [place for place, width in shown.items() if width > least[place]]
        if shrinking:
            shown[max(shrinking, key=lambda place: shown[place])] -= 1
            continue
        leaving = [place for place in shown if least[place] < widths[place]]
        if not leaving:
            break
        shown = {place: widths[place] for place in shown if place != leaving[-1]}
    return shown


def _shrink_to_room(shown: dict[int, int], room: int) -> None:
    """Shrink the widest columns, whatever they are, until the table fits a very small terminal."""
    while (missing := sum(shown.values()) + GAP * (len(shown) - 1) - room) > 0:
        widest = max(shown, key=lambda place: shown[place])
        if shown[widest] <= SMALLEST:
            return
        shown[widest] = max(shown[widest] - missing, SMALLEST)


def facts_table(pairs: Iterable[tuple[str, object]]) -> Table:
    """Return names and values as two columns; a value of None is left out."""
    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    shown.add_column(style="bold", no_wrap=True)
    shown.add_column(overflow="fold")
    for name, value in pairs:
        if value is not None:
            shown.add_row(name, table_cell(value))
    return shown


# Progress of long work

MOMENT: Final = 0.3
"""The seconds before a progress bar appears."""
BAR_WIDTH: Final = 20
ONE_LINE: Final = RichColumn(no_wrap=True)


class ReportProgress(Protocol):
    """A function that reports progress."""

    def __call__(self, done: int, total: int | None, what: str | None = None) -> None:
        """Report *done* of *total*; None for an unknown total."""
        ...


class DoneOfTotal(ProgressColumn):
    """The column of a progress bar that shows `done of total`, or only what is done."""

    def render(self, task: Task) -> Text:
        """Return the text of the column."""
        if task.total is None:
            return Text(f"{task.completed:,.0f}" if task.completed else "")
        return Text(f"{task.completed:,.0f} of {task.total:,.0f}")


@contextmanager
def progress_bar(console: Console, doing: str) -> Generator[ReportProgress]:
    """Show a progress bar in the block, and remove it at the end."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(BAR_WIDTH), DoneOfTotal(ONE_LINE))
    shown = Progress(*columns, console=console, transient=True)
    task = shown.add_task(doing, total=None)

    def report(done: int, total: int | None, what: str | None = None) -> None:
        shown.tasks[0].total = total  # to `update`, None means as it was
        shown.update(task, completed=done, description=what or doing)

    later = asyncio.get_running_loop().call_later(MOMENT, shown.start)
    try:
        yield report
    finally:
        later.cancel()
        shown.stop()
