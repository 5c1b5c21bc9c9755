"""The registry of adapters: which function makes the adapter of a platform from its settings.

A package of another author registers such a function as an entry point of the group
`gateway_sessions.adapters`, whose name is the platform. A library of a platform is imported only when an
adapter of that platform is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from gateway_sessions._process.installed_packages import installed_adapters
from gateway_sessions.adapters.protocol import Adapter
from gateway_sessions.config.kinds import AdapterConfig
from gateway_sessions.errors import ConfigError, ConfigProblem, InvalidInputError
from gateway_sessions.integrations.configured import AdapterFactory, AdapterSettings

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


class ConfiguredAdapter(NamedTuple):
    """An adapter that a configuration has asked for, with its settings."""

    adapter: Adapter
    settings: AdapterSettings


def _telegram() -> AdapterFactory:
    from gateway_sessions.integrations.telegram.from_settings import telegram_from_settings  # noqa: PLC0415

    return telegram_from_settings


def _discord() -> AdapterFactory:
    from gateway_sessions.integrations.discord_from_settings import discord_from_settings  # noqa: PLC0415

    return discord_from_settings


def _slack() -> AdapterFactory:
    from gateway_sessions.integrations.slack_from_settings import slack_from_settings  # noqa: PLC0415

    return slack_from_settings


def _matrix() -> AdapterFactory:
    from gateway_sessions.integrations.matrix_from_settings import matrix_from_settings  # noqa: PLC0415

    return matrix_from_settings


def _mattermost() -> AdapterFactory:
    from gateway_sessions.integrations.mattermost.from_settings import mattermost_from_settings  # noqa: PLC0415

    return mattermost_from_settings


def _teams() -> AdapterFactory:
    from gateway_sessions.integrations.teams.from_settings import teams_from_settings  # noqa: PLC0415

    return teams_from_settings


def _whatsapp() -> AdapterFactory:
    from gateway_sessions.integrations.whatsapp.from_settings import whatsapp_from_settings  # noqa: PLC0415

    return whatsapp_from_settings


def _twilio() -> AdapterFactory:
    from gateway_sessions.integrations.twilio.from_settings import twilio_from_settings  # noqa: PLC0415

    return twilio_from_settings


def _google_chat() -> AdapterFactory:
    from gateway_sessions.integrations.google_chat.from_settings import google_chat_from_settings  # noqa: PLC0415

    return google_chat_from_settings


def _line() -> AdapterFactory:
    from gateway_sessions.integrations.line.from_settings import line_from_settings  # noqa: PLC0415

    return line_from_settings


BUILT_IN: Final[Mapping[str, Callable[[], AdapterFactory]]] = MappingProxyType(
    {
        "discord": _discord,
        "google_chat": _google_chat,
        "line": _line,
        "matrix": _matrix,
        "mattermost": _mattermost,
        "slack": _slack,
        "teams": _teams,
        "telegram": _telegram,
        "twilio": _twilio,
        "whatsapp": _whatsapp,
    }
)
"""The platforms that this package brings along, each with the function that imports its factory."""


def known_platforms() -> tuple[str, ...]:
    """Return the platforms that a configuration can name. Call it in a thread: it reads the disk."""
    return tuple(sorted({*BUILT_IN, *installed_adapters()}))


def make_adapters(
    configured: Sequence[AdapterConfig], home: Path | None = None
) -> tuple[ConfiguredAdapter, ...]:
    """Make the adapters that a configuration asks for; `ConfigError` tells all that is wrong with them.

    Call it in a thread: it may read the list of installed packages, and import libraries.
    """
    made: list[ConfiguredAdapter] = []
    problems: list[ConfigProblem] = []
    for place, one in enumerate(configured):
        settings = AdapterSettings(one, place, home)
        try:
            made.append(ConfiguredAdapter(_make_adapter(one, settings), settings))
        except ConfigError as error:
            problems += error.problems
        except InvalidInputError as error:  # a missing extra, or a value that the adapter refuses
            problems.append(ConfigProblem(settings.path, str(error)))
    if problems:
        raise ConfigError("configuration", problems)
    return tuple(made)


def _make_adapter(config: AdapterConfig, settings: AdapterSettings) -> Adapter:
    adapter = _factory_of(config.platform, settings)(settings)
    settings.check()
    return adapter


def _factory_of(platform: str, settings: AdapterSettings) -> AdapterFactory:
    if (load := BUILT_IN.get(platform)) is not None:
        return load()
    entry = installed_adapters().get(platform)
    if entry is not None:
        return _factory_of_package(entry, settings)
    known = known_platforms()
    close = next(iter(get_close_matches(platform, known, n=1)), None)
    problem = f"no adapter for {platform!r} is installed; there are {', '.join(known)}"
    raise ConfigError("configuration", [ConfigProblem(f"{settings.path}.platform", problem, None, close)])


def _factory_of_package(entry: EntryPoint, settings: AdapterSettings) -> AdapterFactory:
    fault: str | None = None
    found: Any = None
    try:
        found = entry.load()
    except Exception as error:  # noqa: BLE001 -- foreign code: whatever it raises, others can be used
        fault = f"cannot be imported ({type(error).__name__}: {error})"
    if fault is None and not callable(found):
        fault = "is no function that makes an adapter"
    if fault is not None:
        package = f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else entry.module
        problem = f"{entry.value} of {package} {fault}: update that package, or remove it"
        raise ConfigError("configuration", [ConfigProblem(f"{settings.path}.platform", problem)])
    return cast("AdapterFactory", found)
