"""What a store does just now can be seen beside the gateway that does it."""

import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import ExitStack
from fcntl import ioctl
from pathlib import Path

import pytest
from rich.text import Text

from gateway_sessions.cli.exits import Exit
from tests.integration.command_line.conftest import Gsess, key
from tests.integration.command_line.test_commands import session_of
from tests.programs import PATIENCE, WarmPython

BUSY = """
    import asyncio, sys
    from gateway_sessions import Gateway, SessionStore

    async def answer(turn):
        print("running", flush=True)
        await asyncio.Event().wait()

    async def main():
        async with SessionStore.open(sys.argv[1]) as store, Gateway(store, agent=answer) as gateway:
            await asyncio.to_thread(sys.stdin.read)
            await gateway.drain(within=gateway.config.delivery.retry * 0)

    asyncio.run(main())
"""


@pytest.fixture
def busy(warm_python: WarmPython, home: Path) -> Iterator[Path]:
    with warm_python.start(BUSY, home) as owner:
        assert owner.stdout.readline() == "running\n"
        yield home
        owner.stdin.close()
        assert owner.wait() == 0


def test_what_runs_and_waits_is_seen_beside_a_gateway(gsess: Gsess, busy: Path):
    [seen] = gsess("--home", busy, "top", "--json").answer["results"]
    assert seen["owner"]["pid"] > 0
    assert (seen["sessions"], seen["work"]["running"], seen["work"]["waiting"]) == (3, 1, 2)
    [lane] = seen["lanes"]
    assert (lane["session_key"], lane["waiting"], lane["attempts"]) == (key(1), 2, 0)
    assert lane["epoch"] == seen["owner"]["epoch"]
    assert lane["running_since"] >= lane["oldest_waiting"] == seen["work"]["oldest_waiting"]
    told = gsess("--home", busy, "top", "--once").out
    assert f"process {seen['owner']['pid']}" in told
    assert f"{lane['epoch']}.{lane['token']}" in told
    assert "running" in told


def test_without_a_gateway_it_says_what_waits(gsess: Gsess, home: Path):
    [seen] = gsess("--home", home, "top", "--json").answer["results"]
    assert (seen["owner"], seen["work"]["running"], seen["work"]["waiting"]) == (None, 0, 3)
    assert [(one["session_key"], one["epoch"]) for one in seen["lanes"]] == [(key(1), None)]
    told = gsess("--home", home, "top").out
    assert "nobody has the store open" in told
    assert "3 turns, the oldest since" in told


def test_the_next_resets_are_those_of_explain(gsess: Gsess, home: Path):
    (home / "config.yaml").write_text("session_reset: {mode: idle, idle_minutes: 600}\n")
    [seen] = gsess("--home", home, "top", "--json").answer["results"]
    known = {one["session_key"]: (one["at"], one["session_id"]) for one in seen["resets"]}
    explained = {}
    for number in range(3):
        [one] = gsess("--home", home, "explain", key(number), "--json").answer["results"]
        explained[key(number)] = (one["next_reset_at"], session_of(home, number))
    assert known == explained
    assert [one["at"] for one in seen["resets"]] == sorted(one["at"] for one in seen["resets"])
    told = gsess("--home", home, "top", "--once", "--limit", "2").out
    assert told.count("idle") == 2


def test_an_empty_store_is_calm(gsess: Gsess, empty: Path):
    told = gsess("--home", empty, "top", "--once").out
    assert "0 turns" in told
    assert "Given up  nothing" in told


@pytest.mark.parametrize(
    ("typed", "code", "says"),
    [
        (["--home", "{tmp}/no", "top"], Exit.NOT_FOUND, "there is no store here yet"),
        (["top", "--every", "0"], Exit.WRONG_USE, "'--every'"),
        (["top", "--limit", "0"], Exit.WRONG_USE, "'--limit'"),
    ],
)
def test_what_cannot_be_watched_is_said_so(
    gsess: Gsess, tmp_path: Path, typed: list[str], code: Exit, says: str
):
    ended = gsess(*(word.format(tmp=tmp_path) for word in typed))
    assert (ended.code, says in ended.err) == (code, True)


def seen_until(terminal: int, text: str) -> str:
    """What a terminal shows until that text is there."""
    found, end = b"", time.monotonic() + PATIENCE
    while text not in found.decode(errors="replace"):
        assert select.select([terminal], [], [], max(end - time.monotonic(), 0))[0], found
        found += os.read(terminal, 1 << 16)
    return found.decode()


def test_on_a_terminal_it_stays_fresh_until_ctrl_c(gsess: Gsess, busy: Path):
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    command = [Path(sys.executable).with_name("gsess"), "--home", busy, "top", "--every", "0.2"]
    clean = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    with (
        subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env=clean | {"TERM": "xterm-256color"}
        ) as process,
        ExitStack() as stack,
    ):
        stack.callback(process.kill)
        os.close(theirs)
        first = seen_until(ours, "2 turns, the oldest")
        assert "\x1b[?1049h" in first, "on a screen of its own"
        assert gsess("--home", busy, "queue", "cancel", key(1), "--all", "--yes").code == Exit.DONE
        later = seen_until(ours, "0 turns")
        assert (
            max(Text.from_ansi(line).cell_len for line in later.replace("\x1b[H", "\n").splitlines()) <= 100
        )
        process.send_signal(signal.SIGINT)
        last = seen_until(ours, "\x1b[?1049l")
        assert "Traceback" not in last
        assert process.wait(PATIENCE) == Exit.DONE
    os.close(ours)
