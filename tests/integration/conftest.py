"""What the tests of whole parts share."""

from collections.abc import Iterator

import pytest
from blockbuster import BlockBuster


@pytest.fixture
def blocking_allowed(blockbuster: BlockBuster) -> Iterator[None]:
    """For tests whose own callbacks write to a database."""
    blockbuster.deactivate()
    yield
    blockbuster.activate()
