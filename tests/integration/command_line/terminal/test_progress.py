"""Whoever waits at a terminal sees what is being done; a pipe and a program see nothing of it."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gateway_sessions.cli.exit_codes import Exit
from tests.integration.command_line.conftest import OWNER
from tests.integration.command_line.terminal.terminals import CTRL_C, CURSOR, WRAPS, terminal_session
from tests.integration.command_line.test_wrong_uses import LOCKED
from tests.programs import WarmPython
from tests.raw_sql import execute_sql


@pytest.mark.parametrize(("columns", "colours"), [(100, True), (50, False)])
def test_a_check_shows_what_it_does_for_as_long_as_it_takes(
    home: Path, warm_python: WarmPython, columns: int, colours: bool
):
    environment = {} if colours else {"NO_COLOR": "1"}
    with warm_python.start(LOCKED, home / "sessions.db") as other:
        assert other.stdout.readline() == "locked\n"
        with terminal_session("--home", home, "sessiondb", "check", columns=columns, **environment) as person:
            person.watch_until("Reading the file")
            other.stdin.close()
            assert (other.wait(), person.watch_to_end()) == (0, Exit.DONE)
            assert [line for line in person.screen.lines if line] == ["Nothing is wrong."]
            assert person.screen.on == {CURSOR, WRAPS}
            assert person.screen.colours is colours


@pytest.mark.parametrize("how", ["json", "dumb", "pipe"])
def test_nothing_is_drawn_where_nobody_looks(home: Path, warm_python: WarmPython, how: str):
    arguments = ["--home", str(home), "sessiondb", "check", *(["--json"] if how == "json" else [])]
    with warm_python.start(LOCKED, home / "sessions.db") as other:
        assert other.stdout.readline() == "locked\n"
        if how == "pipe":
            command = [Path(sys.executable).with_name("gsess"), *arguments]
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
                with pytest.raises(subprocess.TimeoutExpired):
                    process.wait(2)
                other.stdin.close()
                assert process.communicate() == (b"Nothing is wrong.\n", b"")
            return
        with terminal_session(*arguments, TERM="dumb" if how == "dumb" else "xterm") as person:
            with pytest.raises(subprocess.TimeoutExpired):
                person.process.wait(2)  # type: ignore[union-attr]
            other.stdin.close()
            assert person.watch_to_end() == Exit.DONE
            assert b"Reading" not in person.drawn
            assert b"\x1b" not in person.drawn


def test_what_a_gateway_takes_long_for_is_waited_for_with_a_word(home: Path, warm_python: WarmPython):
    execute_sql(home / "sessions.db", "UPDATE totals SET last_active = 0 WHERE session_id = 'loose'")
    with warm_python.start(OWNER, home) as owner:
        assert owner.stdout.readline() == "open\n"
        owner.send_signal(signal.SIGSTOP)
        with terminal_session("--home", home, "sessions", "prune", "--unended", "--yes") as person:
            person.watch_until("Removing sessions")
            owner.send_signal(signal.SIGCONT)
            assert person.watch_to_end() == Exit.DONE
            assert person.screen.lines[0].startswith("Removed 1 session")
        owner.stdin.close()
        assert owner.wait() == 0


def test_ctrl_c_ends_what_is_shown(home: Path, warm_python: WarmPython):
    with warm_python.start(OWNER, home) as owner:
        assert owner.stdout.readline() == "open\n"
        owner.send_signal(signal.SIGSTOP)
        with terminal_session("--home", home, "privacy", "erase", "main:telegram:user:u1", "--yes") as person:
            person.watch_until("Forgetting")
            person.press(CTRL_C)
            assert person.watch_to_end() == Exit.INTERRUPTED
            assert "interrupted; what was finished is kept" in person.screen.text
            assert person.screen.on == {CURSOR, WRAPS}
        owner.send_signal(signal.SIGCONT)
        owner.stdin.close()
        assert owner.wait() == 0


def test_what_is_written_to_a_terminal_is_not_drawn_over(home: Path):
    with terminal_session("--home", home, "sessions", "export", "-", columns=200) as person:
        assert person.watch_to_end() == Exit.DONE
        assert b"Exporting" not in person.drawn
