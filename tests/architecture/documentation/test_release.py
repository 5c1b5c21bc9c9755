"""A release has one version: the tag, the package and the changelog agree, or nothing is published."""

import re
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from tests.architecture.sources import modules

ROOT = Path(__file__).parents[3]
GITHUB = ROOT / ".github"
CHANGELOG = """# Changelog

## [Unreleased]

## [0.2.0] - 2026-12-01

### Added

- A thing.

## [0.1.0]

- All.
"""


@pytest.fixture(scope="module")
def release() -> ModuleType:
    spec = spec_from_file_location("release", GITHUB / "release.py")
    assert spec is not None
    assert spec.loader is not None
    script = module_from_spec(spec)
    # A dataclass looks its module up.
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "release", script)
        spec.loader.exec_module(script)
    return script


def test_the_newest_version_of_the_changelog_is_that_of_the_package(release: ModuleType):
    version = release.version_of((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    entries = release.entries((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    assert next(one.version for one in entries if one.version != release.UNRELEASED) == version


def test_the_version_stands_in_one_place():
    assert [one.name for one in modules() if re.search(r"^__version__\b", one.text, re.MULTILINE)] == []


def test_a_release_whose_parts_agree_goes_ahead(release: ModuleType):
    assert list(release.disagreements("v0.2.0", "0.2.0", CHANGELOG)) == []
    assert release.entries(CHANGELOG)[1].notes == "### Added\n\n- A thing."


@pytest.mark.parametrize(
    ("tag", "version", "changelog", "said"),
    [
        ("v0.2.1", "0.2.0", CHANGELOG, "The tag is v0.2.1"),
        ("0.2.0", "0.2.0", CHANGELOG, "The tag is 0.2.0"),
        ("v0.3.0", "0.3.0", CHANGELOG, "The newest version of CHANGELOG.md is 0.2.0"),
        ("v0.2.0", "0.2.0", "# Changelog\n", "The newest version of CHANGELOG.md is nothing"),
        ("v0.2.0", "0.2.0", CHANGELOG.replace(" - 2026-12-01", ""), "has no date"),
        ("v0.2.0", "0.2.0", CHANGELOG.replace(" - 2026-12-01", " - soon"), "The newest version"),
        ("v0.2.0", "0.2.0", CHANGELOG.replace("### Added\n\n- A thing.\n", ""), "says nothing of 0.2.0"),
        ("v0.2.0", "0.2.0", CHANGELOG.replace("[Unreleased]\n", "[Unreleased]\n\n- More.\n"), "unnamed"),
    ],
)
def test_a_release_whose_parts_disagree_is_refused(
    release: ModuleType, tag: str, version: str, changelog: str, said: str
):
    assert said in next(release.disagreements(tag, version, changelog))


def test_what_is_published_was_built_once_tested_and_attested():
    steps = (GITHUB / "workflows" / "release.yml").read_text(encoding="utf-8")
    order = [
        '.github/release.py "$GITHUB_REF_NAME"',
        "make dist",
        "uses: ./.github/workflows/test.yml",
        "needs: test",
        "attest-build-provenance",
        "gh-action-pypi-publish",
    ]
    assert [steps.index(one) for one in order] == sorted(steps.index(one) for one in order)
    assert steps.count("make dist") == 1
    assert "secrets." not in steps


def test_the_tests_run_on_the_pythons_of_the_classifiers():
    classified = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    workflow = (GITHUB / "workflows" / "test.yml").read_text(encoding="utf-8")
    matrix = re.search(r"python-version: \[(.+?)\]", workflow)
    assert matrix is not None
    assert re.findall(r"3\.\d+", matrix[1]) == classified
