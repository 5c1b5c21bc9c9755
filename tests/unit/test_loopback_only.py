"""No test may reach another machine, by whatever library."""

from __future__ import annotations

import asyncio
import socket

import pytest

from tests.architecture.loopback_only import OutsideLoopbackError, is_local


@pytest.mark.parametrize("host", [None, "", b"127.0.0.1", "127.8.8.8", "localhost", "::1", "::1%lo", "::"])
def test_this_machine_is_local(host: object):
    assert is_local(host)


@pytest.mark.parametrize("host", ["api.telegram.org", b"pool.ntp.org", "10.0.0.7", "2001:db8::1"])
def test_other_machines_are_not(host: object):
    assert not is_local(host)


async def test_nothing_outside_loopback_can_be_reached():
    with pytest.raises(OutsideLoopbackError, match=r"looks api\.telegram\.org up"):
        await asyncio.open_connection("api.telegram.org", 443)
    with pytest.raises(OutsideLoopbackError, match=r"connects to 192\.0\.2\.1"), socket.socket() as one:
        one.connect(("192.0.2.1", 80))
    with pytest.raises(OutsideLoopbackError), socket.socket(type=socket.SOCK_DGRAM) as one:
        one.sendto(b"x", ("192.0.2.1", 53))
