"""The quality files of the integrations say what is so, and the page of platforms shows them."""

from __future__ import annotations

import re
import tomllib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from gateway_sessions.runtime.gateway.commands import built_in_commands

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "docs" / "reference"
INTEGRATIONS = ROOT / "gateway_sessions" / "integrations"
NO_PLATFORMS = {"discord_py", "tokens", "__pycache__"}
"""Folders that several platforms share, or that belong to the one of another folder."""


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    spec = spec_from_file_location("make_platforms", FOLDER / "make_platforms.py")
    assert spec is not None
    assert spec.loader is not None
    script = module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def test_the_page_is_drawn_from_the_quality_files(maker: ModuleType):
    text = (FOLDER / "platforms.md").read_text("utf-8")
    assert maker.page(text) == text, "run: python docs/reference/make_platforms.py"


def test_every_platform_says_what_holds_of_it():
    folders = {path.name for path in INTEGRATIONS.iterdir() if path.is_dir()} - NO_PLATFORMS
    assert {path.parent.name for path in INTEGRATIONS.glob("*/quality.yaml")} == folders


def test_each_door_answers_each_rule_and_no_other(maker: ModuleType):
    for door in maker.doors():
        assert set(door.rules) == set(maker.RULES), door
        assert [rule for rule in maker.RULES if not door.state_of(rule)[0]] == []


def test_what_is_done_names_what_shows_it_and_what_is_exempt_the_reason(maker: ModuleType):
    missing = [
        (door.platform, door.name, rule, detail)
        for door in maker.doors()
        for rule in maker.RULES
        for state, detail in [door.state_of(rule)]
        if not _is_shown(state, detail)
    ]
    assert missing == []


def test_the_commands_to_type_into_a_console_are_those_of_the_gateway():
    page = (ROOT / "docs/how-to/put-a-google-chat-app-behind-a-gateway.md").read_text("utf-8")
    rows = re.findall(r"^\| (\d+) \| `/([^`]+)` \| (.+) \|$", page, re.MULTILINE)
    assert [int(number) for number, _, _ in rows] == [*range(1, len(rows) + 1)]
    assert [name for _, name, _ in rows] == [one.help.name for one in built_in_commands(None)]
    longest = 50  # Google takes no longer description
    assert all(len(summary) <= longest for _, _, summary in rows)


def _is_shown(state: str, detail: str) -> bool:
    if state != "done":
        return bool(detail) == (state == "exempt")
    path, _, name = detail.partition("::")
    file = ROOT / path
    if not file.exists():
        return False
    texts = [file.read_text("utf-8")] if file.is_file() else []
    return not name or any(re.search(rf"\b(def|class) {name}\b", text) for text in texts)


def test_each_door_names_a_page_an_extra_and_a_class_of_receiving_that_exist(maker: ModuleType):
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    for door in maker.doors():
        assert (ROOT / door.page).is_file(), door
        assert door.install in extras, door
        assert door.receives in maker.RECEIVES, door
