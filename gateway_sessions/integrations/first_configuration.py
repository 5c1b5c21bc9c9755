"""The first configuration of a bot: a few lines with comments, for `gsess init`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from gateway_sessions.errors import InvalidInputError
from gateway_sessions.integrations.registry import known_platforms


class PlatformKeys(NamedTuple):
    """What a configuration says of a platform at least, and what it may say."""

    needed: Mapping[str, str]
    """The keys that are needed, and where people get their values."""
    more: tuple[str, ...] = ()
    """Lines that are commented out."""


PLATFORM_KEYS: Final[Mapping[str, PlatformKeys]] = MappingProxyType(
    {
        "discord": PlatformKeys(
            MappingProxyType({"token": "the page Bot of the application gives it out"}),
            ("groups: all    # in guilds, answer everything, and not only what mentions the bot",),
        ),
        "line": PlatformKeys(
            MappingProxyType(
                {
                    "channel_secret": "the LINE Developers console shows it",
                    "channel_access_token": "a long-lived one, from the same place",
                }
            ),
            ("port: 8080    # the webhook listens there; a proxy with TLS stands in front of it",),
        ),
        "matrix": PlatformKeys(
            MappingProxyType(
                {
                    "homeserver": "its address, https://…",
                    "user": "the bot, as @bot:example.org",
                    "device": "the device of its login",
                    "access_token": "the token of its login",
                }
            ),
            ("join_invites: true    # into every room that it is invited to",),
        ),
        "mattermost": PlatformKeys(
            MappingProxyType(
                {
                    "url": "the address of the server, https://…",
                    "token": "the integrations of the server give it out for a bot account",
                }
            ),
            ("groups: all    # in channels, answer everything, and not only what is for the bot",),
        ),
        "slack": PlatformKeys(
            MappingProxyType(
                {
                    "token": "OAuth & Permissions of the app shows it (xoxb-…)",
                    "app_token": "Basic Information of the app gives it out, for Socket Mode (xapp-…)",
                }
            ),
            ("channels: all    # in channels, answer everything, and not only what is for the bot",),
        ),
        "teams": PlatformKeys(
            MappingProxyType(
                {
                    "app_id": "the registration of the bot in Azure shows it",
                    "app_secret": "the value of a client secret of the app",
                }
            ),
            ("port: 8080    # the webhook listens there; a proxy with TLS stands in front of it",),
        ),
        "telegram": PlatformKeys(
            MappingProxyType({"token": "@BotFather gives it out"}),
            ("groups: all    # in groups, answer everything, and not only what is for the bot",),
        ),
        "twilio": PlatformKeys(
            MappingProxyType(
                {
                    "account_sid": "the console of Twilio shows it",
                    "auth_token": "from the same place",
                    "sender": "the number, as +15550100",
                    "public_url": "the address of the webhook, as Twilio has it",
                }
            ),
        ),
        "whatsapp": PlatformKeys(
            MappingProxyType(
                {
                    "phone_number_id": "the dashboard of the app at Meta shows it",
                    "access_token": "of a system user of the business",
                    "app_secret": "from the settings of the app",
                    "verify_token": "a word of your choice, entered at Meta as well",
                }
            ),
        ),
    }
)
"""The keys of the platforms that this package brings along."""

_HEAD: Final = """\
# The gateway of `gateway-sessions serve`. `gateway-sessions config explain` lists all keys.
# timezone: Europe/Berlin         # for resets and schedules; without it, the zone of this machine
# session_reset: never            # else a conversation begins anew after a day, or at four in the morning
serve:
"""


def first_configuration(platform: str | None = None) -> str:
    """Return the text of a configuration; without a platform, it serves a terminal."""
    if platform is None:
        return f"{_HEAD}  console: true                 # lines that you type are messages\n"
    name = platform.strip().lower()
    known = known_platforms()
    if name not in known:
        problem = f"no adapter for {platform!r} is installed; there are {', '.join(known)}"
        raise InvalidInputError(problem)
    keys = PLATFORM_KEYS.get(name, PlatformKeys(MappingProxyType({})))
    lines = [f"    - platform: {name}"]
    lines += [f"      {key}: ${{{variable_of(name, key)}}}    # {told}" for key, told in keys.needed.items()]
    lines += [f"      # {line}" for line in keys.more]
    return "\n".join([f"{_HEAD}  adapters:", *lines, ""])


def variables_to_set(platform: str | None) -> list[str]:
    """Return the variables of the environment that such a configuration needs."""
    keys = PLATFORM_KEYS.get((platform or "").strip().lower())
    return [] if keys is None else [variable_of(str(platform).strip().lower(), key) for key in keys.needed]


def variable_of(platform: str, key: str) -> str:
    """Return the variable of the environment for a key of a platform."""
    return f"{platform}_{key}".upper().replace("-", "_")
