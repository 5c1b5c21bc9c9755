"""What the command line says of a store on a server, true to what can be done there."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from gateway_sessions import Config, InboundMessage, SessionDB, SessionSource, SessionStore
from gateway_sessions.cli.exit_codes import Exit
from gateway_sessions.config import SessionDBConfig
from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.storage.engines.mysql.engine import MySQLDriver
from gateway_sessions.storage.engines.postgresql.engine import PostgresDriver
from gateway_sessions.storage.engines.server.driver import ServerDriver
from gateway_sessions.storage.transactions.upkeep import consistency
from tests import mysql, postgresql
from tests.integration.command_line.conftest import Gsess
from tests.integration.servers.running_drivers import running_driver

NOBODY = "postgresql://nobody@127.0.0.1:1/db"


@pytest.fixture(scope="module", params=["postgresql", "mysql"])
def address(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of a database with a session in it."""
    databases = postgresql.empty_database if request.param == "postgresql" else mysql.empty_database

    async def make(address: str) -> None:
        async with SessionDB.open(address, home=tmp_path_factory.mktemp("node")) as db:
            await db.create_session("s", "cli")
            await db.append_message("s", "user", "walrus")

    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        address = runner.run(stack.enter_async_context(databases()))
        runner.run(make(address))
        yield address
        runner.run(stack.aclose())


@pytest.fixture(autouse=True)
def _own_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def one_statement(name: str, values: tuple[object, ...]) -> Transaction[None]:
    yield Statement(name, values)


def driver_of(address: str) -> ServerDriver:
    return PostgresDriver(address) if address.startswith("postgresql") else MySQLDriver(address)


@pytest.fixture
def spoilt(address: str) -> Iterator[str]:
    """The same without the counts of its session."""

    async def change(transaction: Callable[[], Transaction[object]]) -> None:
        async with running_driver(driver_of(address)) as driver:
            await driver.write(transaction)

    asyncio.run(change(lambda: one_statement("delete_totals", ("s",))))
    yield address
    asyncio.run(change(consistency.mend_all))


def health_of(gsess: Gsess, *arguments: str) -> dict[str, tuple[str, str, str | None]]:
    results = gsess(*arguments, "doctor", "--json").json_answer["results"]
    return {one["what"]: (one["health"], one["told"], one["what_next"]) for one in results}


def test_a_sound_database_is_read_and_found_so(gsess: Gsess, address: str):
    ended = gsess("--home", address, "sessiondb", "check")
    assert (ended.code, ended.out) == (Exit.DONE, "Nothing is wrong.\n")


def test_tables_that_do_not_agree_are_found(gsess: Gsess, spoilt: str):
    found = gsess("--home", spoilt, "sessiondb", "check")
    assert (found.code, "1 session without counts: s" in found.out) == (Exit.UNSOUND, True)
    assert "sessiondb repair" not in found.out
    told = health_of(gsess, "--home", spoilt)["Content"]
    assert (told[0], "1 session without counts: s" in told[1]) == ("bad", True)
    assert "repair" not in str(told[2])


def test_only_mending_is_refused_and_where_it_is_done_is_said(gsess: Gsess, address: str):
    refused = gsess("--home", address, "sessiondb", "repair", "--yes")
    assert refused.code == Exit.FAILED
    assert "on the server" in refused.err
    assert "another place" not in refused.err


def test_the_doctor_asks_the_server_also_where_there_is_no_directory_yet(
    gsess: Gsess, address: str, tmp_path: Path
):
    found = health_of(gsess, "--home", address)
    assert not list(tmp_path.iterdir())
    assert {one[0] for one in found.values()} == {"good"}
    assert "is made when" in found["Directory"][1]
    assert "0 lanes" in found["Database"][1]
    assert found["Nodes"][1] == "0 processes have it open"
    assert found["Content"][1] == "all tables agree"


def test_the_doctor_says_who_has_it_open(gsess: Gsess, address: str, tmp_path: Path):
    async def look() -> dict[str, tuple[str, str, str | None]]:
        async with SessionDB.open(address, home=tmp_path / "node"):
            return await asyncio.to_thread(health_of, gsess, "--home", address)

    assert asyncio.run(look())["Nodes"] == ("good", "1 process has it open", None)


def test_top_knows_of_turns_that_run_elsewhere(gsess: Gsess, address: str, tmp_path: Path):
    async def look() -> tuple[str, list[dict[str, Any]]]:
        database = SessionDBConfig(provider=address.partition(":")[0], url=address)
        async with SessionStore.open(tmp_path / "node", Config(sessiondb=database)) as store:
            source = SessionSource(platform="telegram", chat_id="1", user_id="1")
            await store.enqueue(InboundMessage(source=source, text="hello", message_id="m"))
            turn = await store.claim()
            assert turn is not None
            running = await asyncio.to_thread(gsess, "--home", address, "top")
            listed = await asyncio.to_thread(gsess, "--home", address, "queue", "list", "--json")
            await turn.release()
        return running.out, listed.json_answer["results"]

    told, listed = asyncio.run(look())
    assert "nobody has the store open in this directory; elsewhere 1 process has it open" in told
    assert "Running     1 turn" in told
    assert "Cut off" not in told
    assert [(one["running"], one["cut_off"]) for one in listed] == [(True, False)]


def test_the_doctor_names_who_was_not_heard(gsess: Gsess, address: str):
    async def change(transaction: Callable[[], Transaction[object]]) -> None:
        async with running_driver(driver_of(address)) as driver:
            await driver.write(transaction)

    asyncio.run(change(lambda: one_statement("add_node", (99, 7, "context", "1", 0, -1))))
    health, told, _ = health_of(gsess, "--home", address)["Nodes"]
    asyncio.run(change(lambda: one_statement("forget_node", (99,))))
    assert (health, "not heard: context" in told) == ("warning", True)


@pytest.mark.parametrize("has_directory", [False, True])
def test_a_server_that_is_down_is_not_a_file_to_repair(gsess: Gsess, tmp_path: Path, has_directory: bool):
    arguments = ["--home", NOBODY]
    if has_directory:
        (tmp_path / "home").mkdir(mode=0o700)
        config = tmp_path / "config.yaml"
        config.write_text(f"sessiondb:\n  provider: postgresql\n  url: {NOBODY}\n")
        arguments = ["--home", str(tmp_path / "home"), "--config", str(config)]
    health, told, what_next = health_of(gsess, *arguments)["Database"]
    assert (health, "cannot be reached" in told) == ("bad", True)
    assert "whether the server runs" in str(what_next)
    assert gsess(*arguments, "doctor").code == Exit.UNSOUND
