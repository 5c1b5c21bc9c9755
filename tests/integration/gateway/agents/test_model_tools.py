"""A model behind a gateway uses tools, searches earlier conversations, and writes titles and summaries."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from gateway_sessions import Config, Gateway, SessionStore, current_turn
from gateway_sessions.agents import Endpoint
from gateway_sessions.agents.openai import OpenAIAgent
from gateway_sessions.testing import FakePlatform
from tests.fake_model import (
    FakeModel,
    Script,
    calls_tools,
    head,
    refuses,
    says,
    send_and_close,
)

PATIENCE = 15
CONFIG = Config.from_mapping({"busy": {"debounce_seconds": 0}})
TOO_LONG = refuses(400, "maximum context length exceeded")

pytestmark = pytest.mark.timeout(60)


@dataclass
class Room:
    """A gateway on which a model with tools answers."""

    model: FakeModel
    store: SessionStore
    gateway: Gateway
    platform: FakePlatform

    async def says(self, text: str, *scripts: Script, person: str = "ann") -> str:
        """Let somebody say something; return what they see last when all is done."""
        self.model.scripts.extend(scripts)
        await self.platform.says(person, text)
        await asyncio.wait_for(self.gateway.settled(), PATIENCE)
        assert self.model.scripts == []
        return self.platform.shown(person)[-1]

    async def rows(self) -> list[tuple[str, Any]]:
        """Return role and content of what is on record for Ann."""
        session_id = await self.session_id()
        return [(one.role, one.content) for one in await self.store.db.get_messages(session_id)]

    async def session_id(self) -> str:
        return await self.store.peek_session_id(self.store.key_for(self.platform.source("ann"))) or ""

    async def title(self) -> str:
        """Return the title of Ann's session, once it has one."""
        session_id = await self.session_id()
        async with asyncio.timeout(PATIENCE):
            while not (found := await self.store.db.get_session_title(session_id)):  # noqa: ASYNC110 -- nobody tells
                await asyncio.sleep(0.01)
        return found

    @property
    def results(self) -> dict[str, str]:
        """The results of tools in the last question, by the ids of their calls."""
        asked = self.model.bodies[-1]["messages"]
        return {row["tool_call_id"]: row["content"] for row in asked if row["role"] == "tool"}


@pytest.fixture
async def model() -> AsyncIterator[FakeModel]:
    async with FakeModel().serving() as serving:
        yield serving


@pytest.fixture
def open_room(model: FakeModel, tmp_path: Path) -> Callable[..., Any]:
    @asynccontextmanager
    async def open_one(tools: Sequence[Callable[..., Any]] = (), **options: Any) -> AsyncIterator[Room]:
        platform = FakePlatform()
        titled = options.pop("titled", False)
        endpoint = Endpoint(
            model="large", base_url=model.url, history_limit=options.pop("history_limit", None)
        )
        async with (
            OpenAIAgent(endpoint, tools=tools, **options) as agent,
            SessionStore.open(
                tmp_path / "store", CONFIG, titler=agent.propose_title if titled else None
            ) as store,
            Gateway(store, agent=agent, adapters=[platform], compressor=agent.compress) as gateway,
        ):
            yield Room(model, store, gateway, platform)

    return open_one


async def departs(town: str, hour: int = 6) -> str:
    """Find when a train departs."""
    return f"{town} at {hour}"


# Rounds of tools


async def test_a_model_uses_tools_round_after_round_and_then_answers(open_room: Any, model: FakeModel):
    async with open_room([departs]) as room:
        answer = await room.says(
            "when?",
            calls_tools(("departs", '{"town": "Rome"}'), text="Let me look."),
            calls_tools(("departs", '{"town": "Bari", "hour": 7}')),
            says("At six."),
        )
        assert answer == "At six."
        assert await room.rows() == [
            ("user", "when?"),
            ("assistant", "Let me look."),
            ("tool", "Rome at 6"),
            ("assistant", None),
            ("tool", "Bari at 7"),
            ("assistant", "At six."),
        ]
        used = (await room.store.db.usage_of_session(await room.session_id())).turns
        assert (used.input_tokens, used.output_tokens) == (60, 6)  # three times
    first, second, _ = model.bodies
    assert [one["function"]["name"] for one in first["tools"]] == ["session_search", "departs"]
    function = {"name": "departs", "arguments": '{"town": "Rome"}'}
    assert second["messages"][2:] == [
        {
            "role": "assistant",
            "content": "Let me look.",
            "tool_calls": [{"id": "call_0", "type": "function", "function": function}],
        },
        {"role": "tool", "content": "Rome at 6", "tool_call_id": "call_0"},
    ]


async def test_calls_are_on_record_before_tools_run_and_run_at_once(open_room: Any):
    met = asyncio.Barrier(2)
    seen: list[Any] = []

    async def meets(who: str) -> str:
        """Meet somebody."""
        async with asyncio.timeout(PATIENCE):
            await met.wait()
        seen.append((await room.rows())[-1][0])
        return who

    async with open_room([meets]) as room:
        await room.says("go", calls_tools(("meets", '{"who": "a"}'), ("meets", '{"who": "b"}')), says("Met."))
        assert room.results == {"call_0": "a", "call_1": "b"}
        assert seen[0] == "assistant"


async def test_what_goes_wrong_is_told_to_the_model(open_room: Any, caplog: pytest.LogCaptureFixture):
    def fails() -> None:
        """Fail."""
        raise OSError("no such train")

    async with open_room([departs, fails]) as room:
        wrong = calls_tools(("departs", "{town}"), ("departs", '{"hour": 6}'), ("fly", "{}"), ("fails", ""))
        assert await room.says("go", wrong, says("Sorry.")) == "Sorry."
        assert "These arguments cannot be used" in room.results["call_0"]
        assert "missing required field `town`" in room.results["call_1"]
        assert room.results["call_2"].startswith("There is no tool of this name. There are: session_search, ")
        assert room.results["call_3"] == "The tool failed: OSError: no such train"
        assert "a tool failed" in caplog.text
        [asked] = [row for row in room.model.bodies[-1]["messages"] if "tool_calls" in row]
        arguments = [one["function"]["arguments"] for one in asked["tool_calls"]]
        assert arguments == ['{"unreadable":"{town}"}', '{"hour": 6}', "{}", "{}"]


async def test_calls_in_other_forms_are_calls(open_room: Any):
    def whole(*calls: dict[str, Any]) -> Script:
        message = {"role": "assistant", "content": None, "tool_calls": calls}
        answer = {"choices": [{"message": message, "finish_reason": "tool_calls"}]}
        return send_and_close(head("application/json"), json.dumps(answer).encode())

    function = {"name": "departs", "arguments": {"town": "Rome"}}
    async with open_room([departs]) as room:
        await room.says("go", whole({"function": function}, {"function": function, "index": 0}), says("So."))
        assert list(room.results.values()) == ["Rome at 6", "Rome at 6"]
        same = [{"index": 0, "id": "a", "function": function}, {"index": 0, "id": "b", "function": function}]
        await room.says("again", whole(*same), says("So."))
        assert (room.results["a"], room.results["b"]) == ("Rome at 6", "Rome at 6")


async def test_a_model_that_does_nothing_but_call_is_stopped(open_room: Any):
    async with open_room([departs], most_rounds=2) as room:
        call = calls_tools(("departs", '{"town": "Rome"}'))
        assert "/retry" in await room.says("go", call, call, call)
        [letter] = await room.store.dead_letters()
        assert "still calls tools after 2 rounds" in letter.problem
        assert [role for role, _ in await room.rows()].count("tool") == 2


async def test_a_limit_of_messages_never_cuts_into_the_turn_itself(open_room: Any, model: FakeModel):
    async with open_room([departs], history_limit=1) as room:
        await room.says("hello", says("Hi."))
        call = calls_tools(("departs", '{"town": "Rome"}'), ("departs", '{"town": "Bari"}'))
        await room.says("when?", call, call, call, says("At six."))
        _, first, *later = [body["messages"] for body in model.bodies]
        assert [row["content"] for row in first[2:]] == ["Hi.", "when?"]
        assert [messages[: len(first)] for messages in later] == [first] * 3


async def test_a_plain_function_knows_its_turn(open_room: Any):
    def who() -> str:
        """Say who asks."""
        return current_turn().source.user_id or ""

    async with open_room([who]) as room:
        await room.says("who am I?", calls_tools(("who", "")), says("Ann."))
        assert room.results == {"call_0": "ann"}


async def test_stop_ends_a_tool(open_room: Any, model: FakeModel):
    began, ended = asyncio.Event(), asyncio.Event()

    async def waits() -> None:
        """Wait."""
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with open_room([waits]) as room:
        model.scripts.append(calls_tools(("waits", "{}")))
        await room.platform.says("ann", "go")
        await asyncio.wait_for(began.wait(), PATIENCE)
        await room.platform.says("ann", "/stop")
        await asyncio.wait_for(ended.wait(), PATIENCE)
        await asyncio.wait_for(room.gateway.settled(), PATIENCE)


async def test_after_a_cut_between_call_and_result_the_model_knows(open_room: Any, model: FakeModel):
    began = asyncio.Event()

    async def waits() -> None:
        """Wait."""
        began.set()
        await asyncio.Event().wait()

    async with open_room([waits]) as room:
        model.scripts.append(calls_tools(("waits", "{}")))
        await room.platform.says("ann", "go")
        await asyncio.wait_for(began.wait(), PATIENCE)
        assert not await room.gateway.drain(timedelta(0))
    model.scripts.append(says("I do not know whether it was done."))
    async with open_room([waits]) as room:
        await asyncio.wait_for(room.gateway.settled(), PATIENCE)
        assert "no recorded result" in room.results["call_0"]
        assert "cut off before" in model.bodies[-1]["messages"][0]["content"]
        assert room.platform.shown("ann") == ["I do not know whether it was done."]


# Searching


async def test_a_model_finds_what_was_said_before_in_this_place_only(open_room: Any):
    async with open_room() as room:
        await room.says("My locker is number 4711.", says("Noted."))
        await room.says("My locker is number 1234.", says("Noted."), person="bob")
        await room.says("/new")
        search = calls_tools(("session_search", '{"query": "locker"}'))
        await room.says("which locker?", search, says("4711."))
        [found] = room.results.values()
        assert "4711" in found
        assert "1234" not in found
        await room.says("more", calls_tools(("session_search", '{"limit": 99}')), says("No."))
        assert "limit must be from 1 to 10" in room.results["call_0"]


async def test_in_a_group_a_model_finds_nothing_of_private_chats(open_room: Any, model: FakeModel):
    async with open_room() as room:
        await room.says("My locker is number 4711.", says("Noted."))
        search = calls_tools(("session_search", '{"query": "locker"}'))
        model.scripts.extend([search, says("I do not know.")])
        await room.platform.says("ann", "which locker?", chat="Team")
        await asyncio.wait_for(room.gateway.settled(), PATIENCE)
        [found] = room.results.values()
        assert json.loads(found)["results"] == []


async def test_without_search_and_tools_none_are_offered(open_room: Any, model: FakeModel):
    async with open_room(session_search=False) as room:
        await room.says("hello", says("Hi"))
    assert "tools" not in model.bodies[0]


async def test_a_model_that_takes_no_tools_answers_without_the_search(open_room: Any, model: FakeModel):
    no_tools = refuses(400, "large does not support tools")
    async with open_room() as room:
        assert await room.says("hello", no_tools, says("Hi")) == "Hi"
        await room.says("again", says("Hi"))
    assert ["tools" in body for body in model.bodies] == [True, False, False]
    async with open_room([departs]) as room:
        await room.says("and now?", no_tools)
        [letter] = await room.store.dead_letters()
        assert "does not support tools" in letter.problem


# Titles and summaries


async def test_a_model_gives_a_session_its_title(open_room: Any, model: FakeModel):
    async with open_room(titled=True) as room:
        title = says('<think>Hm.</think>\n"Trains to Rome."\nIs that good?')
        model.scripts.extend([says("At six."), title])
        await room.platform.says("ann", "When does the train to Rome leave?")
        assert await room.title() == "Trains to Rome"
    said = model.bodies[1]["messages"][1]["content"]
    assert said == "Person: When does the train to Rome leave?\n\nAssistant: At six."
    assert "tools" not in model.bodies[1]


async def test_without_a_model_the_first_words_are_the_title(open_room: Any, model: FakeModel):
    async with open_room(titled=True) as room:
        model.scripts.extend([says("At six."), refuses(503)])
        await room.platform.says("ann", "When does the train to Rome leave?")
        assert "Rome" in await room.title()


async def test_a_conversation_goes_on_with_a_summary(open_room: Any, model: FakeModel):
    async with open_room([departs]) as room:
        await room.says("when?", calls_tools(("departs", '{"town": "Rome"}')), says("At six."))
        await room.says("/compress", says("Ann asks for trains."))
        summed_up = model.bodies[-1]["messages"][1]["content"]
        assert 'assistant: [uses departs: {"town": "Rome"}]\n\ntool: Rome at 6' in summed_up
        await room.says("and back?", says("At nine."))
        assert [row["content"] for row in model.bodies[-1]["messages"][2:]] == [
            "[Summary of the conversation so far:]\nAnn asks for trains.",
            "and back?",
        ]


async def test_what_is_too_long_for_the_model_is_summed_up_in_halves(open_room: Any, model: FakeModel):
    async with open_room() as room:
        await room.says("one", says("Two."))
        assert (
            "/compress"
            in (await room.says("three", TOO_LONG), (await room.store.dead_letters())[0].problem)[1]
        )
        await room.says("/compress", TOO_LONG, says("First."), says("Second."))
        await room.says("four", says("Five."))
        summary = model.bodies[-1]["messages"][2]["content"]
        assert summary == "[Summary of the conversation so far:]\nFirst.\n\nSecond."


async def test_a_summary_that_fails_leaves_the_conversation(open_room: Any, model: FakeModel):
    async with open_room() as room:
        await room.says("one", says("Two."))
        before = await room.session_id()
        model.scripts.append(refuses(500))
        await room.platform.says("ann", "/compress")
        await asyncio.wait_for(room.gateway.settled(), PATIENCE)
        assert await room.session_id() == before
