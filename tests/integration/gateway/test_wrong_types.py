"""What nobody has checked the types of is refused where it is handed over, and told as what it is."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from gateway_sessions import Command, Gateway, Observer, SessionStore
from gateway_sessions.errors import InvalidInputError, StoreStoppedError
from gateway_sessions.runtime.turn_context import TurnContext
from gateway_sessions.testing import FakePlatform
from gateway_sessions.testing.scripted_agent import ScriptedAgent
from tests.integration.gateway.house import QUICK, House, open_house


async def echo(turn: TurnContext) -> str:
    return turn.text


async def veto(_: object) -> str:
    return "no"


class Mute:
    """An adapter that only listens."""

    platform, name = "mute", ""

    def connect(self, submit: object) -> None: ...


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"store": "state"}, r"store is a value of str; open one first"),
    ({"agent": None, "agent_factory": "shop.agent"}, r"agent_factory is a value of str; give a function"),
    ({"on_message": "shop.veto"}, r"on_message is a value of str; give an async function"),
    ({"on_message": 42}, r"on_message is a value of int; give an async function"),
    ({"on_turn": Observer}, r"on_turn is the class Observer; give an async function"),
    ({"after_turn": ()}, r"after_turn is a value of tuple; give an async function"),
    ({"allowed": "admins"}, r"allowed is a value of str; give a function of the call"),
    ({"compressor": 3}, r"compressor is a value of int; give an async function"),
    ({"agent_settings": {"model": "m"}}, r"agent_settings is a value of dict; give a function"),
    ({"lanes": "agent:main:fake:dm:ann"}, r"lanes is a value of str; give a list of the keys"),
    ({"lanes": 3}, r"lanes is a value of int; give a list of the keys"),
    ({"lanes": [b"ann"]}, r"one of lanes is a value of bytes; give a list of the keys"),
    ({"commands": ["x"]}, r"one of commands is a value of str; give a list"),
    ({"commands": Command("ping", veto)}, r"commands is a value of Command; give a list"),
    ({"adapters": FakePlatform()}, r"adapters is a value of FakePlatform; give a list of adapters"),
    ({"adapters": [FakePlatform]}, r"one of adapters is the class FakePlatform; it lacks platform, name"),
    ({"adapters": [Mute]}, r"one of adapters is the class Mute; it lacks send, edit, typing, capabilities"),
    ({"adapters": [Mute()]}, r"one of adapters is a value of Mute; it lacks send, .*adapters\.Adapter"),
    ({"adapters": [None]}, r"one of adapters is None; it lacks connect"),
]


@pytest.mark.parametrize(("options", "told"), WRONG, ids=[repr(one)[:40] for one, _ in WRONG])
async def test_what_a_gateway_cannot_use_is_refused_before_it_opens(
    tmp_path: Path, options: dict[str, Any], told: str
):
    async with SessionStore.open(tmp_path, QUICK) as store:
        with pytest.raises(InvalidInputError, match=f"^{told}"):
            Gateway(**{"store": store, "agent": echo, **options})


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Observer(None), r"ask of an observer is None; give an async function"),  # type: ignore[arg-type]
        (lambda: Observer(veto, timeout=5), r"timeout of an observer is a value of int; give a timedelta"),  # type: ignore[arg-type]
        (
            lambda: Observer(veto, timeout=timedelta()),
            r"the timeout of an observer must be more than nothing",
        ),
        (lambda: Command("ping", "pong"), r"the handler of /ping is a value of str; give an async function"),  # type: ignore[arg-type]
        (lambda: Command("ping", veto, aliases="p"), r"aliases of /ping is a value of str; give names"),  # type: ignore[arg-type]
        (lambda: Command("ping", veto, limit=2), r"the limit of /ping is a value of int; give a timedelta"),  # type: ignore[arg-type]
        (lambda: Command(7, veto), r"the name of a command is a value of int; give a str"),  # type: ignore[arg-type]
    ],
)
def test_what_is_made_for_a_gateway_is_looked_at_where_it_is_made(make: Callable[[], object], told: str):
    with pytest.raises(InvalidInputError, match=f"^{told}"):
        make()


@pytest.mark.parametrize("given", ["hi", None, {"text": "x"}, 5])
async def test_what_is_no_message_is_told_so(tmp_path: Path, given: Any):
    async with open_house(tmp_path, agent=echo) as house:
        for take in (house.gateway.submit, house.gateway.admit, house.store.enqueue):
            with pytest.raises(InvalidInputError, match=r"^what came in is .*; give an InboundMessage"):
                await take(given)


ASKED: dict[str, Callable[[Gateway], object]] = {
    "busy": lambda gateway: gateway.busy,
    "settled": lambda gateway: gateway.settled(),
    "drain": lambda gateway: gateway.drain(),
    "run": lambda gateway: gateway.run(),
    "look_again": lambda gateway: gateway.look_again(),
    "running_turn": lambda gateway: gateway.running_turn("a lane"),
    "command": lambda gateway: gateway.command(FakePlatform().source("ann"), "/status"),
}


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
async def test_a_gateway_that_is_not_open_says_so_whatever_is_asked(
    tmp_path: Path, ask: Callable[[Gateway], Any]
):
    async with SessionStore.open(tmp_path, QUICK) as store:
        gateway = Gateway(store, agent=echo)
        with pytest.raises(StoreStoppedError, match=r"open it, once, with `async with`"):
            await ask(gateway)


async def test_what_an_agent_shows_is_a_text(tmp_path: Path):
    seen: list[str] = []

    async def agent(turn: TurnContext) -> str:
        for show in (turn.show, turn.stream().write, turn.say):
            with pytest.raises(InvalidInputError) as caught:
                await show(12)  # type: ignore[arg-type]
            seen.append(str(caught.value))
        return "done"

    async with open_house(tmp_path, agent=agent) as house:
        assert await answer(house) == ["done"]
        assert seen[:2] == [
            "what is shown is a value of int; give a str",
            "a piece of a reply is a value of int; give a str",
        ]


async def test_an_observer_that_answers_at_once_is_told_how_to_write_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    async with open_house(tmp_path, agent=ScriptedAgent("1"), on_message=lambda _: "no") as house:
        assert await answer(house) == ["1"]
    (problem,) = [vars(one)["problem"] for one in caplog.records if "problem" in vars(one)]
    assert "returned a value of str at once: write `async def`" in problem


async def answer(house: House) -> list[str]:
    await house.platform.says("ann", "hello")
    await house.settles()
    return house.platform.shown("ann")
