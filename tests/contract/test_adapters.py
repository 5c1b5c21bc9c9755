"""The adapters of this package keep the contract, and so does the one that tests have for all others."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from gateway_sessions.adapters import AdapterCapabilities, LengthUnit, ReceiveClass
from gateway_sessions.testing import FakePlatform
from gateway_sessions.testing.contract.adapter import Ability, AdapterBench, AdapterContract, SendFailure
from gateway_sessions.testing.fake_platform import ABLE
from tests.contract.adapter_benches import ConsoleBench, FakeBench
from tests.contract.webhook_bench import WebhookBench


class TestFakePlatform(AdapterContract):
    abilities = frozenset(Ability)
    failures = frozenset(SendFailure)

    @pytest.fixture(params=["able", "plain", "other"])
    def bench(self, request: pytest.FixtureRequest) -> AdapterBench:
        plain = AdapterCapabilities(idempotent_for=timedelta.max)
        other = AdapterCapabilities(max_length=64, length_unit=LengthUnit.BYTES)
        able = replace(ABLE, receives=ReceiveClass.CURSOR, finds=True)
        kinds = {"able": able, "plain": plain, "other": other}
        return FakeBench(FakePlatform("telegram", "work", capabilities=kinds[request.param]))


class TestConsole(AdapterContract):
    @pytest.fixture
    def bench(self) -> Iterator[AdapterBench]:
        with contextlib.ExitStack() as pipes:
            yield ConsoleBench(pipes)


class TestWebhook(AdapterContract):
    abilities = frozenset(Ability)
    failures = frozenset(SendFailure)

    @pytest.fixture(params=[False, True], ids=["repeats are shown", "repeats are known"])
    async def bench(self, request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[AdapterBench]:
        aside = tmp_path / "unreadable" if request.param else None
        async with WebhookBench(deduplicates=request.param, unreadable=aside).listening() as bench:
            yield bench
