"""Every command that a page tells somebody to type can be typed."""

import os
import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from typer.exceptions import TyperException

from gateway_sessions.cli.app import GLOBAL_OPTIONS, command_line, options_in_front

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
SHELL = re.compile(r"^```(?:sh|console)?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"`([^`\n]+)`")
CALL = re.compile(r"^(?:\$ |ExecStart=|sudo -u \S+ )?(?:\S*/)?(?:gsess|gateway-sessions) (.+)$")


def calls(lines: Iterable[str]) -> Iterator[list[str]]:
    """What stands behind the name of the program."""
    for line in lines:
        found = CALL.match(line.strip())
        if found and "…" not in found[1]:
            yield shlex.split(found[1], comments=True)


def in_blocks(text: str) -> list[list[str]]:
    return [*calls("\n".join(SHELL.findall(text)).splitlines())]


def in_sentences(text: str) -> list[list[str]]:
    return [*calls(INLINE.findall(SHELL.sub("", text)))]


def problem_with(words: list[str]) -> str | None:
    """Why that cannot be typed."""
    left = options_in_front(words)
    while left and left[0].partition("=")[0] in GLOBAL_OPTIONS:
        name, has_value, _ = left.pop(0).partition("=")
        if GLOBAL_OPTIONS[name] and not has_value:
            left.pop(0)
    command = command_line()
    while hasattr(command, "commands"):
        if not left or left[0] in {name for one in command.params for name in one.opts}:
            return None  # a group is named, or nothing but options
        if left[0] not in command.commands:
            return f"there is no {left[0]}"
        command = command.commands[left.pop(0)]
    try:
        command.make_context("gsess", left)
    except TyperException as error:
        return error.format_message()
    return None


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_command_on_a_page_can_be_typed(path: Path):
    text = path.read_text("utf-8")
    assert [(words, problem) for words in in_blocks(text) if (problem := problem_with(words))] == []
    wrong = [(words, problem) for words in in_sentences(text) if (problem := problem_with(words))]
    # A sentence may name a command without what it is about.
    assert [(words, problem) for words, problem in wrong if not problem.startswith("Missing argument")] == []


def test_commands_are_found():
    texts = [path.read_text("utf-8") for path in PAGES]
    assert sum(len(in_blocks(text)) for text in texts) > 15
    assert sum(len(in_sentences(text)) for text in texts) > 15


@pytest.mark.parametrize(
    "typed",
    [
        "sessions lost",
        "sessions list --nothing",
        "explain",
        "top --every soon",
        "lost",
        "explain a b",
        "--versions",
    ],
)
def test_what_cannot_be_typed_is_noticed(typed: str):
    assert problem_with(shlex.split(typed)) is not None


def test_every_extra_that_a_page_names_exists():
    known = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    named = {
        extra
        for path in PAGES
        for extra in re.findall(r"gateway[-_]sessions\[([\w-]+)\]", path.read_text("utf-8"))
    }
    assert named == set(known)


def test_every_target_that_a_page_names_exists():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = {one for path in PAGES for one in re.findall(r"`make (\w+)", path.read_text("utf-8"))}
    assert [one for one in targets if not re.search(rf"^{one}:", makefile, re.MULTILINE)] == []
    assert targets >= {"demo", "check"}


def test_what_make_installs_trusts_the_certificates_of_the_machine():
    show = ("make", "--no-print-directory", "--eval", "show: ; @echo $$UV_SYSTEM_CERTS", "show")
    environment = {name: value for name, value in os.environ.items() if name != "UV_SYSTEM_CERTS"}
    for given, told in (({}, "true"), ({"UV_SYSTEM_CERTS": "false"}, "false")):
        shown = subprocess.run(
            show, cwd=ROOT, env=environment | given, capture_output=True, text=True, check=True
        )
        assert shown.stdout == f"{told}\n"
