"""What somebody types in a chat while the agent works: messages by the busy mode, and commands at once."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from gateway_sessions.cli.exits import Exit
from tests.integration.command_line.terminals import CTRL_D, ENTER, Sitting, sitting

AGENT = """
import asyncio
from pathlib import Path

GO = Path(__file__).with_name("go")

class Patient:
    def __init__(self):
        self.steered = []

    async def steer(self, message):
        self.steered.append(message.text)
        return True

    async def run_turn(self, turn):
        if turn.text.startswith("wait"):
            await turn.say("I have begun.")
            while not GO.exists():
                await asyncio.sleep(0.01)
        said = [row["content"] for row in await turn.history() if row["role"] == "user"]
        told = f", told {', '.join(self.steered)}" if self.steered else ""
        return f"Answer to {turn.text.splitlines()}{told}; first of {len(said)}: {said[0]}."

patient = Patient()
"""

Talk = Callable[[str], AbstractContextManager[Sitting]]


@pytest.fixture
def talk(tmp_path: Path) -> Talk:
    """Begins a chat with an agent that works until `go`, in some busy mode."""
    (tmp_path / "patient_agent.py").write_text(AGENT, "utf-8")

    @contextmanager
    def begin(mode: str) -> Iterator[Sitting]:
        config = tmp_path / "config.yaml"
        config.write_text(f"busy: {{mode: {mode}}}\n", "utf-8")
        named = ("--home", tmp_path / "home", "--config", config, "chat", "--agent", "patient_agent:patient")
        with sitting(*named, columns=120, lines=60, PYTHONPATH=str(tmp_path)) as person:
            person.until("Ctrl-D ends.")
            yield person
            person.press(CTRL_D)
            assert person.ended() == Exit.DONE

    return begin


def say(person: Sitting, text: str, hears: str) -> None:
    person.press(text, ENTER)
    person.until(hears)


def test_a_message_waits_in_the_mode_queue(talk: Talk, tmp_path: Path):
    with talk("queue") as person:
        say(person, "wait for it", "I have begun.")
        say(person, "and then this", "Queued")
        say(person, "/queue", "and then this")
        assert "Answer to" not in person.screen.text
        (tmp_path / "go").touch()
        person.until("Answer to ['and then this']; first of 2: wait for it.")
        assert "Answer to ['wait for it']; first of 1: wait for it." in person.screen.text


def test_a_message_ends_the_turn_in_the_mode_interrupt(talk: Talk):
    with talk("interrupt") as person:
        say(person, "wait for it", "I have begun.")
        say(person, "never mind", "Answer to ['never mind']")
        assert "Answer to ['wait for it']" not in person.screen.text


def test_a_message_reaches_the_turn_in_the_mode_steer(talk: Talk, tmp_path: Path):
    with talk("steer") as person:
        say(person, "wait for it", "I have begun.")
        say(person, "in blue", "Passed on to what I am working on.")
        (tmp_path / "go").touch()
        person.until("Answer to ['wait for it'], told in blue")
        assert "Answer to ['in blue']" not in person.screen.text


def test_stop_ends_the_turn_and_empties_the_queue(talk: Talk):
    with talk("queue") as person:
        say(person, "wait for it", "I have begun.")
        say(person, "and then this", "Queued")
        say(person, "/stop", "Stopped")
        say(person, "/queue", "Nothing waits here.")
        say(person, "hello again", "Answer to ['hello again']")
        assert "Answer to ['and then this']" not in person.screen.text


def test_a_conversation_is_begun_anew_taken_up_again_and_a_turn_tried_again(talk: Talk):
    with talk("queue") as person:
        say(person, "one", "Answer to ['one']; first of 1: one.")
        say(person, "/new", "new")
        say(person, "two", "Answer to ['two']; first of 1: two.")
        say(person, "/retry", "first of 1: two.")
        person.until(lambda screen: screen.text.count("Answer to ['two']; first of 1: two.") == 2)
        say(person, "/resume", "/resume and a number")
        say(person, "/resume 2", "/resume 2")
        say(person, "three", "Answer to ['three']; first of 2: one.")


def test_what_waits_when_somebody_leaves_is_answered_when_they_come_back(talk: Talk, tmp_path: Path):
    with talk("queue") as person:
        say(person, "wait for it", "I have begun.")
        say(person, "and then this", "Queued")
        person.press(CTRL_D)
        (tmp_path / "go").touch()
        person.until("Answer to ['wait for it']")
    with sitting(
        "--home",
        tmp_path / "home",
        "chat",
        "-c",
        "--agent",
        "patient_agent:patient",
        PYTHONPATH=str(tmp_path),
    ) as person:
        person.until("Answer to ['and then this']")
        person.press(CTRL_D)
        assert person.ended() == Exit.DONE
