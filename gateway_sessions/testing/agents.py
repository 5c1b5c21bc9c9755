"""`ScriptedAgent`: agents that play a script turn by turn and record what was done with them.

agent = ScriptedAgent("first answer", [says("a moment"), calls_tool("search"), answers("second answer")])

Each argument is one turn: an answer, or a list of steps of which the first that answers ends the turn. A turn
that has no script is answered with `you said: …`. A step is any async function of the turn.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, TypeAlias, Unpack

import anyio
import msgspec

from gateway_sessions.core.delivery.outbound import Reply
from gateway_sessions.core.queue.inbound import InboundMessage
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.core.transcript.replay import Chat
from gateway_sessions.core.usage.usage_events import UsageFacts
from gateway_sessions.runtime.agents.protocol import Answer, SessionEnding
from gateway_sessions.runtime.agents.turn_context import TurnContext

Step: TypeAlias = Callable[[TurnContext], Awaitable[Answer]]
Script: TypeAlias = str | Reply | Sequence[Step]


class Gate:
    """A place where an agent stops until the test lets it go on: `await gate.reached()`, `gate.open()`."""

    def __init__(self) -> None:
        self._reached = anyio.Event()
        self._opened = anyio.Event()

    async def reached(self) -> None:
        """Wait until an agent stands here."""
        await self._reached.wait()

    def open(self) -> None:
        """Let everybody pass from now on."""
        self._opened.set()

    async def passage(self) -> None:
        """Stop here. For agents."""
        self._reached.set()
        await self._opened.wait()


def answers(answer: Reply | str) -> Step:
    """End the turn with this."""

    async def step(turn: TurnContext) -> Answer:
        return answer

    return step


def says(text: str) -> Step:
    """Send something before the reply."""

    async def step(turn: TurnContext) -> Answer:
        await turn.say(text)
        return None

    return step


def streams(*pieces: str) -> Step:
    """Let the reply grow piece by piece."""

    async def step(turn: TurnContext) -> Answer:
        stream = turn.stream()
        for piece in pieces:
            await stream.write(piece)
        return stream.text

    return step


def shows(text: str) -> Step:
    """Show how the reply looks so far."""

    async def step(turn: TurnContext) -> Answer:
        await turn.show(text)
        return None

    return step


def calls_tool(name: str, result: str | None = "done", **arguments: Any) -> Step:
    """Append the call of a tool, then its result; without a result, the call stays open."""

    async def step(turn: TurnContext) -> Answer:
        call_id = f"call_{turn.seq}_{turn.progress_count}"
        function = {"name": name, "arguments": msgspec.json.encode(arguments).decode()}
        call = {"id": call_id, "type": "function", "function": function}
        await turn.append({"role": "assistant", "content": None, "tool_calls": [call]})
        if result is not None:
            row = {"role": "tool", "content": result, "tool_call_id": call_id, "tool_name": name}
            await turn.append(row)
        return None

    return step


def waits_at(gate: Gate, *, sub_work: bool = False) -> Step:
    """Stop until the test opens the gate; with *sub_work*, as somebody who must not be interrupted."""

    async def step(turn: TurnContext) -> Answer:
        if not sub_work:
            await gate.passage()
            return None
        with turn.sub_work():
            await gate.passage()
        return None

    return step


def takes(seconds: float) -> Step:
    """Let time pass on the clock of the turn."""

    async def step(turn: TurnContext) -> Answer:
        await turn.clock.sleep(seconds)
        return None

    return step


def uses(**facts: Unpack[UsageFacts]) -> Step:
    """Report the use of a model."""

    async def step(turn: TurnContext) -> Answer:
        turn.report_usage(**facts)
        return None

    return step


def fails(error: Exception) -> Step:
    """Raise this."""

    async def step(turn: TurnContext) -> Answer:
        raise error

    return step


def hangs() -> Step:
    """Never go on, until the turn is stopped."""
    return waits_at(Gate())


class ScriptedAgent:
    """Plays one script after another, a turn each."""

    def __init__(self, *scripts: Script, closing: Callable[[], Awaitable[object]] | None = None) -> None:
        """*closing* is awaited by `aclose`; it may fail or hang."""
        self.turns: list[TurnContext] = []
        self.histories: list[list[Chat]] = []
        """The conversation as it was when each turn began."""
        self.finished: list[TurnContext] = []
        """The turns that were answered; all others failed or were stopped."""
        self.endings: list[SessionEnding] = []
        self.closes = 0
        self._scripts = iter(scripts)
        self._closing = closing

    def following(self, scripts: Iterator[Script]) -> ScriptedAgent:
        """The same agent, playing scripts that it shares with others."""
        self._scripts = scripts
        return self

    async def run_turn(self, turn: TurnContext) -> Answer:
        """Play the next script."""
        self.turns.append(turn)
        self.histories.append(await turn.history())
        script = next(self._scripts, None)
        answer = await self._played(script, turn) if script is not None else None
        self.finished.append(turn)
        return f"you said: {turn.text}" if script is None else answer

    async def on_session_ending(self, ending: SessionEnding) -> None:
        """Note the end."""
        self.endings.append(ending)

    async def aclose(self) -> None:
        """Count the call."""
        self.closes += 1
        if self._closing is not None:
            await self._closing()

    async def _played(self, script: Script, turn: TurnContext) -> Answer:
        if isinstance(script, str | Reply):
            return script
        for step in script:
            if (answer := await step(turn)) is not None:
                return answer
        return None


class SteerableScriptedAgent(ScriptedAgent):
    """The same, for a gateway that may steer it."""

    def __init__(self, *scripts: Script, takes_it: bool = True) -> None:
        super().__init__(*scripts)
        self.takes_it = takes_it
        self.steered: list[InboundMessage] = []
        """What it was told on the way, taken or not."""

    async def steer(self, message: InboundMessage) -> bool:
        """Note the message, and take it or not."""
        self.steered.append(message)
        return self.takes_it


class ScriptedAgents:
    """A factory: each lane plays the scripts in order, also if its agent or its turn is made anew."""

    def __init__(self, *scripts: Script, kind: Callable[[], ScriptedAgent] = ScriptedAgent) -> None:
        self.made: list[tuple[str, ScriptedAgent]] = []
        """Session key and agent, in the order of their making."""
        self._scripts = scripts
        self._kind = kind
        self._lanes: dict[str, Iterator[Script]] = {}

    def __call__(self, entry: SessionEntry, history: list[Chat]) -> ScriptedAgent:
        """Make the agent of a session."""
        scripts = self._lanes.setdefault(entry.session_key, iter(self._scripts))
        agent = self._kind().following(scripts)
        self.made.append((entry.session_key, agent))
        return agent

    @property
    def open(self) -> list[ScriptedAgent]:
        """Those that are not closed."""
        return [agent for _, agent in self.made if not agent.closes]

    @property
    def closed_twice(self) -> list[ScriptedAgent]:
        """Those that were closed more than once."""
        return [agent for _, agent in self.made if agent.closes > 1]
