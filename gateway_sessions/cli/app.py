"""The commands put together, and the one place where their errors become lines and exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, cast

import typer
from typer.exceptions import TyperException

from gateway_sessions.cli.commands import COMMANDS, GROUPS
from gateway_sessions.cli.desk import (
    CONFIG_VARIABLE,
    HOME_VARIABLE,
    Declined,
    Settings,
    head,
    name_of_program,
    write_json,
)
from gateway_sessions.cli.exits import Exit, advice_for
from gateway_sessions.core.untrusted import visible
from gateway_sessions.errors import GatewaySessionsError

if TYPE_CHECKING:
    from typer.core import TyperGroup

ANYWHERE: Final = {"--json": 0, "--yes": 0, "-y": 0, "--debug": 0, "--home": 1, "--config": 1}
"""Options that may also stand behind a command, and how many values each takes."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    given = in_front(sys.argv[1:] if arguments is None else arguments)
    as_json, debug = "--json" in given, "--debug" in given
    try:
        ended = command_line().main(args=given, prog_name=name_of_program(), standalone_mode=False)
    except (TyperException, GatewaySessionsError, OSError, Declined) as error:
        if isinstance(error, BrokenPipeError):  # whoever read has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return Exit.DONE
        if debug and not isinstance(error, TyperException | Declined):
            raise
        return _tell(error, given, as_json=as_json)
    except (KeyboardInterrupt, typer.Abort):
        stopped = Failure("Interrupted", "interrupted; what was finished is kept", "", Exit.INTERRUPTED)
        return _say(stopped, _command_in(given), as_json=as_json)
    return ended if isinstance(ended, int) else Exit.DONE


def in_front(arguments: Sequence[str]) -> list[str]:
    """The arguments with the options for all commands in front, wherever they stand before a `--`."""
    front: list[str] = []
    rest: list[str] = []
    left = list(arguments)
    while left:
        one = left.pop(0)
        if one == "--":
            rest += [one, *left]
            break
        name, has_value, _ = one.partition("=")
        if name not in ANYWHERE:
            rest.append(one)
            continue
        front.append(one)
        if ANYWHERE[name] and not has_value and left:
            front.append(left.pop(0))
    return [*front, *rest]


@cache
def command_line() -> TyperGroup:
    """All commands as one; whoever documents or completes them asks here."""
    app = typer.Typer(
        help="Look after the sessions of a messaging gateway.",
        epilog="The first five options may also stand behind a command.",
        no_args_is_help=True,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    app.callback()(_options)
    for name, command in COMMANDS.items():
        app.command(name)(command)
    for name, group in GROUPS.items():
        app.add_typer(group, name=name)
    return cast("TyperGroup", typer.main.get_command(app))


def _options(
    context: typer.Context,
    *,
    home: Annotated[
        str | None,
        typer.Option(
            help=f"The store's directory, or a server's address. Else ${HOME_VARIABLE}.", metavar="DIR"
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(help=f"The configuration. Else ${CONFIG_VARIABLE}, else config.yaml in the directory."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Answer in JSON, one line.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before something is changed.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error came from.")] = False,
) -> None:
    context.obj = Settings(home=home, config=config, as_json=as_json, yes=yes, debug=debug)


def _tell(error: Exception, given: Sequence[str], *, as_json: bool) -> int:
    command = _command_in(given)
    if isinstance(error, Declined):
        failure = Failure("Declined", str(error), "mean it: --yes", Exit.DECLINED)
    elif isinstance(error, TyperException):
        about = " ".join([name_of_program(), *command.split(), "--help"])
        failure = Failure("UsageError", error.format_message(), about, Exit.WRONG_USE)
    elif isinstance(error, OSError):
        text = f"{error.filename or 'the system'}: {error.strerror or error}"
        failure = Failure("OSError", text, "check the path and its rights", Exit.FAILED)
    else:
        advice = advice_for(error)
        failure = Failure(type(error).__name__, str(error), advice.what_next, advice.code)
    return _say(failure, command, as_json=as_json)


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong, and what people can do."""

    kind: str
    message: str
    what_next: str
    exit_code: int


def _say(failure: Failure, command: str, *, as_json: bool) -> int:
    if as_json:
        write_json({"ok": False, **head(command), "results": [], "error": failure})
    else:
        what_next = f"  → {failure.what_next}\n" if failure.what_next else ""
        sys.stderr.write(f"{name_of_program()}: {visible(failure.message).rstrip('.')}\n{what_next}")
    return failure.exit_code


def _command_in(given: Sequence[str]) -> str:
    """The words that name a command, as far as there is one."""
    words = [one for one in in_front(given) if not one.startswith("-")]
    while words and words[0] not in {*COMMANDS, *GROUPS}:
        words.pop(0)
    if not words or words[0] in COMMANDS:
        return "".join(words[:1])
    known = typer.main.get_group(GROUPS[words[0]]).commands
    return " ".join(words[:2] if len(words) > 1 and words[1] in known else words[:1])
