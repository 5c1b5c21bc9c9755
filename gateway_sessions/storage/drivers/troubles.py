"""What the errors of a driver beneath ours mean, in the same words for every server."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gateway_sessions.errors import GatewaySessionsError

DECLARED_DEAD: Final = "this node was silent for so long that others have its turns; it joins them anew"


@dataclass(frozen=True, slots=True, kw_only=True)
class Troubles:
    """How the errors of one server are told apart."""

    what: str
    """What errors call the database. An address can hold a password."""
    foreign: tuple[type[Exception], ...]
    """All that comes out of the driver; anything else is ours, or a bug."""
    translate: Callable[[Exception], GatewaySessionsError]
    """Our error for one of these."""
    is_overtaken: Callable[[Exception], bool]
    """Whether somebody else was faster: run afresh, a verb sees what they did."""
    is_end: Callable[[BaseException], bool]
    """Whether it is the last that is heard of a connection."""
    was_cut: Callable[[BaseException], bool]
    """Whether the connection was gone before anything was asked of it: another one may do."""
