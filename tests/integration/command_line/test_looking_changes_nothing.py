"""Commands that only look leave every table as it was, and every other file, whatever they look at."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from gateway_sessions import Scope, SessionStore
from gateway_sessions.cli.exit_codes import Exit
from gateway_sessions.testing.contract.queue.authors import turn
from tests.integration.command_line.conftest import Gsess, fill_store, key_of_person, source_of_person
from tests.integration.command_line.terminal.test_chat import Talk, talk
from tests.integration.command_line.test_exit_codes import leaves
from tests.integration.moving.filled_store import OF_A_PROCESS
from tests.integration.transfer.hermes import hermes_home

__all__ = ["talk"]

ANYWHERE = [
    "sessions list", "sessions list --all --begun", "sessions search module",
    "sessions search mod --substring", "sessions stats",
    "sessions export {place}/out.jsonl", "sessions export {place}/out.html --format html",
    "sessions import {tmp}/taken.jsonl --dry-run", "sessions prune --dry-run", "insights",
    "simulate --policy {tmp}/new.yaml", "queue list", "queue list --dead", "sessiondb check",
    "sessiondb accounts telegram=support --unnamed --dry-run",
    "sessiondb migrate {place}/moved --dry-run", "sessiondb upgrade --dry-run", "sessiondb repair --dry-run",
    "import hermes {tmp}/hermes --dry-run", "doctor", "top --once", "config explain", "config validate",
]  # fmt: skip
AT_A_SESSION = [
    "sessions show {}", "sessions search module --session {}",
    "sessions export {place}/one.jsonl --session-id {}",
    "sessions delete {} --dry-run", "explain {}", "queue list {}", "queue cancel {} --all --dry-run",
    "sessions undo-reset {} --dry-run", "privacy export {} {place}/known.jsonl", "privacy erase {} --dry-run",
]  # fmt: skip
CHANGING = {"sessions rename", "queue requeue", "serve", "demo", "init", "fake"}
"""What has no form that only looks."""
ELSEWHERE = {"sessions browse", "chat"}
"""What is looked at with a person at a terminal."""
KINDS = ("ended", "current", "suspended", "foreign")
COMMANDS = [*((one, "") for one in ANYWHERE), *((one, kind) for one in AT_A_SESSION for kind in KINDS)]
"""Each command that only looks, with what it looks at."""


async def make(home: Path) -> dict[str, str]:
    """A store with sessions of every kind; their ids."""
    await fill_store(home)
    async with SessionStore.open(home, titler=None) as store:
        found = {
            kind: await store.peek_session_id(key_of_person(number)) or ""
            for number, kind in enumerate(("ended", "current", "suspended"))
        }
        await store.reset_session(key_of_person(0))
        await store.suspend_session(key_of_person(2))
        # A conversation that went to somebody else, with what its person had said in it.
        other = await store.get_or_create_session(source_of_person(3))
        await turn(store, source_of_person(3), "Help me with the module", other.session_key)
        moved = await store.get_or_create_session(source_of_person(4))
        await store.switch_session(moved.session_key, other.session_id, scope=Scope.operator(), move=True)
        dead = await store.claim(key_of_person(1))
        assert dead is not None
        await dead.fail("no power")
        await store.db.catch_up_search_index()
        return found | {"foreign": other.session_id}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    home = tmp_path_factory.mktemp("looked at") / "home"
    return home, asyncio.run(make(home))


@pytest.fixture
def copied(made: tuple[Path, dict[str, str]], tmp_path: Path) -> tuple[Path, dict[str, str]]:
    home, sessions = made
    (tmp_path / "new.yaml").write_text("session_reset: {mode: idle, idle_minutes: 1}\n")
    hermes_home(tmp_path / "hermes")
    return shutil.copytree(home, tmp_path / "home", ignore=OF_A_PROCESS), sessions


def tables(home: Path) -> dict[str, list[tuple[object, ...]]]:
    """Every row of every table."""
    with closing(sqlite3.connect(f"file:{home / 'sessions.db'}?mode=ro", uri=True)) as database:
        names = database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
        return {
            name: database.execute(f"SELECT * FROM {name} ORDER BY 1, 2").fetchall()  # noqa: S608 -- its tables
            for (name,) in names.fetchall()
        }


def files(home: Path) -> dict[str, bytes]:
    """All that is in the directory, but for what readers of a database share for a while."""
    return {
        str(one.relative_to(home)): one.read_bytes()
        for one in home.rglob("*")
        if one.is_file() and one.suffix not in (".db-wal", ".db-shm", ".lock")
    }


def test_every_command_looks_or_is_known_to_change_something():
    looking = {
        leaf
        for leaf in leaves()
        for typed in (*ANYWHERE, *AT_A_SESSION)
        if f"{typed} ".startswith(f"{leaf} ")
    }
    assert looking | CHANGING | ELSEWHERE == {*leaves()}
    assert not looking & CHANGING


@pytest.mark.parametrize(("typed", "kind"), COMMANDS)
def test_looking_leaves_every_table_as_it_was(
    gsess: Gsess, copied: tuple[Path, dict[str, str]], tmp_path: Path, typed: str, kind: str
):
    home, sessions = copied
    gsess("--home", home, "sessions", "export", tmp_path / "taken.jsonl")
    before, whole = tables(home), files(home)
    for place, options in (("people", []), ("programs", ["--json"])):
        (tmp_path / place).mkdir()
        words = typed.format(sessions.get(kind, ""), tmp=tmp_path, place=tmp_path / place).split()
        ended = gsess("--home", home, *options, *words)
        assert "Traceback" not in ended.err
        # A lane that is asked for, or a reset of it, is not what each session has.
        assert ended.code in (Exit.DONE, Exit.NOT_FOUND, Exit.BUSY), ended
        assert tables(home) == before
        assert files(home) == whole


@pytest.mark.parametrize("kind", KINDS)
def test_who_begins_a_chat_and_says_nothing_changes_no_conversation(
    talk: Talk, copied: tuple[Path, dict[str, str]], kind: str
):
    home, sessions = copied
    before = tables(home)
    looked = talk(home, "-r", sessions[kind])
    assert (looked.code, "●" in looked.out) == (Exit.DONE, True), looked
    after = tables(home)
    # The store was opened, which counts openings; nothing else knows of it.
    assert {name for name in before if before[name] != after[name]} <= {"meta"}
