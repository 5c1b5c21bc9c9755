"""Adapters are made of what a configuration says, by this package or by others."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from types import MappingProxyType
from typing import Any

import pytest

from gateway_sessions._process.installed_packages import installed_adapters
from gateway_sessions.adapters.group_talk import GroupTalk
from gateway_sessions.config.kinds import AdapterConfig
from gateway_sessions.errors import ConfigError, InvalidInputError
from gateway_sessions.integrations.configured import AdapterSettings
from gateway_sessions.integrations.first_configuration import first_configuration, variables_to_set
from gateway_sessions.integrations.registry import known_platforms, make_adapters
from gateway_sessions.testing.fakes.telegram.server import TOKEN

PIGEONS = """
from gateway_sessions.testing.fake_platform import FakePlatform

def from_settings(settings):
    settings.required_text("loft")
    settings.check()
    return FakePlatform("pigeons", settings.name)

NOTHING = None
"""
ENTRIES = """
[gateway_sessions.adapters]
pigeons = pigeon_post:from_settings
broken = pigeon_post_that_is_not_there:from_settings
nothing = pigeon_post:NOTHING
"""


@pytest.fixture
def pigeon_post(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package of somebody else, installed for a test."""
    (tmp_path / "pigeon_post.py").write_text(PIGEONS)
    info = tmp_path / "pigeon_post-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: pigeon-post\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(dedent(ENTRIES))
    installed_adapters.cache_clear()
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    installed_adapters.cache_clear()


def config(platform: str = "telegram", name: str = "", **settings: Any) -> AdapterConfig:
    return AdapterConfig(platform=platform, name=name, settings=MappingProxyType(settings))


def problems_of(*configured: AdapterConfig) -> list[str]:
    with pytest.raises(ConfigError) as refused:
        make_adapters(configured)
    return [str(one) for one in refused.value.problems]


def test_an_adapter_is_made_of_its_settings(tmp_path: Path):
    wanted = config(name="b", token=TOKEN, groups="all", unreadable="odd")
    ((adapter, settings),) = make_adapters([wanted], tmp_path)
    assert (adapter.platform, adapter.name) == ("telegram", "b")
    assert settings.folder("unreadable") == tmp_path / "odd"


@pytest.mark.usefixtures("pigeon_post")
class TestPackages:
    def test_a_package_brings_a_platform_along(self):
        ((adapter, _),) = make_adapters([config("pigeons", "grey", loft="north")])
        assert (adapter.platform, adapter.name) == ("pigeons", "grey")
        assert "pigeons" in known_platforms()

    def test_its_keys_are_checked_as_ours_are(self):
        (problem,) = problems_of(config("pigeons"))
        assert problem.startswith("serve.adapters[0]: needs loft: write `loft: ${PIGEONS_LOFT}`")
        (problem,) = problems_of(config("pigeons", loft="north", lofty=1))
        assert problem == "serve.adapters[0].lofty: is not a key of pigeons (did you mean 'loft'?)"

    def test_a_package_that_cannot_be_used_is_named(self):
        (problem,) = problems_of(config("broken"))
        assert "pigeon_post_that_is_not_there:from_settings of pigeon-post 1.0 cannot be imported" in problem
        (problem,) = problems_of(config("nothing"))
        assert "is no function that makes an adapter" in problem

    def test_a_first_configuration_can_name_it(self):
        assert "- platform: pigeons" in first_configuration("pigeons")
        assert variables_to_set("pigeons") == []


def test_all_that_is_wrong_is_told_at_once():
    found = problems_of(config(), config(name="b", token="x"), config("telegram?"))
    assert [one.partition(":")[0] for one in found] == [
        "serve.adapters[0]",
        "serve.adapters[1].token",
        "serve.adapters[2].platform",
    ]


def test_no_message_shows_a_token():
    assert all(
        "1:secret" not in one
        for one in problems_of(config(token="1:secret", groups="1:secret", x="1:secret"))
    )


def test_a_first_configuration_names_platforms_that_there_are():
    assert variables_to_set("Telegram") == ["TELEGRAM_TOKEN"]
    with pytest.raises(InvalidInputError, match=r"no adapter for 'pigeons' is installed; .*telegram"):
        first_configuration("pigeons")


def test_a_platform_that_is_not_configured_loads_no_library():
    code = "import gateway_sessions.integrations.registry, sys; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.split()
    assert not {"httpx2", "aiogram", "slack_bolt", "discord", "nio", "telegram"} & set(loaded)


class TestSettings:
    @pytest.mark.parametrize(
        ("value", "read", "found"),
        [
            (7, lambda one: one.text("key"), "7"),
            ("x", lambda one: one.text("key"), "x"),
            (None, lambda one: one.text("key", "usual"), "usual"),
            (True, lambda one: one.flag("key"), True),
            (None, lambda one: one.flag("key"), False),
            (5, lambda one: one.number("key"), 5),
            (None, lambda one: one.number("key", 3), 3),
            ("all", lambda one: one.choice("key", GroupTalk, GroupTalk.MENTION), GroupTalk.ALL),
            (["a", "b"], lambda one: one.texts("key"), ("a", "b")),
            ("a", lambda one: one.texts("key"), ("a",)),
            (None, lambda one: one.texts("key"), ()),
            (None, lambda one: one.folder("key"), None),
        ],
    )
    def test_a_value_is_read(self, value: object, read: Any, found: object):
        settings = AdapterSettings(config(key=value))
        assert read(settings) == found
        settings.check()

    @pytest.mark.parametrize(
        ("value", "read", "told"),
        [
            ([1], lambda one: one.text("key"), "must be text"),
            (" ", lambda one: one.required_text("key"), "must be text"),
            (True, lambda one: one.text("key"), "must be text"),
            ("yes", lambda one: one.flag("key"), "must be true or false"),
            (True, lambda one: one.number("key"), "must be a whole number from 0 to"),
            (10, lambda one: one.number("key", most=9), "must be a whole number from 0 to 9"),
            ("al", lambda one: one.choice("key", GroupTalk, GroupTalk.MENTION), "did you mean 'all'"),
            (
                7,
                lambda one: one.choice("key", GroupTalk, GroupTalk.MENTION),
                "must be one of mention, all",
            ),
            ([1], lambda one: one.texts("key"), "must be a list of texts"),
            (7, lambda one: one.texts("key"), "must be a list of texts"),
        ],
    )
    def test_a_value_of_another_kind_is_refused(self, value: object, read: Any, told: str):
        settings = AdapterSettings(config(key=value))
        read(settings)
        with pytest.raises(ConfigError) as refused:
            settings.check()
        assert told in str(refused.value)
