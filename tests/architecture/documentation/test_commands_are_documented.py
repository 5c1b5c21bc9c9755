"""The page of the commands lists exactly the commands there are, and all that a handler sees."""

import re
from dataclasses import fields
from pathlib import Path

from gateway_sessions.runtime.gateway.commands import built_in_commands
from gateway_sessions.runtime.gateway.commands.protocol import CommandCall

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `(/[^`]+)` \| (.*?)\| (.+) \|$", re.MULTILINE)


def test_the_page_lists_every_command_with_its_arguments_names_and_summary():
    shown = [(call, re.findall(r"`/([^`]+)`", also), summary) for call, also, summary in ROW.findall(PAGE)]
    assert shown == [(one.help.call, list(one.aliases), one.summary) for one in built_in_commands()]


def test_the_page_names_all_that_a_handler_sees():
    table = PAGE.split("| `CommandCall` | |")[1].split("\n\n")[0]
    documented = [
        name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row[: row.find("|", 1)])
    ]
    properties = [name for name, member in vars(CommandCall).items() if isinstance(member, property)]
    assert sorted(documented) == sorted([*(field.name for field in fields(CommandCall)), *properties])
