"""What a store does just now can be seen beside the gateway that does it."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway_sessions.cli.exit_codes import Exit
from tests.integration.command_line.conftest import Gsess, key_of_person
from tests.integration.command_line.terminal.terminals import (
    CTRL_C,
    CURSOR,
    OTHER_SCREEN,
    WRAPS,
    terminal_session,
)
from tests.integration.command_line.test_commands import session_of
from tests.programs import PATIENCE, WarmPython

BUSY = """
    import asyncio, sys
    from gateway_sessions import Gateway, SessionStore

    async def answer(turn):
        print("running", flush=True)
        await asyncio.Event().wait()

    def made(entry, history):
        return answer

    async def main():
        async with SessionStore.open(sys.argv[1]) as store, Gateway(store, agent_factory=made) as gateway:
            await asyncio.to_thread(sys.stdin.read)
            await gateway.drain(within=gateway.config.delivery.retry * 0)

    asyncio.run(main())
"""


FUNCTION = """
    import asyncio, sys
    from gateway_sessions import Gateway, SessionStore
    from gateway_sessions.testing import FakePlatform

    async def answer(turn):
        if turn.messages[-1].text == "now":
            return "42"
        print("running", flush=True)
        await asyncio.Event().wait()

    async def main():
        platform = FakePlatform("telegram")
        async with SessionStore.open(sys.argv[1]) as store:
            async with Gateway(store, agent=answer, adapters=[platform]):
                await platform.says("1", "later")
                with platform.outage():
                    await platform.says("2", "now")
                    while not platform.attempts:
                        await asyncio.sleep(0.01)
                    print("owing", flush=True)
                    await asyncio.to_thread(sys.stdin.read)

    asyncio.run(main())
"""


@pytest.fixture
def killed(warm_python: WarmPython, tmp_path: Path) -> Path:
    """The store of a gateway that was killed: a function worked on one lane, another was owed a reply."""
    with warm_python.start(FUNCTION, tmp_path / "killed") as owner:
        assert [owner.stdout.readline() for _ in range(2)] == ["running\n", "owing\n"]
        owner.kill()
        owner.wait()
    return tmp_path / "killed"


@pytest.fixture
def busy(warm_python: WarmPython, home: Path) -> Iterator[Path]:
    with warm_python.start(BUSY, home) as owner:
        assert owner.stdout.readline() == "running\n"
        yield home
        owner.stdin.close()
        assert owner.wait() == 0


def test_what_runs_and_waits_is_seen_beside_a_gateway(gsess: Gsess, busy: Path):
    [seen] = gsess("--home", busy, "top", "--json").json_answer["results"]
    assert seen["owner"]["pid"] > 0
    assert (seen["sessions"], seen["work"]["running"], seen["work"]["waiting"]) == (3, 1, 2)
    [lane] = seen["lanes"]
    assert (lane["session_key"], lane["waiting"], lane["attempts"]) == (key_of_person(1), 2, 0)
    assert lane["epoch"] == seen["owner"]["epoch"]
    assert lane["running_since"] >= lane["oldest_waiting"] == seen["work"]["oldest_waiting"]
    told = gsess("--home", busy, "top", "--once").out
    assert f"process {seen['owner']['pid']}" in told
    assert f"{lane['epoch']}.{lane['token']}" in told
    assert "running" in told


def test_where_nobody_is_nothing_runs_and_what_is_tried_again_is_said(gsess: Gsess, killed: Path):
    [seen] = gsess("--home", killed, "top", "--json").json_answer["results"]
    assert (seen["owner"], seen["work"]["running"], seen["work"]["cut_off"]) == (None, 0, 1)
    assert [(one["session_key"], one["cut_off"]) for one in seen["lanes"]] == [(key_of_person(1), True)]
    told = gsess("--home", killed, "top").lines
    assert "Running     0 turns" in told
    assert "Cut off     1 turn, tried again at the next start" in told
    assert "Owed        1 reply, sent at the next start" in told
    [row] = [line.split() for line in told if line.startswith(f"{key_of_person(1)}  cut off")]
    assert row[1:] == ["cut", "off", "—", "—", "2", "0", "—"]


def test_what_is_owed_is_listed_also_if_nobody_sees_to_it(gsess: Gsess, killed: Path):
    listed = gsess("--home", killed, "queue", "list")
    assert [" ".join(line.split()) for line in listed.lines if line] == [
        "Lane No State Since Text",
        f"{key_of_person(1)} 1 cut off just now later",
        "Reply owed to ID Next try Since Text",
        f"{key_of_person(2)} {replies_of(gsess, killed)[0]['reply_id']} at the next start just now 42",
    ]
    assert listed.err == "What was cut off is tried again at the next start.\n"
    answer = gsess("--home", killed, "queue", "list", "--json").json_answer
    assert [(one["running"], one["cut_off"]) for one in answer["results"]] == [(False, True)]
    assert not answer["facts"]["served"]
    only = gsess("--home", killed, "queue", "list", key_of_person(2), "--json").json_answer
    assert (only["results"], len(only["facts"]["replies"])) == ([], 1)


def replies_of(gsess: Gsess, home: Path) -> list[dict[str, Any]]:
    return list(gsess("--home", home, "queue", "list", "--json").json_answer["facts"]["replies"])


def test_a_turn_that_was_cut_off_is_no_running_one(gsess: Gsess, killed: Path):
    told = gsess("--home", killed, "explain", key_of_person(1))
    assert "try 1 was cut off, and its process is gone; it is tried again" in told.out
    assert "Waiting       0 messages" in told.out
    [answer] = gsess("--home", killed, "explain", key_of_person(1), "--json").json_answer["results"]
    assert (answer["lane"]["running"], answer["lane"]["cut_off"]) == (False, True)


def test_a_running_message_does_not_wait(gsess: Gsess, busy: Path):
    assert "Waiting       2 messages" in gsess("--home", busy, "explain", key_of_person(1)).out
    states = [line.split()[2] for line in gsess("--home", busy, "queue", "list").lines[1:]]
    assert states == ["running", "waiting", "waiting"]


def test_a_message_that_runs_alone_is_listed(gsess: Gsess, busy: Path):
    gsess("--home", busy, "queue", "cancel", key_of_person(1), "--all", "--yes")
    assert [line.split()[2] for line in gsess("--home", busy, "queue", "list").lines[1:]] == ["running"]


def test_a_plain_function_is_at_work_as_well(gsess: Gsess, warm_python: WarmPython, tmp_path: Path):
    with warm_python.start(FUNCTION, tmp_path / "home") as owner:
        # The other turn of it has ended when its reply is owed, or is just about to.
        assert [owner.stdout.readline() for _ in range(2)] == ["running\n", "owing\n"]
        end = time.monotonic() + PATIENCE
        while "0 of 128 warm, 1 at work" not in (told := gsess("--home", tmp_path / "home", "top").out):
            assert time.monotonic() < end, told


def test_the_lease_of_a_turn_is_explained(gsess: Gsess, busy: Path):
    [lane] = gsess("--home", busy, "top", "--json").json_answer["results"][0]["lanes"]
    [told] = gsess("--home", busy, "explain", key_of_person(1), "--json").json_answer["results"]
    known = {name: told["lane"][name] for name in ("epoch", "token", "running_since")}
    assert known == {name: lane[name] for name in known}
    shown = gsess("--home", busy, "explain", key_of_person(1)).out
    assert f"yes, try 1, lease {lane['epoch']}.{lane['token']}, since 20" in shown


def test_without_a_gateway_it_says_what_waits(gsess: Gsess, home: Path):
    [seen] = gsess("--home", home, "top", "--json").json_answer["results"]
    assert (seen["owner"], seen["work"]["running"], seen["work"]["waiting"]) == (None, 0, 3)
    assert [(one["session_key"], one["epoch"]) for one in seen["lanes"]] == [(key_of_person(1), None)]
    told = gsess("--home", home, "top").out
    assert "nobody has the store open" in told
    assert "3 turns, the oldest since" in told
    assert [line.split("  ")[-1] for line in told.splitlines()[2:4]] == ["not running"] * 2


def test_the_next_resets_are_those_of_explain(gsess: Gsess, home: Path):
    (home / "config.yaml").write_text("session_reset: {mode: idle, idle_minutes: 600}\n")
    [seen] = gsess("--home", home, "top", "--json").json_answer["results"]
    known = {one["session_key"]: (one["at"], one["session_id"]) for one in seen["resets"]}
    explained = {}
    for number in range(3):
        [one] = gsess("--home", home, "explain", key_of_person(number), "--json").json_answer["results"]
        explained[key_of_person(number)] = (one["next_reset_at"], session_of(home, number))
    assert known == explained
    assert [one["at"] for one in seen["resets"]] == sorted(one["at"] for one in seen["resets"])
    told = gsess("--home", home, "top", "--once", "--limit", "2").out
    assert told.count("idle") == 2


def test_an_empty_store_is_calm(gsess: Gsess, empty: Path):
    told = gsess("--home", empty, "top", "--once").out
    assert "0 turns" in told
    assert "Given up    nothing" in told


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


def test_on_a_terminal_it_stays_fresh_until_ctrl_c(gsess: Gsess, busy: Path):
    with terminal_session("--home", busy, "top", "--every", "0.2", columns=100) as person:
        person.watch_until("2 turns, the oldest")
        assert OTHER_SCREEN in person.screen.on
        assert gsess("--home", busy, "queue", "cancel", key_of_person(1), "--all", "--yes").code == Exit.DONE
        person.watch_until("0 turns")
        person.press(CTRL_C)
        assert person.watch_to_end() == Exit.DONE
        assert person.screen.on == {CURSOR, WRAPS}
        assert b"Traceback" not in person.drawn


@pytest.mark.parametrize(("columns", "lines"), [(40, 10), (80, 24)])
def test_on_a_small_terminal_it_shows_what_there_is_room_for(home: Path, columns: int, lines: int):
    """The screen of the tests fails where a line goes beyond the edge."""
    with terminal_session("--home", home, "top", columns=columns, lines=lines) as person:
        person.watch_until("not running")
        person.press(CTRL_C)
        assert person.watch_to_end() == Exit.DONE


def test_the_agents_of_a_gateway_and_its_loop_are_seen(gsess: Gsess, busy: Path):
    def seen() -> dict[str, Any]:
        [one] = gsess("--home", busy, "top", "--json").json_answer["results"]
        return dict(one["owner"])

    agents = seen()["agents"]
    assert (agents["lent"], agents["idle"], agents["room"]) == (1, 0, 128)
    assert (agents["hits"], agents["misses"]) == (0, 1)
    end = time.monotonic() + PATIENCE
    while (loop := seen()["loop"]) is None:
        assert time.monotonic() < end
    assert 0 <= loop["usual_ms"] <= loop["worst_ms"]
    told = gsess("--home", busy, "top", "--once").out
    assert "0 of 128 warm, 1 at work; 0 of 1 turn found theirs (0%)" in told
    assert " ms late, at most " in told


def test_a_store_without_a_gateway_has_no_agents(gsess: Gsess, owned: Path):
    told = gsess("--home", owned, "top").out
    assert "no gateway runs there" in told
