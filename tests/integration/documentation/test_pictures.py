"""The pictures of the documentation are what their script makes, and need nothing but themselves."""

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as Tree

import pytest

from gateway_sessions import SessionState
from gateway_sessions.core.queue.state_machine import ItemEvent, ItemState, ReplyEvent, ReplyState
from gateway_sessions.core.sessions.state_machine import Event
from tests.architecture.sources import package_root

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "docs" / "pictures"
PICTURES = sorted(FOLDER.glob("*.svg"))
PATIENCE = 60

pytestmark = pytest.mark.timeout(2 * PATIENCE)


def texts(picture: Path) -> list[str]:
    drawn = Tree.fromstring(picture.read_text("utf-8"))  # noqa: S314 -- our own
    return [one.text or "" for one in drawn.iter("{http://www.w3.org/2000/svg}text")]


def test_the_script_makes_the_same_pictures_wherever_and_whenever_it_runs(tmp_path: Path):
    finished = subprocess.run(
        [sys.executable, FOLDER / "make.py", tmp_path],
        env={
            "PATH": "",
            "PYTHONPATH": str(package_root().parent),
            "HOME": str(tmp_path),
            "TZ": "Asia/Tokyo",
            "COLUMNS": "40",
            "NO_COLOR": "1",
            "LC_ALL": "C",
        },
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    made = {path.name: path.read_text("utf-8") for path in tmp_path.glob("*.svg")}
    assert made.keys() == {path.name for path in PICTURES}
    outdated = [path.name for path in PICTURES if made[path.name] != path.read_text("utf-8")]
    assert outdated == [], "run: make pictures"


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.stem)
def test_a_picture_loads_nothing(picture: Path):
    text = picture.read_text("utf-8")
    assert set(re.findall(r"[a-z]+://[^\"' )]+", text)) == {"http://www.w3.org/2000/svg"}
    for word in ("@font-face", "@import", "url(http", "href", "<script", "<image", "<foreignObject"):
        assert word not in text


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.stem)
def test_a_picture_is_on_a_page_and_says_what_it_is(picture: Path):
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    shown = [
        alt
        for page in pages
        for alt in re.findall(rf"!\[([^\]]+)\]\([\w./-]*{picture.name}\)", page.read_text("utf-8"))
    ]
    assert shown
    assert all(len(alt) > 10 for alt in shown)


@pytest.mark.parametrize(
    ("picture", "words", "hidden"),
    [
        ("states.svg", [*SessionState, *Event], set()),
        ("item-states.svg", [*ItemState, *ItemEvent], {"forgotten", "erased"}),
        ("reply-states.svg", [*ReplyState, *ReplyEvent], {"forgotten", "erased"}),
    ],
)
def test_a_picture_of_states_has_every_state_and_every_event(picture: str, words, hidden: set[str]):
    shown = {word for text in texts(FOLDER / picture) for word in re.findall(r"\w+", text)}
    assert shown == {word.value for word in words} - hidden


def test_no_picture_shows_anything_of_the_machine_that_made_it():
    for picture in PICTURES:
        text = " ".join(texts(picture))
        assert not re.search(r"/(home|tmp|root|var)/", text), picture.name
