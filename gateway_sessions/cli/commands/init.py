"""`init`: write a small configuration to begin with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from gateway_sessions.cli.declare import command
from gateway_sessions.errors import InvalidInputError

if TYPE_CHECKING:
    from gateway_sessions.cli.context import CommandContext

app: Final = typer.Typer()

PlatformName: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="The platform of your bot, such as telegram. Without it, you are asked.", metavar="NAME"
    ),
]
FurtherKeys: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--set", help="A further key of the platform, such as groups=all.", metavar="KEY=VALUE"),
]
Offline: TypeAlias = Annotated[
    bool, typer.Option("--offline", help="Do not ask the platform whether the values are right.")
]


@command(app, "init")
async def init(
    context: CommandContext,
    *,
    platform: PlatformName = None,
    further: FurtherKeys = None,
    offline: Offline = False,
) -> None:
    """Write a configuration to begin with, and a unit for systemd. A file that is there stays as it is.

    At a terminal you are asked for tokens, which go to a file that only you can read. The platform is asked
    whether they are right.
    """
    from functools import partial
    from pathlib import Path

    from gateway_sessions.cli.context import CONFIG_FILE
    from gateway_sessions.cli.first_setup import SetupFiles, set_up
    from gateway_sessions.integrations.first_configuration import first_configuration
    from gateway_sessions.integrations.registry import known_platforms
    from gateway_sessions.storage.files.threads import in_thread

    keys = dict(_key_and_value(one) for one in further or [])
    if platform is None and context.can_ask:
        known = ", ".join(await in_thread(known_platforms))
        platform = context.ask(f"The platform of your bot ({known}), or nothing for this terminal:") or None
    text = await in_thread(partial(first_configuration, platform, keys))
    if "://" in str(context.home) and context.own_config_path is None:
        problem = "the store is on a server: name the file to write with --config"
        raise InvalidInputError(problem)
    usual = await in_thread(Path(context.home).expanduser)
    file = context.own_config_path or usual / CONFIG_FILE
    if await in_thread(file.exists):
        problem = f"{file} is there already, and was left as it is"
        raise InvalidInputError(problem)
    online = platform is not None and not offline
    await set_up(context, SetupFiles(file, usual), text, platform, online=online)


def _key_and_value(text: str) -> tuple[str, str]:
    key, mark, value = text.partition("=")
    if not mark or not key.strip() or "\n" in text:
        problem = f"--set {text}: write KEY=VALUE, such as groups=all"
        raise InvalidInputError(problem)
    return key.strip(), value.strip()
