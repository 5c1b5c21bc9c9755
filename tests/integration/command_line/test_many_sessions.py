"""An operator finds their way among very many conversations. The benchmark `command-line` says how fast."""

import shutil
from pathlib import Path

import pytest

from gateway_sessions.cli.commands.session_changes import MAX_IDS_SHOWN
from gateway_sessions.cli.exit_codes import Exit
from tests.benchmarks.seeding import RARE, SOURCES, id_of, said_in, seed_sessions
from tests.integration.command_line.conftest import Gsess
from tests.integration.command_line.terminal.terminals import (
    CTRL_C,
    CTRL_D,
    CURSOR,
    END,
    ENTER,
    ESCAPE,
    HOME,
    PAGE_DOWN,
    UP,
    WRAPS,
    terminal_session,
)
from tests.integration.command_line.terminal.test_browse import chosen
from tests.integration.command_line.test_commands import count
from tests.integration.moving.filled_store import OF_A_PROCESS

LINES = 24
ROWS = LINES - 4


@pytest.fixture(
    scope="session",
    params=[
        2_000,
        pytest.param(100_000, marks=[pytest.mark.soak, pytest.mark.timeout(600)]),
    ],
)
def many(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    home = tmp_path_factory.mktemp("many") / "home"
    seed_sessions(home, request.param)
    return home, request.param


def test_each_command_finds_what_it_is_asked_for(gsess: Gsess, many: tuple[Path, int]):
    home, number = many
    listed = gsess("--home", home, "sessions", "list", "--limit", 50, "--json").json_answer
    assert [one["session_id"] for one in listed["results"]] == [id_of(number - 1 - one) for one in range(50)]
    assert listed["facts"]["more"] is True
    found = gsess("--home", home, "sessions", "list", "--find", RARE, "--json").json_answer["results"]
    assert [one["session_id"] for one in found] == [id_of(number // 2)]
    of_source = gsess("--home", home, "sessions", "list", "--source", SOURCES[0], "--json").json_answer[
        "results"
    ]
    assert {one["source"] for one in of_source} == {SOURCES[0]}
    shown = gsess("--home", home, "sessions", "show", id_of(7))
    assert said_in(7, number) in shown.out
    stats = gsess("--home", home, "sessions", "stats", "--json").json_answer
    assert (stats["facts"]["sessions"], stats["facts"]["messages"]) == (number, 2 * number)
    assert {one["platform"]: one["sessions"] for one in stats["results"]} == dict.fromkeys(
        SOURCES, number // len(SOURCES)
    )
    top = gsess("--home", home, "top", "--json").json_answer["results"][0]
    assert top["work"]["waiting"] == 0


def test_some_go_and_the_others_stay(gsess: Gsess, many: tuple[Path, int], tmp_path: Path):
    home = shutil.copytree(many[0], tmp_path / "home", ignore=OF_A_PROCESS)
    number = many[1]
    assert gsess("--home", home, "sessions", "delete", id_of(5), "--yes").code == Exit.DONE
    assert gsess("--home", home, "sessions", "rename", id_of(6), "another", "name").code == Exit.DONE
    pruned = gsess(
        "--home", home, "sessions", "prune", "--unended", "--keep", number - 3, "--yes", "--json"
    ).json_answer
    assert pruned["results"][0]["session_ids"] == [id_of(0), id_of(1)]
    assert count(home, "sessions") == number - 3
    assert "another name" in gsess("--home", home, "sessions", "list", "--find", "another name").out


def test_a_plan_names_the_oldest_and_counts_the_others(gsess: Gsess, many: tuple[Path, int]):
    home, number = many
    typed = ["--home", home, "sessions", "prune", "--unended", "--keep", 0, "--older-than", "4d", "--dry-run"]
    first, *named, last = gsess(*typed).lines
    plan = gsess(*typed, "--json").json_answer["results"][0]["session_ids"]
    assert plan == [id_of(one) for one in range(len(plan))]
    assert MAX_IDS_SHOWN < len(plan) < number
    assert first.startswith(f"Would remove {len(plan):,} sessions")
    assert named == [f"  {one}" for one in plan[:MAX_IDS_SHOWN]]
    assert last == f"  ... and {len(plan) - MAX_IDS_SHOWN:,} more; --json names them all"


def test_all_of_them_can_be_browsed(many: tuple[Path, int]):
    home, number = many
    with terminal_session("--home", home, "sessions", "browse", columns=120, lines=LINES) as person:
        person.watch_until("1 of 100+")
        for page in range(1, 11):
            person.press(PAGE_DOWN)
            person.watch_until(lambda screen, page=page: id_of(number - 1 - page * ROWS) in screen.lines[-2])
        person.press(END)
        person.watch_until(f"{number:,} of {number:,}")
        assert id_of(0) in person.screen.lines[-2]
        person.press(UP)
        person.watch_until(lambda screen: id_of(1) in screen.lines[-2])
        person.press(HOME, "/", *RARE)
        person.watch_until(
            lambda screen: "1 of 1" in screen.lines[-1] and id_of(number // 2) in screen.lines[-2]
        )
        person.press(ESCAPE)
        person.watch_until("1 of 100+")
        person.press("/", *id_of(3))
        person.watch_until(lambda screen: "1 of 1" in screen.lines[-1] and id_of(3) in screen.lines[-2])
        person.press("\x15", *"no. 9")
        person.watch_until(
            lambda screen: "no. 9" in chosen(screen) and "1 of 1 " not in f"{screen.lines[-1]} "
        )
        person.press(ESCAPE, "q")
        assert person.watch_to_end() == Exit.DONE


def test_people_talk_and_watch_in_a_large_store(many: tuple[Path, int], tmp_path: Path):
    talk_and_watch(many[0], tmp_path)


@pytest.mark.parametrize("of", ["empty", "home"])
def test_people_talk_and_watch_in_a_small_store(request: pytest.FixtureRequest, of: str, tmp_path: Path):
    talk_and_watch(request.getfixturevalue(of), tmp_path)


def talk_and_watch(home: Path, folder: Path) -> None:
    copy = shutil.copytree(home, folder / "copy", ignore=OF_A_PROCESS)
    with terminal_session("--home", copy, "chat") as talker:
        talker.watch_until("Ctrl-D ends")
        talker.press(*"hello 火车", ENTER)
        talker.watch_until("You said: hello 火车")
        with terminal_session("--home", copy, "top", "--every", "0.2", columns=100) as watcher:
            watcher.watch_until(lambda screen: "at most" in screen.text and "0 turns" in screen.text)
            watcher.press(CTRL_C)
            assert watcher.watch_to_end() == Exit.DONE
            assert watcher.screen.on == {CURSOR, WRAPS}
        talker.press(CTRL_D)
        talker.watch_until("chat -r ")
        assert talker.watch_to_end() == Exit.DONE
        assert b"Traceback" not in talker.drawn + watcher.drawn
