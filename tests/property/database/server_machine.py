"""Machines whose database is on a server: one database for all examples, emptied for each."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from hypothesis.stateful import RuleBasedStateMachine

from gateway_sessions import Config, SessionDB
from gateway_sessions.config import Provider, SessionDBConfig
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.contract import OpenDB
from tests.property.database.test_database_model import DatabaseMachine
from tests.property.database.test_ledger_model import LedgerMachine
from tests.property.machines import StepRunner


class OnServer(RuleBasedStateMachine):
    """A machine that finds its database as it was when all migrations had been taken."""

    provider: ClassVar[Provider]
    address: ClassVar[str]
    wipe: ClassVar[Callable[[str], Coroutine[Any, Any, None]]]

    def __init__(self) -> None:
        super().__init__()
        with StepRunner() as runner:
            runner.run(self.wipe(self.address))


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


def lending_database(database: AbstractContextManager[str], *machines: type[OnServer]) -> Iterator[None]:
    """Give machines a database of a server, as long as their tests last."""
    with database as address:
        for one in machines:
            one.address = address
        yield
