"""Whatever people type, their commands reach nobody else's conversations, and show nobody else's words."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway_sessions import SessionSource
from gateway_sessions.core.queue.inbound import InboundMessage
from gateway_sessions.runtime.agents.turn_context import TurnContext
from tests.integration.gateway.gateway_harness import GatewayHarness, open_harness

PLACES = ("alone", "group", "other group", "topic")
"""A private chat, two groups where everybody has a session of their own, and a thread that all share."""
WORDS = (
    *("/new", "/new {own} trip", "/undo-reset", "/stop", "/branch", "/branch {own} copy"),
    *("/resume", "/resume {title}", "/resume {id}", "/resume {short}", "/resume 1", "/resume 2"),
    *("/title", "/title {own} title", "/undo", "/undo 3", "/retry", "/model {own}", "/model"),
    *("/queue", "/queue {own} later", "/queue clear", "/queue cancel {seq}", "/queue move {seq} 1"),
    *("/status", "/help", "{own} says hello"),
)
PEOPLE = ("ann", "bob")

steps = st.lists(
    st.tuples(st.sampled_from(PEOPLE), st.sampled_from(PLACES), st.sampled_from(WORDS), st.integers(0, 7)),
    max_size=12,
)


async def echo(turn: TurnContext) -> str:
    return f"heard: {turn.text}"


Lane: TypeAlias = tuple[str | None, list[object], str | None, int]
"""Its session, what was said there, its title, and how much waits."""


class Town:
    """Two people and the places they talk in, each with a word that nobody else ever says."""

    def __init__(self, harness: GatewayHarness, number: int) -> None:
        self.harness = harness
        self.number = number

    def source(self, person: str, place: str) -> SessionSource:
        name, platform = f"{person}{self.number}", self.harness.platform
        match place:
            case "alone":
                return platform.source(name)
            case "topic":
                return platform.source(name, chat=f"group{self.number}", thread="topic")
            case _:
                return platform.source(name, chat=f"{place}{self.number}")

    def principal(self, person: str, place: str) -> str:
        """Whose conversation it is: the room's where it is shared."""
        return "room" if place == "topic" else person

    def word(self, principal: str) -> str:
        return f"{principal}word{self.number}"

    async def open(self) -> None:
        """Everybody says something everywhere."""
        for person in PEOPLE:
            for place in PLACES:
                own = self.word(self.principal(person, place))
                await self.says(person, place, f"{own} hello")
                await self.says(person, place, f"/title {own} {place} {person}")

    async def says(self, person: str, place: str, text: str) -> str:
        source = self.source(person, place)
        if text.startswith("/"):
            told = await self.harness.gateway.command(source, text) or ""
            await (
                self.harness.wait_until_idle()
            )  # it may have begun a turn, which is not over with the answer
            return told
        await self.harness.platform.delivers(InboundMessage(source=source, text=text))
        await self.harness.wait_until_idle()
        return ""

    async def lanes(self) -> dict[str, dict[str, Lane]]:
        """All that is known of the lanes of everybody."""
        places = {
            self.harness.store.key_for(self.source(person, place)): self.principal(person, place)
            for person in PEOPLE
            for place in PLACES
        }
        known = await asyncio.gather(*map(self._lane, places))
        return {
            principal: {key: one for key, one in zip(places, known, strict=True) if places[key] == principal}
            for principal in ("room", *PEOPLE)
        }

    async def _lane(self, key: str) -> Lane:
        store = self.harness.store
        if (session_id := await store.peek_session_id(key)) is None:
            return None, [], None, await store.queue_depth(key)
        said, title, depth = await asyncio.gather(
            store.load_transcript(session_id), store.db.get_session_title(session_id), store.queue_depth(key)
        )
        return session_id, [row["content"] for row in said], title, depth


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def harness(runner: asyncio.Runner) -> Iterator[GatewayHarness]:
    with tempfile.TemporaryDirectory() as home:
        opened = open_harness(Path(home), agent=echo)
        yield runner.run(opened.__aenter__())
        runner.run(opened.__aexit__(None, None, None))


NUMBERS = count()


@settings(max_examples=25)
@given(steps=steps)
def test_nobodys_commands_touch_or_show_what_is_somebody_elses(
    runner: asyncio.Runner, harness: GatewayHarness, steps: list[tuple[str, str, str, int]]
):
    async def play() -> None:
        town = Town(harness, next(NUMBERS))
        await town.open()
        after = await town.lanes()
        for person, place, form, choice in steps:
            principal = town.principal(person, place)
            others = after.keys() - {principal}
            before = {other: after[other] for other in others}
            theirs = sorted(before)[choice % 2]
            ids = [one[0] for one in before[theirs].values() if one[0]]
            titles = [one[2] for one in before[theirs].values() if one[2]]
            text = form.format(
                own=town.word(principal),
                title=titles[choice % len(titles)] if titles else "x",
                id=ids[choice % len(ids)] if ids else "x",
                short=ids[choice % len(ids)][:-2] if ids else "x",
                seq=choice,
            )
            told = await town.says(person, place, text)
            after = await town.lanes()
            assert {other: after[other] for other in others} == before, text
            asked_for = [titles[choice % len(titles)]] if "{title}" in form and titles else []
            for other in others:
                for name in asked_for:
                    told = told.replace(name, "")
                assert town.word(other) not in told, (text, told)

    runner.run(play())
