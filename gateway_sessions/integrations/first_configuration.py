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
    to_try: str = "write hello to the bot"
    """What to do once the gateway runs, to see the bot answer."""


_ALL: Final = "groups: all    # in groups, answer everything, and not only what is for the bot"

PLATFORM_KEYS: Final[Mapping[str, PlatformKeys]] = MappingProxyType(
    {
        "discord": PlatformKeys(
            MappingProxyType({"token": "Discord's Developer Portal, your application, Bot: Reset Token"}),
            (
                "groups: all    # in servers, answer everything, and not only what is for the bot",
                "message_content: false    # without the Message Content Intent: only what is for the bot",
            ),
            to_try="invite the bot to a server (OAuth2, URL Generator: bot), and write hello to it directly",
        ),
        "google_chat": PlatformKeys(
            MappingProxyType(
                {
                    "audience": "the app's HTTP endpoint URL, or the number of its project, as set there",
                    "key_file": "Google Cloud, IAM, Service Accounts, Keys: a key as JSON, in this file",
                }
            ),
            ("path: /google_chat    # where Google calls, at serve.webhooks.port",),
            to_try="enter the public address of /google_chat at the app, and write hello to it",
        ),
        "line": PlatformKeys(
            MappingProxyType(
                {
                    "channel_secret": "LINE Developers: your channel, Basic settings",
                    "channel_access_token": "the same channel, Messaging API: a long-lived one",
                }
            ),
            (_ALL, "path: /line    # where LINE calls, at serve.webhooks.port"),
            to_try="enter the public address of /line as the channel's webhook, and write hello to it",
        ),
        "matrix": PlatformKeys(
            MappingProxyType(
                {
                    "homeserver": "its address, such as https://matrix.org",
                    "user": "the whole name of the account, such as @bot:matrix.org",
                    "access_token": "what the homeserver answers a login with",
                }
            ),
            (
                "groups: all    # in rooms of several people, answer everything",
                "join_invites: true    # join each room that somebody invites the bot to",
                "device: ${MATRIX_DEVICE}    # with these three, it reads encrypted rooms: the login told it",
                "encryption_store: matrix-keys    # a folder, in that of the store",
                "encryption_key: ${MATRIX_ENCRYPTION_KEY}    # a passphrase of your choice",
            ),
            to_try="let the account join a private room, and write hello there",
        ),
        "mattermost": PlatformKeys(
            MappingProxyType(
                {
                    "url": "the address of the server, https://…",
                    "token": "the integrations of the server give it out for a bot account",
                }
            ),
            ("groups: all    # in channels, answer everything, and not only what is for the bot",),
            to_try="write hello to the bot in a direct message",
        ),
        "slack": PlatformKeys(
            MappingProxyType(
                {
                    "token": "your app, OAuth & Permissions: Bot User OAuth Token, xoxb-…",
                    "app_token": "Basic Information, App-Level Tokens: with connections:write, xapp-…",
                }
            ),
            (
                "signing_secret: ${SLACK_SIGNING_SECRET}    # in place of app_token: Slack calls a webhook",
                "groups: all    # in channels, answer everything, and not only what is for the bot",
                "command: /helper    # `/helper new` is the command /new, which Slack keeps for itself",
            ),
            to_try="subscribe the app to message.im, and write hello to it in its Messages tab",
        ),
        "teams": PlatformKeys(
            MappingProxyType(
                {
                    "app_id": "Azure, your bot, Configuration: Microsoft App ID",
                    "app_secret": "the app's registration, Certificates & secrets: the value of a secret",
                    "tenant_id": "App Tenant ID; botframework.com for an app of several tenants",
                }
            ),
            (_ALL, "path: /teams    # where Teams calls, at serve.webhooks.port"),
            to_try="enter the public address of /teams as messaging endpoint, and write hello to the bot",
        ),
        "telegram": PlatformKeys(
            MappingProxyType({"token": "@BotFather gives it out"}),
            (_ALL,),
            to_try="open the bot in Telegram, press Start, and write hello",
        ),
        "twilio": PlatformKeys(
            MappingProxyType(
                {
                    "account_sid": "Twilio's console, Account Info: AC…",
                    "auth_token": "the same place",
                    "sender": "your number, as +15550100, or whatsapp:+15550100",
                    "public_url": "the address of the webhook as Twilio has it, which it signs",
                }
            ),
            ("path: /twilio    # where the proxy hands requests on to, at serve.webhooks.port",),
            to_try="enter public_url as the number's webhook for messages, and send hello to it",
        ),
        "whatsapp": PlatformKeys(
            MappingProxyType(
                {
                    "phone_number_id": "Meta for Developers, your app, WhatsApp, API Setup: not the number",
                    "access_token": "the token of a system user, which does not end",
                    "app_secret": "App settings, Basic: App secret",
                    "verify_token": "a word of your choice, which you enter at Meta as well",
                }
            ),
            ("path: /whatsapp    # where Meta calls, at serve.webhooks.port",),
            to_try="enter the public address of /whatsapp as webhook, and write hello to the number",
        ),
    }
)
"""The keys of the platforms that this package brings along."""

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})

_HEAD: Final = """\
# The gateway of `gateway-sessions serve`. `gateway-sessions config explain` lists all keys.
# timezone: Europe/Berlin         # for resets and schedules; without it, the zone of this machine
# session_reset: never            # else a conversation begins anew after a day, or at four in the morning
serve:
"""


def first_configuration(platform: str | None = None, further: Mapping[str, str] = _NOTHING) -> str:
    """Return the text of a configuration, with *further* keys; without a platform, it serves a terminal."""
    if platform is None:
        return f"{_HEAD}  console: true                 # lines that you type are messages\n"
    name = platform.strip().lower()
    known = known_platforms()
    if name not in known:
        problem = f"no adapter for {platform!r} is installed; there are {', '.join(known)}"
        raise InvalidInputError(problem)
    keys = PLATFORM_KEYS.get(name, PlatformKeys(MappingProxyType({})))
    if twice := next((key for key in further if key in keys.needed), None):
        problem = f"{twice} is a key that is always there: set {variable_of(name, twice)} in the environment"
        raise InvalidInputError(problem)
    lines = [f"    - platform: {name}"]
    lines += [f"      {key}: ${{{variable_of(name, key)}}}    # {told}" for key, told in keys.needed.items()]
    lines += [f"      {key}: {value}" for key, value in further.items()]
    lines += [f"      # {line}" for line in keys.more if line.partition(":")[0] not in further]
    return "\n".join([f"{_HEAD}  adapters:", *lines, ""])


def variables_to_set(platform: str | None) -> list[str]:
    """Return the variables of the environment that such a configuration needs."""
    keys = PLATFORM_KEYS.get((platform or "").strip().lower())
    return [] if keys is None else [variable_of(str(platform).strip().lower(), key) for key in keys.needed]


def keys_to_ask(platform: str | None) -> Mapping[str, str]:
    """Return the variables that such a configuration needs, each with where people get its value."""
    keys = PLATFORM_KEYS.get((platform or "").strip().lower())
    return dict(zip(variables_to_set(platform), keys.needed.values(), strict=True)) if keys else {}


def message_to_try(platform: str | None) -> str:
    """Return what to do once the gateway runs, to see it answer."""
    if platform is None:
        return "type hello"
    keys = PLATFORM_KEYS.get(platform.strip().lower())
    return PlatformKeys({}).to_try if keys is None else keys.to_try


def variable_of(platform: str, key: str) -> str:
    """Return the variable of the environment for a key of a platform."""
    return f"{platform}_{key}".upper().replace("-", "_")
