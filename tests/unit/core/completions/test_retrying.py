"""A model is asked again only where nobody can have begun to answer."""

from datetime import UTC, datetime, timedelta

import pytest

from gateway_sessions.core.completions.retrying import LONGEST_PAUSE, TRIES, pause_before_next
from gateway_sessions.model_errors import ModelUnavailableError

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("asked", "retry_after", "tries", "pause"),
    [
        (False, None, 1, 0.5),
        (False, None, 2, 1.0),
        (False, None, TRIES, None),
        (True, None, 1, None),
        (True, 7.0, 1, 7.0),
        (True, 7.0, 2, 7.0),
        (True, 0.0, 1, 0.0),
        (True, 7.0, TRIES, None),
        (True, LONGEST_PAUSE, 1, LONGEST_PAUSE),
        (True, LONGEST_PAUSE + 1, 1, None),
    ],
)
def test_how_long_to_wait(*, asked: bool, retry_after: float | None, tries: int, pause: float | None):
    error = ModelUnavailableError("host", "is busy", asked=asked, retry_after=retry_after)
    assert pause_before_next(error, tries, NOW, None) == pause


@pytest.mark.parametrize(("left", "pause"), [(7.0, None), (7.1, 7.0), (0.0, None)])
def test_a_turn_that_is_over_by_then_is_not_kept_waiting(left: float, pause: float | None):
    error = ModelUnavailableError("host", "is busy", retry_after=7.0)
    assert pause_before_next(error, 1, NOW, NOW + timedelta(seconds=left)) == pause
