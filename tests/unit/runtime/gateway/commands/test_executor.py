"""How many commands may be under way."""

from __future__ import annotations

import pytest

from gateway_sessions.runtime.gateway.commands.executor import LEAST_OF_ONE, CommandPlaces
from gateway_sessions.runtime.gateway.commands.protocol import Command


async def nothing(_: object) -> str:
    return ""


HELP = Command("help", nothing, summary="Says what there is.")


@pytest.mark.parametrize(("most_of_one", "places"), [(1, LEAST_OF_ONE), (40, 40)])
def test_who_lets_little_wait_can_be_asked_several_things_at_once(most_of_one: int, places: int):
    book = CommandPlaces(1_000)
    taken = [book.reserve_place(HELP, "lane", "ann", most_of_one) for _ in range(places)]
    assert None not in taken
    assert book.reserve_place(HELP, "lane", "ann", most_of_one) is None
    assert book.reserve_place(HELP, "other", "bob", most_of_one) is not None
