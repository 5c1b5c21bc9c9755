"""One database on a server for all tests, emptied for each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.postgresql import kept_database


@pytest.fixture(scope="session")
def kept() -> Iterator[str]:
    """The DSN of a PostgreSQL database that has taken all migrations."""
    with kept_database() as dsn:
        yield dsn
