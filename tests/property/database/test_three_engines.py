"""The same steps on SQLite, PostgreSQL and MariaDB: a difference is a failure, whatever the model says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

import pytest
from hypothesis.stateful import invariant, precondition

from gateway_sessions.config import Provider, SessionDBConfig
from tests import mysql, postgresql
from tests.property.database.test_ledger_model import CONFIG, LedgerMachine
from tests.property.database.three_engines import Calls, Compared, Together
from tests.property.machines import machine_test
from tests.unit.runtime.store_fixtures import open_store

ENGINES = (Provider.SQLITE, Provider.POSTGRESQL, Provider.MYSQL)


class ThreeEngineMachine(LedgerMachine):
    """All rules of one store, told to three of them."""

    addresses: ClassVar[tuple[str, str]]
    """Of databases on servers, empty but for their tables."""

    def __init__(self) -> None:
        super().__init__()
        self.compared = Compared([str(one) for one in ENGINES])
        for wipe, address in zip(
            (postgresql.delete_all_rows, mysql.delete_all_rows), self.addresses, strict=True
        ):
            self.runner.run(wipe(address))

    def open(self) -> None:
        configs = [CONFIG]
        for provider, address in zip(ENGINES[1:], self.addresses, strict=True):
            configs.append(replace(CONFIG, sessiondb=SessionDBConfig(provider=provider, url=address)))
        homes = [self.home / str(one) for one in ENGINES]
        self.store = Together(  # type: ignore[assignment]  # which is used as one
            [open_store(home, one, self.clock, titler=None) for home, one in zip(homes, configs, strict=True)]
        )
        self.run(self.store.__aenter__())

    def close(self) -> None:
        super().close()
        self.compared.forget_names()

    def forget_the_end(self) -> None:
        for one in ENGINES:
            (self.home / str(one) / ".clean_shutdown").unlink()

    def run(self, work: Any) -> Any:
        assert isinstance(work, Calls)
        return self.runner.run(self.compared.answer(work))

    @invariant()
    @precondition(lambda self: hasattr(self, "store"))
    def all_engines_have_stored_the_same(self) -> None:
        assert isinstance(self.store, Together)
        self.runner.run(self.compared.compare_stored_rows(self.store))


@pytest.fixture(scope="module", autouse=True)
def kept() -> Iterator[None]:
    """Both servers, each with a database of ours."""
    with postgresql.kept_database() as first, mysql.kept_database() as second:
        ThreeEngineMachine.addresses = (first, second)
        yield


TestThreeEngines = machine_test(ThreeEngineMachine, gate=(25, 40), soak=(300, 60))
