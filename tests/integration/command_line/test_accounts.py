"""Lanes from before named accounts had lanes of their own, at the command line."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from gateway_sessions import Config, SessionStore
from gateway_sessions.cli.exit_codes import Exit
from gateway_sessions.testing.contract.queue.accounts import AT_SALES, AT_SUPPORT, as_before, exchange
from gateway_sessions.testing.contract.queue.bench import ALICE, BOB, LANE
from tests.integration.command_line.conftest import Gsess


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A store in which two accounts have shared a lane, and of another one nothing tells who used it."""

    async def make() -> None:
        async with SessionStore.open(tmp_path / "home", Config(timezone="UTC")) as store:
            await exchange(store, as_before("one", "sales"))
            await exchange(store, as_before("two", "support"))
            await store.get_or_create_session(BOB)

    asyncio.run(make())
    return tmp_path / "home"


def keys(gsess: Gsess, home: Path) -> set[str]:
    found = gsess("--home", home, "sessions", "list", "--json").json_answer["results"]
    return {one["session_key"] for one in found}


def test_a_rehearsal_says_what_would_be_done_and_does_nothing(gsess, home):
    before = keys(gsess, home)
    would = gsess("--home", home, "sessiondb", "accounts", "--dry-run")
    assert would.code == Exit.DONE
    assert would.lines[0] == "Would give 1 lane to accounts, would link 1:"
    assert would.lines[1].strip() == f"{LANE} → {AT_SUPPORT}"
    assert would.lines[2].strip().startswith(f"{AT_SALES} begins anew, linked to ")
    assert keys(gsess, home) == before


def test_lanes_are_given_to_accounts_once(gsess, home):
    assert gsess("--home", home, "sessiondb", "accounts").code == Exit.DECLINED
    done = gsess("--home", home, "sessiondb", "accounts", "telegram=support", "--yes")
    assert (done.code, done.lines[0]) == (Exit.DONE, "Gave 2 lanes to accounts, linked 1:")
    assert keys(gsess, home) == {AT_SUPPORT, AT_SUPPORT.removesuffix(":1") + ":2"}
    again = gsess("--home", home, "sessiondb", "accounts", "telegram=support", "--yes")
    assert again.out == "Every lane is its account's already.\n"


def test_a_report_is_for_programs_as_well(gsess, home):
    (report,) = gsess("--home", home, "sessiondb", "accounts", "--dry-run", "--json").json_answer["results"]
    assert [one["now"] for one in report["moved"]] == [AT_SUPPORT]
    assert [one["kept_by"] for one in report["linked"]] == [AT_SUPPORT]
    assert report["dry_run"] is True


@pytest.mark.parametrize(
    "given", [["telegram"], ["=support"], ["telegram="], ["--unnamed"], ["telegram=a\x07"]]
)
def test_what_names_no_account_is_refused(gsess, home, given):
    refused = gsess("--home", home, "sessiondb", "accounts", *given)
    assert refused.code == Exit.WRONG_USE
    assert "Traceback" not in refused.err


def test_an_account_that_gets_a_name_takes_its_lanes_along(gsess, tmp_path):
    home = tmp_path / "home"

    async def make() -> None:
        async with SessionStore.open(home, Config(timezone="UTC")) as store:
            await exchange(store, as_before("one", "", source=ALICE))

    asyncio.run(make())
    given = ["--home", home, "sessiondb", "accounts", "telegram=support", "--yes"]
    assert gsess(*given).out == "Every lane is its account's already.\n"
    assert gsess(*given, "--unnamed").code == Exit.DONE
    assert keys(gsess, home) == {AT_SUPPORT}
