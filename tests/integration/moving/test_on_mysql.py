"""A store moves to a MySQL or MariaDB server, and back."""

import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway_sessions.operator import migrate_store
from tests.integration.moving.filled_store import rows_in_file
from tests.integration.moving.test_moving import DIES
from tests.mysql import empty_database
from tests.programs import WarmPython


@pytest.fixture
async def address() -> AsyncIterator[str]:
    async with empty_database() as address:
        yield address


async def test_everything_arrives_and_comes_back_as_it_was(source: Path, address: str, tmp_path: Path):
    before = rows_in_file(source)
    there = await migrate_store(source, address)
    back = await migrate_store(address, tmp_path / "back" / "sessions.db")
    assert rows_in_file(tmp_path / "back" / "sessions.db") == before
    assert there.rows == back.rows == {name: rows.total() for name, rows in before.items() if name != "meta"}
    assert there.target == "mysql://…"


async def test_killed_again_and_again_it_comes_to_its_end(
    source: Path, address: str, tmp_path: Path, warm_python: WarmPython
):
    back = tmp_path / "back" / "sessions.db"
    for one, other in ((source, address), (address, back)):
        ends = [warm_python.run(DIES, one, other, "before_commit", 5).returncode]
        while ends[-1] == -signal.SIGKILL:
            ends.append(warm_python.run(DIES, one, other, "before_commit", 5).returncode)
        assert ends[-1] == 0
        assert len(ends) > 3
    assert rows_in_file(source) == rows_in_file(back)
