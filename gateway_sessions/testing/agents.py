"""`ScriptedAgent`: agents that play a script turn by turn and record what was done with them.

    agent = ScriptedAgent("first answer", [says("a moment"), calls_tool("search"), answers("second answer")])

Each argument is the script of one turn: an answer, or a list of steps. The first step that returns an answer
ends the turn. A turn without a script is answered with `you said: …`. A step is any async function that
takes the turn.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, TypeAlias, Unpack

import anyio
import msgspec

from gateway_sessions.core.delivery.outbound_messages import Reply
from gateway_sessions.core.queue.inbound import InboundMessage
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.core.transcript.model_history import Chat
from gateway_sessions.core.usage.usage_events import UsageFacts
from gateway_sessions.runtime.agents.protocol import Answer, SessionEnding
from gateway_sessions.runtime.agents.turn_context import TurnContext, control_of

Step: TypeAlias = Callable[[TurnContext], Awaitable[Answer]]
Script: TypeAlias = str | Reply | Sequence[Step]


class Gate:
    """Stops an agent until the test lets it go on: `await gate.reached()`, `gate.open()`."""

    def __init__(self) -> None:
        self._reached = anyio.Event()
        self._opened = anyio.Event()

    async def reached(self) -> None:
        """Wait until an agent has stopped at the gate."""
        await self._reached.wait()

    def open(self) -> None:
        """Let all agents pass from now on."""
        self._opened.set()

    async def passage(self) -> None:
        """Stop at the gate. Agents call this."""
        self._reached.set()
        await self._opened.wait()


def answers(answer: Reply | str) -> Step:
    """Return a step that ends the turn with *answer*."""

    async def step(turn: TurnContext) -> Answer:
        return answer

    return step


def says(text: str) -> Step:
    """Return a step that sends a message before the reply."""

    async def step(turn: TurnContext) -> Answer:
        await turn.say(text)
        return None

    return step


def streams(*pieces: str) -> Step:
    """Return a step that lets the reply grow piece by piece."""

    async def step(turn: TurnContext) -> Answer:
        stream = turn.stream()
        for piece in pieces:
            await stream.write(piece)
        return stream.text

    return step


def shows(text: str) -> Step:
    """Return a step that shows the reply so far."""

    async def step(turn: TurnContext) -> Answer:
        await turn.show(text)
        return None

    return step


def calls_tool(name: str, result: str | None = "done", **arguments: Any) -> Step:
    """Return a step that appends the call of a tool and its result; without *result*, the call stays open."""

    async def step(turn: TurnContext) -> Answer:
        call_id = f"call_{turn.seq}_{control_of(turn).progress_count}"
        function = {"name": name, "arguments": msgspec.json.encode(arguments).decode()}
        call = {"id": call_id, "type": "function", "function": function}
        await turn.append({"role": "assistant", "content": None, "tool_calls": [call]})
        if result is not None:
            row = {"role": "tool", "content": result, "tool_call_id": call_id, "tool_name": name}
            await turn.append(row)
        return None

    return step


def waits_at(gate: Gate, *, sub_work: bool = False) -> Step:
    """Return a step that stops at the gate; with *sub_work*, as work that must not be interrupted."""

    async def step(turn: TurnContext) -> Answer:
        if not sub_work:
            await gate.passage()
            return None
        with turn.sub_work():
            await gate.passage()
        return None

    return step


def takes(seconds: float) -> Step:
    """Return a step that lets time pass on the clock of the turn."""

    async def step(turn: TurnContext) -> Answer:
        await turn.clock.sleep(seconds)
        return None

    return step


def uses(**facts: Unpack[UsageFacts]) -> Step:
    """Return a step that reports the use of a model."""

    async def step(turn: TurnContext) -> Answer:
        turn.report_usage(**facts)
        return None

    return step


def fails(error: Exception) -> Step:
    """Return a step that raises *error*."""

    async def step(turn: TurnContext) -> Answer:
        raise error

    return step


def hangs() -> Step:
    """Return a step that never ends, unless the turn is stopped."""
    return waits_at(Gate())


class ScriptedAgent:
    """Plays one script for each turn."""

    def __init__(self, *scripts: Script, closing: Callable[[], Awaitable[object]] | None = None) -> None:
        """`aclose` awaits *closing*, which may fail or hang."""
        self.turns: list[TurnContext] = []
        self.histories: list[list[Chat]] = []
        """The conversation as it was at the beginning of each turn."""
        self.finished: list[TurnContext] = []
        """The turns that were answered; all others failed or were stopped."""
        self.endings: list[SessionEnding] = []
        self.closes: int = 0
        self._scripts = iter(scripts)
        self._closing = closing

    def following(self, scripts: Iterator[Script]) -> ScriptedAgent:
        """Play *scripts*, which other agents play as well, and return the agent."""
        self._scripts = scripts
        return self

    async def run_turn(self, turn: TurnContext) -> Answer:
        """Play the next script."""
        self.turns.append(turn)
        self.histories.append(await turn.history())
        script = next(self._scripts, None)
        answer = await self._play(script, turn) if script is not None else None
        self.finished.append(turn)
        return f"you said: {turn.text}" if script is None else answer

    async def on_session_ending(self, ending: SessionEnding) -> None:
        """Note the end of a session."""
        self.endings.append(ending)

    async def aclose(self) -> None:
        """Count the call."""
        self.closes += 1
        if self._closing is not None:
            await self._closing()

    async def _play(self, script: Script, turn: TurnContext) -> Answer:
        if isinstance(script, str | Reply):
            return script
        for step in script:
            if (answer := await step(turn)) is not None:
                return answer
        return None


class SteerableScriptedAgent(ScriptedAgent):
    """Plays scripts, and can be steered."""

    def __init__(self, *scripts: Script, takes_it: bool = True) -> None:
        super().__init__(*scripts)
        self.takes_it = takes_it
        self.steered: list[InboundMessage] = []
        """The messages of `steer`, taken or not."""

    async def steer(self, message: InboundMessage) -> bool:
        """Note the message; return True if the agent takes it."""
        self.steered.append(message)
        return self.takes_it


class ScriptedAgents:
    """Makes agents: each lane plays the scripts in order, even if its agent or its turn is made anew."""

    def __init__(self, *scripts: Script, kind: Callable[[], ScriptedAgent] = ScriptedAgent) -> None:
        self.made: list[tuple[str, ScriptedAgent]] = []
        """The session key and the agent, in the order in which agents were made."""
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
        """Return the agents that are not closed."""
        return [agent for _, agent in self.made if not agent.closes]

    @property
    def closed_twice(self) -> list[ScriptedAgent]:
        """Return the agents that were closed more than once."""
        return [agent for _, agent in self.made if agent.closes > 1]
