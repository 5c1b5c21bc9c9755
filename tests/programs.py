"""Programs in processes of their own that start in a moment.

To start Python and to import the package takes longer than most programs of the tests run. So one interpreter
does it once, and forks for each of them. What is about the start or the end of Python needs a fresh one.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import textwrap
import threading
import time
import types
import warnings
from dataclasses import asdict, dataclass, field
from fcntl import ioctl
from functools import cache
from pathlib import Path
from typing import IO, NoReturn, Self

PATIENCE = 60
"""Seconds, on a machine that is busy elsewhere."""
STRANGERS = [f"-pno:{name}" for name in ("hypothesispytest", "xdist", "xdist.looponfail", "time_machine")]
"""Plugins that take long to load."""
QUIETLY = ["-q", "-pno:cacheprovider", "-Wignore:Module already imported:pytest.PytestAssertRewriteWarning"]
PYTEST = "import sys, pytest; raise SystemExit(pytest.main(sys.argv[1:]))"
PASSED_ON = 4
"""File descriptors: standard input, output and error, and where the nanny of a program tells of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramOrder:
    """What to run: a text as with `python -c`, or the script at the beginning of the arguments."""

    code: str | None = None
    arguments: tuple[str, ...] = ()
    folder: str = "."
    variables: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] | None = None
    """All of it; without, that of the interpreter that forks."""
    at_terminal: bool = False
    """Its streams are a terminal, of which it is the first program."""
    strict: bool = False
    """Warnings are errors."""

    def become_program(self) -> None:
        """Be that program from here on."""
        # Whoever runs the tests in the background ignores keyboard and terminal, and that is inherited.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        if self.at_terminal:
            os.setsid()
            ioctl(0, termios.TIOCSCTTY, 0)
        os.chdir(self.folder)
        if self.environment is not None:
            os.environ.clear()
            os.environ.update(self.environment)
            sys.path[:0] = filter(None, self.environment.get("PYTHONPATH", "").split(os.pathsep))
        os.environ.update(self.variables)
        time.tzset()
        if self.strict:
            warnings.simplefilter("error")
        sys.argv = ["-c" if self.code is not None else "", *self.arguments]
        if self.code is None:
            sys.argv = list(self.arguments)
            runpy.run_path(sys.argv[0], run_name="__main__")
            return
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(self.code, "<string>", "exec"), main.__dict__)  # noqa: S102 -- the test wrote it


class Program:
    """A program that was started: like `subprocess.Popen`, as far as tests need it.

    At a terminal, whoever started it has the other end of its streams.
    """

    stdin: IO[str]
    stdout: IO[str]

    def __init__(self, told: IO[str], *pipes: IO[str]) -> None:
        if pipes:
            self.stdin, self.stdout = pipes
        self._told, self._pipes = told, pipes
        self.pid = int(told.readline())
        self.returncode: int | None = None

    def wait(self, timeout: float = PATIENCE) -> int:
        """How it ended; a negative number is a signal."""
        if self.returncode is None:
            if not select.select([self._told], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(str(self.pid), timeout)
            self.returncode = int(self._told.readline())
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self.wait()
        for stream in (*self._pipes, self._told):
            with contextlib.suppress(BrokenPipeError):
                stream.close()


class WarmPython:
    """The interpreter that forks."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-m", "tests.programs", str(theirs.fileno())]
        self._server = subprocess.Popen(
            command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, cwd=Path(__file__).parents[1]
        )
        theirs.close()
        self._orders = ours

    def start(
        self,
        code: str | None,
        *arguments: object,
        output: IO[bytes] | None = None,
        stderr: IO[bytes] | None = None,
        **how: object,
    ) -> Program:
        """Start a program; see `Order`. Without *stderr*, its errors go where those of the tests go.

        What it says goes to *output*, if that is given, and else can be read from `stdout`.
        """
        stdin, writing = os.pipe()
        reading, stdout = os.pipe()
        code = textwrap.dedent(code) if code is not None else None
        order = ProgramOrder(code=code, arguments=tuple(map(str, arguments)), **how)  # type: ignore[arg-type]
        said, wrong = output.fileno() if output else stdout, stderr.fileno() if stderr else 2
        told = self._send(order, stdin, said, wrong)
        for one in (stdin, stdout):
            os.close(one)
        return Program(told, open_text(writing, "w"), open_text(reading, "r"))

    def start_at(self, terminal: int, *arguments: object, environment: dict[str, str]) -> Program:
        """Start the script at the beginning of the arguments, with a terminal of its own."""
        order = ProgramOrder(
            arguments=tuple(map(str, arguments)),
            folder=str(Path.cwd()),
            environment=environment,
            at_terminal=True,
        )
        return Program(self._send(order, terminal, terminal, terminal))

    def _send(self, order: ProgramOrder, *streams: int) -> IO[str]:
        """Have a program started with these streams; where its nanny tells of it."""
        told, telling = os.pipe()
        socket.send_fds(self._orders, [json.dumps(asdict(order)).encode() + b"\n"], [*streams, telling])
        os.close(telling)
        return open_text(told, "r")

    def run(
        self, code: str | None, *arguments: object, timeout: float = PATIENCE, **how: object
    ) -> subprocess.CompletedProcess[str]:
        """Run a program to its end."""
        with (
            tempfile.TemporaryFile() as errors,
            self.start(code, *arguments, stderr=errors, **how) as program,
        ):
            program.stdin.close()
            said = read_until(program.stdout, time.monotonic() + timeout)
            ended = program.wait(timeout)
            errors.seek(0)
            return subprocess.CompletedProcess(program.pid, ended, said, errors.read().decode())

    def run_pytest(self, *arguments: str, **how: object) -> subprocess.CompletedProcess[str]:
        """Run pytest on tests that are none of ours, with as few other plugins as possible."""
        return self.run(PYTEST, *QUIETLY, *STRANGERS, *arguments, **how)

    def close(self) -> None:
        self._orders.close()
        self._server.wait()


@cache
def warm_python() -> WarmPython:
    """The one of this process; whoever ends the tests closes it."""
    return WarmPython()


def open_text(descriptor: int, mode: str) -> IO[str]:
    return open(descriptor, mode, encoding="utf-8")


def read_until(stream: IO[str], end: float) -> str:
    """All that comes before the stream is closed, which it has to be by then."""
    found = bytearray()
    while select.select([stream], [], [], max(end - time.monotonic(), 0))[0]:
        if not (more := os.read(stream.fileno(), 1 << 16)):
            return found.decode()
        found += more
    raise subprocess.TimeoutExpired("program", PATIENCE, found.decode())


# The process that forks


def serve_orders(orders: socket.socket) -> ProgramOrder | None:
    """Fork for each order until there are no more; returns in a fork, with what it has to run."""
    while True:
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        line, descriptors = receive_order(orders)
        if not line:
            return None
        if not os.fork() and (order := fork_and_report_end(json.loads(line), descriptors, orders)):
            return order
        for one in descriptors:
            os.close(one)


def receive_order(orders: socket.socket) -> tuple[bytes, list[int]]:
    """A line, and the file descriptors that came with it."""
    line, descriptors = b"", []
    while not line.endswith(b"\n"):
        more, found, _, _ = socket.recv_fds(orders, 1 << 16, PASSED_ON)
        if not more:
            return b"", []
        line, descriptors = line + more, descriptors + found
    return line, descriptors


def fork_and_report_end(
    order: dict[str, object], descriptors: list[int], orders: socket.socket
) -> ProgramOrder | None:
    """Fork once more: one of the two waits for the other, and tells of it. Returns in the other."""
    orders.close()
    *streams, telling = descriptors
    pid = os.fork()
    if pid:
        for one in streams:
            os.close(one)
        os.write(telling, f"{pid}\n".encode())
        ended = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        with contextlib.suppress(BrokenPipeError):
            os.write(telling, f"{ended}\n".encode())
        os._exit(0)
    os.close(telling)
    for target, stream in enumerate(streams):
        os.dup2(stream, target)
        os.close(stream)
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        setattr(sys, name, open(number, mode, buffering=1, encoding="utf-8", closefd=False))  # noqa: SIM115
    return ProgramOrder(**order)  # type: ignore[arg-type]


def load_everything() -> None:
    """What a program would import that opens a store, or a command."""
    import anyio._backends._asyncio  # noqa: F401, PLC0415
    import croniter  # noqa: F401, PLC0415
    import filelock  # noqa: F401, PLC0415

    import gateway_sessions  # noqa: PLC0415
    from gateway_sessions import cli  # noqa: PLC0415
    from gateway_sessions.cli.app import main  # noqa: PLC0415

    for name in gateway_sessions.__all__:
        getattr(gateway_sessions, name)
    for module in pkgutil.walk_packages(cli.__path__, f"{cli.__name__}."):
        if ".demo" not in module.name:  # it looks at its terminal while it is loaded
            importlib.import_module(module.name)
    with open(os.devnull, "w") as nobody, contextlib.redirect_stdout(nobody):  # noqa: PTH123 -- no file
        main(["sessions", "list", "--help"])


def main() -> None:
    load_everything()
    gc.collect()
    gc.freeze()
    order = serve_orders(socket.socket(fileno=int(sys.argv[1])))
    if order is None:
        return
    if order.strict:
        order.become_program()  # what is left open is told of while Python takes everything apart
        return
    exit_at_once(run_order(order))


def run_order(order: ProgramOrder) -> int:
    """Run a program; what it ends with. A signal of the keyboard ends it as it ends Python."""
    try:
        order.become_program()
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return ended.code or 0
        print(ended.code, file=sys.stderr)  # noqa: T201 -- so does Python
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 -- so does Python
        sys.excepthook(type(error), error, error.__traceback__)
    else:
        return 0
    return 1


def exit_at_once(code: int) -> NoReturn:
    """End like Python, but take nothing apart that was loaded: that takes longer than most programs."""
    threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001 -- waits for threads
    atexit._run_exitfuncs()  # noqa: SLF001
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code & 0xFF)


if __name__ == "__main__":
    main()
