"""The pauses that platforms ask for: as long as they say, in that chat, whatever the clock does."""

from __future__ import annotations

from datetime import timedelta

import pytest

from gateway_sessions.core.delivery.outbound_messages import ReplyTarget
from gateway_sessions.core.delivery.retry_policy import UNTOLD_PAUSE
from gateway_sessions.errors import RateLimitedError
from gateway_sessions.runtime.delivery.delivery import Pauses
from gateway_sessions.testing import FakeClock

ANN = ReplyTarget(platform="x", chat_id="ann")
OTHERS = [
    ReplyTarget(platform="x", chat_id="bob"),
    ReplyTarget(platform="y", chat_id="ann"),
    ReplyTarget(platform="x", account="second", chat_id="ann"),
]


def seconds(pauses: Pauses, target: ReplyTarget = ANN) -> float:
    return pauses.time_left(target).total_seconds()


@pytest.mark.parametrize(
    ("asked", "length"), [(30.0, 30.0), (0.5, 0.5), (None, UNTOLD_PAUSE.total_seconds())]
)
def test_a_pause_lasts_as_long_as_the_platform_says(asked: float | None, length: float):
    clock = FakeClock()
    pauses = Pauses(clock)
    assert seconds(pauses) == 0
    pauses.begin_pause(ANN, RateLimitedError("x", asked))
    assert seconds(pauses) == length
    assert [seconds(pauses, one) for one in OTHERS] == [0, 0, 0]
    clock.step(timedelta(seconds=length / 2))
    assert seconds(pauses) == length / 2
    clock.step(timedelta(seconds=length / 2))
    assert seconds(pauses) == 0


def test_a_clock_that_is_set_back_makes_no_pause_longer():
    clock = FakeClock()
    pauses = Pauses(clock)
    pauses.begin_pause(ANN, RateLimitedError("x", 30))
    clock.step(timedelta(hours=-1))
    assert seconds(pauses) == 30


def test_a_thread_of_a_chat_is_paused_with_it_and_a_person_without_a_chat_is_known():
    pauses = Pauses(FakeClock())
    pauses.begin_pause(ReplyTarget(platform="x", chat_id="ann", thread_id="7"), RateLimitedError("x", 3))
    pauses.begin_pause(ReplyTarget(platform="x", user_id="cid"), RateLimitedError("x", 4))
    assert seconds(pauses) == 3
    assert seconds(pauses, ReplyTarget(platform="x", user_id="cid")) == 4
