"""The first setup of a gateway: its configuration, its secrets, a unit for systemd, and a first look."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from gateway_sessions.cli.adapter_health import examine_adapters
from gateway_sessions.cli.context import CommandContext
from gateway_sessions.cli.exit_codes import Exit
from gateway_sessions.config import load_config
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.integrations.first_configuration import keys_to_ask, message_to_try
from gateway_sessions.runtime.operator.health import Health
from gateway_sessions.storage.files.private_files import make_private_directory, make_private_file
from gateway_sessions.storage.files.threads import in_thread

SECRETS_FILE: Final = "secrets"
UNIT_FILE: Final = "gateway-sessions.service"
HIDDEN: Final = ("TOKEN", "SECRET")
"""What is not shown while it is typed has one of these in its name."""

_UNIT: Final = """\
# A service of your own account. To start it now, and whenever the machine starts:
#   systemctl --user link {unit}
#   systemctl --user enable --now {name}
#   loginctl enable-linger
[Unit]
Description=The gateway of gateway-sessions

[Service]
EnvironmentFile=-{secrets}
ExecStart={python} -m gateway_sessions --home {home} --config {config} serve
Restart=on-failure
RestartSec=5
RestartPreventExitStatus=2
TimeoutStopSec=60

[Install]
WantedBy=default.target
"""


class SetupFiles(NamedTuple):
    """Where the files of a first setup stand."""

    config: Path
    home: Path

    @property
    def secrets(self) -> Path:
        """The file with a line for each secret."""
        return self.config.parent / SECRETS_FILE

    @property
    def unit(self) -> Path:
        """The unit for systemd."""
        return self.config.parent / UNIT_FILE

    def write(self, text: str, secrets: Mapping[str, str]) -> None:
        """Write what is not there yet, for the eyes of the owner only."""
        make_private_directory(self.config.parent)
        make_private_file(self.config, text.encode())
        if secrets:
            lines = [f"{name}={shlex.quote(value)}\n" for name, value in secrets.items()]
            make_private_file(self.secrets, "".join(lines).encode())
        if not self.unit.exists():
            make_private_file(self.unit, self._unit_text().encode())

    def _unit_text(self) -> str:
        return _UNIT.format(
            unit=shlex.quote(str(self.unit.absolute())),
            name=UNIT_FILE,
            secrets=str(self.secrets.absolute()).replace("%", "%%"),
            python=_word(sys.executable),
            home=_word(self.home.absolute()),
            config=_word(self.config.absolute()),
        )


async def set_up(
    context: CommandContext, files: SetupFiles, text: str, platform: str | None, *, online: bool
) -> None:
    """Write the files, ask the platform whether their values are right, and say what comes next."""
    unset = {name: told for name, told in keys_to_ask(platform).items() if not os.environ.get(name)}
    secrets = _ask_for(context, unset) if context.can_ask else {}
    missing = [name for name in unset if name not in secrets]
    context.confirm(f"Write {files.config}?")
    await in_thread(partial(files.write, text, secrets))
    environ = {**dict.fromkeys(missing, "1:set"), **os.environ, **secrets}
    config = await in_thread(partial(load_config, files.config, environ=environ))
    lines = [f"{files.config} is written."]
    if online and not missing:
        found = [one async for one in examine_adapters(config, files.home, online=True)]
        lines += [f"{one.what}: {one.told}." for one in found]
        if any(one.health is Health.BAD for one in found):
            context.exit_code = Exit.UNSOUND
    first = f"set -a; . {shlex.quote(str(files.secrets))}; set +a, then " if secrets else ""
    first += "".join(f"export {name}=…, then " for name in missing)
    lines += [
        f"Next: {first}gateway-sessions serve. Then {message_to_try(platform)}.",
        "The demo agent answers; serve --agent MODULE:NAME lets yours answer.",
        f"To run it as a service: {files.unit} says how.",
    ]
    context.answer_text("\n".join(lines), str(files.config), variables=missing, unit=str(files.unit))


def _ask_for(context: CommandContext, variables: Mapping[str, str]) -> dict[str, str]:
    """Return what a person types for these variables; who types nothing sets the variable later."""
    typed: dict[str, str] = {}
    for name, told in variables.items():
        value = context.ask(f"{name} ({told}):", hidden=any(one in name for one in HIDDEN))
        if not value.isprintable():
            problem = f"{name} has characters that cannot be seen: copy it anew"
            raise InvalidInputError(problem)
        if value:
            typed[name] = value
    return typed


def _word(value: object) -> str:
    """Return a word of a command as systemd reads it, whatever is in it."""
    escaped = str(value)
    for character, told in (("\\", "\\\\"), ('"', '\\"'), ("%", "%%"), ("$", "$$")):
        escaped = escaped.replace(character, told)
    return f'"{escaped}"'
