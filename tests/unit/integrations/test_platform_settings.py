"""The adapter of each platform is made of its keys; what is missing, misspelt or wrong is one sentence."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from gateway_sessions.adapters.protocol import Adapter
from gateway_sessions.adapters.webhooks.endpoints import WebhookEndpoint, WebhookListener
from gateway_sessions.config import load_config
from gateway_sessions.config.kinds import AdapterConfig
from gateway_sessions.errors import ConfigError
from gateway_sessions.integrations.configured import AdapterSettings
from gateway_sessions.integrations.first_configuration import (
    PLATFORM_KEYS,
    first_configuration,
    variables_to_set,
)
from gateway_sessions.integrations.registry import BUILT_IN, make_adapters
from tests.unit.integrations.google_key import google_key_file

SECRET = "sEcret-of-nobody"
KEYS: dict[str, dict[str, Any]] = {
    "discord": {"token": SECRET},
    "google_chat": {"audience": "123", "key_file": str(google_key_file())},
    "line": {"channel_secret": SECRET, "channel_access_token": SECRET},
    "matrix": {"homeserver": "https://matrix.example", "user": "@bot:matrix.example", "access_token": SECRET},
    "mattermost": {"url": "https://mattermost.example", "token": SECRET},
    "slack": {"token": f"xoxb-{SECRET}", "app_token": f"xapp-{SECRET}"},
    "teams": {"app_id": "0a1b", "app_secret": SECRET, "tenant_id": "contoso.example"},
    "telegram": {"token": f"123456789:{SECRET}"},
    "twilio": {
        "account_sid": "AC0",
        "auth_token": SECRET,
        "sender": "+15550100",
        "public_url": "https://bots.example/twilio",
    },
    "whatsapp": {
        "phone_number_id": 106540352242922,
        "access_token": SECRET,
        "app_secret": SECRET,
        "verify_token": "w",
    },
}
"""The keys that each platform needs."""
MORE: dict[str, dict[str, Any]] = {
    "discord": {"groups": "all", "observe": True, "bots": True, "catch_up_hours": 2, "message_content": True},
    "google_chat": {"path": "/chat", "api_url": "http://x", "keys_url": "http://x"},
    "line": {
        "groups": "all",
        "observe": True,
        "use_reply_tokens": False,
        "path": "/line",
        "api_url": "http://x",
        "data_url": "http://x",
    },
    "matrix": {
        "groups": "all",
        "observe": True,
        "device": "BOT",
        "join_invites": True,
        "encryption_store": "keys",
        "encryption_key": "a passphrase",
    },
    "slack": {
        "groups": "all",
        "observe": True,
        "threads": "nowhere",
        "command": "/ask",
        "unfurl": True,
        "catch_up_hours": 2,
        "api_url": "http://x",
    },
    "mattermost": {"groups": "all", "observe": True, "threads": False},
    "teams": {
        "groups": "all",
        "observe": True,
        "cloud": "us-government",
        "path": "/teams",
        "api_url": "http://x",
    },
    "telegram": {"groups": "all", "observe": True, "api_url": "http://x"},
    "twilio": {"media": False, "path": "/sms", "api_url": "http://x"},
    "whatsapp": {"path": "/meta", "api_url": "http://x", "api_version": "v25.0"},
}
"""The keys that each may have."""
BY_WEBHOOK = ("google_chat", "line", "teams", "twilio", "whatsapp")
EXTRAS = [
    ("discord", "discord", "discord"),
    ("google_chat", "jwt", "webhooks"),
    ("line", "httpx2", "webhooks"),
    ("matrix", "nio", "matrix"),
    ("mattermost", "httpx2", "webhooks"),
    ("slack", "slack_bolt", "slack"),
    ("teams", "jwt", "webhooks"),
    ("telegram", "httpx2", "telegram"),
    ("twilio", "httpx2", "webhooks"),
    ("whatsapp", "httpx2", "webhooks"),
]

WITHOUT = """
import json, sys

library, platform, keys = sys.argv[1:]


class NotInstalled:
    def find_spec(self, name, path=None, target=None):
        if name == library:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, NotInstalled())

from gateway_sessions.config import load_config
from gateway_sessions.config.kinds import AdapterConfig
from gateway_sessions.errors import ConfigError
from gateway_sessions.integrations.registry import make_adapters

try:
    make_adapters([AdapterConfig(platform=platform, settings=json.loads(keys))])
except ConfigError as error:
    print(*[one.message for one in error.problems], sep="\\n")
"""


def made(platform: str, home: Path | None = None, name: str = "", **keys: Any) -> Adapter:
    config = AdapterConfig(platform=platform, name=name, settings=MappingProxyType(keys))
    ((adapter, _),) = make_adapters([config], home)
    return adapter


def problems(platform: str, **keys: Any) -> list[str]:
    with pytest.raises(ConfigError) as refused:
        made(platform, **keys)
    return [str(one) for one in refused.value.problems]


def webhook(adapter: Adapter) -> WebhookEndpoint:
    assert isinstance(adapter, WebhookListener)
    assert not adapter.listens_itself
    return adapter


def test_every_platform_is_tried_here():
    assert set(KEYS) == set(MORE) == set(BUILT_IN) == set(PLATFORM_KEYS)
    assert {name for name, _, _ in EXTRAS} == set(BUILT_IN)


@pytest.mark.parametrize("platform", KEYS)
def test_an_adapter_is_made_of_what_is_needed(platform: str):
    adapter = made(platform, **KEYS[platform])
    assert (adapter.platform, adapter.name) == (platform, "")


@pytest.mark.parametrize("platform", KEYS)
def test_an_adapter_takes_what_else_can_be_said(platform: str, tmp_path: Path):
    adapter = made(platform, tmp_path, "second", unreadable="odd", **KEYS[platform], **MORE[platform])
    assert (adapter.platform, adapter.name) == (platform, "second")


@pytest.mark.parametrize("platform", BY_WEBHOOK)
def test_an_adapter_that_is_called_listens_at_the_shared_port(platform: str):
    assert webhook(made(platform, **KEYS[platform])).path == f"/{platform}"
    assert webhook(made(platform, None, "sales", **KEYS[platform])).path == f"/{platform}/sales"
    assert webhook(made(platform, **KEYS[platform], path="/here")).path == "/here"
    (problem,) = problems(platform, **KEYS[platform], path="here")
    assert "must begin with a slash" in problem


@pytest.mark.parametrize("platform", sorted(set(KEYS) - {*BY_WEBHOOK}))
def test_an_adapter_that_connects_itself_is_called_by_nobody(platform: str):
    assert not isinstance(made(platform, **KEYS[platform]), WebhookEndpoint)


@pytest.mark.parametrize(("platform", "key"), [(name, key) for name, keys in KEYS.items() for key in keys])
def test_a_key_that_is_missing_is_named_with_its_variable(platform: str, key: str):
    keys = {name: value for name, value in KEYS[platform].items() if name != key}
    (problem,) = problems(platform, **keys)
    if (platform, key) == ("slack", "app_token"):
        assert "app_token: must be set for Socket Mode, or signing_secret for events at a webhook" in problem
    else:
        assert f"needs {key}: write `{key}: ${{{platform.upper()}_{key.upper()}}}`" in problem


@pytest.mark.parametrize("platform", KEYS)
def test_a_key_that_is_misspelt_is_named_with_the_one_that_was_meant(platform: str):
    (problem,) = problems(platform, **KEYS[platform], unreadible="odd")
    expected = f"unreadible: is not a key of {platform} (did you mean 'unreadable'?)"
    assert problem == f"serve.adapters[0].{expected}"


@pytest.mark.parametrize(("platform", "library", "extra"), EXTRAS)
def test_a_missing_library_is_told_with_the_command_that_installs_it(platform: str, library: str, extra: str):
    # In a process of its own: here, the library is loaded already.
    asked = [sys.executable, "-c", WITHOUT, library, platform, json.dumps(KEYS[platform])]
    told = subprocess.run(asked, check=True, capture_output=True, text=True).stdout
    assert told.endswith(f"pip install 'gateway-sessions[{extra}]'\n")
    assert len(told.splitlines()) == 1


@pytest.mark.parametrize(
    ("platform", "wrong", "told"),
    [
        ("discord", {"groups": "all", "message_content": False}, "must be true with groups: all"),
        ("discord", {"observe": True, "message_content": False}, "and with observe: true"),
        ("discord", {"catch_up_hours": -1}, "must be a whole number from 0 to"),
        ("slack", {"catch_up_hours": "long"}, "must be a whole number from 0 to"),
        ("discord", {"groups": "some"}, "must be one of mention, all"),
        ("google_chat", {"key_file": "/nowhere"}, "key_file cannot be read: No such file"),
        ("google_chat", {"audience": "words"}, "must be the address of the endpoint, or the number"),
        ("line", {"channel_secret": "two words"}, "channel_secret is missing, or has blanks"),
        ("matrix", {"homeserver": "matrix.example"}, "must be an address, such as https://matrix.org"),
        ("matrix", {"user": "bot"}, "must be a whole name, such as @bot:matrix.org"),
        ("matrix", {"groups": "mentions"}, "must be one of mention, all (did you mean 'mention'?)"),
        ("matrix", {"encryption_store": "k", "device": "D"}, "needs encryption_key as well"),
        ("matrix", {"encryption_key": SECRET}, "needs encryption_key as well, and the other way round"),
        ("matrix", {"encryption_store": "k", "encryption_key": SECRET}, "device: must be the device of the"),
        ("slack", {"signing_secret": SECRET}, "and not both of them"),
        ("slack", {"app_token": SECRET}, "which begins with xapp-"),
        ("slack", {"token": f"xapp-{SECRET}"}, "which begins with xoxb-"),
        ("slack", {"path": "/slack"}, "with Socket Mode, Slack calls no address"),
        ("slack", {"command": "ask"}, "must begin with a slash"),
        ("slack", {"groups": "al"}, "did you mean 'all'"),
        ("teams", {"tenant_id": f"{SECRET}~"}, "tenant_id must be the tenant's id or its domain"),
        ("teams", {"cloud": "private"}, "must be one of public, us-government"),
        ("twilio", {"account_sid": f"{SECRET}~"}, "must be the id of the account, which begins with AC"),
        ("twilio", {"public_url": SECRET}, "must be the address of the webhook as Twilio has it"),
        ("whatsapp", {"phone_number_id": SECRET}, "must be the id of the number, in digits"),
    ],
)
def test_a_value_that_cannot_be_is_one_sentence(platform: str, wrong: dict[str, Any], told: str):
    (problem,) = problems(platform, **{**KEYS[platform], **wrong})
    assert told in problem


def test_encryption_without_its_libraries_is_told_with_the_command_that_installs_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr("gateway_sessions.integrations.matrix_nio.ENCRYPTION_ENABLED", False)
    keys = {**KEYS["matrix"], "device": "D", "encryption_store": str(tmp_path), "encryption_key": SECRET}
    (problem,) = problems("matrix", **keys)
    assert problem.endswith("pip install 'gateway-sessions[matrix-encrypted]'")


@pytest.mark.parametrize("platform", KEYS)
def test_no_problem_shows_a_value(platform: str):
    keys = dict.fromkeys([*KEYS[platform], *MORE[platform], "nothing", "unreadable"], SECRET)
    assert SECRET not in " ".join(problems(platform, **keys))


@pytest.mark.parametrize(
    "token", ["0012", "12e45", "1" * 32, "+15550100", "1.5", "0x1F", "7", "1_000", "true1"]
)
def test_a_token_that_looks_like_a_number_stays_as_it_is(tmp_path: Path, token: str):
    file = tmp_path / "config.yaml"
    file.write_text("serve:\n  adapters:\n    - platform: line\n      channel_secret: ${T}\n")
    (adapter,) = load_config(file, environ={"T": token}).serve.adapters
    assert AdapterSettings(adapter).text("channel_secret") == token


class TestTelegramByWebhook:
    URL = "https://bots.example/hooks/telegram"

    def test_a_bot_with_a_webhook_is_called_at_the_path_of_its_address(self):
        adapter = made("telegram", **KEYS["telegram"], webhook_url=self.URL, secret="a-secret-of-letters")
        assert isinstance(adapter, WebhookEndpoint)
        assert adapter.path == "/hooks/telegram"
        adapter = made("telegram", **KEYS["telegram"], webhook_url=self.URL, path="/here")
        assert isinstance(adapter, WebhookEndpoint)
        assert adapter.path == "/here"

    @pytest.mark.parametrize("key", ["secret", "path"])
    def test_a_bot_that_asks_itself_has_neither(self, key: str):
        (problem,) = problems("telegram", **KEYS["telegram"], **{key: "/x"})
        assert f"{key}: is for webhook_url" in problem


class TestSlack:
    def test_an_app_with_a_signing_secret_is_called(self):
        keys: dict[str, Any] = {"token": f"xoxb-{SECRET}", "signing_secret": ["old", "new"]}
        assert webhook(made("slack", **keys)).path == "/slack"
        assert webhook(made("slack", **keys, path="/events")).path == "/events"

    def test_an_app_with_a_signing_secret_needs_no_bolt(self):
        keys = json.dumps({"token": f"xoxb-{SECRET}", "signing_secret": SECRET})
        asked = [sys.executable, "-c", WITHOUT, "slack_bolt", "slack", keys]
        assert subprocess.run(asked, check=True, capture_output=True, text=True).stdout == ""

    def test_variables_of_the_environment_do_not_sign(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("SLACK_SIGNING_SECRET", SECRET)
        assert not isinstance(made("slack", **KEYS["slack"]), WebhookEndpoint)


@pytest.mark.parametrize("platform", KEYS)
def test_a_first_configuration_names_the_needed_keys(platform: str):
    text = first_configuration(platform)
    assert len(text.splitlines()) <= 16
    for key in KEYS[platform]:
        variable = f"{platform.upper()}_{key.upper()}"
        assert f"      {key}: ${{{variable}}}    # " in text
        assert variable in variables_to_set(platform)
    for line in PLATFORM_KEYS[platform].more:
        key = line.partition(":")[0]
        assert key in MORE[platform] or key == "signing_secret"
