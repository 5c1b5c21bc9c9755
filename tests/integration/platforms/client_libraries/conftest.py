"""Libraries of others leave connections to the garbage collector: each test keeps that to itself."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Collect what a library has left before the test ends."""
    yield
    gc.collect()
