"""What nobody has checked the types of is refused where it is handed over, and told as what it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from gateway_sessions import (
    Accepted,
    Command,
    Duplicate,
    Gateway,
    InboundMessage,
    Message,
    Reply,
    Scope,
    SessionSource,
    SessionStore,
)
from gateway_sessions.adapters import Attachment, AttachmentKind, MessageKind, OutboundMessage
from gateway_sessions.errors import InvalidInputError, StoreStoppedError
from gateway_sessions.events import Observer
from gateway_sessions.runtime.agents.turn_context import TurnContext
from gateway_sessions.sessions import FirstExchange
from gateway_sessions.testing import FakeClock, FakePlatform
from gateway_sessions.testing.agents import ScriptedAgent
from tests.integration.gateway.gateway_harness import QUICK, GatewayHarness, echo, open_harness


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
    ({"wording": {"failed": "x"}}, r"wording is a value of dict; give a function of a notice"),
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
    async with open_harness(tmp_path, agent=echo) as harness:
        for take in (harness.gateway.submit, harness.gateway.admit, harness.store.enqueue):
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

    async with open_harness(tmp_path, agent=agent) as harness:
        assert await answer(harness) == ["done"]
        assert seen[:2] == [
            "what is shown is a value of int; give a str",
            "a piece of a reply is a value of int; give a str",
        ]


async def test_an_observer_that_answers_at_once_is_told_how_to_write_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    async with open_harness(tmp_path, agent=ScriptedAgent("1"), on_message=lambda _: "no") as harness:
        assert await answer(harness) == ["1"]
    (problem,) = [vars(one)["problem"] for one in caplog.records if "problem" in vars(one)]
    assert "returned a value of str at once: write `async def`" in problem


async def answer(harness: GatewayHarness) -> list[str]:
    await harness.platform.says("ann", "hello")
    await harness.wait_until_idle()
    return harness.platform.shown("ann")


class Markup(str):
    """A text as template engines and model libraries return it: it joins and prints in its own way."""

    __slots__ = ()

    def __str__(self) -> str:
        return "printed"

    def __add__(self, other: object) -> Markup:
        return Markup("joined")

    def strip(self, *_: object) -> Markup:
        return Markup("stripped")


class Kept(FakePlatform):
    """A platform whose program keeps names and texts in classes of its own."""

    def source(self, person: str, **where: Any) -> SessionSource:
        known = super().source(person, **where)
        changes = {"chat_id": Markup(known.chat_id), "user_id": Markup(person), "user_name": Markup(person)}
        return replace(known, **changes)


@pytest.mark.parametrize(
    "answer",
    [
        lambda: Markup("hello"),
        lambda: Reply(Markup("hello")),
        lambda: Reply(Markup("hello"), extra={"notes": [Markup("x")], "n": True}),
        lambda: Reply("hello", attachments=(Attachment(kind=AttachmentKind.PHOTO, url=Markup("a")),)),
    ],
    ids=["text", "reply", "extra", "attachment"],
)
async def test_texts_of_derived_classes_are_taken_and_sent_as_what_they_hold(
    tmp_path: Path, answer: Callable[[], Any]
):
    async def agent(turn: TurnContext) -> Any:
        assert type(turn.text) is str
        return answer()

    async with open_harness(tmp_path, agent=agent, platform=Kept()) as harness:
        await harness.platform.says("ann", Markup(" hi "), message_id=Markup("m7"))
        await harness.platform.wait_until_idle()
        assert [message.text for message in harness.platform.sent] == ["hello"]
        assert all(type(message.text) is str for message in harness.platform.sent)
        assert [row[0] for row in await harness.transcript("ann")] == ["user", "assistant"]
        again = await harness.platform.says("ann", " hi ", message_id="m7")
        assert isinstance(again, Duplicate)


async def test_a_text_of_a_derived_class_grows(tmp_path: Path):
    async def agent(turn: TurnContext) -> None:
        stream = turn.stream()
        await stream.write(Markup("one "))
        await stream.write(Markup("two"))

    async with open_harness(tmp_path, agent=agent) as harness:
        await harness.platform.says("ann", "hi")
        await harness.platform.wait_until_idle()
        assert [message.text for message in harness.platform.sent] == ["one two"]


class Number(int):
    """A number of a class of its own, as libraries of platforms return it."""


async def test_names_of_derived_classes_are_taken_for_what_they_hold(tmp_path: Path):
    person, operator = Markup("main:cli:user:u"), Scope.operator()
    async with SessionStore.open(tmp_path, QUICK, clock=FakeClock(), titler=None) as store:
        await store.db.create_session(Markup("one"), Markup("cli"), user_id=Markup("u"))
        said = Message("user", Markup("before"), platform_message_id=Markup("m1"))
        await store.db.append_messages(Markup("one"), [said])
        assert await store.db.edit_message("one", Markup("m1"), Markup("after"))
        assert await store.db.retract_message("one", Markup("m1"))
        record = await store.db.get_session("one")
        assert record is not None
        assert record.owner == "main:cli:user:u"
        entry = await store.get_or_create_session(SessionSource(platform="local", chat_id="desk"))
        await store.set_model_override(entry.session_key, {"model": Markup("large")})
        await store.suspend_session(entry.session_key, Markup("too loud"))
        kept = await store.get_session(entry.session_key)
        assert kept is not None
        assert (kept.model_override, kept.state_reason) == ({"model": "large"}, "too loud")
        assert [one["id"] async for one in store.export_person(person)] == ["one"]
        assert (await store.erase(person)).owner == "main:cli:user:u"
        assert await store.db.get_session("one") is None
        assert await store.db.list_sessions_rich(scope=operator, source=Markup("cli")) == []


async def test_a_title_of_a_derived_class_is_what_it_holds(tmp_path: Path):
    async def titler(_: FirstExchange) -> str:
        return Markup("A journey")

    clock = FakeClock()
    platform = FakePlatform(clock=clock)
    async with (
        SessionStore.open(tmp_path, QUICK, clock=clock, titler=titler) as store,
        Gateway(store, agent=ScriptedAgent("1"), adapters=[platform]),
    ):
        await platform.says("ann", "plan a long journey")
        await platform.wait_until_idle()
        session_id = await store.peek_session_id(store.key_for(platform.source("ann")))
        assert session_id is not None
        assert await store.db.get_session_title(session_id) == "A journey"


async def test_a_number_of_a_derived_class_tells_which_edit_it_is(tmp_path: Path):
    async with open_harness(tmp_path, agent=ScriptedAgent("1")) as harness:
        await harness.platform.says("ann", "before", message_id="m1")
        await harness.wait_until_idle()
        edit = InboundMessage(
            source=harness.platform.source("ann"),
            text="after",
            message_id="m1",
            kind=MessageKind.EDIT,
            revision=Number(7),
        )
        assert type(edit.revision) is int
        assert isinstance(await harness.gateway.submit(edit), Accepted)
        assert ("user", "after") in await harness.transcript("ann")


@pytest.mark.parametrize("text", [None, 5, b"x", ["x"]])
def test_what_is_no_text_is_refused_before_it_is_sent(text: Any):
    with pytest.raises(InvalidInputError, match=r"^text of a reply must be str, not"):
        OutboundMessage(text=text)
