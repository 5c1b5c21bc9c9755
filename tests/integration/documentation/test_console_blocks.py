"""What a page shows of a terminal happens at one."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.integration.command_line.terminal.test_chat import CODE
from tests.programs import PATIENCE, Program, WarmPython, read_until

DOCS = Path(__file__).parents[3] / "docs"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)

pytestmark = pytest.mark.timeout(PATIENCE)


def blocks(page: Path, language: str) -> list[str]:
    return [code for found, code in BLOCK.findall(page.read_text("utf-8")) if found == language]


def conversations(block: str) -> list[tuple[str, list[str]]]:
    """Each command, with the lines that follow it: typed and answered in turn, to the end of the input."""
    _, *parts = re.split(r"^\$ (.+)\n", block, flags=re.MULTILINE)
    lines = [part.removesuffix("^D\n").splitlines() for part in parts[1::2]]
    return list(zip(parts[::2], lines, strict=True))


def hold(program: Program, lines: list[str]) -> list[str]:
    """Type every other line once the one before it was answered; what the terminal shows then."""
    shown = []
    for typed in lines[::2]:
        program.stdin.write(f"{typed}\n")
        program.stdin.flush()
        shown += [typed, program.stdout.readline().removesuffix("\n")]
    program.stdin.close()
    return shown + read_until(program.stdout, time.monotonic() + PATIENCE).splitlines()


SAID = {
    "sessions list": "local",
    "explain": "goes on with",
    "doctor": "all tables agree",
    "top": "on 1 lane",
}
"""What commands say of the store that the page for looking at stores has made."""

TALKING = [page for page in sorted(DOCS.rglob("*.md")) if blocks(page, "console")]


@pytest.mark.parametrize("page", TALKING, ids=lambda page: page.stem)
def test_a_conversation_on_a_page_happens_like_that(page: Path, tmp_path: Path, warm_python: WarmPython):
    for block in blocks(page, "console"):
        for command, lines in conversations(block):
            script = re.fullmatch(r"python (\w+\.py)", command)
            assert script is not None, "a console block runs the page's own program"
            (tmp_path / script[1]).write_text("\n".join(blocks(page, "python")), "utf-8")
            with warm_python.start(None, script[1], folder=str(tmp_path)) as program:
                assert hold(program, lines) == lines
                assert program.wait() == 0


def test_there_is_a_conversation():
    [page] = [one for one in TALKING if one.parent.name == "tutorial"]
    [first, second] = conversations(blocks(page, "console")[0])
    assert (first[1][-1], second[1][-1]) == ("Coming: tea.", "2 euros, please.")


def test_the_commands_for_looking_at_a_store_work_on_the_store_of_their_page(
    tmp_path: Path, warm_python: WarmPython
):
    page = DOCS / "how-to" / "look-at-a-store.md"
    (tmp_path / "page.py").write_text("\n".join(blocks(page, "python")), "utf-8")
    assert warm_python.run(None, "page.py", folder=str(tmp_path)).returncode == 0
    commands = [line for block in blocks(page, "sh") for line in block.splitlines()]
    assert [one for one in SAID if not any(f"store {one}" in line for line in commands)] == []
    for line in commands:
        _, *words = (word.strip('"') for word in re.findall(r'"[^"]*"|\S+', line))
        ended = warm_python.run(CODE, *words, folder=str(tmp_path))
        if "sessions browse" in line:  # which is tried at a terminal elsewhere
            assert "no terminal here" in ended.stderr
            continue
        assert ended.returncode == 0, (line, ended.stderr)
        assert [
            word for one, word in SAID.items() if f"store {one}" in line and word not in ended.stdout
        ] == []


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_bot_of_the_readme_ends_in_order_at_a_signal(tmp_path: Path, ending: signal.Signals):
    [code] = blocks(DOCS.parent / "README.md", "python")
    command = [sys.executable, "-c", code]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=tmp_path, text=True, **pipes) as bot:
        assert bot.stdin is not None
        assert bot.stdout is not None
        assert bot.stdout.readline().startswith("Say something.")
        bot.stdin.write("hello\n")
        bot.stdin.flush()
        assert bot.stdout.readline() == "You have said 1 things, and first: hello\n"
        bot.send_signal(ending)
        _, errors = bot.communicate(timeout=PATIENCE)
    assert (bot.returncode, errors) == (0, "")
    assert (tmp_path / "state" / ".clean_shutdown").exists()
