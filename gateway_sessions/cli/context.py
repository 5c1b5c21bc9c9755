"""What every command works with: where the store is, and how to answer."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from pkgutil import resolve_name
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, Protocol

import typer
from platformdirs import user_state_path
from rich.console import Console, RenderableType
from rich.text import Text

from gateway_sessions.cli.exit_codes import Declined, Exit, Failure, failure_of
from gateway_sessions.cli.output.json import head, say, write_json
from gateway_sessions.cli.output.terminal import Tells, bar, console
from gateway_sessions.cli.settings import CONFIG_VARIABLE, HOME_VARIABLE, Settings
from gateway_sessions.clock import SystemClock
from gateway_sessions.config import Config, load_config
from gateway_sessions.core.cures import MEND_ELSEWHERE, MEND_FILE, MEND_SERVER
from gateway_sessions.core.scope import Scope
from gateway_sessions.core.work_progress import OnProgress
from gateway_sessions.errors import GatewaySessionsError, NoStoreError, StorageCorruptError
from gateway_sessions.runtime.places import database_of, noted_config, placed

if TYPE_CHECKING:
    from gateway_sessions.runtime.seat import Seat
    from gateway_sessions.runtime.store import SessionStore
    from gateway_sessions.storage.database import SessionDB

CONFIG_FILE: Final = "config.yaml"
"""Looked for in the directory of the store, if nobody names another one."""
PATIENCE_SECONDS: Final = 600
"""How long the process that has the store open may take over what can be much work."""


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

    # Where the store is

    @property
    def home(self) -> str | Path:
        """The directory of the store, or the address of its server."""
        named = self.settings.home or os.environ.get(HOME_VARIABLE)
        return named if named is not None else default_home()

    @property
    def config_path(self) -> Path | None:
        """The file of the configuration, also where only its last owner has named it; None: there is none."""
        if (named := self._named_config) is not None:
            return named
        noted, usual = noted_config(Path(self.home).expanduser()), self._usual_config
        if noted is None or (usual is not None and usual.samefile(noted)):
            return usual  # which says where it is in the words of whoever asks
        return noted

    @property
    def own_config_path(self) -> Path | None:
        """The file for whoever becomes the owner: what an earlier one has used does not count."""
        return self._named_config or self._usual_config

    @property
    def _named_config(self) -> Path | None:
        named = self.settings.config or os.environ.get(CONFIG_VARIABLE)
        return Path(named).expanduser() if named else None

    @property
    def _usual_config(self) -> Path | None:
        usual = Path(self.home).expanduser() / CONFIG_FILE
        return usual if usual.is_file() else None

    def place(self) -> tuple[Path, Config]:
        """The directory of the store, and its configuration: what of it is used must be complete."""
        return placed(self.home, load_config(self.config_path, lenient=True))

    def place_to_serve(self) -> tuple[Path, Config]:
        """The same for whoever serves: every variable must be set."""
        return placed(self.home, load_config(self.own_config_path))

    # The answer

    @property
    def as_json(self) -> bool:
        """Whether a program reads the answer."""
        return self.settings.as_json

    @property
    def screen(self) -> Console:
        """Where people look."""
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
        home, config = self.place()
        _, beside = database_of(home, config.sessiondb.url)
        if Path(damaged).is_absolute() and not Path(damaged).is_relative_to(beside):
            return MEND_ELSEWHERE
        return MEND_SERVER if config.sessiondb.is_server else MEND_FILE

    def done(self, text: str, *results: object, **facts: object) -> None:
        """Say one line."""
        self.answer(results, lambda: Text(text), **facts)

    def note(self, text: str) -> None:
        """Say something beside the answer, where it disturbs no pipe."""
        if not self.as_json:
            console(to_errors=True).print(Text(text), style="dim", soft_wrap=True)

    @contextmanager
    def progress(self, doing: str, *, beside: str | None = None) -> Generator[Tells]:
        """A bar while something takes long, where people look; programs are told nothing.

        *beside* is where the answer goes meanwhile: a terminal cannot show both.
        """
        screen = console(to_errors=True)
        taken = beside == "-" and sys.stdout.isatty()
        if self.as_json or taken or not screen.is_terminal or screen.is_dumb_terminal:
            yield lambda done, total, what=None: None
            return
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


def run(context: typer.Context, work: str, asked: object) -> None:
    """Load what does a command's work, and let it do what was asked for."""
    with _at_desk(context) as desk:
        does: Callable[[Desk, object], Coroutine[Any, Any, None]] = resolve_name(work)
        asyncio.run(does(desk, asked))


@contextmanager
def _at_desk(context: typer.Context) -> Generator[Desk]:
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


def everything() -> Scope:
    """What an operator may see."""
    return Scope.operator()


def this_moment() -> datetime:
    """What the clock says."""
    return SystemClock().now()


def show_on(screen: Console, shown: RenderableType) -> None:
    """Print it; into a pipe without the blanks that fill a table up."""
    if screen.is_terminal:
        # A line of words is left to the terminal, which can be resized, and whose selection knows it as one.
        screen.print(shown, soft_wrap=isinstance(shown, Text))
        return
    with screen.capture() as capture:
        screen.print(shown)
    screen.file.write("".join(f"{line.rstrip()}\n" for line in capture.get().splitlines()))


def default_home() -> Path:
    """Where the store is if nobody says."""
    return user_state_path("gateway-sessions") / "store"


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


def _name_of(context: typer.Context) -> str:
    return context.command_path.partition(" ")[2]


# The store


@asynccontextmanager
async def seated(desk: Desk) -> AsyncGenerator[Seat]:
    """A seat at the store of this command."""
    from gateway_sessions.runtime.seat import connect  # noqa: PLC0415 -- not every command opens a store

    home, config = desk.place()
    async with connect(home, config) as seat:
        yield seat


async def has_store(desk: Desk) -> bool:
    """Whether somebody has made the store."""
    try:
        async with seated(desk):
            return True
    except NoStoreError:
        return False


@asynccontextmanager
async def owning(
    desk: Desk, *, may_be_new: bool = False, upkeep: bool = False, wait: float = 0
) -> AsyncGenerator[SessionStore]:
    """The store of this command, as its owner.

    Another owner is asked to end, and waited for, for so many seconds.
    Only whoever serves it sees to its *upkeep*: a visitor has not the hooks that must hear of ends.
    """
    from gateway_sessions.runtime.store import SessionStore  # noqa: PLC0415 -- only owners need it

    if not may_be_new:
        async with seated(desk):
            pass
    home, config = desk.place_to_serve() if upkeep else desk.place()
    async with SessionStore.open(home, config, upkeep=upkeep, wait=wait) as store:
        yield store


@asynccontextmanager
async def rehearsing(desk: Desk) -> AsyncGenerator[SessionDB]:
    """The database for reading only, whoever has it open; where none is yet, an empty one for the moment.

    What is rehearsed leaves no trace: it neither makes a store nor opens one as its owner.
    """
    from gateway_sessions.storage.database import SessionDB  # noqa: PLC0415 -- not every command opens one

    async with AsyncExitStack() as opened:
        try:
            db = (await opened.enter_async_context(seated(desk))).db
        except NoStoreError:
            folder = opened.enter_context(TemporaryDirectory())
            db = await opened.enter_async_context(SessionDB.open(Path(folder) / "sessions.db"))
        yield db
