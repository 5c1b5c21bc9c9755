"""Old names and places: they lead to the new ones for one release, and say so."""

import subprocess
import sys
from importlib import import_module

import pytest

import gateway_sessions
from gateway_sessions._process.moved_names import (
    MOVED_MODULES,
    PUBLIC_MODULE_OF,
    RENAMED_CLASSES,
    MovedModuleFinder,
    install_moved_module_finder,
)


@pytest.mark.parametrize(("old", "new"), MOVED_MODULES.items())
def test_an_old_name_is_the_new_module_and_warns(old: str, new: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delitem(sys.modules, old, raising=False)
    with pytest.warns(DeprecationWarning, match=f"{old} is {new} now") as caught:
        found = import_module(old)
    assert found is import_module(new)
    assert len(caught) == 1


def test_the_warning_names_the_line_that_has_the_import():
    code = "\nimport gateway_sessions.storage.engine\n"
    ended = subprocess.run(
        [sys.executable, "-W", "always", "-c", code], capture_output=True, text=True, check=True
    )
    assert "<string>:2: DeprecationWarning: gateway_sessions.storage.engine is" in ended.stderr


def test_names_that_never_were_are_not_found():
    with pytest.raises(ModuleNotFoundError, match=r"gateway_sessions\.storage\.nowhere"):
        import_module("gateway_sessions.storage.nowhere")


def test_old_names_are_looked_up_once():
    install_moved_module_finder()
    assert sum(isinstance(one, MovedModuleFinder) for one in sys.meta_path) == 1


@pytest.mark.parametrize(
    ("old", "module"),
    [*PUBLIC_MODULE_OF.items(), *((old, PUBLIC_MODULE_OF[new]) for old, new in RENAMED_CLASSES.items())],
)
def test_a_name_that_has_moved_is_the_same_object_and_warns(old: str, module: str):
    new = RENAMED_CLASSES.get(old, old)
    with pytest.warns(DeprecationWarning, match=rf"gateway_sessions\.{old} is {module}\.{new} now") as caught:
        found = getattr(gateway_sessions, old)
    assert found is getattr(import_module(module), new)
    assert new in import_module(module).__all__
    assert [one.filename for one in caught] == [__file__]


def test_names_that_have_moved_are_no_longer_listed():
    assert {*PUBLIC_MODULE_OF, *RENAMED_CLASSES} & {
        *gateway_sessions.__all__,
        *dir(gateway_sessions),
    } == set()


def test_a_name_that_never_was_is_no_attribute():
    with pytest.raises(AttributeError, match="module 'gateway_sessions' has no attribute 'Nowhere'"):
        _ = gateway_sessions.Nowhere  # type: ignore[attr-defined]
