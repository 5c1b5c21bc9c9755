"""The blocking classes can do what the asynchronous ones can, and the package does not load them itself."""

import inspect
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from gateway_sessions import blocking
from tests.architecture.sources import package_root

SCRIPT = Path(__file__).parents[2] / "docs" / "reference" / "make_blocking.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = spec_from_file_location("make_blocking", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look for their module there
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["_generated_database", "_generated_store"])
def test_the_blocking_classes_are_up_to_date(script: ModuleType, name: str):
    path = package_root() / "blocking" / f"{name}.py"
    assert script.written(name) == path.read_text("utf-8"), "run: python docs/reference/make_blocking.py"


def test_everything_public_has_a_blocking_form_or_is_left_out_by_name(script: ModuleType):
    for made in (made for several in script.MODULES.values() for made in several):
        ours = getattr(blocking, made.name)
        public = {name for name in dir(made.source) if not name.startswith("_")} - made.left_out
        assert public - set(dir(ours)) == set(), "run: python docs/reference/make_blocking.py"
        assert made.left_out <= set(dir(made.source))


def test_no_blocking_method_is_a_coroutine_function():
    for name in blocking.__all__:
        for method in vars(getattr(blocking, name)).values():
            assert not inspect.iscoroutinefunction(method)


def test_the_package_does_not_load_them_by_itself():
    code = "import gateway_sessions, sys; sys.exit('gateway_sessions.blocking' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
