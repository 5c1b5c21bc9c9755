"""The page of the notices lists exactly the codes that the code makes, with their arguments."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.sources import dotted_name, modules
from tests.unit.core.notices.every_notice import every_notice

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "notices.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `(\w+)` \| .+? \| (.*)\|$", re.MULTILINE)


def codes_made() -> Iterator[str]:
    """Yield the code of each notice that the package makes."""
    for module in modules():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Call) and dotted_name(node.func) == "Notice":
                code = node.args[0]
                if isinstance(code, ast.Constant):
                    yield str(code.value)
                else:  # the one that reads a message back
                    assert module.name == "core/notices/notice.py"


def documented() -> dict[str, set[str]]:
    return {code: set(re.findall(r"`(\w+)`", arguments)) for code, arguments in ROW.findall(PAGE)}


def test_the_page_lists_exactly_the_codes_there_are():
    listed = [code for code, _ in ROW.findall(PAGE)]
    assert sorted(listed) == sorted(set(codes_made()))


def test_the_samples_of_the_tests_have_every_code():
    assert {one.code for one in every_notice()} == set(codes_made())


def test_the_page_names_the_arguments_of_each_notice():
    assert documented() == {one.code: set(one.arguments) for one in every_notice()}
