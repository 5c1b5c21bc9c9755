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
            help="The platform of your bot, such as telegram. Without it, you are asked.", metavar="NAME"
        ),
    ] = None,
    further: Annotated[
        list[str] | None,
        typer.Option("--set", help="A further key of the platform, such as groups=all.", metavar="KEY=VALUE"),
    ] = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Do not ask the platform whether the values are right.")
    ] = False,
) -> None:
    """Write a configuration to begin with, and a unit for systemd. A file that is there stays as it is.

    At a terminal you are asked for tokens, which go to a file that only you can read. The platform is asked
    whether they are right.
    """
    import os
    import shlex
    from functools import partial
    from pathlib import Path

    from gateway_sessions.cli.context import CONFIG_FILE
    from gateway_sessions.cli.exit_codes import Exit
    from gateway_sessions.cli.first_setup import HIDDEN, SetupFiles, check_connections, check_secret
    from gateway_sessions.config import load_config
    from gateway_sessions.integrations.first_configuration import (
        first_configuration,
        keys_to_ask,
        message_to_try,
    )
    from gateway_sessions.integrations.registry import known_platforms
    from gateway_sessions.runtime.operator.health import Health
    from gateway_sessions.storage.files.threads import in_thread

    if platform is None and context.can_ask:
        known = ", ".join(await in_thread(known_platforms))
        platform = context.ask(f"The platform of your bot ({known}), or nothing for this terminal:") or None
    keys = dict(_key_and_value(one) for one in further or [])
    text = await in_thread(partial(first_configuration, platform, keys))
    if "://" in str(context.home) and context.own_config_path is None:
        problem = "the store is on a server: name the file to write with --config"
        raise InvalidInputError(problem)
    usual = await in_thread(Path(context.home).expanduser)
    file = context.own_config_path or usual / CONFIG_FILE
    if await in_thread(file.exists):
        problem = f"{file} is there already, and was left as it is"
        raise InvalidInputError(problem)
    unset = {name: told for name, told in keys_to_ask(platform).items() if not os.environ.get(name)}
    typed: dict[str, str] = {}
    if context.can_ask:
        for name, told in unset.items():
            is_hidden = any(one in name for one in HIDDEN)
            typed[name] = check_secret(name, context.ask(f"{name} ({told}):", hidden=is_hidden))
    secrets = {name: value for name, value in typed.items() if value}
    missing = [name for name in unset if name not in secrets]
    context.confirm(f"Write {file}?")
    files = SetupFiles(file, usual)
    await in_thread(partial(files.write, text, secrets))
    await in_thread(
        partial(load_config, file, environ={**dict.fromkeys(missing, "1:set"), **os.environ, **secrets})
    )
    lines = [f"{file} is written."]
    if platform is not None and not missing and not offline:
        found = await check_connections(files, secrets)
        lines += [f"{one.what}: {one.told}." for one in found]
        if any(one.health is Health.BAD for one in found):
            context.exit_code = Exit.UNSOUND
    first = f"set -a; . {shlex.quote(str(files.secrets))}; set +a, then " if secrets else ""
    first += "".join(f"export {name}=…, then " for name in missing)
    lines.append(f"Next: {first}gateway-sessions serve. Then {message_to_try(platform)}.")
    lines.append("The demo agent answers; serve --agent MODULE:NAME lets yours answer.")
    lines.append(f"To run it as a service: {files.unit} says how.")
    context.answer_text("\n".join(lines), str(file), variables=missing, unit=str(files.unit))


def _key_and_value(text: str) -> tuple[str, str]:
    key, mark, value = text.partition("=")
    if not mark or not key.strip() or "\n" in text:
        problem = f"--set {text}: write KEY=VALUE, such as groups=all"
        raise InvalidInputError(problem)
    return key.strip(), value.strip()
