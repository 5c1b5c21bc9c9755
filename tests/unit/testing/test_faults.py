"""A test can let the program die or fail at a named point."""

import os
import signal
import subprocess
import sys

import pytest

from gateway_sessions._process.failpoints import failpoint
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.testing.faults import count_passes, crash_at, raising


def test_the_action_is_performed_at_the_chosen_pass_and_only_there():
    done: list[str] = []
    with crash_at("before_commit", nth=2, action=lambda: done.append("now")) as crash:
        failpoint("before_commit")
        failpoint("after_commit")
        assert not crash.fired
        failpoint("before_commit")
        assert crash.fired
        failpoint("before_commit")
    failpoint("before_commit")
    assert done == ["now"]


def test_a_point_can_raise_what_a_test_wants():
    with crash_at("after_commit", action=raising(OSError("disk"))), pytest.raises(OSError, match="disk"):
        failpoint("after_commit")
    failpoint("after_commit")


def test_passes_are_counted():
    with count_passes() as passes:
        failpoint("before_commit")
        failpoint("before_commit")
        failpoint("after_commit")
    assert passes == {"before_commit": 2, "after_commit": 1}


def test_a_point_that_does_not_exist_is_refused_with_those_that_do():
    with pytest.raises(InvalidInputError, match="before_commit"), crash_at("before_comit"):
        pass


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL on Windows")
def test_by_default_the_process_dies_without_cleaning_up():
    program = (
        "import atexit\n"
        "from gateway_sessions._process.failpoints import failpoint\n"
        "from gateway_sessions.testing.faults import crash_at\n"
        "atexit.register(print, 'cleaned up')\n"
        "with crash_at('before_commit'):\n"
        "    failpoint('before_commit')\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, env=os.environ)
    assert (ended.returncode, ended.stdout) == (-signal.SIGKILL, b"")
