"""One invocation of a command: its store, its configuration, and its answer."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
import termios
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import typer
from platformdirs import user_state_path
from rich.console import Console, RenderableType
from rich.text import Text

from gateway_sessions._process.clock import SystemClock
from gateway_sessions.cli.exit_codes import CommandFailure, Declined, Exit, failure_of
from gateway_sessions.cli.output.json import answer_head, report_failure, write_json
from gateway_sessions.cli.output.terminal import ReportProgress, open_console, print_answer, progress_bar
from gateway_sessions.cli.settings import CONFIG_VARIABLE, HOME_VARIABLE, Settings
from gateway_sessions.config import Config, load_config
from gateway_sessions.core.notices.human_units import MEND_ELSEWHERE, MEND_FILE, MEND_SERVER
from gateway_sessions.core.progress import OnProgress
from gateway_sessions.errors import ConfigProblem, GatewaySessionsError, NoStoreError, StorageCorruptError
from gateway_sessions.runtime.store.database_opening import locate_database, locate_store, noted_config_file

if TYPE_CHECKING:
    from gateway_sessions.runtime.duties.titles import Titler
    from gateway_sessions.runtime.operator.store_client import StoreClient
    from gateway_sessions.runtime.store.store import SessionStore
    from gateway_sessions.storage.database import SessionDB

CONFIG_FILE: Final = "config.yaml"
"""The configuration in the directory of the store, unless another one is named."""

LOCAL_FLAGS: Final = 3
"""The place of the flags in what a terminal tells of itself, of which one is the echo."""

Render: TypeAlias = Callable[[], RenderableType | None]
"""Returns the answer for people; None if there is nothing to show."""


@dataclass(slots=True, kw_only=True)
class CommandContext:
    """A running command."""

    settings: Settings
    command: str
    exit_code: Exit = Exit.DONE
    """The exit code of the command."""

    # Where the store is

    @property
    def home(self) -> str | Path:
        """The directory of the store, or the address of its server."""
        named = self.settings.home or os.environ.get(HOME_VARIABLE)
        return named if named is not None else user_state_path("gateway-sessions") / "store"

    @property
    def config_path(self) -> Path | None:
        """The configuration file, even if only the last owner of the store has named it; else None."""
        if (named := self._named_config) is not None:
            return named
        noted, usual = noted_config_file(Path(self.home).expanduser()), self._usual_config
        if noted is None or (usual is not None and usual.samefile(noted)):
            return usual  # the path as the caller would write it
        return noted

    @property
    def own_config_path(self) -> Path | None:
        """The configuration file of a new owner of the store; the file of an earlier owner does not count."""
        return self._named_config or self._usual_config

    @property
    def _named_config(self) -> Path | None:
        named = self.settings.config or os.environ.get(CONFIG_VARIABLE)
        return Path(named).expanduser() if named else None

    @property
    def _usual_config(self) -> Path | None:
        usual = Path(self.home).expanduser() / CONFIG_FILE
        return usual if usual.is_file() else None

    def home_and_config(self) -> tuple[Path, Config]:
        """Return the directory of the store and its configuration, read leniently."""
        return locate_store(self.home, load_config(self.config_path, lenient=True))

    def home_and_config_to_serve(self) -> tuple[Path, Config]:
        """Return the same for a process that serves a store, where every variable must be set."""
        return locate_store(self.home, load_config(self.own_config_path))

    # The store. Modules that open it are imported late: not every command opens one, and few are its owner.

    @asynccontextmanager
    async def open_client(self) -> AsyncGenerator[StoreClient]:
        """Open the store as a client, which reads the database itself and changes it through the owner."""
        from gateway_sessions.runtime.operator.store_client import connect  # noqa: PLC0415 -- see above

        home, config = self.home_and_config()
        async with connect(home, config) as client:
            yield client

    async def has_store(self) -> bool:
        """Return whether the store exists."""
        try:
            async with self.open_client():
                return True
        except NoStoreError:
            return False

    @asynccontextmanager
    async def open_owned(
        self,
        *,
        may_be_new: bool = False,
        upkeep: bool = False,
        wait: float = 0,
        titler: Titler | None = None,
    ) -> AsyncGenerator[SessionStore]:
        """Open the store as its owner.

        Another owner is asked to end, and has *wait* seconds for that. Only a process that serves does the
        *upkeep*: other programs lack the hooks that must be called when sessions end. Without a *titler*,
        the first words of new sessions are their titles.
        """
        from gateway_sessions.runtime.duties.titles import plain_titler  # noqa: PLC0415 -- see above
        from gateway_sessions.runtime.store.store import SessionStore  # noqa: PLC0415 -- see above

        if not may_be_new:
            async with self.open_client():
                pass
        home, config = self.home_and_config_to_serve() if upkeep else self.home_and_config()
        async with SessionStore.open(
            home, config, upkeep=upkeep, wait=wait, titler=titler or plain_titler
        ) as store:
            yield store

    @asynccontextmanager
    async def open_dry_run(self) -> AsyncGenerator[SessionDB]:
        """Open the database for a dry run: read-only, or a temporary empty one if there is none yet.

        A dry run leaves no trace: it neither makes a store nor opens one as its owner.
        """
        from gateway_sessions.storage.database import SessionDB  # noqa: PLC0415 -- see above

        async with AsyncExitStack() as opened:
            try:
                db = (await opened.enter_async_context(self.open_client())).db
            except NoStoreError:
                folder = opened.enter_context(TemporaryDirectory())
                db = await opened.enter_async_context(SessionDB.open(Path(folder) / "sessions.db"))
            yield db

    # The answer

    @property
    def as_json(self) -> bool:
        """Whether the answer is JSON for a program."""
        return self.settings.as_json

    @property
    def console(self) -> Console:
        """The console on the standard output."""
        return open_console()

    def answer(self, results: Sequence[object], render: Render, **facts: object) -> None:
        """Write the results as JSON, or what *render* returns for people."""
        if self.as_json:
            ok = self.exit_code is Exit.DONE
            write_json({"ok": ok, **answer_head(self.command), "results": results, "facts": facts})
        elif (shown := render()) is not None:
            print_answer(self.console, shown)

    def answer_text(self, text: str, *results: object, **facts: object) -> None:
        """Write the results as JSON, or this text for people."""
        self.answer(results, lambda: Text(text), **facts)

    def note(self, text: str) -> None:
        """Write a note for people to the standard error output, where it disturbs no pipe."""
        if not self.as_json:
            open_console(to_errors=True).print(Text(text), style="dim", soft_wrap=True)

    def note_misspellings(self, found: Sequence[ConfigProblem]) -> None:
        """Write a note for each name in the configuration that may be misspelt."""
        for one in found:
            self.note(f"Warning: {one}. It counts as it is written, for an adapter of that name.")

    @contextmanager
    def progress(self, doing: str, *, beside: str | None = None) -> Generator[ReportProgress]:
        """Show a progress bar on a terminal, unless the answer is JSON.

        *beside* is the target to which the answer is written meanwhile: a terminal cannot show both.
        """
        console = open_console(to_errors=True)
        taken = beside == "-" and sys.stdout.isatty()
        if self.as_json or taken or not console.is_terminal or console.is_dumb_terminal:
            yield lambda done, total, what=None: None
            return
        with progress_bar(console, doing) as report:
            yield report

    @contextmanager
    def work_progress(self, doing: str) -> Generator[OnProgress]:
        """Show a progress bar for work that reports its own steps."""
        with self.progress(doing) as report:
            yield lambda one: report(one.done, one.total, one.doing)

    def confirm(self, question: str, *, yes: bool = False) -> None:
        """Ask a person to confirm, unless --yes was given; without a terminal, --yes is required."""
        if yes or self.settings.yes:
            return
        if self.as_json or not sys.stdin.isatty():
            problem = f"{question} Nobody can be asked here: say --yes"
            raise Declined(problem)
        if self.ask(f"{question} [y/N]").lower() not in ("y", "yes"):
            raise Declined("nothing was changed")  # noqa: TRY003 -- the whole message

    @property
    def can_ask(self) -> bool:
        """Whether a person is there who can be asked, and wants to be."""
        return not (self.settings.yes or self.as_json) and sys.stdin.isatty()

    def ask(self, question: str, *, hidden: bool = False) -> str:
        """Return what a person answers at the terminal; what is *hidden* does not show while it is typed."""
        try:
            with _without_echo() if hidden else nullcontext():
                return _ask_on_terminal(f"{question} ").strip()
        except KeyboardInterrupt:
            sys.stdout.write("\n")
            raise typer.Abort from None

    def now(self) -> datetime:
        """Return the present instant."""
        return SystemClock().now()

    # What goes wrong

    def failure_of(self, error: BaseException) -> CommandFailure:
        """Return the failure for an error; advice about a damaged database depends on its place."""
        failure = failure_of(error)
        if isinstance(error, StorageCorruptError):
            return replace(failure, what_next=self._repair_hint(error.what))
        return failure

    def _repair_hint(self, damaged: str) -> str:
        home, config = self.home_and_config()
        _, beside = locate_database(home, config.sessiondb.url)
        if Path(damaged).is_absolute() and not Path(damaged).is_relative_to(beside):
            return MEND_ELSEWHERE
        return MEND_SERVER if config.sessiondb.is_server else MEND_FILE


def run_command(typed: typer.Context, work: Callable[[CommandContext], Coroutine[Any, Any, None]]) -> None:
    """Run the work of a command."""
    with _command_run(typed) as context:
        asyncio.run(work(context))


@contextmanager
def _command_run(typed: typer.Context) -> Generator[CommandContext]:
    """Run a command in the block; its failure is reported, and becomes the exit code."""
    context = CommandContext(settings=typed.obj or Settings(), command=typed.command_path.partition(" ")[2])
    try:
        yield context
    except BrokenPipeError:  # the reader has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (GatewaySessionsError, OSError, Declined, KeyboardInterrupt) as error:
        if context.settings.debug and not isinstance(error, Declined | KeyboardInterrupt):
            raise
        failure = context.failure_of(error)
        context.exit_code = report_failure(failure, context.command, as_json=context.as_json)
    if context.exit_code is not Exit.DONE:
        raise typer.Exit(context.exit_code)


def _ask_on_terminal(prompt: str) -> str:
    """Return a person's answer, empty at the end of the input; Ctrl-C raises `KeyboardInterrupt`."""
    with _raise_at_ctrl_c() as pressed:
        sys.stdout.write(prompt)
        sys.stdout.flush()
        # `input` would miss a Ctrl-C that comes before it begins to read.
        select.select([sys.stdin, pressed], [], [])
        return sys.stdin.readline()


@contextmanager
def _without_echo() -> Generator[None]:
    """Let the terminal not show what is typed in the block."""
    before = termios.tcgetattr(sys.stdin)
    silent = [*before]
    silent[LOCAL_FLAGS] = before[LOCAL_FLAGS] & ~termios.ECHO
    termios.tcsetattr(sys.stdin, termios.TCSADRAIN, silent)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
        sys.stdout.write("\n")


@contextmanager
def _raise_at_ctrl_c() -> Generator[int]:
    """Let Ctrl-C raise `KeyboardInterrupt` in the block, and yield a descriptor that wakes a `select`."""
    pressed, woken = os.pipe()
    os.set_blocking(woken, False)
    before, handler = signal.set_wakeup_fd(woken), signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, handler)
        signal.set_wakeup_fd(before)
        os.close(pressed)
        os.close(woken)
