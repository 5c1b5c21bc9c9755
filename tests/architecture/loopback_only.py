"""`LoopbackOnly`: no test may look up a name or connect to an address outside this machine.

Python tells audit hooks of each such call, whatever library makes it.
"""

from __future__ import annotations

import ipaddress
import sys
from typing import Any, Final

LOCAL_NAMES: Final = {"", "localhost"}


class OutsideLoopbackError(OSError):
    """A test tried to reach another machine."""


def is_local(host: object) -> bool:
    """Return whether a host, as sockets take it, is this machine."""
    if host is None:
        return True
    name = host.decode() if isinstance(host, bytes) else str(host)
    if name in LOCAL_NAMES:
        return True
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified  # to listen everywhere is nobody's call


def refuse_other_machines(event: str, arguments: tuple[Any, ...]) -> None:
    """Raise `OutsideLoopbackError` for a call that would reach another machine."""
    match event, arguments:
        case ("socket.connect" | "socket.sendto", (_, (host, *_))) if not is_local(host):
            raise OutsideLoopbackError(f"a test connects to {host}")
        case "socket.getaddrinfo", (host, *_) if not is_local(host):
            raise OutsideLoopbackError(f"a test looks {host} up")
        case _:
            pass


def keep_to_loopback() -> None:
    """Refuse other machines from now on, to the end of the process."""
    sys.addaudithook(refuse_other_machines)
