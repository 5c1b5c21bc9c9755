"""Stops the peer's clock, which it reads from the standard library wherever it likes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from freezegun import freeze_time
from freezegun.api import FrozenDateTimeFactory


@contextmanager
def frozen_at(moment: datetime) -> Iterator[FrozenDateTimeFactory]:
    """The clock stands still until it is moved."""
    with freeze_time(moment) as frozen:
        assert isinstance(frozen, FrozenDateTimeFactory)
        yield frozen
