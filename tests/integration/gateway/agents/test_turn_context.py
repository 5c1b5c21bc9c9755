"""What an agent is told of where it is, of who writes, and of a conversation that began anew."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from gateway_sessions import Config, SessionSource
from gateway_sessions.adapters import Submit
from gateway_sessions.config.sections import PrivacyConfig
from gateway_sessions.core.queue.inbound import InboundMessage
from gateway_sessions.core.sessions.reset_policy import SessionResetPolicy
from gateway_sessions.core.transcript.model_history import Chat
from gateway_sessions.errors import AdapterUnavailableError
from gateway_sessions.runtime.agents.turn_context import TurnContext
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.agents import ScriptedAgent, answers, fails
from gateway_sessions.testing.fake_platform import FakePlatform
from tests.integration.gateway.gateway_harness import QUICK, GatewayHarness, open_harness

pytestmark = pytest.mark.asyncio

TOLD = "**Note:** The session before this one has expired"
CONFIGURED = Config.from_mapping(
    {"platforms": {"signal": {"home_channel": {"chat_id": "1"}}, "fake": {"enabled": False}}}
).platforms
HIDING = replace(QUICK, privacy=PrivacyConfig(redact_pii=True))


class OutOfReach(FakePlatform):
    """A platform that cannot be connected."""

    @asynccontextmanager
    async def connect(self, submit: Submit) -> AsyncGenerator[None]:
        raise AdapterUnavailableError(self.platform, "is down")
        yield


class Listening:
    """An agent that notes what it is told."""

    def __init__(self) -> None:
        self.prompts: list[str] = []
        self.histories: list[list[Chat]] = []
        self.details: list[list[Chat]] = []

    async def run_turn(self, turn: TurnContext) -> str:
        self.prompts.append(turn.prompt)
        self.histories.append(await turn.history())
        self.details.append(await turn.history(details=True))
        return "well"

    def line(self, start: str) -> str:
        return next(line for line in self.prompts[-1].splitlines() if line.startswith(start))


@pytest.fixture
def agent() -> Listening:
    return Listening()


def daily(config: Config = QUICK) -> Config:
    return replace(config, session_reset=SessionResetPolicy.from_dict({"mode": "daily", "at_hour": 4}))


async def hears(harness: GatewayHarness, person: str, text: str, chat: str | None = None) -> None:
    await harness.platform.says(person, text, chat=chat)
    await harness.wait_until_idle()


class TestConnections:
    async def test_the_prompt_names_what_is_connected(self, tmp_path: Path, agent: Listening):
        clock = FakeClock()
        telegram, slack = FakePlatform("telegram", clock=clock), FakePlatform("slack", "work", clock=clock)
        other = FakePlatform("slack", "home", clock=clock)
        options = {"platform": telegram, "clock": clock, "others": [slack, other], "agent": agent}
        async with open_harness(tmp_path, **options) as harness:
            await hears(harness, "ann", "hello")
        assert agent.line("**Connected Platforms:**").endswith(
            "Local (files on this machine), Slack, Telegram"
        )

    async def test_what_the_configuration_enables_and_nobody_connects_is_not_named(
        self, tmp_path: Path, agent: Listening
    ):
        async with open_harness(tmp_path, replace(QUICK, platforms=CONFIGURED), agent=agent) as harness:
            await hears(harness, "ann", "hello")
        assert agent.line("**Connected Platforms:**").endswith("(files on this machine), Fake")
        assert "Signal" not in agent.prompts[-1]

    async def test_a_platform_that_cannot_be_reached_is_none(self, tmp_path: Path, agent: Listening):
        async with open_harness(tmp_path, others=[OutOfReach("slack")], agent=agent) as harness:
            await harness.platform.says("ann", "hello")
            await harness.platform.wait_for_reply("ann")
        assert "Slack" not in agent.prompts[-1]

    async def test_the_prompt_is_the_same_in_every_turn(self, tmp_path: Path, agent: Listening):
        async with open_harness(tmp_path, agent=agent) as harness:
            for text in ("one", "two"):
                await hears(harness, "ann", text)
        assert agent.prompts[0] == agent.prompts[1]


class TestResets:
    async def test_an_agent_is_told_once_that_the_conversation_began_anew(
        self, tmp_path: Path, agent: Listening
    ):
        async with open_harness(tmp_path, daily(), agent=agent) as harness:
            for days in (0, 1, 0, 0):
                await harness.clock.advance(days=days)
                await hears(harness, "ann", f"after {days}")
        assert [TOLD in prompt for prompt in agent.prompts] == [False, True, False, False]
        assert agent.prompts[1].splitlines()[-1].startswith(f"{TOLD}: a new day has begun.")
        assert agent.prompts[1].startswith(agent.prompts[2])

    async def test_an_agent_is_told_again_until_a_turn_has_ended_well(self, tmp_path: Path):
        told: list[bool] = []

        class Failing(ScriptedAgent):
            async def run_turn(self, turn: TurnContext) -> object:
                told.append(TOLD in turn.prompt)
                return await super().run_turn(turn)

        agent = Failing([answers("well")], [fails(ValueError("a bug"))], [answers("well")], [answers("well")])
        async with open_harness(tmp_path, daily(), agent=agent) as harness:
            await hears(harness, "ann", "one")
            await harness.clock.advance(days=1)
            for text in ("two", "/retry", "three"):
                await hears(harness, "ann", text)
        assert told[0] is False
        assert told[1] is True
        assert told[-1] is False

    async def test_a_person_s_own_new_beginning_is_no_news(self, tmp_path: Path, agent: Listening):
        async with open_harness(tmp_path, agent=agent) as harness:
            for text in ("one", "/new", "two"):
                await hears(harness, "ann", text)
        assert "**Note:**" not in agent.prompts[-1]


class TestNames:
    async def test_with_redaction_no_name_and_no_id_reaches_a_model(self, tmp_path: Path, agent: Listening):
        shared = replace(HIDING, group_sessions_per_user=False)
        async with open_harness(tmp_path, shared, agent=agent) as harness:
            for chat in ("family-group", None):
                for person in ("alice_4915112345678", "bob_4915187654321"):
                    await hears(harness, person, "hi", chat=chat)
        for seen in (*agent.prompts, *map(str, agent.histories), *map(str, agent.details)):
            for secret in ("alice", "bob", "49151", "family"):
                assert secret not in seen.lower()
        (first, second) = (row["content"] for row in agent.histories[1] if row["role"] == "user")
        assert first != second
        assert first.startswith("[user_")

    async def test_in_a_shared_room_people_without_a_name_are_told_apart(
        self, tmp_path: Path, agent: Listening
    ):
        config = replace(QUICK, group_sessions_per_user=False)
        async with open_harness(tmp_path, config, agent=agent) as harness:
            for person in ("1", "2", "1"):
                source = SessionSource(platform="fake", chat_type="group", chat_id="team", user_id=person)
                await harness.platform.delivers(InboundMessage(source=source, text="hi"))
                await harness.wait_until_idle()
        said = [row["content"] for row in agent.histories[-1] if row["role"] == "user"]
        assert said[0] == said[2] != said[1]
        assert all(text.startswith("[user_") for text in said)
