"""The adapter to Discord, with the real discord.py, passes the contract on a fake Discord."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from gateway_sessions.testing.contract.adapter import Ability, AdapterBench, AdapterContract, SendFailure
from gateway_sessions.testing.fakes.discord import FakeDiscord, discord_py_on
from tests.integration.platforms.discord.discord_bench import DiscordBench


class TestDiscordPy(AdapterContract):
    abilities = frozenset({Ability.REDELIVERS})
    # discord.py keeps the pauses that Discord asks for by itself.
    failures = frozenset(SendFailure) - {SendFailure.RATE_LIMITED}

    @pytest.fixture
    async def bench(self) -> AsyncGenerator[AdapterBench]:
        async with FakeDiscord() as fake:
            with discord_py_on(fake):
                yield DiscordBench(fake)
