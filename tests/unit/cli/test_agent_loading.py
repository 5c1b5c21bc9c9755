"""What `--agent` may name, and what a gateway is given for it."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from blockbuster import BlockBuster

from gateway_sessions import InvalidInputError
from gateway_sessions.cli.agent_loading import open_agent
from gateway_sessions.cli.context import CommandContext
from gateway_sessions.cli.settings import Settings

MODULE = """
from collections.abc import Awaitable
from functools import partial, wraps

closed = []

class Agent:
    async def run_turn(self, turn): ...
    async def aclose(self): closed.append(self)

class Own:
    def __init__(self, entry, history): ...
    async def run_turn(self, turn): ...

agent = Agent()
async def one_turn(turn, *, loud=False): ...
async def any_turn(*given, **named): ...
def factory(entry, history): ...
def makes(): return Agent()
def makes_with(config=None): return Agent() if config.model.name == "large" else None
def makes_function(): return one_turn
def makes_factory(): return factory
def makes_nothing(): return None
number = 7
def in_one_piece(turn): return "no coroutine"
def makes_in_one_piece(): return in_one_piece
class Named:
    def __init__(self, name): ...
def three(entry, history, more): ...
def makes_makers(): return makes
def promises(turn) -> Awaitable[str]: return one_turn(turn)
@wraps(one_turn)
def wrapped(turn): return one_turn(turn)
part = partial(one_turn, loud=True)
class Called:
    async def __call__(self, turn): ...
called = Called()
"""


@pytest.fixture
def context(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blockbuster: BlockBuster
) -> Iterator[CommandContext]:
    """A context in a directory with a module in it; its loop serves nobody else, so it may read files."""
    (tmp_path / "named_agents.py").write_text(MODULE, "utf-8")
    (tmp_path / "config.yaml").write_text("model: {name: large, base_url: http://127.0.0.1:9/v1}\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    blockbuster.deactivate()
    yield CommandContext(settings=Settings(home=str(tmp_path)), command="chat")
    blockbuster.activate()
    sys.modules.pop("named_agents", None)


def given(name: str, context: CommandContext) -> tuple[str, str, int]:
    """How a gateway gets it, what it is, and how many agents are closed in the end."""

    async def look() -> tuple[str, str]:
        async with open_agent(name, context) as given:
            how, what = next(iter(given.arguments.items()))
            return how, getattr(what, "__name__", type(what).__name__)

    how, what = asyncio.run(look())
    closed = getattr(sys.modules.get("named_agents"), "closed", ())
    return how, what, len(closed)


@pytest.mark.parametrize(
    ("name", "how", "what", "closed"),
    [
        ("agent", "agent", "Agent", 0),
        ("one_turn", "agent", "one_turn", 0),
        ("any_turn", "agent", "any_turn", 0),
        ("factory", "agent_factory", "factory", 0),
        ("Own", "agent_factory", "Own", 0),
        ("Agent", "agent", "Agent", 1),
        ("makes", "agent", "Agent", 1),
        ("makes_with", "agent", "Agent", 1),
        ("makes_function", "agent", "one_turn", 0),
        ("makes_factory", "agent_factory", "factory", 0),
        ("promises", "agent", "promises", 0),
        ("wrapped", "agent", "one_turn", 0),
        ("part", "agent", "partial", 0),
        ("called", "agent", "Called", 0),
    ],
)
def test_what_is_named_is_given_as_what_it_is(
    context: CommandContext, name: str, how: str, what: str, closed: int
):
    assert given(f"named_agents:{name}", context) == (how, what, closed)


def test_a_model_has_a_name_of_its_own_and_writes_titles_and_summaries(context: CommandContext):
    async def abilities() -> tuple[list[str], bool]:
        async with open_agent("openai", context) as loaded:
            return list(loaded.arguments), loaded.titler is not None

    how, what, _ = given("openai", context)
    assert (how, what) == ("agent", "OpenAIAgent")
    assert asyncio.run(abilities()) == (["agent", "compressor"], True)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("named_agents:number", "neither an agent nor a function"),
        ("named_agents:makes_nothing", r"makes_nothing\(\) is neither an agent nor a function"),
        ("named_agents:in_one_piece", "in_one_piece is not async"),
        ("named_agents:makes_in_one_piece", r"makes_in_one_piece\(\) is not async"),
        ("named_agents:Named", "Named takes 1 argument"),
        ("named_agents:three", "three takes 3 arguments"),
        ("named_agents:makes_makers", r"makes_makers\(\) takes no argument"),
        ("os.path:join", "os.path:join is not async"),
        ("builtins:len", "builtins:len is not async"),
        ("named_agents:missing", "write module:name, or openai"),
        ("named_agents", "write module:name"),
        ("no_such_module:agent", "write module:name"),
        ("", "write module:name"),
    ],
)
def test_what_cannot_be_an_agent_is_said_so(context: CommandContext, name: str, says: str):
    with pytest.raises(InvalidInputError, match=says):
        given(name, context)
