"""The platforms that `serve` knows, each with a fake of it and the lines of a configuration."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from tempfile import NamedTemporaryFile
from typing import Any

from gateway_sessions.testing.fakes.discord import FakeDiscord
from gateway_sessions.testing.fakes.google_chat import FakeGoogleChat
from gateway_sessions.testing.fakes.line import FakeLine
from gateway_sessions.testing.fakes.matrix import FakeMatrix
from gateway_sessions.testing.fakes.mattermost import FakeMattermost
from gateway_sessions.testing.fakes.slack import FakeSlack
from gateway_sessions.testing.fakes.teams import FakeTeams
from gateway_sessions.testing.fakes.telegram.server import FakeTelegram
from gateway_sessions.testing.fakes.twilio import FakeTwilio
from gateway_sessions.testing.fakes.whatsapp import FakeWhatsApp
from gateway_sessions.testing.fakes.whatsapp.server import ACCESS_TOKEN, APP_SECRET, PHONE_NUMBER_ID
from tests.integration.command_line.platforms.served_programs import GSESS

ON_FAKE_DISCORD = """
import os
from gateway_sessions.cli.app import main
from gateway_sessions.testing.fakes.discord.discord_py import discord_py_pointed_at

with discord_py_pointed_at(os.environ["DISCORD_URL"], os.environ["DISCORD_GATEWAY_URL"]):
    raise SystemExit(main())
"""
"""The command line, where discord.py speaks with a fake: it has the addresses of Discord as constants."""


@dataclass(frozen=True)
class PlatformToServe:
    """A platform, and how people use it."""

    platform: str
    lines: str
    """The keys of its adapter, as a configuration has them."""
    make_fake: Callable[[], Any]
    variables: Callable[[Any], dict[str, str]]
    says: Callable[[Any, str, str], object]
    """Lets a person write a text."""
    texts: Callable[[Any, str], list[str]]
    """What the bot has said to a person."""
    listen: Callable[[Any, str], None] | None = None
    """Tells the platform which address to call, if it calls one."""
    wrong: str = ""
    """The variable whose value the platform does not accept if it is another one."""
    refused: str = ""
    """What `doctor --online` then says."""
    command: tuple[str, ...] = (str(GSESS),)
    """What stands for `gsess`."""

    @property
    def yaml(self) -> str:
        """A whole configuration."""
        port = "  webhooks: {port: 0}\n" if self.listen is not None else ""
        return f"serve:\n{port}  adapters:\n{self._adapter(self.lines)}"

    @property
    def yaml_with_wrong_account(self) -> str:
        """A configuration that has another account as well, which the platform does not accept."""
        wrong = self.lines.replace(f"${{{self.wrong}}}", "${WRONG}")
        return self.yaml + self._adapter(f"name: other\n{wrong}")

    def _adapter(self, lines: str) -> str:
        keys = "".join(f"      {line}\n" for line in lines.splitlines())
        return f"    - platform: {self.platform}\n{keys}"


def _webhook_url(fake: Any, url: str) -> None:
    fake.webhook_url = url


TELEGRAM = PlatformToServe(
    "telegram",
    "token: ${TELEGRAM_TOKEN}\napi_url: ${TELEGRAM_URL}",
    FakeTelegram,
    lambda fake: {"TELEGRAM_TOKEN": fake.token, "TELEGRAM_URL": fake.url},
    lambda fake, person, text: fake.says(person, text),
    lambda fake, person: fake.texts(person),
    wrong="TELEGRAM_TOKEN",
    refused="does not know this token",
)
SLACK_SOCKET = PlatformToServe(
    "slack",
    "token: ${SLACK_TOKEN}\napp_token: ${SLACK_APP_TOKEN}\napi_url: ${SLACK_URL}",
    FakeSlack,
    lambda fake: {
        "SLACK_TOKEN": fake.token,
        "SLACK_APP_TOKEN": fake.app_token,
        "SLACK_URL": fake.api_url,
    },
    lambda fake, person, text: fake.people.says(person, text),
    lambda fake, person: fake.texts(person),
    wrong="SLACK_APP_TOKEN",
    refused="Socket Mode: ",
)
SLACK_EVENTS = PlatformToServe(
    "slack",
    "token: ${SLACK_TOKEN}\nsigning_secret: ${SLACK_SIGNING_SECRET}\napi_url: ${SLACK_URL}",
    FakeSlack,
    lambda fake: {
        "SLACK_TOKEN": fake.token,
        "SLACK_SIGNING_SECRET": fake.signing_secret,
        "SLACK_URL": fake.api_url,
    },
    lambda fake, person, text: fake.people.says(person, text),
    lambda fake, person: fake.texts(person),
    FakeSlack.listen_at,
    wrong="SLACK_TOKEN",
    refused="(invalid_auth)",
)
MATRIX = PlatformToServe(
    "matrix",
    "homeserver: ${MATRIX_HOMESERVER}\nuser: ${MATRIX_USER}\naccess_token: ${MATRIX_ACCESS_TOKEN}",
    FakeMatrix,
    lambda fake: {
        "MATRIX_HOMESERVER": fake.url,
        "MATRIX_USER": fake.bot.user_id,
        "MATRIX_ACCESS_TOKEN": fake.token,
    },
    lambda fake, person, text: fake.says(person, text),
    lambda fake, person: fake.texts(person),
    wrong="MATRIX_ACCESS_TOKEN",
    refused="does not know this access token any more: log in again",
)
TEAMS = PlatformToServe(
    "teams",
    "app_id: ${TEAMS_APP_ID}\napp_secret: ${TEAMS_APP_SECRET}\n"
    "tenant_id: contoso.example\napi_url: ${TEAMS_URL}",
    FakeTeams,
    lambda fake: {
        "TEAMS_APP_ID": fake.app_id,
        "TEAMS_APP_SECRET": fake.app_secret,
        "TEAMS_URL": fake.url,
    },
    lambda fake, person, text: fake.says(person, text),
    lambda fake, person: fake.texts(person),
    _webhook_url,
    wrong="TEAMS_APP_SECRET",
    refused="app_id, app_secret and tenant_id",
)
WHATSAPP = PlatformToServe(
    "whatsapp",
    "phone_number_id: ${WHATSAPP_PHONE_NUMBER_ID}\naccess_token: ${WHATSAPP_ACCESS_TOKEN}\n"
    "app_secret: ${WHATSAPP_APP_SECRET}\nverify_token: my word\napi_url: ${WHATSAPP_URL}",
    FakeWhatsApp,
    lambda fake: {
        "WHATSAPP_PHONE_NUMBER_ID": PHONE_NUMBER_ID,
        "WHATSAPP_ACCESS_TOKEN": ACCESS_TOKEN,
        "WHATSAPP_APP_SECRET": APP_SECRET,
        "WHATSAPP_URL": fake.url,
    },
    lambda fake, person, text: fake.says(person, text),
    lambda fake, person: fake.texts(person),
    _webhook_url,
    wrong="WHATSAPP_ACCESS_TOKEN",
    refused="Invalid OAuth access token",
)
LINE = PlatformToServe(
    "line",
    "channel_secret: ${LINE_CHANNEL_SECRET}\nchannel_access_token: ${LINE_CHANNEL_ACCESS_TOKEN}\n"
    "api_url: ${LINE_URL}\ndata_url: ${LINE_URL}",
    FakeLine,
    lambda fake: {
        "LINE_CHANNEL_SECRET": fake.channel_secret,
        "LINE_CHANNEL_ACCESS_TOKEN": fake.channel_access_token,
        "LINE_URL": fake.url,
    },
    lambda fake, person, text: fake.says(person, text),
    lambda fake, person: fake.texts(person),
    _webhook_url,
    wrong="LINE_CHANNEL_ACCESS_TOKEN",
    refused="Confirm that the access token is valid",
)
DISCORD = PlatformToServe(
    "discord",
    "token: ${DISCORD_TOKEN}",
    FakeDiscord,
    lambda fake: {
        "DISCORD_TOKEN": fake.token,
        "DISCORD_URL": fake.api_url,
        "DISCORD_GATEWAY_URL": fake.gateway_url,
    },
    lambda fake, person, text: fake.says(person, text),
    lambda fake, person: fake.texts(person),
    wrong="DISCORD_TOKEN",
    refused="token",
    command=(sys.executable, "-c", ON_FAKE_DISCORD),
)


def _discord_with_command() -> FakeDiscord:
    fake = FakeDiscord()
    fake.rest.commands["ask"] = {"id": "1", "name": "ask"}
    return fake


def _discord_endpoint(fake: FakeDiscord, url: str) -> None:
    fake.endpoint.url = url


DISCORD_INTERACTIONS = PlatformToServe(
    "discord",
    "application_id: ${DISCORD_APPLICATION_ID}\npublic_key: ${DISCORD_PUBLIC_KEY}\n"
    "token: ${DISCORD_TOKEN}\ncommand: ask\napi_url: ${DISCORD_URL}",
    _discord_with_command,
    lambda fake: {
        "DISCORD_APPLICATION_ID": str(fake.guilds.bot.id),
        "DISCORD_PUBLIC_KEY": fake.endpoint.public_key,
        "DISCORD_TOKEN": fake.token,
        "DISCORD_URL": fake.api_url,
    },
    lambda fake, person, text: fake.commands(person, "ask", what=text),
    lambda fake, person: fake.texts(person),
    _discord_endpoint,
    wrong="DISCORD_TOKEN",
    refused="does not know this token",
)
TWILIO = PlatformToServe(
    "twilio",
    "account_sid: ${TWILIO_ACCOUNT_SID}\nauth_token: ${TWILIO_AUTH_TOKEN}\n"
    "sender: ${TWILIO_SENDER}\npublic_url: https://bots.example/twilio\napi_url: ${TWILIO_URL}",
    FakeTwilio,
    lambda fake: {
        "TWILIO_ACCOUNT_SID": fake.account_sid,
        "TWILIO_AUTH_TOKEN": fake.auth_token,
        "TWILIO_SENDER": fake.number,
        "TWILIO_URL": fake.url,
    },
    lambda fake, person, text: fake.says(person, text),
    lambda fake, person: fake.texts(person),
    _webhook_url,
    wrong="TWILIO_AUTH_TOKEN",
    refused="uthenticat",
)
MATTERMOST = PlatformToServe(
    "mattermost",
    "url: ${MATTERMOST_URL}\ntoken: ${MATTERMOST_TOKEN}",
    FakeMattermost,
    lambda fake: {"MATTERMOST_URL": fake.url, "MATTERMOST_TOKEN": fake.token},
    lambda fake, person, text: fake.says(person, text),
    lambda fake, person: fake.texts(person),
    wrong="MATTERMOST_TOKEN",
    refused="token",
)


def _google_chat_variables(fake: Any) -> dict[str, str]:
    with NamedTemporaryFile("w", suffix=".json", delete=False) as key:
        json.dump(fake.key, key)
    return {
        "GOOGLE_CHAT_AUDIENCE": fake.audience,
        "GOOGLE_CHAT_KEY_FILE": key.name,
        "GOOGLE_CHAT_URL": fake.url,
    }


GOOGLE_CHAT = PlatformToServe(
    "google_chat",
    "audience: ${GOOGLE_CHAT_AUDIENCE}\nkey_file: ${GOOGLE_CHAT_KEY_FILE}\n"
    "api_url: ${GOOGLE_CHAT_URL}\nkeys_url: ${GOOGLE_CHAT_URL}",
    FakeGoogleChat,
    _google_chat_variables,
    lambda fake, person, text: fake.says(person, text),
    lambda fake, person: fake.texts(person),
    _webhook_url,
    wrong="GOOGLE_CHAT_KEY_FILE",
    refused="key_file cannot be read",
)
TO_SERVE = {
    "google_chat": GOOGLE_CHAT,
    "mattermost": MATTERMOST,
    "twilio": TWILIO,
    "discord": DISCORD,
    "discord with interactions": DISCORD_INTERACTIONS,
    "telegram": TELEGRAM,
    "slack by Socket Mode": SLACK_SOCKET,
    "slack with events": SLACK_EVENTS,
    "matrix": MATRIX,
    "teams": TEAMS,
    "whatsapp": WHATSAPP,
    "line": LINE,
}
