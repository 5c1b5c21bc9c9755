"""A command is declared once, by the function that does its work."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Annotated

import pytest
import typer

from gateway_sessions.cli.commands import GROUPS, UNGROUPED
from gateway_sessions.cli.declare import command, number_from, whole_number
from gateway_sessions.cli.exit_codes import Exit

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway_sessions.cli.context import CommandContext

DONE: list[tuple[str, int, bool]] = []


def greeter() -> tuple[typer.Typer, object]:
    app = typer.Typer()
    app.callback()(lambda: None)

    @command(app, "greet")
    async def greet(
        context: CommandContext,
        *,
        name: Annotated[str, typer.Argument(help="Who.")],
        times: Annotated[int, typer.Option(parser=whole_number(1, 3), help="How often.")] = 1,
        loud: Annotated[bool, typer.Option("--loud", help="So that all hear it.")] = False,
    ) -> None:
        """Say hello."""
        DONE.append((f"{context.command}: {name}", times, loud))
        if loud:
            context.exit_code = Exit.UNSOUND

    return app, greet


def test_a_command_stays_the_function_that_it_was():
    _, greet = greeter()
    assert inspect.iscoroutinefunction(greet)
    assert [*inspect.signature(greet).parameters] == ["context", "name", "times", "loud"]


@pytest.mark.parametrize(
    ("typed", "code", "done"),
    [
        (["greet", "Ann"], 0, [("greet: Ann", 1, False)]),
        (["greet", "Ann", "--times", "3", "--loud"], Exit.UNSOUND, [("greet: Ann", 3, True)]),
    ],
)
def test_its_parameters_are_what_people_type_and_its_body_is_the_work(
    typed: list[str], code: int, done: list[tuple[str, int, bool]]
):
    DONE.clear()
    app, _ = greeter()
    with pytest.raises(SystemExit) as ended:
        typer.main.get_command(app).main(args=typed, prog_name="gsess")
    assert (ended.value.code, DONE) == (code, done)


def test_its_docstring_is_the_help(capsys: pytest.CaptureFixture[str]):
    app, _ = greeter()
    with pytest.raises(SystemExit):
        typer.main.get_command(app).main(args=["greet", "--help"], prog_name="gsess")
    assert "Say hello." in (said := capsys.readouterr().out)
    assert "--loud" in said
    assert "context" not in said


@pytest.mark.parametrize(
    ("parser", "text"),
    [
        (whole_number(1, 3), "0"),
        (whole_number(1, 3), "4"),
        (whole_number(1, 3), "x"),
        (number_from(0.2), "0.1"),
    ],
)
def test_a_number_outside_its_bounds_is_refused(parser: Callable[[str], float], text: str):
    with pytest.raises(typer.BadParameter, match=f"'{text}' is no "):
        parser(text)


def names_in(app: typer.Typer) -> list[str | None]:
    """Return the names of its commands, also of those that modules without a name of their own add."""
    inner = [one.typer_instance for one in app.registered_groups if one.typer_instance is not None]
    return [one.name for one in app.registered_commands] + [name for one in inner for name in names_in(one)]


def test_no_command_hides_another_one_of_its_name():
    groups = [*GROUPS.values()]
    alone = [name for app in UNGROUPED for name in names_in(app)] + [*GROUPS]
    for names in [alone, *map(names_in, groups)]:
        assert names
        assert len(names) == len(set(names)), names
