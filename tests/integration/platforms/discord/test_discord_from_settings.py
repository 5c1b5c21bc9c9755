"""A bot on Discord as a configuration names it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway_sessions.config.kinds import AdapterConfig
from gateway_sessions.errors import ConfigError
from gateway_sessions.integrations.discord_py import DiscordAdapter
from gateway_sessions.integrations.registry import make_adapters
from gateway_sessions.testing.contract.adapter import Inbox
from gateway_sessions.testing.fakes.discord import FakeDiscord, discord_py_on


async def test_a_bot_is_made_from_its_token_and_listens(tmp_path: Path):
    async with FakeDiscord() as fake:
        given = {"token": fake.token, "groups": "all", "bots": True, "catch_up_hours": 1}
        ((adapter, _),) = make_adapters(
            [AdapterConfig(platform="discord", name="shop", settings=given)], tmp_path
        )
        assert isinstance(adapter, DiscordAdapter)
        assert adapter.name == "shop"
        inbox = Inbox()
        with discord_py_on(fake):
            async with adapter.connect(inbox):
                fake.says("ann", "hello", channel="general")
                (message,) = await inbox.wait_for(1)
    assert (message.text, message.account) == ("hello", "shop")


@pytest.mark.parametrize(
    ("given", "told"),
    [({}, "needs token: write"), ({"token": "t", "groups": "some"}, "groups"), ({"token": "t", "x": 1}, "x")],
)
def test_what_is_missing_or_wrong_is_one_sentence(given: dict[str, object], told: str):
    with pytest.raises(ConfigError, match=told):
        make_adapters([AdapterConfig(platform="discord", name="", settings=given)])
