"""The page of the command line says all that can be typed, and how it ends."""

import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from gateway_sessions.cli.app import GLOBAL_OPTIONS, command_line
from gateway_sessions.cli.exit_codes import Exit
from gateway_sessions.cli.settings import CONFIG_VARIABLE, HOME_VARIABLE

FOLDER = Path(__file__).parents[3] / "docs" / "reference"
PAGE = (FOLDER / "cli.md").read_text(encoding="utf-8")


def test_the_page_lists_every_command_with_all_it_takes():
    spec = spec_from_file_location("make_cli", FOLDER / "make_cli.py")
    assert spec is not None
    assert spec.loader is not None
    maker = module_from_spec(spec)
    spec.loader.exec_module(maker)
    assert maker.page(PAGE) == PAGE, "run docs/reference/make_cli.py"
    assert PAGE.count("\n### ") > 20


def test_the_page_lists_every_exit_code():
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \|", PAGE, re.MULTILINE)
    assert [(int(code), name) for code, name in rows] == [(one.value, one.name) for one in Exit]


def test_the_page_names_what_stands_in_front_of_all_commands():
    front = {opts for one in command_line().params for opts in one.opts}
    for name in (*GLOBAL_OPTIONS, HOME_VARIABLE, CONFIG_VARIABLE, "--version", "--install-completion"):
        assert f"`{name}" in PAGE, name
    assert set(GLOBAL_OPTIONS) <= front


def test_every_option_and_argument_has_a_word_of_help():
    for name, group in command_line().commands.items():
        for transaction, command in getattr(group, "commands", {name: group}).items():
            assert command.help, transaction
            assert all(one.help for one in command.params if one.name != "help"), (name, transaction)
