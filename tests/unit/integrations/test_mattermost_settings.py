"""The adapter for Mattermost that a configuration asks for."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from gateway_sessions.config.kinds import AdapterConfig
from gateway_sessions.errors import ConfigError
from gateway_sessions.integrations.first_configuration import variables_to_set
from gateway_sessions.integrations.registry import make_adapters
from tests.unit.integrations.test_registry import config

MATTERMOST = {"url": "https://chat.e.org", "token": "t"}


def problems_of(wanted: AdapterConfig) -> list[str]:
    with pytest.raises(ConfigError) as refused:
        make_adapters([wanted])
    return [str(one) for one in refused.value.problems]


async def test_a_bot_on_mattermost_is_made_of_its_settings(tmp_path: Path):
    wanted = config("mattermost", "b", **MATTERMOST, groups="all", threads=False)
    ((adapter, settings),) = await asyncio.to_thread(make_adapters, [wanted], tmp_path)
    assert (adapter.platform, adapter.name) == ("mattermost", "b")
    await settings.aclose()


@pytest.mark.parametrize(
    ("platform", "settings", "problem"),
    [
        ("mattermost", {**MATTERMOST, "url": "chat.e.org"}, "url: the address of a Mattermost server"),
        ("mattermost", {**MATTERMOST, "token": "a\n"}, "token: the token is none of Mattermost's"),
        ("mattermost", {"token": "t"}, "needs url: write `url: ${MATTERMOST_URL}`"),
    ],
)
def test_what_is_missing_or_wrong_is_one_sentence(platform: str, settings: dict[str, Any], problem: str):
    (found,) = problems_of(config(platform, **settings))
    assert problem in found


def test_a_first_configuration_asks_for_what_is_needed():
    assert variables_to_set("mattermost") == ["MATTERMOST_URL", "MATTERMOST_TOKEN"]
