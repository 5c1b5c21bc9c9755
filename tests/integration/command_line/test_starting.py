"""What a command loads before it does anything: whoever only asks, or mistypes, waits for no database."""

import json
import os
import platform
import re
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

from gateway_sessions.cli.commands import GROUPS
from tests.integration.command_line.conftest import Gsess
from tests.integration.command_line.test_exit_codes import leaves

HELP_SECONDS = 0.4
HEAVY = {
    "anyio", "asyncio", "rich", "sqlite3",
    "gateway_sessions.cli.context", "gateway_sessions.cli.output.terminal", "gateway_sessions.config",
    "gateway_sessions._public", "gateway_sessions.runtime", "gateway_sessions.storage",
}  # fmt: skip
FOR_OWNERS = {
    "gateway_sessions.adapters", "gateway_sessions.cli.demo", "gateway_sessions.config.reading",
    "gateway_sessions._public", "gateway_sessions.runtime.gateway.gateway",
    "gateway_sessions.runtime.store.store",
}  # fmt: skip
TYPED = """
import contextlib, io, json, sys
from gateway_sessions.cli.app import main

codes = []
for line in sys.stdin.read().splitlines():
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        codes.append(main(line.split("|")))
print(json.dumps([codes, [*sys.modules]]))
"""


def loaded_by(*typed: str) -> tuple[set[int], set[str]]:
    """How these commands end in a process of their own, and what it has loaded then."""
    ended = subprocess.run(
        [sys.executable, "-c", TYPED],
        input="\n".join(one.replace(" ", "|") for one in typed),
        capture_output=True, check=True, text=True, timeout=60,
    )  # fmt: skip
    codes, modules = json.loads(ended.stdout)
    return set(codes), set(modules)


def test_what_must_not_be_loaded_exists():
    assert {name for name in HEAVY | FOR_OWNERS if find_spec(name) is None} == set()


@pytest.mark.parametrize(
    ("typed", "code"),
    [
        (["--help", *GROUPS, *(f"{one} --help" for one in leaves())], 0),
        (["sesions list", "sessions lits", "sessions show", *(f"{one} --nothing" for one in leaves())], 2),
    ],
    ids=["help", "mistakes"],
)
def test_neither_help_nor_a_mistake_loads_what_does_the_work(typed: list[str], code: int):
    codes, modules = loaded_by(*typed)
    assert (codes, HEAVY & modules) == ({code}, set())


def test_who_only_looks_does_not_load_what_acts(home: Path):
    codes, modules = loaded_by(f"--home|{home}|sessions|list")
    assert (codes, FOR_OWNERS & modules, "gateway_sessions.cli.output.sessions" in modules) == (
        {0},
        set(),
        True,
    )


def test_help_is_there_at_once():
    command = [str(Path(sys.executable).with_name("gsess")), "--help"]
    assert min(_seconds_of_work(command) for _ in range(5)) < HELP_SECONDS


def _seconds_of_work(command: list[str]) -> float:
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        _, ended, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(ended)
    assert process.returncode == 0
    return used.ru_utime + used.ru_stime


@pytest.mark.parametrize("typed", ["--version", "--json --version", "--version sessions list"])
def test_a_report_can_say_what_is_installed(gsess: Gsess, typed: str):
    ended = gsess(*typed.split())
    assert (ended.code, ended.err) == (0, "")
    assert re.fullmatch(
        rf"gateway-sessions {re.escape(version('gateway-sessions'))} "
        rf"\(Python {re.escape(platform.python_version())}, SQLite 3\.\d+\.\d+, \w+-\S+\)\n",
        ended.out,
    )
