"""`init`: write a small configuration to begin with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from gateway_sessions.cli.declare import command
from gateway_sessions.errors import InvalidInputError

if TYPE_CHECKING:
    from gateway_sessions.cli.context import CommandContext

app: Final = typer.Typer()


@command(app, "init")
async def init(
    context: CommandContext,
    *,
    platform: Annotated[
        str | None,
        typer.Option(
            help="The platform of your bot, such as telegram. Without it: this terminal.", metavar="NAME"
        ),
    ] = None,
) -> None:
    """Write a small configuration with comments, to begin with. A file that is there stays as it is."""
    from functools import partial
    from pathlib import Path

    from gateway_sessions.cli.context import CONFIG_FILE
    from gateway_sessions.config import load_config
    from gateway_sessions.integrations.first_configuration import first_configuration, variables_to_set
    from gateway_sessions.storage.files.private_files import make_private_directory, make_private_file
    from gateway_sessions.storage.files.threads import in_thread

    text = await in_thread(partial(first_configuration, platform))
    if "://" in str(context.home) and context.own_config_path is None:
        problem = "the store is on a server: name the file to write with --config"
        raise InvalidInputError(problem)
    usual = await in_thread(Path(context.home).expanduser)
    file = context.own_config_path or usual / CONFIG_FILE
    if await in_thread(file.exists):
        problem = f"{file} is there already, and was left as it is"
        raise InvalidInputError(problem)
    context.confirm(f"Write {file}?")
    await in_thread(partial(make_private_directory, file.parent))
    await in_thread(partial(make_private_file, file, text.encode()))
    variables = variables_to_set(platform)
    environ = dict.fromkeys(variables, "1:set")
    await in_thread(partial(load_config, file, environ=environ))
    first = "".join(f"export {name}=…, then " for name in variables)
    context.answer_text(
        f"{file} is written. Next: {first}gateway-sessions serve --agent MODULE:NAME.",
        str(file),
        variables=variables,
    )
