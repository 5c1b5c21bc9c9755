"""What the prompt of an agent names as a target can be addressed, and nothing else can."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from gateway_sessions import Config, TurnContext
from gateway_sessions.config import PlatformConfig
from gateway_sessions.core.transcript.session_context_prompt import HomeChannel
from gateway_sessions.errors import UnknownTargetError
from gateway_sessions.testing.fake_platform import FakePlatform
from tests.integration.gateway.gateway_harness import QUICK, open_harness

HOMES = {
    name: PlatformConfig(home_channel=HomeChannel(platform=name, chat_id="lobby", thread_id=thread))
    for name, thread in (("fake", None), ("pager", "7"), ("away", None))
}
NAMED = re.compile(r"^- `\"([^\"]+)\"`: ", re.MULTILINE)


def accounts(*named: tuple[str, str]) -> list[FakePlatform]:
    return [FakePlatform(platform, account) for platform, account in named]


async def names_that_fail(adapters: Sequence[FakePlatform], config: Config, home: Path) -> dict[str, str]:
    """Say something to each target that the prompt names; return why some could not be addressed."""
    named: list[str] = []
    failed: dict[str, str] = {}

    async def agent(turn: TurnContext) -> str:
        named.extend(NAMED.findall(turn.prompt))
        for name in named:
            try:
                await harness.gateway.say(name, f"to {name}")
            except UnknownTargetError as error:
                failed[name] = error.problem
        return "done"

    first, *others = adapters
    async with open_harness(home, config, agent=agent, platform=first, others=others) as harness:
        await first.says("ann", "hello")
        for adapter in adapters:
            await adapter.wait_until_idle()
        sent = [one.message.text for adapter in adapters for one in adapter.sent]
        assert sorted(sent) == sorted([*(f"to {name}" for name in named if name not in failed), "done"])
    assert "origin" in named
    return failed


@pytest.mark.parametrize(
    "platforms",
    [
        [("fake", "")],
        [("local", "")],
        [("fake", ""), ("local", ""), ("pager", "")],
        [("fake", "support")],
        [("fake", "support"), ("fake", "sales")],
        [("fake", ""), ("pager", "support"), ("pager", "sales")],
        [("fake", "support"), ("fake", ""), ("pager", "sales")],
    ],
    ids=lambda platforms: " ".join(f"{platform}@{account}" for platform, account in platforms),
)
@pytest.mark.parametrize("homes", [{}, HOMES], ids=["no homes", "homes"])
async def test_each_target_that_the_prompt_names_can_be_addressed(
    tmp_path: Path, platforms: list[tuple[str, str]], homes: dict[str, PlatformConfig]
):
    failed = await names_that_fail(accounts(*platforms), replace(QUICK, platforms=homes), tmp_path)
    assert failed == {}


async def test_of_several_accounts_the_one_of_the_turn_speaks_else_the_first(tmp_path: Path):
    support, sales = accounts(("fake", "support"), ("fake", "sales"))

    async def agent(turn: TurnContext) -> str:
        await harness.gateway.say("fake:room", "from the turn")
        return "done"

    config = replace(QUICK, platforms=HOMES)
    async with open_harness(tmp_path, config, agent=agent, platform=support, others=[sales]) as harness:
        await harness.gateway.say("fake", "from nowhere")
        await sales.says("ann", "hello")
        await harness.wait_until_idle()
        await sales.wait_until_idle()
        assert (support.shown("lobby"), sales.shown("room")) == (["from nowhere"], ["from the turn"])
        with pytest.raises(UnknownTargetError, match=r"several accounts \(sales, support\)") as refused:
            await harness.gateway.say("fake:room", "hello")
        assert refused.value.known == ("fake",)


@pytest.mark.parametrize("name", ["local", "away", "away:1", "nowhere", "", ":", "origin:1", "local:x"])
async def test_what_the_prompt_does_not_name_is_refused_by_what_can_be_addressed(tmp_path: Path, name: str):
    config = replace(QUICK, platforms=HOMES)
    async with open_harness(tmp_path, config, agent=lambda turn: turn.text) as harness:
        with pytest.raises(UnknownTargetError) as refused:
            await harness.gateway.say(name, "hello")
        assert refused.value.known == ("fake", "fake:<chat_id>")
