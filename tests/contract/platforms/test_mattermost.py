"""The adapter to Mattermost passes the contract on a fake server."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from gateway_sessions.integrations.mattermost import MattermostAdapter
from gateway_sessions.testing.contract.adapter import Ability, AdapterBench, AdapterContract, SendFailure
from gateway_sessions.testing.fakes.mattermost import FakeMattermost
from tests.contract.platforms.mattermost_bench import MattermostBench


class TestMattermost(AdapterContract):
    abilities = frozenset({Ability.REDELIVERS})
    failures = frozenset(SendFailure)

    @pytest.fixture
    async def bench(self) -> AsyncGenerator[AdapterBench]:
        async with FakeMattermost() as fake:
            yield MattermostBench(fake, MattermostAdapter(fake.url, fake.token, look_seconds=0.02))
