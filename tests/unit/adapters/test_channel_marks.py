"""The marks of channels are there after a restart, and a store that fails costs only a second reading."""

from __future__ import annotations

import msgspec
import pytest

from gateway_sessions.adapters.channel_marks import ChannelMarks
from gateway_sessions.adapters.memory import ProcessMemory
from gateway_sessions.errors import StorageUnavailableError


class Mark(msgspec.Struct, frozen=True):
    last: str


class FailingMemory(ProcessMemory):
    async def put(self, name: str, value: str | None) -> None:
        raise StorageUnavailableError("sessions.db", "is away")


async def test_marks_and_the_beginning_are_there_after_a_restart():
    memory = ProcessMemory()
    marks = ChannelMarks(memory, Mark)
    assert await marks.load("7") == {}
    await marks.put("C1", Mark("8"))
    await marks.put("C2", Mark("9"))
    await marks.put("C1", Mark("10"))
    await marks.forget("C2")
    await marks.forget("C3")
    again = ChannelMarks(memory, Mark)
    assert await again.load("11") == {"C1": Mark("10")}
    assert (marks.began, again.began) == ("7", "7")
    assert await memory.get("channel:C2") is None


async def test_a_mark_that_cannot_be_written_is_told_and_nothing_else_happens(
    caplog: pytest.LogCaptureFixture,
):
    marks = ChannelMarks(FailingMemory(), Mark)
    await marks.put("C1", Mark("8"))
    assert "how far a channel is taken could not be written down" in caplog.text
