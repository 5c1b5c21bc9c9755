"""Machines whose database is on a server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import ClassVar
from unittest import TestCase

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine

from gateway_sessions import Config, SessionDB
from gateway_sessions.config import Provider, SessionDBConfig
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.contract import OpenDB
from tests.property.test_database_model import DatabaseMachine
from tests.property.test_ledger_model import LedgerMachine

SOAKING = settings.get_current_profile_name() == "soak"
HOW_MANY = settings(
    # Each example has a database of its own, and each step its ways to the server and back.
    max_examples=200 if SOAKING else 4,
    stateful_step_count=60 if SOAKING else 25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)
MARKS = (pytest.mark.soak, pytest.mark.timeout(7200)) if SOAKING else (pytest.mark.timeout(300),)


def tried(machine: type[OnServer]) -> type[TestCase]:
    """The test of a machine: a few sequences, or many when soaking."""
    test: type[TestCase] = machine.TestCase
    test.settings = HOW_MANY  # type: ignore[attr-defined]  # where hypothesis looks for them
    for mark in MARKS:
        test = mark(test)
    return test


class OnServer(RuleBasedStateMachine):
    """A machine with a database of its own, as long as an example lasts."""

    provider: ClassVar[Provider]
    new_database: ClassVar[Callable[[], AbstractAsyncContextManager[str]]]

    def __init__(self) -> None:
        self.databases = AsyncExitStack()
        with ExitStack() as unless_opened:  # without a server the test is skipped before there is anything
            self.outside = unless_opened.enter_context(asyncio.Runner())
            entering = self.databases.enter_async_context(self.new_database())
            self.address: str = self.outside.run(entering)
            unless_opened.pop_all()
        super().__init__()

    def teardown(self) -> None:
        try:
            super().teardown()
        finally:
            self.outside.run(self.databases.aclose())
            self.outside.close()


class ServerDatabaseMachine(OnServer, DatabaseMachine):
    @staticmethod
    def fresh(home: Path) -> OpenDB:
        return partial(SessionDB.open, home / "nowhere.db")

    def open(self) -> None:
        self.open_db = partial(SessionDB.open, self.address, clock=FakeClock(), home=self.home)
        super().open()


class ServerLedgerMachine(OnServer, LedgerMachine):
    def kept_in(self, config: Config) -> Config:
        settings = SessionDBConfig(provider=self.provider, url=self.address)
        return replace(config, sessiondb=settings)
