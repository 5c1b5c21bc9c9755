"""What every command works with: where the store is, and how to answer."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, Protocol

import typer

from gateway_sessions.cli.exits import Declined, Exit, Failure, failure_of
from gateway_sessions.core.cures import MEND_ELSEWHERE, MEND_FILE, MEND_SERVER
from gateway_sessions.core.untrusted import visible
from gateway_sessions.errors import GatewaySessionsError, NoStoreError, StorageCorruptError

if TYPE_CHECKING:
    from datetime import datetime

    from rich.console import Console, RenderableType

    import gateway_sessions as gs
    from gateway_sessions.cli.progress import Tells
    from gateway_sessions.core.work_progress import OnProgress

NAMES: Final = ("gateway-sessions", "gsess")
HOME_VARIABLE: Final = "GATEWAY_SESSIONS_HOME"
CONFIG_VARIABLE: Final = "GATEWAY_SESSIONS_CONFIG"
CONFIG_FILE: Final = "config.yaml"
"""Looked for in the directory of the store, if nobody names another one."""
PATIENCE_SECONDS: Final = 600
"""How long the process that has the store open may take over what can be much work."""
ENVELOPE: Final = 1
"""The version of what --json writes; it rises when a member goes or means something else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the options in front of all commands say."""

    home: str | None = None
    config: Path | None = None
    as_json: bool = False
    yes: bool = False
    debug: bool = False


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

    @asynccontextmanager
    async def rehearsal(self) -> AsyncGenerator[gs.SessionDB]:
        """The database for reading only, whoever has it open; where none is yet, an empty one for the moment.

        What is rehearsed leaves no trace: it neither makes a store nor opens one as its owner.
        """
        from gateway_sessions.storage.database import SessionDB  # noqa: PLC0415 -- as above

        async with AsyncExitStack() as opened:
            try:
                db = (await opened.enter_async_context(self.seat())).db
            except NoStoreError:
                folder = opened.enter_context(TemporaryDirectory())
                db = await opened.enter_async_context(SessionDB.open(Path(folder) / "sessions.db"))
            yield db

    async def has_store(self) -> bool:
        """Whether somebody has made the store."""
        try:
            async with self.seat():
                return True
        except NoStoreError:
            return False

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

    def failure_of(self, error: BaseException) -> Failure:
        """What went wrong; what to do about a damaged database depends on where it is."""
        failure = failure_of(error)
        if isinstance(error, StorageCorruptError):
            return replace(failure, what_next=self._cure(error.what))
        return failure

    def _cure(self, damaged: str) -> str:
        from gateway_sessions.runtime.places import database_of  # noqa: PLC0415 -- --help must not wait for it

        home, config = self.place()
        _, beside = database_of(home, config.sessiondb.url)
        if Path(damaged).is_absolute() and not Path(damaged).is_relative_to(beside):
            return MEND_ELSEWHERE
        return MEND_SERVER if config.sessiondb.is_server else MEND_FILE

    def done(self, text: str, *results: object, **facts: object) -> None:
        """Say one line."""
        self.answer(results, lambda: _plain(text), **facts)

    def note(self, text: str) -> None:
        """Say something beside the answer, where it disturbs no pipe."""
        if not self.as_json:
            from gateway_sessions.cli.screen import console  # noqa: PLC0415 -- as above

            console(to_errors=True).print(_plain(text), style="dim", soft_wrap=True)

    @contextmanager
    def progress(self, doing: str, *, beside: str | None = None) -> Generator[Tells]:
        """A bar while something takes long, where people look; programs are told nothing.

        *beside* is where the answer goes meanwhile: a terminal cannot show both.
        """
        from gateway_sessions.cli.screen import console  # noqa: PLC0415 -- as above

        screen = console(to_errors=True)
        taken = beside == "-" and sys.stdout.isatty()
        if self.as_json or taken or not screen.is_terminal or screen.is_dumb_terminal:
            yield lambda done, total, what=None: None
            return
        from gateway_sessions.cli.progress import bar  # noqa: PLC0415 -- as above

        with bar(screen, doing) as tell:
            yield tell

    @contextmanager
    def steps(self, doing: str) -> Generator[OnProgress]:
        """The same for a work that says itself what it is doing."""
        with self.progress(doing) as tell:
            yield lambda one: tell(one.done, one.total, one.doing)

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
    with at_desk(context) as desk:
        asyncio.run(_awaited(work(desk)))


@contextmanager
def at_desk(context: typer.Context) -> Generator[Desk]:
    """Within the block, a command is at work; what makes it fail is said, and it ends with its exit code."""
    desk = Desk(settings=context.obj or Settings(), command=_name_of(context))
    try:
        yield desk
    except BrokenPipeError:  # whoever read has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (GatewaySessionsError, OSError, Declined, KeyboardInterrupt) as error:
        if desk.settings.debug and not isinstance(error, Declined | KeyboardInterrupt):
            raise
        desk.code = say(desk.failure_of(error), desk.command, as_json=desk.as_json)
    if desk.code is not Exit.DONE:
        raise typer.Exit(desk.code)


def say(failure: Failure, command: str, *, as_json: bool) -> Exit:
    """Say how a command has failed; returns its exit code."""
    if as_json:
        write_json({"ok": False, **head(command), "results": [], "error": failure})
    else:
        what_next = f"  → {failure.what_next}\n" if failure.what_next else ""
        sys.stderr.write(f"{name_of_program()}: {visible(failure.message).rstrip('.')}\n{what_next}")
    return failure.exit_code


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
