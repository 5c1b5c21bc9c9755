"""The warm process that crash tests share, and the shim that lets system calls fail."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.kills.fork_server_client import ForkServer, running_fork_server
from tests.faulty_system import build_shim_library


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path | None:
    """The library to preload, or None where it cannot be built."""
    return build_shim_library(tmp_path_factory.mktemp("shim"))


@pytest.fixture(scope="session")
def fork_server(tmp_path_factory: pytest.TempPathFactory, shim: Path | None) -> Iterator[ForkServer]:
    """The warm process."""
    with running_fork_server(tmp_path_factory.mktemp("fork_server"), shim) as warm:
        yield warm


@pytest.fixture
def faulty_system(shim: Path | None) -> None:
    """Skip a test that needs system calls to fail where they cannot be made to."""
    if shim is None:
        reason = "system calls are made to fail by a small C library: install a compiler (apt install gcc)"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
