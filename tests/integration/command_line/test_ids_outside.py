"""Every id that a command writes is text: as a number, a browser or jq would make another id of it."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway_sessions import SessionStore
from gateway_sessions.cli.exit_codes import Exit
from gateway_sessions.core.identity.row_ids import SAFE
from tests.integration.command_line.conftest import Gsess, key_of_person

TELLING = (
    "sessions list", "sessions show {session}", "sessions search auth", "sessions stats", "insights",
    "explain {lane}", "queue list", "queue list {lane}", "queue list --dead", "top --once", "doctor",
    "privacy export {owner}",
    "sessions prune --older-than 1d --dry-run", "sessions delete {session} --dry-run",
)  # fmt: skip


@pytest.fixture
def given_up(home: Path) -> Path:
    """The store of the other tests, in which messages were given up."""

    async def give_up() -> None:
        async with SessionStore.open(home) as store:
            turn = await store.claim(key_of_person(1))
            assert turn is not None
            async with turn:
                await turn.fail("it cannot be done")

    asyncio.run(give_up())
    return home


def numbers(value: Any) -> Iterator[int]:
    if isinstance(value, dict):
        value = [*value.values()]
    if isinstance(value, list):
        for one in value:
            yield from numbers(one)
    elif isinstance(value, int):
        yield value


@pytest.mark.parametrize("typed", TELLING)
def test_no_number_is_larger_than_a_reader_keeps(gsess: Gsess, given_up: Path, typed: str):
    listed = gsess("--home", given_up, "--json", "sessions", "list").json_answer["results"]
    session = next(one for one in listed if one["session_key"] == key_of_person(0))
    words = typed.format(session=session["session_id"], lane=key_of_person(1), owner=session["owner"]).split()
    ended = gsess("--home", given_up, "--json", *words)
    assert ended.code in (Exit.DONE, Exit.UNSOUND, Exit.BUSY), ended  # what a lane goes on with stays
    told = [json.loads(line) for line in ended.lines]
    assert told
    assert [one for one in numbers(told) if abs(one) > SAFE] == []


def test_the_id_of_a_dead_letter_is_text_and_names_it_to_requeue(gsess: Gsess, given_up: Path):
    found = gsess("--home", given_up, "--json", "queue", "list", "--dead").json_answer["results"]
    assert found
    assert all(isinstance(one["item_id"], str) for one in found)
    assert gsess("--home", given_up, "queue", "requeue", found[0]["item_id"]).code == Exit.DONE


async def test_a_program_may_hand_the_text_back(given_up: Path):
    async with SessionStore.open(given_up) as store:
        (letter, *_) = await store.dead_letters()
        assert await store.requeue(str(letter.item_id)) == letter.session_key
