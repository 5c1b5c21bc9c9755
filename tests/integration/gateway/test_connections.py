"""What the log says of an adapter that cannot connect, or whose connection is lost."""

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gateway_sessions.adapters.protocol import Submit
from gateway_sessions.errors import AdapterError, AdapterUnavailableError
from gateway_sessions.testing import FakeClock, FakePlatform
from tests.integration.gateway.gateway_harness import echo, open_harness

TOKEN = AdapterUnavailableError("telegram", "does not know this token: ask @BotFather for a new one")


class Failing(FakePlatform):
    """A platform that cannot be connected at first."""

    def __init__(self, clock: FakeClock, failure: Exception) -> None:
        super().__init__(clock=clock)
        self.failure: Exception | None = failure

    @asynccontextmanager
    async def connect(self, submit: Submit) -> AsyncGenerator[None]:
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure
        async with super().connect(submit):
            yield


@pytest.mark.parametrize(
    "failure",
    [
        TOKEN,
        AdapterError("telegram", "does not know this token: ask @BotFather for a new one"),
        ExceptionGroup("unhandled errors in a TaskGroup", [ExceptionGroup("inner", [TOKEN])]),
    ],
    ids=["unavailable", "of an adapter", "out of a task group"],
)
async def test_what_an_adapter_says_of_its_platform_is_one_line_of_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, failure: Exception
):
    """A wrong token was a hundred lines of traceback, each minute, with the sentence at their end."""
    clock = FakeClock()
    platform = Failing(clock, failure)
    async with open_harness(tmp_path, platform=platform, clock=clock, agent=echo):
        (lost,) = [one for one in caplog.records if getattr(one, "action", "") == "adapter_lost"]
    assert lost.levelno == logging.ERROR
    assert lost.getMessage() == f"an adapter is not connected, and tries again: {TOKEN}"
    assert not lost.exc_info


async def test_the_traceback_of_such_an_error_is_there_for_those_who_debug(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG, "gateway_sessions")
    clock = FakeClock()
    platform = Failing(clock, TOKEN)
    async with open_harness(tmp_path, platform=platform, clock=clock, agent=echo):
        (lost,) = [one for one in caplog.records if getattr(one, "action", "") == "adapter_lost"]
    assert lost.exc_info is not None
    assert lost.exc_info[1] is TOKEN


@pytest.mark.parametrize(
    "failure",
    [KeyError("a bug"), ExceptionGroup("two", [TOKEN, KeyError("a bug")])],
    ids=["alone", "beside a sentence"],
)
async def test_a_bug_of_an_adapter_keeps_its_traceback(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, failure: Exception
):
    clock = FakeClock()
    platform = Failing(clock, failure)
    async with open_harness(tmp_path, platform=platform, clock=clock, agent=echo):
        (lost,) = [one for one in caplog.records if getattr(one, "action", "") == "adapter_lost"]
    assert lost.exc_info is not None
    assert lost.exc_info[1] is failure
