"""What every command works with: where the store is, and how to answer."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import typer

from gateway_sessions.cli.exits import Exit

if TYPE_CHECKING:
    from datetime import datetime

    from rich.console import Console, RenderableType

    import gateway_sessions as gs

NAMES: Final = ("gateway-sessions", "gsess")
HOME_VARIABLE: Final = "GATEWAY_SESSIONS_HOME"
CONFIG_VARIABLE: Final = "GATEWAY_SESSIONS_CONFIG"
CONFIG_FILE: Final = "config.yaml"
"""Looked for in the directory of the store, if nobody names another one."""
ENVELOPE: Final = 1
"""The version of what --json writes; it rises when a member goes or means something else."""


class Declined(Exception):  # noqa: N818 -- not an error: somebody said no
    """Somebody did not confirm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the options in front of all commands say."""

    home: str | None = None
    config: Path | None = None
    as_json: bool = False
    yes: bool = False
    debug: bool = False


class Tells(Protocol):
    """Says how far something is."""

    def __call__(self, done: int, total: int | None, what: str | None = None) -> None:
        """*done* of *total*, or of nobody knows how many."""
        ...


class Shows(Protocol):
    """Makes what people see of an answer."""

    def __call__(self) -> RenderableType | None:
        """What it looks like; None: nothing has to be said."""
        ...


@dataclass(slots=True, kw_only=True)
class Desk:
    """One command at work."""

    settings: Settings
    command: str
    code: Exit = Exit.DONE
    """How the command ends."""
    _said: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    # The store

    @property
    def home(self) -> str | Path:
        """The directory of the store, or the address of its server."""
        named = self.settings.home or os.environ.get(HOME_VARIABLE)
        return named if named is not None else default_home()

    @property
    def config_path(self) -> Path | None:
        """The file of the configuration; None: there is none."""
        named = self.settings.config or os.environ.get(CONFIG_VARIABLE)
        if named:
            return Path(named).expanduser()
        usual = Path(self.home).expanduser() / CONFIG_FILE
        return usual if usual.is_file() else None

    def place(self) -> tuple[Path, gs.Config]:
        """The directory of the store, and its configuration."""
        from gateway_sessions.config import load_config  # noqa: PLC0415 -- --help must not wait for it
        from gateway_sessions.runtime.places import placed  # noqa: PLC0415 -- as above

        return placed(self.home, load_config(self.config_path))

    @asynccontextmanager
    async def seat(self) -> AsyncGenerator[gs.Seat]:
        """Read the store directly, and act through whoever owns it."""
        from gateway_sessions.runtime.seat import connect  # noqa: PLC0415 -- as above

        home, config = self.place()
        async with connect(home, config) as seat:
            yield seat

    @asynccontextmanager
    async def store(
        self, *, may_be_new: bool = False, upkeep: bool = False
    ) -> AsyncGenerator[gs.SessionStore]:
        """Own the store, for what only its owner can do.

        Only whoever serves it sees to its *upkeep*: a visitor has not the hooks that must hear of ends.
        """
        from gateway_sessions.runtime.store import SessionStore  # noqa: PLC0415 -- as above

        if not may_be_new:
            async with self.seat():
                pass
        home, config = self.place()
        async with SessionStore.open(home, config, upkeep=upkeep) as store:
            yield store

    # The answer

    @property
    def as_json(self) -> bool:
        """Whether a program reads the answer."""
        return self.settings.as_json

    @property
    def screen(self) -> Console:
        """Where people look."""
        from gateway_sessions.cli.screen import console  # noqa: PLC0415 -- --help must not wait for it

        return console()

    def answer(self, results: Sequence[object], show: Shows, **facts: object) -> None:
        """Say what came of it: as JSON, or as *show* makes it."""
        if self.as_json:
            write_json(
                {"ok": self.code is Exit.DONE, **head(self.command), "results": results, "facts": facts}
            )
        elif (shown := show()) is not None:
            show_on(self.screen, shown)

    def done(self, text: str, *results: object, **facts: object) -> None:
        """Say one line."""
        self.answer(results, lambda: _plain(text), **facts)

    def note(self, text: str) -> None:
        """Say something beside the answer, where it disturbs no pipe."""
        if not self.as_json:
            from gateway_sessions.cli.screen import console  # noqa: PLC0415 -- as above

            console(to_errors=True).print(_plain(text), style="dim", soft_wrap=True)

    @contextmanager
    def progress(self, doing: str) -> Generator[Tells]:
        """A bar while something takes long, where people look; programs are told nothing."""
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn  # noqa: PLC0415 -- as above

        from gateway_sessions.cli.screen import console  # noqa: PLC0415 -- as above

        screen = console(to_errors=True)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        quiet = self.as_json or not screen.is_terminal
        with Progress(*columns, console=screen, transient=True, disable=quiet) as bar:
            task = bar.add_task(doing, total=None)

            def tell(done: int, total: int | None, what: str | None = None) -> None:
                bar.update(task, completed=done, total=total, description=what or doing)

            yield tell

    def confirm(self, question: str, *, yes: bool = False) -> None:
        """Let a person confirm, unless they have done so before; a program has to say --yes."""
        if yes or self.settings.yes:
            return
        if self.as_json or not sys.stdin.isatty():
            problem = f"{question} Nobody can be asked here: say --yes"
            raise Declined(problem)
        try:
            answer = _line_after(f"{question} [y/N] ")
        except KeyboardInterrupt:
            sys.stdout.write("\n")
            raise typer.Abort from None
        if answer.strip().lower() not in ("y", "yes"):
            raise Declined("nothing was changed")  # noqa: TRY003 -- the whole message


def run(context: typer.Context, work: Callable[[Desk], Awaitable[None]]) -> None:
    """Do a command's work."""
    desk = Desk(settings=context.obj or Settings(), command=_name_of(context))
    asyncio.run(_awaited(work(desk)))
    if desk.code is not Exit.DONE:
        raise typer.Exit(desk.code)


def everything() -> gs.Scope:
    """What an operator may see."""
    from gateway_sessions.core.scope import Scope  # noqa: PLC0415 -- --help must not wait for it

    return Scope.operator()


def this_moment() -> datetime:
    """What the clock says."""
    from gateway_sessions.clock import SystemClock  # noqa: PLC0415 -- as above

    return SystemClock().now()


def show_on(screen: Console, shown: RenderableType) -> None:
    """Print it; into a pipe without the blanks that fill a table up."""
    from rich.text import Text  # noqa: PLC0415 -- --help must not wait for it

    if screen.is_terminal:
        # A line of words is left to the terminal, which can be resized, and whose selection knows it as one.
        screen.print(shown, soft_wrap=isinstance(shown, Text))
        return
    with screen.capture() as capture:
        screen.print(shown)
    screen.file.write("".join(f"{line.rstrip()}\n" for line in capture.get().splitlines()))


def name_of_program() -> str:
    """What people have called it."""
    called = Path(sys.argv[0]).name
    return called if called in NAMES else NAMES[0]


def default_home() -> Path:
    """Where the store is if nobody says."""
    from platformdirs import user_state_path  # noqa: PLC0415 -- --help must not wait for it

    return user_state_path("gateway-sessions") / "store"


def head(command: str) -> dict[str, object]:
    """What every answer begins with."""
    return {"command": command, "version": ENVELOPE}


def write_json(answer: Mapping[str, object]) -> None:
    """One line of JSON."""
    import msgspec  # noqa: PLC0415 -- --help must not wait for it

    encoded = msgspec.json.encode(answer, enc_hook=_as_json)
    sys.stdout.buffer.write(encoded + b"\n")
    sys.stdout.flush()


def _as_json(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return str(value)


def _line_after(prompt: str) -> str:
    """What a person answers; nothing at the end of the input, and `KeyboardInterrupt` at Ctrl-C."""
    with _hearing_ctrl_c() as heard:
        sys.stdout.write(prompt)
        sys.stdout.flush()
        # `input` would not hear of it if it comes before the reading begins.
        select.select([sys.stdin, heard], [], [])
        return sys.stdin.readline()


@contextmanager
def _hearing_ctrl_c() -> Generator[int]:
    """Let Ctrl-C raise here, where the loop would hear of it afterwards; gives what wakes a `select`."""
    heard, woken = os.pipe()
    os.set_blocking(woken, False)
    told, handler = signal.set_wakeup_fd(woken), signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield heard
    finally:
        signal.signal(signal.SIGINT, handler)
        signal.set_wakeup_fd(told)
        os.close(heard)
        os.close(woken)


def _plain(text: str) -> RenderableType:
    from rich.text import Text  # noqa: PLC0415 -- --help must not wait for it

    return Text(text)


def _name_of(context: typer.Context) -> str:
    return context.command_path.partition(" ")[2]


async def _awaited(work: Awaitable[None]) -> None:
    await work
