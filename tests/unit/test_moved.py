"""Old names of modules: they lead to the new ones for one release, and say so."""

import subprocess
import sys
from importlib import import_module

import pytest

import gateway_sessions
from gateway_sessions._moved import MOVED, RENAMED, MovedModules, find_moved_modules


@pytest.mark.parametrize(("old", "new"), MOVED.items())
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
    find_moved_modules()
    assert sum(isinstance(one, MovedModules) for one in sys.meta_path) == 1


@pytest.mark.parametrize(("old", "new"), RENAMED.items())
def test_an_old_name_of_a_class_is_the_class_and_warns(old: str, new: str):
    with pytest.warns(DeprecationWarning, match=f"{old} is {new} now") as caught:
        found = getattr(gateway_sessions, old)
    assert found is getattr(gateway_sessions, new)
    assert caught[0].filename == __file__
