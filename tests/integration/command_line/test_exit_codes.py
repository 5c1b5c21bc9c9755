"""Every command ends as the table of exit codes says, whatever it is that is not as it should be."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway_sessions.cli.app import command_line
from gateway_sessions.cli.exit_codes import Exit
from tests.integration.command_line.conftest import Gsess, key_of_person
from tests.integration.command_line.test_commands import count
from tests.integration.moving.filled_store import OF_A_PROCESS

LANE = key_of_person(1)
NO_LANE = "agent:main:telegram:dm:77"
WITHOUT_A_STORE = {
    # What looks or changes says that there is none.
    **dict.fromkeys(
        [
            "sessions list", "sessions show x", "sessions search x", "sessions stats", "sessions prune",
            "sessions rename x y", "sessions delete x", f"sessions undo-reset {LANE}",
            "sessions export {tmp}/x", "insights", f"explain {LANE}", "simulate --policy {tmp}/new.yaml",
            "top", "queue list", f"queue list {LANE}", "queue list --dead", f"queue cancel {LANE} 1",
            "queue requeue 1", "sessiondb migrate {tmp}/moved", "sessiondb check", "sessiondb repair",
            "sessiondb repair --dry-run", "privacy export main:cli:user:ann",
            "privacy erase main:cli:user:ann", "chat -r x",
        ],
        Exit.NOT_FOUND,
    ),
    # What finds out how things are has found something.
    "doctor": Exit.UNSOUND,
    # What begins with nothing needs none, and what is wrong is something else.
    "sessions import {tmp}/none.jsonl": Exit.DONE,
    "import hermes {tmp}": Exit.WRONG_USE,
    "sessiondb upgrade --dry-run": Exit.DONE,
    "sessiondb accounts": Exit.DONE,
    "config validate": Exit.DONE,
    "config explain": Exit.DONE,
    "serve": Exit.WRONG_USE,
    "demo --json": Exit.WRONG_USE,
    "sessions browse": Exit.WRONG_USE,
    "init --platform nothing": Exit.WRONG_USE,
    "fake nothing": Exit.WRONG_USE,
}  # fmt: skip
NAMED = [
    "sessions show {}", "sessions search x --session {}", "sessions export {tmp}/x --session-id {}",
    "sessions rename {} y", "sessions delete {}", "explain {}", "queue list {}", "queue cancel {} --all",
    "privacy export {} {tmp}/x", "privacy erase {}", "chat -r {}",
]  # fmt: skip
"""What takes a session, or the lane that one is on."""
NOT_THERE = [
    *(one.replace("{}", "nothing") for one in NAMED),
    f"sessions undo-reset {NO_LANE}", f"sessions undo-reset {LANE}", f"queue cancel {LANE} 99",
    f"queue cancel {NO_LANE} 1", "queue requeue 1", "queue requeue 1 --reply",
    "chat -c nothing",
]  # fmt: skip
NOT_CONFIRMED = [
    "sessions delete loose", f"queue cancel {LANE} --all", "sessiondb repair",
    "privacy erase main:telegram:user:u1",
]  # fmt: skip
IN_THE_WAY = [
    "sessiondb repair", "sessions import {tmp}/one.jsonl", "import hermes {tmp}/hermes",
    "sessiondb migrate {tmp}/moved", "chat",
]  # fmt: skip
"""What only the owner of a store can do."""


def leaves() -> Iterator[str]:
    """Every command there is."""
    for name, one in command_line().commands.items():
        below = getattr(one, "commands", None)
        yield from [name] if below is None else [f"{name} {transaction}" for transaction in below]


@pytest.fixture
def around(tmp_path: Path) -> Path:
    (tmp_path / "new.yaml").write_text("timezone: UTC\n")
    (tmp_path / "none.jsonl").write_text("")
    (tmp_path / "one.jsonl").write_text('{"id": "one", "source": "cli", "started_at": 0, "messages": []}\n')
    (tmp_path / "hermes").mkdir()
    (tmp_path / "hermes" / "sessions.json").write_text("{}")
    return tmp_path


def ends(gsess: Gsess, home: Path, typed: str, around: Path) -> int:
    ended = gsess("--home", home, "--yes", *typed.replace("{tmp}", str(around)).split())
    told = ended.err.splitlines()
    assert "Traceback" not in ended.err
    assert ended.code == Exit.DONE or ended.out or told[0].startswith("gsess: "), ended
    return ended.code


@pytest.mark.parametrize("typed", ["", "sessions", "queue", "sessiondb", "import", "privacy", "config"])
def test_whoever_names_no_command_is_shown_what_there_is(gsess: Gsess, typed: str):
    shown, helped = gsess(*typed.split()), gsess(*typed.split(), "--help")
    assert (shown.code, shown.out, shown.err) == (Exit.DONE, helped.out, "")
    failed = gsess(*typed.split(), "--debug")
    assert (failed.code, failed.err.splitlines()[0]) == (Exit.WRONG_USE, "gsess: Missing command")


@pytest.mark.parametrize("group", ["", "sessions"])
def test_the_list_of_commands_says_whole_sentences(gsess: Gsess, group: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "80")
    listed = gsess(*group.split(), "--help").out.split("Commands:")[1]
    assert [line for line in listed.splitlines() if line.endswith("...")] == []


@pytest.mark.parametrize("command", [*leaves()])
def test_an_option_that_there_is_not_is_wrong_use(gsess: Gsess, around: Path, command: str):
    assert ends(gsess, around / "no", f"{command} --nothing-like-it", around) == Exit.WRONG_USE
    assert not (around / "no").exists()


def test_every_command_is_tried_without_a_store():
    tried = {next(one for one in leaves() if f"{typed} ".startswith(f"{one} ")) for typed in WITHOUT_A_STORE}
    assert tried == {*leaves()}


@pytest.mark.parametrize("typed", WITHOUT_A_STORE)
def test_without_a_store_it_ends_as_documented(gsess: Gsess, around: Path, typed: str):
    home = around / "no"
    assert ends(gsess, home, typed, around) == WITHOUT_A_STORE[typed]
    assert not home.exists()


@pytest.mark.parametrize("typed", NOT_THERE)
def test_what_is_not_there_is_not_found(gsess: Gsess, home: Path, around: Path, typed: str):
    assert ends(gsess, home, typed, around) == Exit.NOT_FOUND


def test_what_cannot_be_resumed_begins_nothing(gsess: Gsess, home: Path):
    before = count(home, "sessions")
    assert gsess("--home", home, "chat", "-r", "nothing").code == Exit.NOT_FOUND
    assert count(home, "sessions") == before


@pytest.mark.parametrize("typed", NAMED)
def test_what_could_be_several_is_ambiguous(gsess: Gsess, home: Path, around: Path, typed: str):
    assert ends(gsess, home, typed.replace("{}", "2"), around) == Exit.AMBIGUOUS


@pytest.mark.parametrize("typed", NOT_CONFIRMED)
def test_what_is_not_confirmed_is_not_done(gsess: Gsess, home: Path, typed: str):
    assert gsess("--home", home, *typed.split()).code == Exit.DECLINED


@pytest.mark.parametrize("typed", IN_THE_WAY)
def test_somebody_in_the_way_is_named(gsess: Gsess, owned: Path, around: Path, typed: str):
    assert ends(gsess, owned, typed, around) == Exit.BUSY


# What only rehearses or looks

LEAVES_NOTHING = [
    "sessions list", "sessions stats", "doctor", "top", "simulate --policy {tmp}/new.yaml",
    "config validate", "config explain", f"explain {LANE}", "queue list",
    "sessions import {tmp}/one.jsonl --dry-run", "import hermes {tmp}/hermes --dry-run",
    "sessiondb migrate {tmp}/moved --dry-run", "sessiondb upgrade --dry-run", "sessiondb repair --dry-run",
    "sessiondb check", "sessions prune --dry-run", "privacy export main:cli:user:ann",
    "privacy erase main:cli:user:ann --dry-run", "queue cancel {lane} --all --dry-run",
    "sessions delete loose --dry-run",
]  # fmt: skip
REHEARSALS = [
    "sessions import {tmp}/one.jsonl --dry-run", "import hermes {tmp}/hermes --dry-run",
    "sessiondb migrate {tmp}/moved --dry-run", "sessiondb repair --dry-run", "sessiondb upgrade --dry-run",
]  # fmt: skip
OF_READERS = {f"{name}.db-{end}" for name in ("sessions", "search") for end in ("shm", "wal")}
"""SQLite needs them to read a database in which somebody may write; there is nothing in them."""


def files_in(folder: Path) -> dict[str, bytes]:
    return {
        str(one.relative_to(folder)): one.read_bytes()
        for one in folder.rglob("*")
        if one.is_file() and one.name not in OF_READERS
    }


@pytest.mark.parametrize("typed", LEAVES_NOTHING)
def test_whoever_looks_or_rehearses_leaves_no_trace(
    gsess: Gsess, home: Path, around: Path, typed: str, monkeypatch: pytest.MonkeyPatch
):
    """Not where there is nothing, not in an empty directory, and not in a store."""
    monkeypatch.setenv("XDG_STATE_HOME", str(around / "state"))
    (around / "void").mkdir()
    kept = shutil.copytree(home, around / "kept", ignore=OF_A_PROCESS)
    before = files_in(around)
    words = typed.replace("{tmp}", str(around)).replace("{lane}", LANE).split()
    for place in (around / "no", around / "void", kept):
        gsess("--home", place, *words)
        assert files_in(around) == before, place
        assert not (around / "no").exists()


@pytest.mark.parametrize("typed", REHEARSALS)
def test_what_only_an_owner_does_is_rehearsed_beside_one(gsess: Gsess, owned: Path, around: Path, typed: str):
    assert ends(gsess, owned, typed, around) == Exit.DONE


@pytest.mark.parametrize(("name", "code"), [("sessions.db", Exit.DONE), ("other.db", Exit.WRONG_USE)])
@pytest.mark.parametrize("transaction", ["check", "repair --dry-run", "repair --yes"])
def test_a_file_that_the_configuration_put_elsewhere_is_the_one_that_is_read(
    gsess: Gsess, home: Path, around: Path, transaction: str, name: str, code: Exit
):
    (around / "elsewhere").mkdir()
    shutil.copy(home / "sessions.db", around / "elsewhere" / name)
    (around / "elsewhere.yaml").write_text(f"sessiondb: {{url: {around}/elsewhere/{name}}}\n")
    typed = f"--config {around}/elsewhere.yaml sessiondb {transaction}"
    assert ends(gsess, around / "no", typed, around) == code
