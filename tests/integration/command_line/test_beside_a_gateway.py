"""The command line works while another process has the store open: it reads directly, and acts through it."""

import asyncio
import os
import select
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from rich.text import Text

from gateway_sessions import SessionStore, load_config
from gateway_sessions.cli.app import options_in_front
from gateway_sessions.cli.exit_codes import Exit
from gateway_sessions.core.control_protocol import MAX_ANSWER_BYTES
from gateway_sessions.core.sessions.entry import MAX_SESSION_ID
from tests.integration.command_line.conftest import Gsess, key_of_person
from tests.integration.command_line.terminal.terminals import CTRL_C, GSESS, open_pty, terminal_session
from tests.integration.command_line.test_commands import count, session_of
from tests.programs import warm_python


def test_what_the_gateway_has_is_read_and_changed(gsess: Gsess, owned: Path):
    assert "my project" in gsess("--home", owned, "sessions", "list").out
    assert gsess("--home", owned, "sessions", "rename", "my project", "renamed").code == Exit.DONE
    assert gsess("--home", owned, "sessions", "delete", "loose", "--yes").code == Exit.DONE
    assert gsess("--home", owned, "queue", "cancel", key_of_person(1), "--all", "--yes").code == Exit.DONE
    assert gsess("--home", owned, "sessions", "prune", "--unended", "--yes").code == Exit.DONE
    told = gsess("--home", owned, "explain", "renamed", "--json").json_answer
    assert told["results"][0]["session_key"] == key_of_person(1)
    assert "answers" in gsess("--home", owned, "doctor").out
    assert gsess("--home", owned, "privacy", "erase", key_of_person(2), "--yes").code == Exit.DONE


async def test_the_zone_of_a_reset_has_one_name_beside_a_gateway_and_without_one(gsess: Gsess, home: Path):
    (home / "config.yaml").write_text("timezone: Europe/Berlin\n")

    def local() -> tuple[list[str], str]:
        told = gsess("--home", home, "explain", key_of_person(0))
        answer = gsess("--home", home, "explain", key_of_person(0), "--json").json_answer["results"][0]
        # Without how long it is until then, which is another second for whoever asks later.
        lines = [line.strip().split(", in ")[0] for line in told.lines if "00:00 " in line]
        return lines, answer["next_reset_local"]

    async with SessionStore.open(home, load_config(home / "config.yaml")):
        running = await asyncio.to_thread(local)
    closed = await asyncio.to_thread(local)
    assert running == closed
    assert closed[0][-1].endswith(" 04:00:00 Europe/Berlin")


@pytest.mark.parametrize(
    "command",
    [("sessiondb", "repair", "--yes"), ("import", "hermes", "."), ("sessiondb", "migrate", "new")],
    ids=" ".join,
)
def test_what_only_an_owner_can_do_says_who_is_in_the_way(
    gsess: Gsess, owned: Path, command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sessions.json").write_text("{}")  # as the first versions of Hermes left it
    ended = gsess("--home", owned, *command)
    assert ended.code == Exit.BUSY
    assert "in use by process" in ended.err
    assert "stop that process" in ended.err


@pytest.mark.timeout(60)
def test_what_is_removed_beside_a_gateway_may_be_more_than_one_answer_holds(gsess: Gsess, owned: Path):
    names = [f"{number:0{MAX_SESSION_ID}}" for number in range(MAX_ANSWER_BYTES // MAX_SESSION_ID + 1)]
    with closing(sqlite3.connect(owned / "sessions.db")) as connection, connection:
        rows = ((one, "main", "cli", 0) for one in names)
        connection.executemany(
            "INSERT INTO sessions (session_id, owner, source, started_at) VALUES (?, ?, ?, ?)", rows
        )
        connection.executemany(
            "INSERT INTO totals (session_id, last_active) VALUES (?, 0)", ((one,) for one in names)
        )
    ended = gsess("--home", owned, "sessions", "prune", "--unended", "--yes", "--json")
    assert (ended.code, ended.json_answer["results"][0]["session_ids"]) == (Exit.DONE, names)
    assert count(owned, "sessions") == 4


# As people start it


def start(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [Path(sys.executable).with_name("gsess"), *map(str, arguments)]
    return subprocess.run(
        command, check=False, capture_output=True, text=True, env={**os.environ, **environment}, timeout=60
    )


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("gsess se", ["serve", "sessions", "sessiondb"]),
        ("gsess sessions undo", ["undo-reset"]),
        ("gsess queue cancel --dr", ["--dry-run"]),
    ],
)
def test_a_shell_completes_commands_and_options(typed: str, offered: list[str]):
    words = typed.split()
    ended = start(_GSESS_COMPLETE="complete_bash", COMP_WORDS=typed, COMP_CWORD=str(len(words) - 1))
    assert ended.returncode == 0
    assert sorted(ended.stdout.split()) == sorted(offered)


def test_the_installed_command_answers(home: Path):
    ended = start("sessions", "list", GATEWAY_SESSIONS_HOME=str(home))
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "my project" in ended.stdout
    assert start("sessions", "show", "nothing", GATEWAY_SESSIONS_HOME=str(home)).returncode == Exit.NOT_FOUND


def test_whoever_has_seen_enough_may_go(home: Path):
    command = f"{Path(sys.executable).with_name('gsess')} --home {home} sessions export - | head -c 10"
    ended = subprocess.run(["sh", "-c", command], check=False, capture_output=True, timeout=60)
    assert (ended.returncode, len(ended.stdout), ended.stderr.count(b"Traceback")) == (0, 10, 0)


def test_the_installed_package_has_its_demo_with_it():
    """All of it is held by the tests of the examples, which play the same."""
    command = f"{Path(sys.executable).with_name('gsess')} demo | head -n 10"
    ended = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], check=False, capture_output=True, text=True, timeout=60
    )
    assert "1. Every conversation has a lane" in ended.stdout
    assert (ended.returncode, ended.stderr) == (0, "")
    told = start("demo", "--json")
    assert (told.returncode, "not JSON" in told.stdout) == (Exit.WRONG_USE, True)


def on_terminal(columns: int, *arguments: object, typed: str = "", **environment: str) -> str:
    """What somebody sees on a terminal of so many columns."""
    ours, theirs = open_pty(columns, 24)
    clean = {
        name: value
        for name, value in os.environ.items()
        if name not in ("NO_COLOR", "COLUMNS", "FORCE_COLOR")
    }
    whole = clean | {"TERM": "xterm-256color"} | environment
    with warm_python().start_at(theirs, GSESS, *arguments, environment=whole) as process:
        os.close(theirs)
        os.write(ours, typed.encode())
        seen = b""
        while select.select([ours], [], [], 30)[0]:
            try:
                seen += os.read(ours, 1 << 16)
            except OSError:
                break
        process.wait(30)
    os.close(ours)
    return seen.decode().replace("\r\n", "\n")


@pytest.mark.parametrize(
    "command", [("sessions", "delete", "loose"), ("privacy", "erase", "main:telegram:user:u1")]
)
def test_one_ctrl_c_ends_a_question(home: Path, command: tuple[str, ...]):
    with terminal_session("--home", home, *command) as person:
        person.watch_until("[y/N]")
        person.press(CTRL_C)
        assert person.watch_to_end() == Exit.INTERRUPTED
        assert any(line.startswith("gsess: interrupted") for line in person.screen.lines)
    assert count(home, "sessions WHERE session_id = 'loose'") == 1


@pytest.mark.parametrize("columns", [40, 80])
def test_a_list_fits_its_terminal_and_shows_whole_ids(home: Path, columns: int):
    seen = on_terminal(columns, "--home", home, "sessions", "list", NO_COLOR="1")
    lines = [Text.from_ansi(line) for line in seen.splitlines()]
    assert max(line.cell_len for line in lines) <= columns
    for number in range(3):
        assert session_of(home, number) in seen
    assert "…" in seen


def test_a_column_that_would_say_nothing_leaves_its_room_to_the_others(home: Path):
    seen = on_terminal(50, "--home", home, "sessions", "list", NO_COLOR="1")
    head, *rows = [Text.from_ansi(line).plain for line in seen.splitlines()]
    assert head.split() == ["Title", "Preview", "ID"]
    assert any(row.startswith("refactor") for row in rows)


def test_a_terminal_gets_colours_unless_it_wants_none(home: Path):
    assert "\x1b[1m" in on_terminal(80, "--home", home, "sessions", "list")


def test_a_person_is_asked_and_believed(home: Path):
    assert "nothing was changed" in on_terminal(
        80, "--home", home, "sessions", "delete", "loose", typed="n\n"
    )
    assert "Deleted loose" in on_terminal(80, "--home", home, "sessions", "delete", "loose", typed="yes\n")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("sessions list --json", "--json sessions list"),
        ("sessions --home x list --json", "--home x --json sessions list"),
        ("sessions search --home=x -- --json", "--home=x sessions search -- --json"),
        ("sessions list --home", "--home sessions list"),
    ],
)
def test_options_for_all_commands_stand_anywhere(typed: str, meant: str):
    assert options_in_front(typed.split()) == meant.split()
