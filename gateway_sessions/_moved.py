"""Old names of modules that the documentation named: importing one warns and gives the module that moved.

Both names mean one module object, so that a class is the same whichever name it was imported by.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Final

MOVED: Final = {
    f"gateway_sessions.{old}": f"gateway_sessions.{new}"
    for old, new in {
        "adapters.aside": "adapters.set_aside",
        "adapters.background": "adapters.protocol",
        "adapters.port": "adapters.protocol",
        "model_errors": "errors",
        "storage.drivers.server": "storage.engines.server.driver",
        "storage.drivers.sqlite_engine": "storage.engines.sqlite.engine",
        "storage.engine": "storage.engines.protocol",
        "storage_errors": "errors",
        "testing.crash": "testing.faults",
        "testing.faulty_files": "testing.faults",
        "testing.scripted_agent": "testing.agents",
    }.items()
}
"""The old name of each module, and its new one. They go in the release after 0.2."""

RENAMED: Final = {"Seat": "StoreClient"}
"""The old name of each public class that has another one now. They go in the release after 0.2, too."""

PACKAGES: Final = frozenset({"gateway_sessions.storage.drivers"})
"""Folders that are gone, but on the way to a module that has moved."""


class MovedModules(MetaPathFinder, Loader):
    """Finds modules by their old names, after every other finder has found nothing."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec for the old name of a module, and nothing for any other name."""
        if fullname in MOVED or fullname in PACKAGES:
            return ModuleSpec(fullname, self, is_package=fullname in PACKAGES)
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Put the module of the new name in the place of *module*, and warn."""
        new = MOVED.get(module.__name__)
        if new is None:
            return
        # The import system leaves out its own frames: this is the line that has the import.
        warnings.warn(f"{module.__name__} is {new} now.", DeprecationWarning, stacklevel=2)
        sys.modules[module.__name__] = import_module(new)


def warn_of_old_name(name: str) -> None:
    """Warn that a public class is asked for by its old name, at the line that asks."""
    new = RENAMED[name]
    warnings.warn(f"gateway_sessions.{name} is {new} now.", DeprecationWarning, stacklevel=3)


def find_moved_modules() -> None:
    """Let imports of old names succeed, once in a process."""
    if not any(isinstance(one, MovedModules) for one in sys.meta_path):
        sys.meta_path.append(MovedModules())
