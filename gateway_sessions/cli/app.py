"""The whole command line: the options for all commands, and exit codes for errors of the parser."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, cast

import typer
from typer.exceptions import TyperException

from gateway_sessions.cli.commands import GROUPS, UNGROUPED
from gateway_sessions.cli.exit_codes import INTERRUPTED, CommandFailure, Exit
from gateway_sessions.cli.output.json import report_failure
from gateway_sessions.cli.settings import CONFIG_VARIABLE, HOME_VARIABLE, NAMES, Settings, name_of_program
from gateway_sessions.log_lines import without_log_lines

if TYPE_CHECKING:
    from typer.core import TyperGroup

GLOBAL_OPTIONS: Final = {"--json": 0, "--yes": 0, "-y": 0, "--debug": 0, "--home": 1, "--config": 1}
"""Options for all commands, which may also stand behind a command, and how many values each takes."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command, and return its exit code."""
    given = options_in_front(sys.argv[1:] if arguments is None else arguments)
    if not given or (len(given) == 1 and given[0] in GROUPS):
        given.append("--help")  # nothing but a group: show what there is
    try:
        with (
            nullcontext() if "--debug" in given else without_log_lines(logging.getLogger("gateway_sessions"))
        ):
            ended = command_line().main(args=given, prog_name=name_of_program(), standalone_mode=False)
    except TyperException as error:
        about = " ".join([name_of_program(), *_command_name_in(given).split(), "--help"])
        failure = CommandFailure("UsageError", error.format_message(), about, Exit.WRONG_USE)
    except (typer.Abort, KeyboardInterrupt):
        failure = INTERRUPTED
    else:
        return ended if isinstance(ended, int) else Exit.DONE
    return report_failure(failure, _command_name_in(given), as_json="--json" in given)


def options_in_front(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with the options for all commands moved to the front, unless they follow `--`."""
    front: list[str] = []
    rest: list[str] = []
    left = list(arguments)
    while left:
        one = left.pop(0)
        if one == "--":
            rest += [one, *left]
            break
        name, has_value, _ = one.partition("=")
        if name not in GLOBAL_OPTIONS:
            rest.append(one)
            continue
        front.append(one)
        if GLOBAL_OPTIONS[name] and not has_value and left:
            front.append(left.pop(0))
    return [*front, *rest]


@cache
def command_line() -> TyperGroup:
    """Return all commands as one program, from which their documentation and completion are made as well."""
    app = typer.Typer(
        help="Look after the sessions of a messaging gateway.",
        epilog="The first five options may also stand behind a command.",
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    app.callback()(_read_global_options)
    for commands in UNGROUPED:
        app.add_typer(commands)
    for name, group in GROUPS.items():
        app.add_typer(group, name=name)
    return cast("TyperGroup", typer.main.get_command(app))


def _print_version(wanted: bool) -> None:  # noqa: FBT001 -- the parser calls it so
    if wanted:
        import platform  # noqa: PLC0415 -- these load what no other use of this module needs
        import sqlite3  # noqa: PLC0415
        from importlib.metadata import version  # noqa: PLC0415

        system = f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {platform.platform()}"
        typer.echo(f"{NAMES[0]} {version(NAMES[0])} ({system})")
        raise typer.Exit


def _read_global_options(
    context: typer.Context,
    *,
    home: Annotated[
        str | None,
        typer.Option(
            help=f"The store's directory, or the address of a server. Default: ${HOME_VARIABLE}.",
            metavar="DIR",
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            help=f"The configuration. Default: ${CONFIG_VARIABLE}, else config.yaml in the directory.",
            metavar="FILE",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Answer in JSON, one line.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the installed versions.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    context.obj = Settings(home=home, config=config, as_json=as_json, yes=yes, debug=debug)


def _command_name_in(given: Sequence[str]) -> str:
    words = [one for one in options_in_front(given) if not one.startswith("-")]
    known: Mapping[str, object] = command_line().commands
    while words and words[0] not in known:
        words.pop(0)
    named: list[str] = []
    for word in words:
        if word not in known:
            break
        named.append(word)
        known = getattr(known[word], "commands", {})
    return " ".join(named)
