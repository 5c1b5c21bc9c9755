"""One open gateway that many tests share, each with people of its own."""

from __future__ import annotations

from itertools import count

from gateway_sessions.core.queue.inbound import Accepted, Disposition, Receipt
from gateway_sessions.runtime.agents.protocol import Answer
from gateway_sessions.runtime.agents.turn_context import TurnContext
from gateway_sessions.testing.agents import ScriptedAgent
from tests.integration.gateway.gateway_harness import GatewayHarness


class AgentOfEachPerson:
    """An agent that plays another part for each person; whoever has none gets an echo."""

    def __init__(self) -> None:
        self.scripts: dict[str, ScriptedAgent] = {}

    async def run_turn(self, turn: TurnContext) -> Answer:
        script = self.scripts.get(turn.source.user_id or "")
        return f"you said: {turn.text}" if script is None else await script.run_turn(turn)


class Person:
    """Somebody who writes to the gateway, alone or in a group."""

    _numbers = count(1)

    def __init__(
        self, harness: GatewayHarness, agents: AgentOfEachPerson, *, chat: str | None = None
    ) -> None:
        self.harness = harness
        self.agents = agents
        self.name = f"p{next(self._numbers)}"
        self.chat = chat

    def script_agent(self, *scripts: object) -> ScriptedAgent:
        """What the agent does when this person writes."""
        self.agents.scripts[self.name] = agent = ScriptedAgent(*scripts)  # type: ignore[arg-type]
        return agent

    @property
    def key(self) -> str:
        return self.harness.key(self.name, self.chat)

    async def says(self, text: str, **more: object) -> Receipt:
        return await self.harness.platform.says(self.name, text, chat=self.chat, **more)  # type: ignore[arg-type]

    async def use_command(self, text: str, **more: object) -> str:
        """Use a command; what was answered."""
        await self.harness.wait_until_idle()
        before = len(self.harness.platform.sent)
        receipt = await self.says(text, **more)
        assert isinstance(receipt, Accepted), receipt
        assert receipt.disposition is Disposition.COMMAND, receipt
        await self.harness.wait_until_idle()
        return "\n".join(one.text for one in self._shown_since(before) if one.message.is_notice)

    async def say_and_hear(self, text: str, **more: object) -> str:
        """Say something, and wait for what the agent answers."""
        before = len(self.harness.platform.sent)
        await self.says(text, **more)
        await self.harness.wait_until_idle()
        return "\n".join(one.text for one in self._shown_since(before) if not one.message.is_notice)

    async def transcript(self) -> list[object]:
        """What was said in the conversation."""
        session_id = await self.harness.store.peek_session_id(self.key)
        assert session_id is not None
        return [row["content"] for row in await self.harness.store.load_transcript(session_id)]

    def _shown_since(self, before: int) -> list:
        chat = self.chat or self.name
        return [one for one in self.harness.platform.sent[before:] if one.target.chat_id == chat]
