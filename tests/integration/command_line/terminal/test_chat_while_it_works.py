"""What somebody types in a chat while the agent works: messages by the busy mode, and commands at once."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from gateway_sessions.cli.exit_codes import Exit
from tests.integration.command_line.terminal.terminals import (
    CTRL_C,
    CTRL_D,
    ENTER,
    TerminalSession,
    terminal_session,
)

AGENT = """
import asyncio
import time
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
        if turn.text.startswith("block"):
            await turn.say("I have begun.")
            await asyncio.to_thread(time.sleep, 600)
        said = [row["content"] for row in await turn.history() if row["role"] == "user"]
        told = f", told {', '.join(self.steered)}" if self.steered else ""
        return f"Answer to {turn.text.splitlines()}{told}; first of {len(said)}: {said[0]}."

patient = Patient()
"""

Talk = Callable[[str], AbstractContextManager[TerminalSession]]


@pytest.fixture
def talk(tmp_path: Path) -> Talk:
    """Begins a chat with an agent that works until `go`, in some busy mode."""
    (tmp_path / "patient_agent.py").write_text(AGENT, "utf-8")

    @contextmanager
    def begin(mode: str) -> Iterator[TerminalSession]:
        config = tmp_path / "config.yaml"
        config.write_text(f"busy: {{mode: {mode}}}\n", "utf-8")
        named = ("--home", tmp_path / "home", "--config", config, "chat", "--agent", "patient_agent:patient")
        with terminal_session(*named, columns=120, lines=60, PYTHONPATH=str(tmp_path)) as person:
            person.watch_until("Ctrl-D ends.")
            yield person
            person.press(CTRL_D)
            assert person.watch_to_end() == Exit.DONE

    return begin


@pytest.fixture
def interrupted(tmp_path: Path) -> Callable[[], AbstractContextManager[TerminalSession]]:
    """Begins a chat that somebody leaves with Ctrl-C."""
    (tmp_path / "patient_agent.py").write_text(AGENT, "utf-8")

    @contextmanager
    def begin() -> Iterator[TerminalSession]:
        named = ("--home", tmp_path / "home", "chat", "--agent", "patient_agent:patient")
        with terminal_session(*named, columns=120, lines=60, PYTHONPATH=str(tmp_path)) as person:
            person.watch_until("Ctrl-D ends.")
            yield person
            assert person.watch_to_end() == Exit.INTERRUPTED
            assert b"Traceback" not in person.drawn

    return begin


Interrupted = Callable[[], AbstractContextManager[TerminalSession]]


def leave(person: TerminalSession) -> None:
    """Press Ctrl-C until it is heard: a turn that has just been answered may still be ending."""
    while "Go on with it" not in person.screen.text:
        told = person.screen.text.count("leaves.")
        person.press(CTRL_C)
        person.watch_until(
            lambda screen, told=told: "Go on" in screen.text or screen.text.count("leaves.") > told
        )


def say(person: TerminalSession, text: str, hears: str) -> None:
    person.press(text, ENTER)
    person.watch_until(hears)


def test_a_message_waits_in_the_mode_queue(talk: Talk, tmp_path: Path):
    with talk("queue") as person:
        say(person, "wait for it", "I have begun.")
        say(person, "and then this", "Queued")
        say(person, "/queue", "and then this")
        assert "Answer to" not in person.screen.text
        (tmp_path / "go").touch()
        person.watch_until("Answer to ['and then this']; first of 2: wait for it.")
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
        person.watch_until("Answer to ['wait for it'], told in blue")
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
        person.watch_until(lambda screen: screen.text.count("Answer to ['two']; first of 1: two.") == 2)
        say(person, "/resume", "/resume and a number")
        say(person, "/resume 2", "/resume 2")
        say(person, "three", "Answer to ['three']; first of 2: one.")


def test_what_waits_when_somebody_leaves_is_answered_when_they_come_back(talk: Talk, tmp_path: Path):
    with talk("queue") as person:
        say(person, "wait for it", "I have begun.")
        say(person, "and then this", "Queued")
        person.press(CTRL_D)
        (tmp_path / "go").touch()
        person.watch_until("Answer to ['wait for it']")
    with terminal_session(
        "--home",
        tmp_path / "home",
        "chat",
        "-c",
        "--agent",
        "patient_agent:patient",
        PYTHONPATH=str(tmp_path),
    ) as person:
        person.watch_until("Answer to ['and then this']")
        person.press(CTRL_D)
        assert person.watch_to_end() == Exit.DONE


def test_ctrl_c_ends_the_turn_and_says_so_and_the_next_one_leaves(interrupted: Interrupted):
    with interrupted() as person:
        say(person, "wait for it", "I have begun.")
        person.press(CTRL_C)
        person.watch_until("Stopped. Ctrl-C again leaves.")
        say(person, "hello again", "Answer to ['hello again']")
        leave(person)


def test_ctrl_c_ends_each_turn_that_runs(interrupted: Interrupted):
    with interrupted() as person:
        for times in (1, 2):
            person.press("wait for it", ENTER)
            person.watch_until(lambda screen, times=times: screen.text.count("I have begun.") == times)
            person.press(CTRL_C)
            person.watch_until(lambda screen, times=times: screen.text.count("Stopped. Ctrl-C") == times)
        leave(person)


def test_many_ctrl_c_at_once_leave_without_a_traceback(interrupted: Interrupted):
    with interrupted() as person:
        say(person, "wait for it", "I have begun.")
        person.press(*[CTRL_C] * 5)
        leave(person)


def test_ctrl_c_at_the_prompt_leaves(interrupted: Interrupted):
    with interrupted() as person:
        person.press(CTRL_C)
        person.watch_until("Go on with it")


def test_whoever_leaves_does_not_wait_for_a_thread_that_nobody_can_end(interrupted: Interrupted):
    with interrupted() as person:
        say(person, "block", "I have begun.")
        person.press(CTRL_C)
        person.watch_until("Stopped. Ctrl-C again leaves.")
        leave(person)


def test_what_was_asked_before_the_input_ended_is_still_answered_unless_it_is_stopped(talk: Talk):
    with talk("queue") as person:
        say(person, "wait for it", "I have begun.")
        person.press(CTRL_D)
        person.press(CTRL_C)
        person.watch_until("Stopped. Ctrl-C again leaves.")
