"""A soak tells what ran, how long, and what was found; what hangs is ended with all that it started."""

import os
import re
import time
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from tests import soak
from tests.mutations import MUTATIONS, Mutation
from tests.soak import PARTS, ROOT, Finding, Part, Result, main, run_part, summary


def part(source: str, *, minutes: float = 1) -> Part:
    return replace(Part(name="one", command=("-c", source), minutes=1), minutes=minutes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("source", "result", "said"),
    [
        ("print('12 passed')", Result.PASSED, ("12 passed",)),
        (
            "import sys; print('a'); print('1 failed', file=sys.stderr); sys.exit(1)",
            Result.FAILED,
            ("a", "1 failed"),
        ),
        ("import os; os.kill(os.getpid(), 9)", Result.FAILED, ()),
    ],
    ids=["passes", "fails", "dies"],
)
def test_the_end_of_a_part_and_its_last_words_are_told(
    tmp_path: Path, source: str, result: Result, said: tuple[str, ...]
) -> None:
    found = run_part(part(source), tmp_path)
    assert (found.result, found.said) == (result, said)
    assert found.log.parent == tmp_path


def test_a_part_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    child = tmp_path / "child"
    source = f"""
import subprocess, sys, time
started = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open({str(child)!r}, "w").write(str(started.pid))
print("it began", flush=True)
time.sleep(600)
"""
    found = run_part(part(source, minutes=0.05), tmp_path)
    assert (found.result, found.said) == (Result.HUNG, ("it began",))
    assert ended(int(child.read_text("utf-8")))


def ended(pid: int) -> bool:
    for _ in range(500):
        try:
            state = re.search(r"\) (\w)", Path(f"/proc/{pid}/stat").read_text("utf-8"))
        except FileNotFoundError:
            return True
        if state is not None and state[1] == "Z":
            return True
        time.sleep(0.01)
    return False


def test_the_summary_counts_shows_last_words_and_says_what_did_not_run() -> None:
    good = Finding(part="a", result=Result.PASSED, seconds=90, said=("== 3 passed ==",), log=Path("a.log"))
    bad = Finding(part="b", result=Result.HUNG, seconds=30, said=("x | y", "blob"), log=Path("b.log"))
    told = summary([good, bad], ["c"])
    assert "| a | passed | 1.5 | 3 passed |" in told
    assert "| b | hung | 0.5 | blob |" in told
    assert "b hung; all of it is in b.log:\n    x | y\n    blob" in told
    assert told.endswith("1 passed, 1 failed in 2.0 minutes\ndid not run: c")


def test_the_status_is_that_of_what_was_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = (part("print('good')"), replace(part("raise SystemExit(3)"), name="two"))
    monkeypatch.setattr(soak, "PARTS", parts)
    assert main(["one", "--logs", str(tmp_path)]) == 0
    assert main(["--logs", str(tmp_path)]) == 1
    assert "1 passed, 1 failed" in capsys.readouterr().out
    with pytest.raises(SystemExit) as refused:
        main(["three"])
    assert refused.value.code == 2
    assert "there is no part three; there are one, two" in capsys.readouterr().err


def test_every_part_names_files_that_are_there() -> None:
    for one in PARTS:
        for word in one.command:
            path = word.removeprefix("--ignore=")
            assert not path.startswith("tests/") or (ROOT / path).exists(), (one.name, word)
            assert not path.startswith("tests.") or (
                (ROOT / path.replace(".", os.sep)).with_suffix(".py").exists()
                or (ROOT / path.replace(".", os.sep) / "__main__.py").exists()
            ), (one.name, word)
    assert len({one.name for one in PARTS}) == len(PARTS)


def test_every_part_runs_every_night() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "nightly.yml").read_text("utf-8"))
    machines = workflow["jobs"]["soak"]["strategy"]["matrix"]["parts"]
    assert sorted(" ".join(machines).split()) == sorted(one.name for one in PARTS)
    minutes = {one.name: one.minutes for one in PARTS}
    limit = workflow["jobs"]["soak"]["timeout-minutes"]
    assert all(sum(minutes[name] for name in parts.split()) < limit for parts in machines)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda one: one.what[:30])
def test_every_line_that_is_taken_away_is_there(mutation: Mutation, tmp_path: Path) -> None:
    source = ROOT / "gateway_sessions" / mutation.file
    copy = tmp_path / "gateway_sessions" / mutation.file
    copy.parent.mkdir(parents=True)
    copy.write_text(source.read_text("utf-8"), "utf-8")
    mutation.apply(tmp_path)
    assert copy.read_text("utf-8") != source.read_text("utf-8")
