"""Plain functions as tools of a model: what the model is told of them, and what comes of its calls."""

import asyncio
import threading
from functools import partial
from typing import Annotated, Any, Literal

import anyio
import msgspec
import pytest

from gateway_sessions import InvalidInputError
from gateway_sessions.agents.tools import MAX_RESULT, Tool, tools_by_name


class Place(msgspec.Struct):
    """A place on a map."""

    name: str
    zip: int | None = None


def book(
    to: Place,
    seats: Annotated[int, msgspec.Meta(ge=1, description="How many seats.")] = 1,
    *,
    first: bool = False,
) -> dict[str, Any]:
    """Book a journey."""
    return {"to": to.name, "seats": seats, "first": first}


async def look_up(when: Literal["today", "tomorrow"], stops: list[str] = ["Rome"]) -> str:  # noqa: B006
    """Look up the trains."""
    return f"{when}: {', '.join(stops)}"


def nothing() -> None:
    """Do nothing."""


async def called(function: Any, arguments: str) -> str:
    return await Tool.of(function).call(arguments, anyio.CapacityLimiter(1))


def test_a_model_is_told_of_names_types_defaults_and_what_they_mean():
    definition = Tool.of(book).definition
    assert (definition["name"], definition["description"]) == ("book", "Book a journey.")
    schema = definition["parameters"]
    assert (schema["type"], schema["required"], schema["additionalProperties"]) == ("object", ["to"], False)
    seats = {"type": "integer", "minimum": 1, "description": "How many seats.", "default": 1}
    assert schema["properties"]["seats"] == seats
    assert schema["properties"]["to"] == {"$ref": "#/$defs/Place"}
    assert schema["$defs"]["Place"]["required"] == ["name"]
    assert Tool.of(nothing).definition["parameters"]["properties"] == {}


@pytest.mark.parametrize(
    ("function", "arguments", "text"),
    [
        (book, '{"to": {"name": "Rome"}, "seats": "2"}', '{"to":"Rome","seats":2,"first":false}'),
        (look_up, '{"when": "today"}', "today: Rome"),
        (look_up, '{"when": "today", "stops": ["Pisa", "Bari"]}', "today: Pisa, Bari"),
        (nothing, "", "null"),
        (nothing, " {} ", "null"),
    ],
)
async def test_it_is_called_with_what_its_types_say(function: Any, arguments: str, text: str):
    assert await called(function, arguments) == text


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("{", "truncated"),
        ("[]", "object"),
        ('{"to": {"name": "Rome"}, "seats": 0}', "seats"),
        ("{}", "missing required field `to`"),
        ('{"to": {"name": 3}}', "$.to.name"),
        ('{"to": {"name": "Rome"}, "window": true}', "window"),
        ("\ud800", "surrogates"),
    ],
)
async def test_wrong_arguments_are_a_text_for_the_model(arguments: str, says: str):
    text = await called(book, arguments)
    assert text.startswith("These arguments cannot be used: ")
    assert says in text


async def test_a_failure_is_a_text_for_the_model_and_a_line_in_the_log(caplog: pytest.LogCaptureFixture):
    def fails(at: int) -> None:
        """Fail."""
        raise ValueError("no train\x00 at \ud800", at)

    text = await called(fails, '{"at": 6}')
    assert text.startswith("The tool failed: ValueError: ('no train")
    assert "\ud800" not in text
    [record] = caplog.records
    assert (record.exc_info is not None, getattr(record, "tool", None)) == (True, "fails")


async def test_a_result_that_cannot_be_stored_or_is_too_long_is_mended():
    def long() -> str:
        """Say much."""
        return "\x00" + "x" * MAX_RESULT

    text = await called(long, "{}")
    assert len(text) < MAX_RESULT + 100
    assert "\x00" not in text
    assert text.endswith("it is too long.]")


async def test_a_tool_that_cancels_itself_ends_nobody_elses_turn():
    async def cancels() -> None:
        """Cancel."""
        raise asyncio.CancelledError

    assert await called(cancels, "{}") == "The tool has cancelled itself."


async def test_a_plain_function_runs_in_a_thread_and_a_stop_does_not_wait_for_it():
    began, go_on, seen = threading.Event(), threading.Event(), list[threading.Thread]()

    def slow() -> None:
        """Take long."""
        seen.append(threading.current_thread())
        began.set()
        go_on.wait(15)

    task = asyncio.create_task(called(slow, "{}"))
    await asyncio.to_thread(began.wait, 15)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not go_on.is_set()
    go_on.set()
    assert seen[0] is not threading.main_thread()


async def test_objects_partial_functions_and_methods_are_tools():
    class Trains:
        """Trains."""

        async def at(self, hour: int) -> str:
            """Find a train."""
            return f"at {hour}"

    assert await called(Trains().at, '{"hour": 6}') == "at 6"
    lookup = partial(look_up, "tomorrow")
    lookup.__doc__ = "Look it up."
    assert Tool.of(Trains().at).definition["name"] == "at"


def test_what_cannot_be_a_tool_is_said_so():
    def bare(x: int) -> None: ...

    def untyped(x) -> None:
        """Do it."""

    def many(*x: int) -> None:
        """Do it."""

    def odd(x: threading.Thread) -> None:
        """Do it."""

    def lost(x: "Nowhere") -> None:  # noqa: F821  # pyright: ignore[reportUndefinedVariable]
        """Do it."""

    cases = {
        "has no docstring": [bare],
        "has no type for x": [untyped],
        "each parameter of a tool has a name": [many],
        "a parameter that JSON does not know": [odd],
        "a type that cannot be found": [lost],
        "is there twice": [book, book],
        "give a list of functions": [3],
        "tools is": "book",
    }
    for says, tools in cases.items():
        with pytest.raises(InvalidInputError, match=says):
            tools_by_name(tools)  # type: ignore[arg-type]
