"""An agent asks a model over a network on which anything may happen."""

import asyncio
import gzip
import json
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from typing import Any

import pytest
from msgspec import structs

from gateway_sessions import InvalidInputError, Reply
from gateway_sessions.agents import (
    ContextTooLongError,
    Endpoint,
    ModelAnswerError,
    ModelError,
    ModelRefusedError,
    ModelUnavailableError,
)
from gateway_sessions.agents.chat_completions.response import MAX_EVENT
from gateway_sessions.agents.openai import OpenAIAgent, create
from gateway_sessions.core.usage.usage_events import CostStatus
from gateway_sessions.runtime.agents.turn_context import TurnContext, control_of
from gateway_sessions.testing import FakeClock
from tests.fake_model import (
    FakeModel,
    Script,
    chunk,
    chunked_body,
    event,
    head,
    refuses,
    says,
    send_and_close,
    send_and_hang,
    send_and_keep_open,
    whole_answer,
)
from tests.unit.adapters.loopback import CERTIFICATE, localhost
from tests.unit.runtime.turn_contexts import NOW, RecordedTurn, entry_of, make_turn_context

KEY = "sk-secret-1"
PATIENCE = 15


class Hasty:
    """A clock on which nobody waits."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def now(self) -> datetime:
        return NOW

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


@dataclass
class Asking:
    """A model, whoever asks it, and all that came of it."""

    model: FakeModel
    agent: OpenAIAgent
    noted: RecordedTurn = field(default_factory=RecordedTurn)
    clock: Hasty = field(default_factory=Hasty)

    def turn(self, **members: Any) -> TurnContext:
        ports = structs.replace(self.noted.ports(), prompt=members.pop("prompt", str))
        return make_turn_context(ports=ports, clock=self.clock, **members)

    async def get(self, *scripts: Script, **members: Any) -> Reply:
        self.model.scripts.extend(scripts)
        async with asyncio.timeout(PATIENCE):
            return await self.agent.run_turn(self.turn(**members))

    async def fail(self, *scripts: Script, **members: Any) -> ModelError:
        with pytest.raises(ModelError) as caught:
            await self.get(*scripts, **members)
        assert KEY not in str(caught.value)
        assert "\n" not in str(caught.value)
        return caught.value


@asynccontextmanager
async def asked_of_a_model(**members: Any) -> AsyncIterator[Asking]:
    async with (
        FakeModel().serving() as model,
        OpenAIAgent(Endpoint(model="large", base_url=model.url, api_key=KEY, **members)) as agent,
    ):
        yield Asking(model, agent)


@pytest.fixture
async def asking() -> AsyncIterator[Asking]:
    async with asked_of_a_model() as asking:
        yield asking


@pytest.fixture
async def impatient() -> AsyncIterator[Asking]:
    async with asked_of_a_model(silence_seconds=1) as asking:
        yield asking


# Answers


async def test_a_reply_grows_and_its_use_is_noted(asking: Asking):
    reply = await asking.get(says("Grüß ", "Gott"))
    assert (reply.text, reply.finish_reason) == ("Grüß Gott", "stop")
    assert asking.noted.shown == ["Grüß ", "Grüß Gott"]
    [used] = asking.noted.used
    assert (used.model, used.provider) == ("large-2026", asking.model.url.split("/")[2])
    assert (used.input_tokens, used.cache_read_tokens, used.output_tokens) == (20, 10, 2)
    assert (used.cost_status, used.base_url) == (CostStatus.UNKNOWN, asking.model.url)


async def test_what_is_sent(asking: Asking):
    turn = asking.turn(prompt=lambda: "A chat with Ann.", recovered="You were cut off.")
    asking.model.scripts.append(says("Hi"))
    await asking.agent.run_turn(turn)
    [request] = asking.model.requests
    assert (request.method, request.target) == ("POST", "/v1/chat/completions")
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["user-agent"].startswith("gateway-sessions/")
    [body] = asking.model.bodies
    assert body["model"] == "large"
    assert body["messages"] == [{"role": "system", "content": "A chat with Ann.\n\nYou were cut off."}]
    assert body["stream_options"] == {"include_usage": True}


async def test_without_a_key_none_is_sent():
    async with FakeModel([says("Hi")]).serving() as model:
        async with OpenAIAgent(Endpoint(model="m", base_url=model.url)) as agent:
            await agent.run_turn(make_turn_context())
        assert "authorization" not in model.requests[0].headers


async def test_settings_go_along():
    async with FakeModel([says("Hi")]).serving() as model:
        settings = Endpoint(
            model="m",
            base_url=model.url,
            instructions="Be kind.",
            further={"temperature": 0.5},
            history_limit=7,
        )
        limits = []

        async def read(limit: int | None) -> list[dict[str, Any]]:
            limits.append(limit)
            return [{"role": "user", "content": "hello", "timestamp": 5.0}]

        turn = make_turn_context(ports=structs.replace(RecordedTurn().ports(), read=read))
        async with OpenAIAgent(settings) as agent:
            await agent.run_turn(turn)
        [body] = model.bodies
        assert (limits, body["temperature"]) == ([7], 0.5)
        assert body["messages"] == [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "hello"},
        ]


@pytest.mark.parametrize("step", [1, 2, 3, 5, 7, 64])
async def test_a_stream_may_be_cut_anywhere_even_in_the_middle_of_a_character(asking: Asking, step: int):
    stream = head() + b": hello\r\n\r\n" + whole_answer("Grüß ", "Gott 火车🚂\u2028", "\x85")
    pieces = [stream[at : at + step] for at in range(0, len(stream), step)]
    assert (await asking.get(send_and_close(*pieces))).text == "Grüß Gott 火车🚂\u2028\x85"


async def test_a_stream_may_come_in_chunks(asking: Asking):
    assert (
        await asking.get(send_and_close(*chunked_body(*(bytes([one]) for one in whole_answer("Grüß")))))
    ).text == "Grüß"


async def test_a_stream_may_be_packed(asking: Asking):
    packed = head(**{"content-encoding": "gzip"}) + gzip.compress(whole_answer("Hi"))
    assert (await asking.get(send_and_close(packed))).text == "Hi"


async def test_an_endpoint_need_not_stream(asking: Asking):
    answer = {
        "choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3},
    }
    reply = await asking.get(
        send_and_close(head("application/json; charset=utf-8"), json.dumps(answer).encode())
    )
    assert (reply.text, asking.noted.shown, asking.noted.used[0].input_tokens) == ("Hi", ["Hi"], 3)


async def test_thoughts_are_a_sign_of_life_and_kept_apart(asking: Asking):
    turn = asking.turn()
    before = control_of(turn).progress_count
    asking.model.scripts.append(send_and_close(head(), chunk(reasoning_content="hm"), whole_answer("Hi")))
    reply = await asking.agent.run_turn(turn)
    assert (reply.text, reply.reasoning, control_of(turn).doing) == ("Hi", "hm", "thinking")
    assert asking.noted.shown == ["Hi"]
    assert control_of(turn).progress_count > before


async def test_an_endpoint_that_does_not_count_is_asked_not_to(asking: Asking):
    refused = refuses(400, "unknown member: stream_options")
    for _ in range(2):
        await asking.get(*([refused] if not asking.model.requests else []), says("Hi"))
    assert ["stream_options" in body for body in asking.model.bodies] == [True, False, False]


async def test_an_endpoint_that_names_the_member_again_is_believed(asking: Asking):
    refused = refuses(400, "unknown member: stream_options")
    assert isinstance(await asking.fail(refused, refused), ModelRefusedError)


# The model that a person has chosen


async def test_the_model_of_the_session_is_asked(asking: Asking):
    await asking.get(says("Hi"), entry=entry_of(model_override={"model": "small"}))
    assert asking.model.bodies[0]["model"] == "small"


async def test_the_same_address_may_be_chosen(asking: Asking):
    await asking.get(says("Hi"), entry=entry_of(model_override={"base_url": f"{asking.model.url}/"}))
    assert asking.model.bodies[0]["model"] == "large"


async def test_the_key_goes_to_no_other_address(asking: Asking):
    chosen = {"model": "small", "base_url": "http://elsewhere.example/v1"}
    error = await asking.fail(entry=entry_of(model_override=chosen))
    assert isinstance(error, ModelRefusedError)
    assert "/model default" in str(error)
    assert asking.model.requests == []


async def test_a_redirection_is_not_followed(asking: Asking):
    error = await asking.fail(refuses(307, headers={"location": asking.model.url}))
    assert "set the final address" in str(error)
    assert len(asking.model.requests) == 1


# Trying again


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


async def test_a_connection_that_is_refused_is_tried_again():
    clock = Hasty()
    endpoint = Endpoint(model="m", base_url=f"http://127.0.0.1:{free_port()}/v1")
    async with OpenAIAgent(endpoint) as agent:
        with pytest.raises(ModelUnavailableError, match="cannot be reached") as caught:
            await agent.run_turn(make_turn_context(clock=clock))
    assert (clock.slept, caught.value.asked) == ([0.5, 1.0], False)


async def test_a_name_that_nobody_has_cannot_be_reached():
    async with OpenAIAgent(Endpoint(model="m", base_url="http://nowhere.invalid/v1")) as agent:
        with pytest.raises(ModelUnavailableError, match=r"^nowhere\.invalid cannot be reached"):
            await agent.run_turn(make_turn_context(clock=Hasty()))


@pytest.mark.parametrize("status", [429, 503])
async def test_whoever_says_when_to_come_back_is_asked_again(asking: Asking, status: int):
    reply = await asking.get(refuses(status, "busy", {"retry-after": "7"}), says("Hi"))
    assert (reply.text, asking.clock.slept) == ("Hi", [7.0])
    assert asking.model.bodies[0] == asking.model.bodies[1]


async def test_what_waits_says_so(asking: Asking):
    turn = asking.turn()
    asking.model.scripts.extend([refuses(503, headers={"retry-after": "7"}), says("Hi")])
    await asking.agent.run_turn(turn)
    assert control_of(turn).doing == "waiting for the model"


async def test_nobody_is_asked_for_ever(asking: Asking):
    busy = refuses(429, "busy", {"retry-after": "7"})
    error = await asking.fail(busy, busy, busy)
    assert isinstance(error, ModelUnavailableError)
    assert (asking.clock.slept, len(asking.model.requests)) == ([7.0, 7.0], 3)


async def test_a_turn_that_would_be_over_is_not_kept_waiting(asking: Asking):
    deadline = asking.clock.now() + timedelta(seconds=5)
    await asking.fail(refuses(429, "busy", {"retry-after": "7"}), deadline=deadline)
    assert asking.clock.slept == []


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(refuses(500, "oops"), id="out of order"),
        pytest.param(refuses(503, "busy"), id="busy for nobody knows how long"),
        pytest.param(refuses(401, "no", {"retry-after": "1"}), id="no key"),
        pytest.param(send_and_close(), id="nothing"),
        pytest.param(send_and_close(b"HTTP/1.1 200 OK\r\ncontent-le"), id="half a head"),
        pytest.param(send_and_close(b"hello\r\n\r\n"), id="no HTTP"),
        pytest.param(send_and_close(head()), id="no event"),
        pytest.param(send_and_close(head(), chunk("Hel")), id="half an answer"),
        pytest.param(
            send_and_close(head(), event({"error": {"message": "overloaded", "code": 503}})),
            id="an error as an answer",
        ),
    ],
)
async def test_whoever_may_have_begun_to_answer_is_not_asked_again(asking: Asking, script: Script):
    await asking.fail(script)
    assert (asking.clock.slept, len(asking.model.requests)) == ([], 1)


# What goes wrong


@pytest.mark.parametrize(
    ("script", "kind", "says_"),
    [
        (
            refuses(401, f"Incorrect key: {KEY}"),
            ModelRefusedError,
            "does not accept the key (status 401: Incorrect key: (the key))",
        ),
        (refuses(404, "model 'large' not found"), ModelRefusedError, "has no model 'large'"),
        (refuses(404), ModelRefusedError, "the address usually ends in /v1"),
        (
            refuses(400, "maximum context length is 8192 tokens"),
            ContextTooLongError,
            "/new begins another one",
        ),
        (refuses(500, "oops"), ModelUnavailableError, "out of order just now (status 500: oops)"),
        (send_and_close(), ModelUnavailableError, "has not answered"),
        (send_and_close(head("text/html"), b"<html>"), ModelAnswerError, "has sent a page for people"),
        (send_and_close(head("application/json"), b"{"), ModelAnswerError, "no answer of a model"),
        (send_and_close(head(), event("{")), ModelAnswerError, "no answer of a model"),
        (send_and_close(head("text/plain"), b"hello\n\n"), ModelAnswerError, "has sent no answer of a model"),
        (
            send_and_close(head(), event({"error": {"message": f"{KEY} is broke"}})),
            ModelAnswerError,
            "has failed: (the key) is broke",
        ),
        (send_and_close(head(), whole_answer()), ModelAnswerError, "has answered nothing (stop)"),
        (send_and_close(head(), chunk("Hel")), ModelAnswerError, "was cut off in the middle"),
        (send_and_close(*chunked_body(chunk("Hel"), end=b"")), ModelAnswerError, "was cut off in the middle"),
        (
            send_and_close(*chunked_body(chunk("Hel"), end=b"zz\r\n")),
            ModelAnswerError,
            "was cut off in the middle",
        ),
        (
            send_and_close(head(), b"data: " + b"x" * (MAX_EVENT + 1)),
            ModelAnswerError,
            "was cut off in the middle",
        ),
        (
            send_and_close(head(**{"content-encoding": "gzip"}), b"no gzip"),
            ModelAnswerError,
            "was cut off in the middle",
        ),
    ],
    ids=count(1),
)
async def test_each_failure_has_a_name_and_one_line(asking: Asking, script: Script, kind: type, says_: str):
    error = await asking.fail(script)
    assert type(error) is kind
    assert says_ in str(error)
    assert str(error).startswith("127.0.0.1:")
    assert error.endpoint == asking.model.url.split("/")[2]


async def test_silence_before_an_answer_is_not_asked_again(impatient: Asking):
    error = await impatient.fail(send_and_hang())
    assert isinstance(error, ModelUnavailableError)
    assert str(error).endswith("has not answered for 1 s")
    assert (impatient.clock.slept, len(impatient.model.requests)) == ([], 1)


async def test_silence_in_the_middle_of_an_answer_ends_it(impatient: Asking):
    error = await impatient.fail(send_and_hang(head(), chunk("Hel")))
    assert isinstance(error, ModelAnswerError)
    assert str(error).endswith("said nothing for 1 s in the middle of its answer")


async def test_silence_behind_the_last_word_does_no_harm(impatient: Asking):
    assert (await impatient.get(send_and_hang(head(), chunk("Hi"), chunk(finish="stop")))).text == "Hi"


async def test_an_answer_that_broke_off_was_a_use_as_well(asking: Asking):
    await asking.fail(send_and_close(head(), chunk("Hel")))
    [used] = asking.noted.used
    assert (used.model, used.output_tokens, used.cost_status) == ("large-2026", 0, CostStatus.UNKNOWN)


async def test_what_is_refused_is_no_use(asking: Asking):
    await asking.fail(refuses(500, "oops"))
    assert asking.noted.used == []


async def test_a_refusal_that_never_ends_is_told_by_its_status(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("gateway_sessions.agents.endpoint_client.REFUSAL_SECONDS", 0.05)
    error = await asking.fail(send_and_hang(b"HTTP/1.1 500 Oh\r\ncontent-length: 50\r\n\r\n{"))
    assert str(error).endswith("is too busy or out of order just now (status 500)")


async def test_a_refusal_that_breaks_off_is_told_by_its_status(asking: Asking):
    error = await asking.fail(send_and_close(b"HTTP/1.1 500 Oh\r\ncontent-length: 50\r\n\r\n{"))
    assert str(error).endswith("is too busy or out of order just now (status 500)")


async def test_a_whole_answer_that_is_too_long_is_none(asking: Asking):
    error = await asking.fail(send_and_close(head("application/json"), b'"' + b"x" * (5 << 20)))
    assert isinstance(error, ModelAnswerError)


async def test_of_a_long_refusal_the_beginning_is_read(asking: Asking):
    error = await asking.fail(
        send_and_close(b"HTTP/1.1 500 Oh\r\ncontent-length: 9999999\r\n\r\n" + b"x" * (1 << 20))
    )
    assert isinstance(error, ModelUnavailableError)


@pytest.mark.parametrize(
    "script",
    [send_and_hang(head("text/html"), b"<html>"), send_and_hang(head(), event("{"))],
    ids=["a page for people", "no JSON"],
)
async def test_what_is_no_answer_is_not_read_to_its_end(asking: Asking, script: Script):
    await asking.fail(script)
    await asyncio.wait_for(asking.model.left.wait(), PATIENCE)


@pytest.mark.parametrize(
    "behind",
    [
        send_and_close(*chunked_body(whole_answer("Hi"), end=b"zz\r\n")),
        send_and_close(head(), chunk("Hi"), chunk(finish="stop")),
        send_and_hang(head(), whole_answer("Hi")),
    ],
    ids=["a broken end", "no end", "silence behind the end"],
)
async def test_behind_a_whole_answer_nothing_can_go_wrong(asking: Asking, behind: Script):
    assert (await asking.get(behind)).text == "Hi"


async def test_nobody_waits_for_a_connection_that_stays(asking: Asking, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("gateway_sessions.agents.endpoint_client.LEFTOVERS_SECONDS", 0.01)
    endpoint = Endpoint(model="m", base_url=asking.model.url)
    asking.model.scripts.append(send_and_hang(head(), whole_answer("Hi")))
    async with OpenAIAgent(endpoint) as agent, asyncio.timeout(PATIENCE):
        assert (await agent.run_turn(make_turn_context())).text == "Hi"
        await asking.model.left.wait()


async def test_a_connection_is_used_again(asking: Asking):
    for _ in range(3):
        await asking.get(send_and_keep_open(*chunked_body(whole_answer("Hi"))))
    assert (asking.model.connections, len(asking.model.requests)) == (1, 3)


# Stopping


@pytest.mark.parametrize(
    "begun",
    [[], [head()], [head(), chunk("Hel")], [b"HTTP/1.1 500 Oh\r\ncontent-length: 5\r\n\r\n"]],
    ids=count(1),
)
async def test_whoever_is_stopped_closes_the_connection_at_once(begun: list[bytes]):
    noted = RecordedTurn()
    given = make_turn_context(noted=noted)
    async with (
        FakeModel([send_and_hang(*begun)]).serving() as model,
        OpenAIAgent(Endpoint(model="m", base_url=model.url)) as agent,
    ):
        turn = asyncio.ensure_future(agent.run_turn(given))
        await asyncio.wait_for(model.asked.wait(), PATIENCE)
        await asyncio.sleep(0.05)
        control_of(given).fence()  # as by /stop: what was spent counts all the same
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        await asyncio.wait_for(model.left.wait(), PATIENCE)
    answering = begun[:1] == [head()]
    assert len(noted.used) == answering


async def test_whoever_is_stopped_while_waiting_asks_no_more(asking: Asking):
    clock = FakeClock()
    asking.model.scripts.append(refuses(503, headers={"retry-after": "7"}))
    turn = asyncio.ensure_future(asking.agent.run_turn(make_turn_context(clock=clock)))
    await clock.wait_for_sleepers(1)
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert len(asking.model.requests) == 1


async def test_one_agent_answers_many_turns_at_once(asking: Asking):
    asking.model.scripts.extend(says(f"{number}") for number in range(20))
    turns = [asking.agent.run_turn(make_turn_context()) for _ in range(20)]
    assert sorted(int(reply.text) for reply in await asyncio.gather(*turns)) == [*range(20)]


# The way there


@pytest.fixture(autouse=True)
def _direct(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever this machine is set to."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


async def test_a_proxy_is_used(monkeypatch: pytest.MonkeyPatch):
    async with FakeModel([says("Hi")]).serving() as model:
        monkeypatch.setenv("HTTP_PROXY", model.url.removesuffix("/v1"))
        async with OpenAIAgent(Endpoint(model="m", base_url="http://model.example/v1")) as agent:
            assert (await agent.run_turn(make_turn_context())).text == "Hi"
        assert model.requests[0].target == "http://model.example/v1/chat/completions"


async def test_whoever_is_certified_is_asked(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    async with (
        FakeModel([says("Hi")]).serving(localhost()) as model,
        OpenAIAgent(Endpoint(model="m", base_url=model.url)) as agent,
    ):
        assert (await agent.run_turn(make_turn_context())).text == "Hi"


async def test_whoever_is_not_certified_is_told_nothing():
    async with FakeModel().serving(localhost()) as model:
        async with OpenAIAgent(Endpoint(model="m", base_url=model.url, api_key=KEY)) as agent:
            with pytest.raises(ModelUnavailableError, match="certificate"):
                await agent.run_turn(make_turn_context(clock=Hasty()))
        assert model.requests == []


# The agent itself


async def test_it_does_not_show_its_key_and_may_be_closed_twice(asking: Asking):
    assert KEY not in repr(asking.agent)
    assert asking.model.url.split("/")[2] in repr(asking.agent)
    await asking.agent.aclose()
    await asking.agent.aclose()


@pytest.mark.parametrize("host", ["a..b", "\u2024", "x" * 300])
def test_a_host_that_cannot_be_is_said_before_anybody_is_asked(host: str):
    with pytest.raises(InvalidInputError, match="no address has such a host"):
        OpenAIAgent(Endpoint(model="m", base_url=f"http://{host}/v1"))


async def test_the_environment_makes_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_MODEL", "m")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert repr(create()) == "<agent of 127.0.0.1:9>"
    monkeypatch.delenv("OPENAI_MODEL")
    with pytest.raises(InvalidInputError, match="OPENAI_MODEL"):
        create()


@pytest.mark.parametrize(
    ("missing", "says_"), [("httpx2", "pip install 'gateway-sessions[openai]'"), ("idna", "idna")]
)
def test_without_its_package_it_says_what_to_install(missing: str, says_: str):
    code = f"import sys; sys.modules[{missing!r}] = None\nimport gateway_sessions.agents.openai"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert says_ in ended.stderr.splitlines()[-1]
    assert ("InvalidInputError" in ended.stderr) == (missing == "httpx2")


def test_the_rest_of_the_agents_needs_no_package():
    code = "import sys; sys.modules['httpx2'] = None\nimport gateway_sessions.agents, gateway_sessions"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
