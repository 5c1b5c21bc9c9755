"""One durable, ordered, private session for every conversation of a messaging gateway."""

from __future__ import annotations

import logging
from importlib import import_module
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Any

from gateway_sessions._process.moved_names import (
    PUBLIC_MODULE_OF,
    RENAMED_CLASSES,
    find_moved_name,
    install_moved_module_finder,
)
from gateway_sessions.log_lines import UnconfiguredLogging

if TYPE_CHECKING:
    from gateway_sessions._public import *  # noqa: F403
    from gateway_sessions._public import __all__ as __all__

_NO_NAME = f"module {__name__!r} has no attribute {{!r}}"

# A bug in an agent must be seen before anybody has thought of logging.
logging.getLogger(__name__).addHandler(UnconfiguredLogging())
install_moved_module_finder()


def __getattr__(name: str) -> Any:
    """Load the public names when the first of them is asked for.

    Much stands behind them, and not every program that finds this package installed uses it: a test run loads
    its plugin, and a command shows its help.
    """
    if PathFinder.find_spec(f"{__name__}.{name}", __path__) is not None:  # noqa: F405 -- every package has one
        # `from gateway_sessions import errors` asks here before it looks for a module of that name.
        raise AttributeError(_NO_NAME.format(name))
    if name in PUBLIC_MODULE_OF or name in RENAMED_CLASSES:
        return find_moved_name(name)
    public = import_module("gateway_sessions._public")
    if name != "__all__" and name not in public.__all__:
        raise AttributeError(_NO_NAME.format(name))
    globals().update({one: getattr(public, one) for one in ("__all__", *public.__all__)})
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})
