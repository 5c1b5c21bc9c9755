"""What people get wrong: a clear line, what to do next, the documented exit code, and nothing changes."""

import hashlib
import os
import shutil
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from gateway_sessions.cli.exit_codes import Exit
from gateway_sessions.storage.engines.sqlite.engine import SqliteDriver
from tests.integration.command_line.conftest import Gsess, key_of_person
from tests.programs import WarmPython
from tests.raw_sql import execute_sql

ROOT = os.geteuid() == 0


@dataclass(frozen=True)
class Wrong:
    """A command as it was typed, and how it has to end. `{home}` and `{tmp}` are directories."""

    typed: str
    code: Exit
    says: str
    next: str = ""


USES = [
    # What is no command, or not all of one.
    Wrong("sesions list", Exit.WRONG_USE, "No such command 'sesions'", "--help"),
    Wrong("sessions lits", Exit.WRONG_USE, "Did you mean 'list'", "sessions --help"),
    Wrong("sessions list --limt 3", Exit.WRONG_USE, "No such option: --limt", "--help"),
    Wrong("sessions list --limit many", Exit.WRONG_USE, "'many' is no whole number", "--help"),
    Wrong("sessions list --limit 0", Exit.WRONG_USE, "'0' is no whole number from 1", "--help"),
    Wrong("top --every 0", Exit.WRONG_USE, "'0' is no number from 0.2", "--help"),
    Wrong("sessions show", Exit.WRONG_USE, "Missing argument 'SESSION'", "sessions show --help"),
    Wrong("queue requeue first", Exit.WRONG_USE, "'ID'", "--help"),
    # What is not there.
    Wrong("sessions show 20990101_000000_00000000", Exit.NOT_FOUND,
          "no session '20990101_000000_00000000'", "sessions list"),
    Wrong("sessions rename nothing else", Exit.NOT_FOUND, "no session 'nothing'", "sessions list"),
    Wrong("sessions delete nothing --yes", Exit.NOT_FOUND, "no session 'nothing'", "sessions list"),
    Wrong("sessions search x --session nothing", Exit.NOT_FOUND, "no session 'nothing'", "sessions list"),
    Wrong("sessions undo-reset agent:main:telegram:dm:77 --yes", Exit.NOT_FOUND, "dm:77", "sessions list"),
    Wrong("sessions undo-reset agent:main:telegram:dm:1 --yes", Exit.NOT_FOUND,
          "nothing can be undone", "explain"),
    Wrong("sessions import {tmp}/no.jsonl", Exit.WRONG_USE, "no such file", "--help"),
    Wrong("import hermes {tmp}/no", Exit.WRONG_USE, "no such directory", "--help"),
    Wrong("--home {tmp}/no sessions list", Exit.NOT_FOUND, "there is no store here yet", "--home"),
    Wrong("--home {tmp}/no queue list", Exit.NOT_FOUND, "there is no store here yet", "--home"),
    Wrong("--home {tmp}/no sessiondb migrate {tmp}/other", Exit.NOT_FOUND,
          "there is no store here yet", "--home"),
    Wrong("--home {tmp}/no sessiondb check", Exit.NOT_FOUND, "there is no", "--home"),
    Wrong("--home {tmp}/no sessions prune --yes", Exit.NOT_FOUND, "there is no store here yet", "--home"),
    # What could be several things, or is taken.
    Wrong("sessions show 2", Exit.AMBIGUOUS, "could be any of these", "whole id"),
    Wrong("sessions delete 2 --yes", Exit.AMBIGUOUS, "could be any of these", "whole id"),
    # What means nothing.
    Wrong("sessions search x --since someday", Exit.WRONG_USE, "'someday' is no time", "--help"),
    Wrong("sessions search x --sort sideways", Exit.WRONG_USE, "sort must be one of", "--help"),
    Wrong("sessions prune --older-than ages --dry-run", Exit.WRONG_USE,
          "'ages' is no length of time", "--help"),
    Wrong("sessions prune --max-size big --dry-run", Exit.WRONG_USE, "'big' is no size", "--help"),
    Wrong("sessions export {tmp}/x --format word", Exit.WRONG_USE, "no export format 'word'", "--help"),
    Wrong("sessions export {home}/sessions.db --force", Exit.WRONG_USE, "sessions.db", ""),
    Wrong("queue cancel agent:main:telegram:dm:1 --yes", Exit.WRONG_USE, "its number, or --all", "--help"),
    Wrong("queue cancel agent:main:telegram:dm:1 99 --yes", Exit.NOT_FOUND, "does not wait", "queue list"),
    Wrong("queue cancel agent:main:telegram:dm:1 99 --dry-run", Exit.NOT_FOUND, "does not wait", "queue"),
    Wrong("insights --days 0", Exit.WRONG_USE, "'--days'", "--help"),
    Wrong("insights --zone Mars/Olympus", Exit.WRONG_USE, "Mars/Olympus", "--help"),
    Wrong("privacy erase somebody --yes", Exit.NOT_FOUND, "no session 'somebody'", "sessions list"),
    Wrong("sessions rename loose " + "x" * 101, Exit.WRONG_USE, "101 characters", "--help"),
    Wrong("sessiondb migrate {home}/sessions.db", Exit.WRONG_USE, "both source and target", "--help"),
    Wrong("sessiondb migrate mysqlx://host/db", Exit.FAILED, "mysqlx://", ""),
    Wrong("sessiondb migrate postgresql://nobody@127.0.0.1:1/db", Exit.FAILED, "cannot be reached", "doctor"),
    Wrong("sessions search x --since 9999999d", Exit.WRONG_USE, "more than a century", "--help"),
    Wrong("sessions prune --older-than 9999999d --dry-run", Exit.WRONG_USE, "more than a century", "--help"),
    Wrong("simulate --policy {tmp}/new.yaml --from 9999999d", Exit.WRONG_USE,
          "more than a century", "--help"),
    Wrong("insights --days 1e8", Exit.WRONG_USE, "a century at most", "--help"),
    Wrong("insights --days 1e300", Exit.WRONG_USE, "'1e300' is no number from 0.01", "--help"),
    Wrong("insights --days nan", Exit.WRONG_USE, "'nan' is no number", "--help"),
    Wrong("sessions list --limit 99999999999999999999", Exit.WRONG_USE, "'--limit'", "--help"),
    Wrong("sessions show loose -n 99999999999999999999", Exit.WRONG_USE, "'-n'", "--help"),
    Wrong("sessions prune --keep 99999999999999999999", Exit.WRONG_USE, "'--keep'", "--help"),
    Wrong("queue requeue 99999999999999999999", Exit.WRONG_USE, "'ID'", "--help"),
    Wrong("queue cancel agent:main:telegram:dm:1 99999999999999999999", Exit.WRONG_USE, "'SEQ'", "--help"),
    # What is not said to be meant.
    Wrong("sessions delete loose", Exit.DECLINED, "say --yes"),
    Wrong("privacy erase my-project-owner:x:y", Exit.DECLINED, "say --yes"),
    # What is wrong with the configuration.
    Wrong("--config {tmp}/no.yaml sessions list", Exit.WRONG_USE, "cannot be read", "config validate"),
    Wrong("--config {tmp}/broken.yaml sessions list", Exit.WRONG_USE, "line 2", "config validate"),
    Wrong("config validate {tmp}/broken.yaml", Exit.WRONG_USE, "did you mean 'timezone'", "config validate"),
    Wrong("simulate --policy {tmp}/broken.yaml", Exit.WRONG_USE, "line 2", "config validate"),
    # What cannot be written there.
    Wrong("sessions export {tmp}/no/x.jsonl", Exit.WRONG_USE, "no is no directory; make it first", "--help"),
    Wrong("sessions export {tmp} --force", Exit.WRONG_USE, "is a directory; name a file in it", "--help"),
    Wrong("sessions export {tmp}/new.yaml", Exit.WRONG_USE, "is there already; --force", "--help"),
    Wrong("privacy export loose {tmp}/no/x.jsonl", Exit.WRONG_USE, "no is no directory", "--help"),
    Wrong("privacy export loose {tmp}", Exit.WRONG_USE, "is a directory", "--help"),
    Wrong("privacy export loose {tmp}/new.yaml", Exit.WRONG_USE, "is there already; --force", "--help"),
    # What is no export.
    Wrong("sessions import {tmp}/garbage", Exit.WRONG_USE, "could be taken in: line 1", "--help"),
    Wrong("sessions import {tmp}/new.yaml", Exit.WRONG_USE, "could be taken in: line 1", "--help"),
    Wrong("--home {tmp}/none sessions import {tmp}/garbage", Exit.WRONG_USE, "taken in: line 1", "--help"),
    # What is not ours, or not for us.
    Wrong("--home {tmp}/foreign sessions list", Exit.WRONG_USE,
          "not a gateway_sessions database", "another place"),
    Wrong("--home {tmp}/newer sessions list", Exit.FAILED, "needs at least schema version 99", "newer"),
    Wrong("--home {tmp}/torn sessions list", Exit.FAILED, "", "sessiondb repair"),
]  # fmt: skip


@pytest.fixture
def surroundings(home: Path, tmp_path: Path) -> Path:
    (tmp_path / "broken.yaml").write_text("timezone: UTC\ntimezon: UTC\n")
    (tmp_path / "garbage").write_bytes(b"\xa2\x00\n\xff\n[]\n")
    (tmp_path / "new.yaml").write_text("timezone: UTC\n")
    (tmp_path / "foreign").mkdir()
    execute_sql(tmp_path / "foreign" / "sessions.db", "CREATE TABLE theirs (x)")
    for name in ("newer", "torn"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "sessions.db").write_bytes((home / "sessions.db").read_bytes())
    execute_sql(
        tmp_path / "newer" / "sessions.db",
        "UPDATE meta SET value = 99 WHERE name IN ('schema_version', 'readable_from')",
    )
    (tmp_path / "torn" / "sessions.db").write_bytes(b"SQLite format 3\x00" + b"\xff" * 8000)
    return tmp_path


def content(home: Path) -> str:
    with closing(sqlite3.connect(home / "sessions.db")) as connection:
        found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'meta'")
        tables = sorted(row[0] for row in found.fetchall())
        rows = [connection.execute(f"SELECT * FROM {one} ORDER BY 1").fetchall() for one in tables]  # noqa: S608
    return hashlib.sha256(repr(rows).encode()).hexdigest()


@pytest.mark.parametrize("use", USES, ids=lambda use: use.typed[:60])
def test_one_line_says_what_is_wrong_and_what_to_do(gsess: Gsess, home: Path, surroundings: Path, use: Wrong):
    before = content(home)
    words = [word.format(home=home, tmp=surroundings) for word in use.typed.split()]
    place = [] if "--home" in words else ["--home", str(home)]
    ended = gsess(*place, *words)
    told = ended.err
    assert (ended.code, use.says in told, use.next in told) == (use.code, True, True), told
    assert "Traceback" not in told
    what, *candidates, what_next = ended.err.splitlines()
    assert (ended.out, what[:7], what_next[:4]) == ("", "gsess: ", "  → ")
    assert all(one.startswith("  ") for one in candidates)
    assert not candidates or use.code == Exit.AMBIGUOUS or use.next == "config validate"
    assert not (surroundings / "none").exists()
    assert content(home) == before
    answer = gsess(*place, "--json", *words).json_answer
    assert answer["ok"] is False
    assert answer["error"]["exit_code"] == use.code


def test_json_and_sessions_are_not_mixed(gsess: Gsess, home: Path):
    ended = gsess("--home", home, "sessions", "export", "-", "--json")
    assert ended.code == Exit.WRONG_USE
    assert "would mix" in ended.json_answer["error"]["message"]


def test_a_title_that_is_taken_is_said_so(gsess: Gsess, home: Path):
    execute_sql(
        home / "sessions.db", "UPDATE sessions SET owner = 'main:telegram:user:u1' WHERE session_id = 'loose'"
    )
    ended = gsess("--home", home, "sessions", "rename", "loose", "my", "project")
    assert ended.code == Exit.WRONG_USE
    assert "taken" in ended.err
    assert "another title" in ended.err


def test_the_current_session_of_a_lane_is_not_deleted(gsess: Gsess, home: Path):
    ended = gsess("--home", home, "sessions", "delete", "my project", "--yes")
    assert ended.code == Exit.BUSY
    assert key_of_person(1) in ended.err


def test_a_bug_is_shown_where_it_is_asked_for(gsess: Gsess, home: Path):
    with pytest.raises(LookupError):
        gsess("--home", home, "sessions", "show", "nothing", "--debug")


# What no command can open

LOCKED = """
    import sqlite3, sys

    connection = sqlite3.connect(sys.argv[1], isolation_level=None)
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    connection.execute("BEGIN EXCLUSIVE")
    print("locked", flush=True)
    sys.stdin.read()
"""
NOBODY = 65_534


@pytest.mark.timeout(60)
def test_a_database_that_another_program_keeps_locked(
    gsess: Gsess, home: Path, warm_python: WarmPython, monkeypatch: pytest.MonkeyPatch
):
    defaults = SqliteDriver.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "busy_seconds", 0.5)  # nobody lets go in 15 either
    with warm_python.start(LOCKED, home / "sessions.db") as other:
        assert other.stdout.readline() == "locked\n"
        ended = gsess("--home", home, "sessions", "list")
        other.stdin.close()
        assert other.wait() == 0
    what, what_next = ended.err.splitlines()
    assert (ended.code, ended.out) == (Exit.BUSY, "")
    assert "another program keeps it locked" in what
    assert "close that program" in what_next


@contextmanager
def without_rights(home: Path) -> Generator[None]:
    """Nobody may look into that directory, and root is nobody meanwhile."""
    home.chmod(0)
    if ROOT:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if ROOT:
            os.seteuid(0)
        home.chmod(0o700)


@pytest.mark.parametrize("typed", ["sessions list", "sessions rename loose x", "sessiondb check", "doctor"])
def test_a_directory_without_rights(gsess: Gsess, home: Path, typed: str):
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)
        theirs = shutil.copytree(home, Path(folder) / "home")
        gsess("--home", theirs, *typed.split())  # root could import nothing more as nobody
        gsess("--home", theirs, "sessions", "show", "nothing")
        with without_rights(theirs):
            ended = gsess("--home", theirs, *typed.split())
    what, what_next = ended.err.splitlines()
    assert (ended.code, ended.out) == (Exit.FAILED, "")
    assert what == f"gsess: {theirs / 'config.yaml'}: Permission denied"
    assert "its rights" in what_next


def test_a_database_without_rights(gsess: Gsess, home: Path):
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)
        theirs = shutil.copytree(home, Path(folder) / "home")
        (theirs / "config.yaml").write_text("")
        gsess("--home", theirs, "sessions", "list")
        theirs.chmod(0o711)
        (theirs / "config.yaml").chmod(0o644)
        (theirs / "sessions.db").chmod(0)
        if ROOT:
            os.seteuid(NOBODY)
        try:
            ended = gsess("--home", theirs, "sessions", "list")
        finally:
            if ROOT:
                os.seteuid(0)
    what, what_next = ended.err.splitlines()
    assert (ended.code, ended.out) == (Exit.FAILED, "")
    assert "check its owner and mode" in what
    assert "doctor" in what_next
