"""The adapter to Matrix, with the real matrix-nio, passes the contract on a fake homeserver."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import nio
import pytest

from gateway_sessions.integrations.matrix_nio import MatrixAdapter
from gateway_sessions.testing.contract.adapter import Ability, AdapterBench, AdapterContract, SendFailure
from gateway_sessions.testing.fakes.matrix import FakeMatrix
from tests.contract.platforms.matrix_bench import MatrixBench


class TestMatrixNio(AdapterContract):
    abilities = frozenset({Ability.ACKNOWLEDGES, Ability.REDELIVERS})
    failures = frozenset(SendFailure)

    @pytest.fixture
    async def bench(self) -> AsyncGenerator[AdapterBench]:
        async with FakeMatrix() as fake:
            client = nio.AsyncClient(fake.url)
            client.restore_login(fake.bot.user_id, "BOTDEVICE", fake.token)
            yield MatrixBench(fake, MatrixAdapter(client))
            await client.close()
