"""A package that brings a kind of database along, installed for as long as a test needs it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from gateway_sessions._process.installed_packages import installed_providers

PACKAGE = Path(__file__).parent / "provider_package"
"""A folder as pip would make it: a module, and what says which entry points it has."""


@contextmanager
def install_provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let it be found like any other package."""
    installed_providers.cache_clear()
    monkeypatch.syspath_prepend(str(PACKAGE))
    for entry in installed_providers().values():
        with suppress(ImportError):
            entry.load()
    try:
        yield
    finally:
        installed_providers.cache_clear()
