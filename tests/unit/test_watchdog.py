"""A test that hangs fails, even where its timeout cannot end it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
CONFTEST = """
from tests.watchdog import Watchdog

def pytest_configure(config):
    config.pluginmanager.register(Watchdog(grace_seconds=0.5))
"""
HANGS = """
import time

def test_that_ends():
    pass

def test_that_hangs_again_when_it_was_interrupted():
    try:
        time.sleep(60)
    finally:
        time.sleep(60)
"""


@pytest.mark.timeout(60)
def test_a_test_that_hangs_whatever_its_timeout_does_is_ended_with_its_stack_shown(tmp_path: Path):
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(HANGS)
    command = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--timeout=0.5", str(tmp_path))
    run = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=50, check=False)
    assert run.returncode == 1
    assert "Timeout (0:00:01)!" in run.stderr
    assert "in test_that_hangs_again_when_it_was_interrupted" in run.stderr
