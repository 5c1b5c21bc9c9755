"""Every command that only looks answers on any store, and every other one says what an empty store lacks."""

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from gateway_sessions.cli.exit_codes import Exit
from tests.benchmarks.seeding import seed_sessions
from tests.integration.command_line.conftest import Gsess, fill_store
from tests.integration.command_line.test_commands import count
from tests.integration.moving.filled_store import OF_A_PROCESS

LOOKING = [
    "sessions list", "sessions list --all --begun", "sessions search module",
    "sessions search mod --substring", "sessions stats",
    "sessions export {tmp}/out.jsonl", "sessions export {tmp}/out.html --format html",
    "sessions prune --dry-run", "insights", "explain agent:main:telegram:dm:1",
    "simulate --policy {tmp}/new.yaml", "queue list", "queue list agent:main:telegram:dm:1",
    "queue list --dead", "sessiondb check", "sessiondb repair --dry-run", "doctor", "top --once",
    "config explain", "config validate", "sessions import {tmp}/none.jsonl --dry-run",
]  # fmt: skip
AT_SOMETHING = [
    "sessions show loose", "sessions delete loose --dry-run", "privacy export loose {tmp}/known.jsonl",
    "privacy erase loose --dry-run", "queue cancel agent:main:telegram:dm:1 --all --dry-run",
]  # fmt: skip
ON_NOTHING = [
    ("sessions rename loose x", Exit.NOT_FOUND, "no session 'loose'"),
    ("sessions delete loose", Exit.NOT_FOUND, "no session 'loose'"),
    ("sessions show loose", Exit.NOT_FOUND, "no session 'loose'"),
    ("sessions undo-reset agent:main:telegram:dm:1", Exit.NOT_FOUND, "telegram:dm:1"),
    ("queue cancel agent:main:telegram:dm:1 1", Exit.NOT_FOUND, "does not wait"),
    ("queue cancel agent:main:telegram:dm:1 --all", Exit.DONE, "Cancelled 0 messages"),
    ("queue requeue 1", Exit.NOT_FOUND, "no dead letter 1"),
    ("queue requeue 1 --reply", Exit.NOT_FOUND, "reply 1 was not given up"),
    ("sessions prune", Exit.DONE, "Would remove 0 ended sessions"),
    ("sessiondb migrate {tmp}/moved", Exit.DONE, "Migrated 0 sessions"),
    ("sessiondb repair", Exit.DONE, "Nothing had to be repaired"),
    ("privacy export loose", Exit.NOT_FOUND, "no session 'loose'"),
    ("privacy export main:telegram:user:1 {tmp}/known.jsonl", Exit.DONE, "0 things known"),
    ("privacy erase loose", Exit.NOT_FOUND, "no session 'loose'"),
    ("privacy erase main:telegram:user:1", Exit.DONE, "main:telegram:user:1"),
    ("sessions import {tmp}/none.jsonl", Exit.DONE, "Imported 0 sessions"),
    ("import hermes {tmp}/empty-home", Exit.WRONG_USE, "is no Hermes home"),
]


@pytest.fixture(
    scope="session",
    params=[
        *(pytest.param(sessions, marks=pytest.mark.timeout(60)) for sessions in (0, 2_000)),
        pytest.param(100_000, marks=[pytest.mark.soak, pytest.mark.timeout(900)]),
    ],
)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """Three lanes, entries and queued messages, and so many sessions besides."""
    home = tmp_path_factory.mktemp("store") / "home"
    asyncio.run(fill_store(home))
    if request.param:
        seed_sessions(home, request.param)
    return home, 4 + int(request.param)


@pytest.fixture
def around(tmp_path: Path) -> Path:
    (tmp_path / "new.yaml").write_text("session_reset: {mode: idle, idle_minutes: 1}\n")
    (tmp_path / "none.jsonl").write_text("")
    (tmp_path / "empty-home").mkdir()
    return tmp_path


def answers(gsess: Gsess, home: Path, around: Path, typed: str) -> None:
    """It is done, a table for people and an object for programs, with nothing to complain of."""
    for place in (around / "people", around / "programs"):
        place.mkdir(exist_ok=True)
        words = [
            word.format(tmp=around if "none" in word or "new" in word else place) for word in typed.split()
        ]
        as_json = ["--json"] if place.name == "programs" else []
        ended = gsess("--home", home, *as_json, *words)
        assert (ended.code, "Traceback" in ended.err) == (Exit.DONE, False), ended.err
        if as_json:
            assert ended.json_answer["ok"] is True


@pytest.mark.parametrize("typed", [*LOOKING, *AT_SOMETHING])
def test_looking_answers_and_changes_nothing(gsess: Gsess, store: tuple[Path, int], around: Path, typed: str):
    home, sessions = store
    answers(gsess, home, around, typed)
    assert (count(home, "sessions"), count(home, "entries")) == (sessions, 3)


@pytest.mark.parametrize("typed", LOOKING)
def test_looking_answers_where_nothing_is(gsess: Gsess, empty: Path, around: Path, typed: str):
    answers(gsess, empty, around, typed)


@pytest.mark.parametrize(("typed", "code", "says"), ON_NOTHING)
def test_changing_says_what_an_empty_store_lacks(
    gsess: Gsess, empty: Path, around: Path, typed: str, code: Exit, says: str
):
    words = typed.format(tmp=around).split()
    as_people = gsess("--home", shutil.copytree(empty, around / "copy", ignore=OF_A_PROCESS), "--yes", *words)
    assert (as_people.code, says in as_people.out + as_people.err) == (code, True), as_people
    if code is not Exit.DONE:
        assert as_people.out == ""
        assert len(as_people.err.splitlines()) == 2
        failed = json.loads(gsess("--home", empty, "--yes", "--json", *words).out)
        assert failed["error"]["exit_code"] == code


def test_an_export_of_everything_holds_everything(gsess: Gsess, store: tuple[Path, int], tmp_path: Path):
    home, sessions = store
    gsess("--home", home, "sessions", "export", tmp_path / "all.jsonl")
    with (tmp_path / "all.jsonl").open("rb") as lines:
        assert sum(1 for _ in lines) == sessions
