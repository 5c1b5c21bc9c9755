"""What the tests of a gateway share."""

from pathlib import Path

import pytest

from tests.integration.gateway.restartable_gateway import RestartableGateway


@pytest.fixture
def restartable(tmp_path: Path) -> RestartableGateway:
    """A gateway that can be killed and started again, with the files that it leaves."""
    return RestartableGateway(tmp_path)
