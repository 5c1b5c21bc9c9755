"""The contract itself: complete, without a word about any engine, and plain about what it found."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from gateway_sessions.testing import contract
from gateway_sessions.testing.contract import LedgerContract, SessionDBContract
from gateway_sessions.testing.contract.database.bench import DatabaseContract
from gateway_sessions.testing.contract.queue.bench import StoreContract
from tests.programs import WarmPython

pytest_plugins = ["pytester"]

SOURCES = {
    str(path): path.read_text("utf-8")
    for path in Path(contract.__file__).parent.rglob("*.py")
    if not path.name.startswith("adapter")  # the contract of adapters is another one
}
TOPICS = {
    whole: [one for one in whole.__mro__ if issubclass(one, (DatabaseContract, StoreContract))]
    for whole in (SessionDBContract, LedgerContract)
}
OF_AN_ENGINE = re.compile(
    r"(?i:sqlite|postgres|mysql)|(?<!MessageKind\.)\b(?:SELECT|INSERT|UPDATE|DELETE)\b|\.path\b|sessions\.db"
)
FORGETFUL = """
    import pytest
    from gateway_sessions import SessionDB
    from gateway_sessions.testing.contract import SessionDBContract

    class Forgetful(SessionDB):
        async def message_count(self, session_id, **options):
            return 41

    class TestForgetful(SessionDBContract):
        @pytest.fixture
        def open_db(self, tmp_path, clock):
            return lambda: Forgetful.open(tmp_path / "home" / "x.db", clock=clock, survives_power_cut=False)
"""


@pytest.mark.parametrize("whole", TOPICS)
def test_no_topic_hides_a_test_of_another(whole: type):
    names = Counter(name for topic in TOPICS[whole] for name in vars(topic) if name.startswith("test_"))
    assert [name for name, count in names.items() if count > 1] == []


def test_every_topic_is_part_of_the_contract():
    classes = {
        name for text in SOURCES.values() for name in re.findall(r"^class (\w+Contract)\b", text, re.M)
    }
    assert classes == {one.__name__ for topics in TOPICS.values() for one in topics}


def test_no_engine_is_named():
    assert {(name, hit) for name, text in SOURCES.items() for hit in OF_AN_ENGINE.findall(text)} == set()


def test_the_helpers_for_tests_need_no_pytest():
    code = "import sys; sys.modules['pytest'] = None; import gateway_sessions.testing"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_broken_promise_is_told_with_the_values(pytester: pytest.Pytester, warm_python: WarmPython):
    """In a process and a project of its own, where asyncio tests have to be marked."""
    pytester.makepyfile(FORGETFUL)
    done = warm_python.run_pytest("-k", "hidden_messages_are_shown", folder=str(pytester.path))
    assert "assert 41 == 1" in done.stdout, done.stdout + done.stderr
