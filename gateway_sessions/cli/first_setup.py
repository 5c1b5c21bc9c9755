"""The files that `init` writes beside a configuration: its secrets, and a unit for systemd."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from gateway_sessions.cli.adapter_health import examine_adapters
from gateway_sessions.config import load_config
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.runtime.operator.health import Symptom
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


def _word(value: object) -> str:
    """Return a word of a command as systemd reads it, whatever is in it."""
    escaped = str(value)
    for character, told in (("\\", "\\\\"), ('"', '\\"'), ("%", "%%"), ("$", "$$")):
        escaped = escaped.replace(character, told)
    return f'"{escaped}"'


def check_secret(name: str, value: str) -> str:
    """Return a value as somebody has typed it; `InvalidInputError` if no file of variables can have it."""
    if value.isprintable():
        return value
    problem = f"{name} has characters that cannot be seen: copy it anew"
    raise InvalidInputError(problem)


async def check_connections(files: SetupFiles, values: Mapping[str, str]) -> list[Symptom]:
    """Ask the platforms of the new configuration whether its values are right."""
    environ = {**os.environ, **values}
    config = await in_thread(partial(load_config, files.config, environ=environ))
    return [one async for one in examine_adapters(config, files.home, online=True)]
