"""One durable, ordered, private session for every conversation of a messaging gateway."""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gateway_sessions.public import *  # noqa: F403
    from gateway_sessions.public import __all__ as __all__

# Nothing is printed unless the program sets logging up.
logging.getLogger(__name__).addHandler(logging.NullHandler())


def __getattr__(name: str) -> Any:
    """Load the public names when the first of them is asked for.

    Much stands behind them, and not every program that finds this package installed uses it: a test run loads
    its plugin, and a command shows its help.
    """
    public = import_module("gateway_sessions.public")
    if name != "__all__" and name not in public.__all__:
        problem = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(problem)
    globals().update({one: getattr(public, one) for one in ("__all__", *public.__all__)})
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})
