"""How far something is that takes long: a bar, if it takes more than a moment."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol

from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn
from rich.table import Column
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console

MOMENT: Final = 0.3
"""Seconds in which nobody begins to wonder."""
BAR_WIDTH: Final = 20
ONE_LINE: Final = Column(no_wrap=True)


class Tells(Protocol):
    """Says how far something is."""

    def __call__(self, done: int, total: int | None, what: str | None = None) -> None:
        """*done* of *total*, or of nobody knows how many."""
        ...


class Count(ProgressColumn):
    """How many are done, of how many, as far as that is known."""

    def render(self, task: Task) -> Text:
        """What rich shows of a task."""
        if task.total is None:
            return Text(f"{task.completed:,.0f}" if task.completed else "")
        return Text(f"{task.completed:,.0f} of {task.total:,.0f}")


@contextmanager
def bar(screen: Console, doing: str) -> Generator[Tells]:
    """Within the block, show how far it is; the terminal is then as it was before."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(BAR_WIDTH), Count(ONE_LINE))
    shown = Progress(*columns, console=screen, transient=True)
    task = shown.add_task(doing, total=None)

    def tell(done: int, total: int | None, what: str | None = None) -> None:
        shown.tasks[0].total = total  # to `update`, None means as it was
        shown.update(task, completed=done, description=what or doing)

    later = asyncio.get_running_loop().call_later(MOMENT, shown.start)
    try:
        yield tell
    finally:
        later.cancel()
        shown.stop()
