"""Loading of a configuration from a file and the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from gateway_sessions.config.environment_names import is_overridden
from gateway_sessions.config.model import Config
from gateway_sessions.errors import ConfigError, ConfigProblem

MAX_BYTES: Final = 256 * 1024


def load_config(
    path: str | os.PathLike[str] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    lenient: bool = False,
) -> Config:
    """Return the configuration in a YAML file, or the default one, with the overrides of the environment.

    A variable that the file names and that is not set is a `ConfigError`; with *lenient*, only where the
    value is used, so that commands that read a store work without the secrets of its gateway.
    """
    known = os.environ if environ is None else environ
    if path is None and not is_overridden(known):
        return Config()
    if path is None:
        return parse_config("", origin="environment", environ=known)
    # Imported when needed: programs without a file need no YAML.
    from gateway_sessions.config.reading import read_config_text  # noqa: PLC0415

    file = Path(path)
    return read_config_text(
        Config, read_file_text(file), origin=str(path), environ=known, lenient=lenient, file=file.absolute()
    )


def parse_config(
    text: str, *, origin: str = "configuration", environ: Mapping[str, str] = MappingProxyType({})
) -> Config:
    """Return the configuration in a YAML text with the overrides in *environ*; errors name *origin*."""
    from gateway_sessions.config.reading import read_config_text  # noqa: PLC0415 -- as above

    return read_config_text(Config, text, origin=origin, environ=environ)


def read_file_text(path: Path) -> str:
    """Return the text of a file; `ConfigError` if it cannot be read, or is too large."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(str(path), [ConfigProblem("file", f"cannot be read: {error.strerror}")]) from error
    if len(content) > MAX_BYTES:
        raise ConfigError(str(path), [ConfigProblem("file", f"is larger than {MAX_BYTES} bytes")])
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(str(path), [ConfigProblem("file", "is not UTF-8 text", line)]) from None
