"""People talk to an agent at a terminal, and go on with any conversation."""

import asyncio
import sqlite3
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from rich.text import Text

from gateway_sessions import SessionStore
from gateway_sessions.cli.conversation import SOURCE
from gateway_sessions.cli.exit_codes import Exit
from tests.integration.command_line.conftest import SAID, Ended, Gsess, key_of_person
from tests.integration.command_line.test_beside_a_gateway import on_terminal
from tests.integration.command_line.test_commands import count, session_of
from tests.integration.store.lane_rows import rows_of_lane
from tests.programs import PATIENCE, WarmPython, read_until
from tests.raw_sql import execute_sql

CODE = """
import sys
from gateway_sessions.cli.app import main

arguments, sys.argv = sys.argv[1:], ["gsess"]
sys.exit(main(arguments))
"""

Talk = Callable[..., Ended]


def rows(home: Path, table: str) -> list[tuple[object, ...]]:
    return execute_sql(home / "sessions.db", f"SELECT * FROM {table}")  # noqa: S608 -- a table of ours


async def reset(home: Path, session_key: str) -> None:
    async with SessionStore.open(home) as store:
        await store.reset_session(session_key)


@pytest.fixture
def talk(warm_python: WarmPython) -> Talk:
    """Says something in a chat of its own process, to its end."""

    def hold(home: Path, *arguments: object, says: str = "") -> Ended:
        command = ("--home", home, "chat", *arguments)
        with (
            tempfile.TemporaryFile() as errors,
            warm_python.start(CODE, *command, stderr=errors, folder=str(home.parent)) as program,
        ):
            program.stdin.write(says)
            program.stdin.close()
            said = read_until(program.stdout, time.monotonic() + PATIENCE)
            code = program.wait()
            errors.seek(0)
            return Ended(code, said, errors.read().decode())

    return hold


def test_what_is_said_is_answered_and_remembered(talk: Talk, tmp_path: Path):
    first = talk(tmp_path / "home", says="hello there\n")
    assert "You said: hello there" in first.out
    session_id = first.err.split("chat -r ")[1].strip()
    again = talk(tmp_path / "home", "-c", says="and again\n")
    assert "the first was: hello there" in again.out
    assert "● hello there" in again.out
    assert again.err.endswith(f"gsess chat -r {session_id}\n")
    fresh = talk(tmp_path / "home", says="who are you\n")
    assert "Before that" not in fresh.out
    assert "the first was: hello there" in talk(tmp_path / "home", "--resume", session_id, says="back\n").out


@pytest.mark.parametrize(("form", "shown"), [("minimal", "2 messages so far"), ("off", "")])
def test_the_recap_can_be_short_or_left_out(talk: Talk, tmp_path: Path, form: str, shown: str):
    talk(tmp_path / "home", says="hello there\n")
    ended = talk(tmp_path / "home", "-c", "--recap", form)
    assert "● hello" not in ended.out
    assert shown in ended.err
    assert ("so far" in ended.err) == bool(shown)


def test_the_configuration_says_what_is_shown_unless_somebody_does(talk: Talk, tmp_path: Path):
    talk(tmp_path / "home", says="hello there\n")
    (tmp_path / "home" / "config.yaml").write_text("display: {resume_display: minimal}\n", "utf-8")
    assert "2 messages so far" in talk(tmp_path / "home", "-c").err
    shown = talk(tmp_path / "home", "-c", "--recap", "full")
    assert "● hello" in shown.out
    assert "so far" not in shown.err


def test_a_conversation_is_found_by_its_title(talk: Talk, home: Path):
    talk(home, says="hello\n/title my very own\n")
    talk(home, says="something else\n")
    assert "● hello" in talk(home, "-c", "my very own").out
    assert "● hello" in talk(home, "-c", "my", "very", "own").out


def test_what_belongs_to_somebody_goes_on_as_a_fork_unless_it_shall_be_moved(talk: Talk, home: Path):
    theirs = session_of(home, 0)
    for named, option in (("refactoring auth", ()), (theirs, ("--fork",))):
        copied = talk(home, "-r", named, *option, says="mine\n")
        assert f"the first was: {SAID[0]}" in copied.out
        assert ("main:telegram:user:u0" in copied.err, "--move" in copied.err) == (not option, not option)
        assert session_of(home, 0) == theirs
    fork = copied.err.split("chat -r ")[1].strip()
    (forked,) = [one for one in rows(home, "sessions") if one[0] == fork]
    assert {"main:local:user:local", theirs} <= {*forked}
    assert f"the first was: {SAID[0]}" in talk(home, "-c", "refactoring auth", says="again\n").out
    sessions = count(home, "sessions")
    moved = talk(home, "-r", theirs, "--move", says="mine\n")
    assert f"the first was: {SAID[0]}" in moved.out
    assert count(home, "sessions") == sessions
    assert count(home, "entries WHERE session_key = 'agent:main:telegram:dm:0'") == 0


@pytest.mark.parametrize("ended", [False, True])
def test_who_only_looks_at_the_conversation_of_somebody_changes_nothing_of_it(
    talk: Talk, home: Path, *, ended: bool
):
    theirs = session_of(home, 0)
    if ended:
        asyncio.run(reset(home, key_of_person(0)))
    talk(home, says="hello\n")
    tables = ("sessions", "totals", "messages", "entries", "transitions", "inbox")
    before = {name: rows(home, name) for name in tables}
    for typed in (("-r", theirs), ("-c", "refactoring", "auth"), ("-r", theirs, "--fork"), ("-r", "loose")):
        looked = talk(home, *typed)
        assert looked.code == Exit.DONE
        assert ("●" in looked.out, "Session " in looked.err) == (True, True)
        assert {name: rows(home, name) for name in tables} == before


def test_nobody_else_is_answered_meanwhile(talk: Talk, home: Path):
    before = [rows_of_lane(home, key_of_person(number)) for number in range(3)]
    ended = talk(home, says="hello\n/status\n")
    assert "You said: hello" in ended.out
    assert talk(home, "-c", "--agent", "gateway_sessions.cli.demo_agent:answer").code == Exit.DONE
    assert [rows_of_lane(home, key_of_person(number)) for number in range(3)] == before


def test_an_agent_of_ones_own_answers(talk: Talk, tmp_path: Path):
    (tmp_path / "mine.py").write_text(
        "async def answer(turn):\n    return turn.text.upper()\n"
        "def make(entry, history):\n    return answer\n"
    )
    for name in ("answer", "make"):
        assert talk(tmp_path / "home", "--agent", f"mine:{name}", says="loud\n").out == "LOUD\n"


def test_on_a_terminal_it_looks_like_a_conversation(talk: Talk, tmp_path: Path):
    talk(tmp_path / "home", says="hello there\n")
    seen = on_terminal(
        60, "--home", tmp_path / "home", "chat", "-c", typed="on a terminal\n\x04", NO_COLOR="1"
    )
    plain = "\n".join(Text.from_ansi(line).plain for line in seen.splitlines())
    assert "Previous conversation" in plain
    assert "● hello there" in plain
    assert "You said: on a terminal" in plain
    assert "chat -r 2" in plain


@pytest.mark.parametrize(
    ("typed", "code", "says"),
    [
        (["--agent", "nothing:here"], Exit.WRONG_USE, "write module:name"),
        (["--agent", "json"], Exit.WRONG_USE, "write module:name"),
        (["--recap", "long"], Exit.WRONG_USE, "full, minimal, off"),
        (["my project"], Exit.WRONG_USE, "say: -c 'my project'"),
        (["my", "project"], Exit.WRONG_USE, "say: -c 'my project'"),
        (["-c", "my", "projects"], Exit.NOT_FOUND, "my projects"),
        (["--agent", "os.path:join"], Exit.WRONG_USE, "os.path:join is not async"),
        (["--json"], Exit.WRONG_USE, "not JSON"),
        (["-r", "nothing"], Exit.NOT_FOUND, "no session 'nothing'"),
    ],
)
def test_what_cannot_be_meant_is_said_so(gsess: Gsess, home: Path, typed: list[str], code: Exit, says: str):
    ended = gsess("--home", home, "chat", *typed)
    assert ended.code == code
    assert says in ended.err or says in ended.out


def a_week_later(home: Path) -> None:
    """Let everything in a store be a week older."""
    week = 7 * 24 * 3600 * 1_000_000
    with closing(sqlite3.connect(home / "sessions.db")) as database, database:
        database.execute("UPDATE clocks SET updated_at = updated_at - ?", (week,))
        database.execute("UPDATE entries SET due_at = due_at - ? WHERE due_at IS NOT NULL", (week,))


def left_at(ended: Ended) -> str:
    return ended.err.split("chat -r ")[1].strip()


@pytest.mark.parametrize(
    "config",
    [
        "",
        "session_reset: {mode: idle, idle_minutes: 1}\n",
        "platforms: {local: {session_reset: {mode: idle, idle_minutes: 1}}}\n",
    ],
    ids=["shipped", "all", "terminal"],
)
def test_the_last_conversation_goes_on_a_week_later(talk: Talk, tmp_path: Path, config: str):
    home = tmp_path / "home"
    first = left_at(talk(home, says="hello there\n"))
    (home / "config.yaml").write_text(config)
    a_week_later(home)
    again = talk(home, "-c", says="and again\n")
    assert "● hello there" in again.out
    assert "the first was: hello there" in again.out
    assert left_at(again) == first


def test_the_last_conversation_goes_on_although_it_was_ended(talk: Talk, tmp_path: Path):
    first = left_at(talk(tmp_path / "home", says="hello there\n"))
    talk(tmp_path / "home")
    talk(tmp_path / "home")
    again = talk(tmp_path / "home", "-c", says="and again\n")
    assert "the first was: hello there" in again.out
    assert left_at(again) == first


async def suspend(home: Path) -> None:
    async with SessionStore.open(home) as store:
        assert await store.suspend_session(store.key_for(SOURCE))


def test_the_last_conversation_goes_on_although_it_was_suspended(talk: Talk, tmp_path: Path):
    first = left_at(talk(tmp_path / "home", says="hello there\n"))
    asyncio.run(suspend(tmp_path / "home"))
    again = talk(tmp_path / "home", "-c", says="and again\n")
    assert ("the first was: hello there" in again.out, left_at(again)) == (True, first)


async def take_in(home: Path, said: datetime) -> None:
    async with SessionStore.open(home) as store:
        await store.db.create_session("of-hermes", "cli", started_at=said)
        await store.db.append_message("of-hermes", "user", "said in Hermes", timestamp=said)


def test_what_was_said_in_hermes_last_goes_on(talk: Talk, tmp_path: Path):
    talk(tmp_path / "home", says="hello there\n")
    asyncio.run(take_in(tmp_path / "home", datetime.now(UTC) + timedelta(minutes=1)))
    assert "● said in Hermes" in talk(tmp_path / "home", "-c", says="and again\n").out


def test_where_nothing_was_said_yet_it_is_told_so(talk: Talk, tmp_path: Path):
    ended = talk(tmp_path / "home", "-c", says="hello\n")
    assert (ended.code, "There is no conversation to go on with yet" in ended.err) == (Exit.DONE, True)
    assert "You said: hello" in ended.out
    assert "no conversation" not in talk(tmp_path / "home", "-c").err
