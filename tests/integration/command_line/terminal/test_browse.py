"""People choose a conversation at a terminal, and go on with it; the terminal is theirs again afterwards."""

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway_sessions.cli.app import main
from gateway_sessions.cli.exit_codes import Exit
from tests.integration.command_line.conftest import OWNER, Gsess, key_of_person
from tests.integration.command_line.terminal.terminals import (
    BACKSPACE,
    CTRL_C,
    CTRL_D,
    CURSOR,
    DOWN,
    END,
    ENTER,
    ESCAPE,
    HOME,
    MARKS_PASTES,
    OTHER_SCREEN,
    UP,
    WRAPS,
    Screen,
    TerminalSession,
    run_at_terminal_here,
    terminal_session,
)
from tests.integration.command_line.test_commands import count, session_of
from tests.programs import WarmPython

PREVIEWS = ("nobody's", "火车几点出发", "my project", "refactoring auth")
"""How the conversations are known, the latest first."""


def chosen(screen: Screen) -> str:
    """The row that is marked."""
    return next((line for line in screen.lines if line.startswith("> ")), "")


def at(text: str):
    return lambda screen: chosen(screen).startswith(f"> {text}")


def is_ours_again(person: TerminalSession) -> bool:
    """Whether the terminal is as it was before."""
    return person.screen.on == {CURSOR, WRAPS}


def test_a_list_is_walked_through_and_left(home: Path):
    with terminal_session("--home", home, "sessions", "browse") as person:
        first = person.watch_until(at(PREVIEWS[0]))
        assert [line[2:].split("  ")[0] for line in first.splitlines()[2:6]] == [
            "nobody's",
            "火车几点出发 [31mred [bold]x",
            "my project",
            "refactoring auth",
        ]
        assert "1 of 4" in first
        assert person.screen.on == {OTHER_SCREEN, MARKS_PASTES}
        assert person.is_raw
        for press, place in [
            (DOWN, 1), ("j", 2), ("k", 1), (UP, 0), (UP, 3), (DOWN, 0), (END, 3), (HOME, 0), ("G", 3),
            ("g", 0), (" ", 3), ("\x1b[5~", 0),
        ]:  # fmt: skip
            person.press(press)
            person.watch_until(at(PREVIEWS[place]))
        assert session_of(home, 2) not in person.screen.lines[-2]
        person.press(DOWN)
        person.watch_until(lambda screen: session_of(home, 2) in screen.lines[-2])
        person.press("q")
        assert person.watch_to_end() == Exit.DONE
        assert is_ours_again(person)
        assert not person.screen.text.strip(), "nothing is left of it"


@pytest.mark.parametrize(
    ("press", "code"), [(ESCAPE, Exit.DONE), (CTRL_D, Exit.DONE), (CTRL_C, Exit.INTERRUPTED)]
)
def test_whoever_leaves_has_their_terminal_again(home: Path, press: str, code: Exit):
    with terminal_session("--home", home, "sessions", "browse") as person:
        person.watch_until("1 of 4")
        person.press(press)
        assert person.watch_to_end() == code
        assert is_ours_again(person)
        assert b"Traceback" not in person.drawn


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_in_order(home: Path, number: signal.Signals):
    with terminal_session("--home", home, "sessions", "browse") as person:
        person.watch_until("1 of 4")
        person.process.send_signal(number)
        assert person.watch_to_end() == Exit.INTERRUPTED
        assert is_ours_again(person)
        assert b"Traceback" not in person.drawn


def test_typing_narrows_by_all_that_is_known_of_a_conversation(home: Path):
    with terminal_session("--home", home, "sessions", "browse") as person:
        person.watch_until("1 of 4")
        person.press(*"Proj")
        person.watch_until(lambda screen: "Find: Proj" in screen.text and "1 of 1" in screen.text)
        assert chosen(person.screen).startswith("> my project")
        person.press(*[BACKSPACE] * 4, *"火车")
        person.watch_until(
            lambda screen: "Find: 火车" in screen.text and at("火车")(screen) and "1 of 1" in screen.text
        )
        person.press(ESCAPE)
        person.watch_until("1 of 4")
        person.press("/", *"telegram")
        person.watch_until("1 of 3")
        person.press("\x15", *session_of(home, 0))
        person.watch_until(lambda screen: "1 of 1" in screen.text and at("refactoring")(screen))
        person.press("\x17", *"nowhere")
        person.watch_until("Nothing holds “nowhere”.")
        person.press(ESCAPE)
        person.watch_until("1 of 4")
        person.press("\x1b[200~daily\rq\x1b[201~")
        person.watch_until("Nothing holds “daily q”.")
        person.press(ESCAPE)
        person.watch_until("1 of 4")
        person.press(ESCAPE)
        assert person.watch_to_end() == Exit.DONE


def test_enter_goes_on_with_it_in_a_chat(home: Path):
    with terminal_session("--home", home, "sessions", "browse", "--source", "cli") as person:
        person.watch_until("Conversations of cli")
        person.press(*"nobody", ENTER)
        person.watch_until("● nobody's")
        assert OTHER_SCREEN not in person.screen.on
        person.press(*"and now me", ENTER)
        person.watch_until("the first was: nobody's")
        person.press(CTRL_D)
        person.watch_until("chat -r loose")
        assert person.watch_to_end() == Exit.DONE
        assert is_ours_again(person)


def test_what_is_shown_of_a_conversation_is_configured(home: Path):
    (home / "config.yaml").write_text("display: {resume_display: minimal}\n", "utf-8")
    with terminal_session("--home", home, "sessions", "browse") as person:
        person.watch_until(at(PREVIEWS[0]))
        person.press(ENTER)
        person.watch_until("1 message so far")
        person.press(CTRL_D)
        assert person.watch_to_end() == Exit.DONE
        assert "Previous conversation" not in person.screen.text


def test_no_lane_loses_its_session_by_an_enter(home: Path):
    theirs = session_of(home, 1)
    with terminal_session("--home", home, "sessions", "browse", columns=100) as person:
        person.watch_until("1 of 4")
        person.press(DOWN, DOWN, ENTER)
        person.watch_until("what you say goes on in a copy")
        person.press(*"and now me", ENTER)
        person.watch_until("the first was: ")
        person.press(CTRL_D)
        assert person.watch_to_end() == Exit.DONE
    assert session_of(home, 1) == theirs


def test_beside_a_gateway_it_says_how_to_go_on(owned: Path):
    theirs = session_of(owned, 1)
    with terminal_session("--home", owned, "sessions", "browse", columns=100) as person:
        person.watch_until("1 of 4")
        person.press(DOWN, DOWN, ENTER)
        assert person.watch_to_end() == Exit.DONE
        assert theirs in person.screen.text.splitlines()
        assert "has this store open" in person.screen.text
        assert f"sessions show {theirs}" in person.screen.text


def test_a_conversation_is_deleted_when_that_is_confirmed(home: Path):
    with terminal_session("--home", home, "sessions", "browse") as person:
        person.watch_until("1 of 4")
        person.press("d")
        person.watch_until("Delete “nobody's” with 1 message? y/n")
        person.press("n")
        person.watch_until("q leave")
        assert count(home, "sessions") == 4
        person.press("d", "y")
        person.watch_until("Deleted loose.")
        person.press("k")
        person.watch_until("3 of 3")
        person.press("d", "y")
        person.watch_until(lambda screen: "is the current one of lane" in screen.text)
        assert f"{key_of_person(0)}" in "".join(person.screen.lines[-2:])
        person.press("q")
        assert person.watch_to_end() == Exit.DONE
    assert count(home, "sessions") == 3


def test_it_follows_the_size_of_its_terminal(home: Path):
    with terminal_session("--home", home, "sessions", "browse", columns=40, lines=12) as person:
        narrow = person.watch_until("1 of 4")
        assert "Source" not in narrow
        assert "…" in narrow
        person.press(*"/x")
        person.watch_until("Find: x")
        person.resize(100, 30)
        person.watch_until(lambda screen: "Source" in screen.text and "Find: x" in screen.lines[0])
        person.resize(20, 5)
        person.watch_until(lambda screen: "Source" not in screen.text and "Find: x" in screen.lines[0])
        person.press(CTRL_C)
        assert person.watch_to_end() == Exit.INTERRUPTED


def test_it_has_no_colours_of_its_own_where_nobody_wants_any(home: Path):
    with terminal_session("--home", home, "sessions", "browse", NO_COLOR="1") as person:
        person.watch_until("1 of 4")
        person.press("q")
        assert person.watch_to_end() == Exit.DONE
        assert not person.screen.colours


def test_an_empty_store_can_be_looked_at(empty: Path):
    with terminal_session("--home", empty, "sessions", "browse") as person:
        person.watch_until("There are no conversations.")
        person.press("j", "d", ENTER, "q")
        assert person.watch_to_end() == Exit.DONE


@pytest.mark.parametrize(
    ("typed", "code", "says"),
    [
        (["sessions", "browse"], Exit.WRONG_USE, "no terminal here to choose at"),
        (["sessions", "browse", "--json"], Exit.WRONG_USE, "not JSON"),
        (["--home", "{tmp}/no", "sessions", "browse"], Exit.WRONG_USE, "no terminal"),
    ],
)
def test_without_a_terminal_it_says_so(
    gsess: Gsess, home: Path, tmp_path: Path, typed: list[str], code: Exit, says: str
):
    ended = gsess("--home", home, *(word.format(tmp=tmp_path) for word in typed))
    assert (ended.code, says in ended.err or says in ended.out) == (code, True)
    assert "sessions list" in ended.err + ended.out


@pytest.mark.parametrize(
    ("typed", "environment", "code", "says"),
    [
        (["--home", "{tmp}/no"], {}, Exit.NOT_FOUND, "no store here yet"),
        (["--home", "{home}", "--agent", "no:such"], {}, Exit.WRONG_USE, "write module:name"),
        (["--home", "{home}"], {"TERM": "dumb"}, Exit.WRONG_USE, "no terminal here"),
    ],
)
def test_what_cannot_be_begun_leaves_the_terminal_alone(
    home: Path, tmp_path: Path, typed: list[str], environment: dict[str, str], code: Exit, says: str
):
    words = [word.format(home=home, tmp=tmp_path) for word in typed]
    with terminal_session("sessions", "browse", *words, **environment) as person:
        assert person.watch_to_end() == code
        assert says in "".join(person.screen.lines)
        assert b"\x1b[?1049h" not in person.drawn


# In this process, where it is measured what runs


def browsed(
    gsess: Gsess, home: Path, play: Callable[[TerminalSession], None], *more: object
) -> tuple[int, TerminalSession]:
    del gsess  # it sees to the surroundings
    words = ["--home", str(home), "sessions", "browse", *map(str, more)]
    return run_at_terminal_here(lambda: main(words), play)


def test_all_that_can_be_done_with_a_list(gsess: Gsess, home: Path):
    def play(person: TerminalSession) -> None:
        person.watch_until("1 of 4")
        person.press("/", *"proj")
        person.watch_until(at("my project"))
        person.press(ESCAPE)
        person.watch_until("1 of 4")
        person.resize(40, 12)
        signal.raise_signal(signal.SIGWINCH)
        person.watch_until(lambda screen: "Source" not in screen.text)
        person.press("d", "y")
        person.watch_until("Deleted loose.")
        person.press("k")
        person.watch_until("3 of 3")
        person.press("d", "y")
        person.watch_until(lambda screen: "the current one of lane" in "".join(screen.lines))
        person.press(ESCAPE)

    code, person = browsed(gsess, home, play)
    assert (code, count(home, "sessions")) == (Exit.DONE, 3)
    assert is_ours_again(person)


def test_it_is_left_by_ctrl_c_and_by_the_end_of_the_terminal(gsess: Gsess, home: Path):
    def leave(person: TerminalSession) -> None:
        person.watch_until("1 of 4")
        person.press(CTRL_C)

    def hang_up(person: TerminalSession) -> None:
        person.watch_until("1 of 4")
        person.hang_up()

    code, person = browsed(gsess, home, leave)
    assert code == Exit.INTERRUPTED
    assert is_ours_again(person)
    code, _ = browsed(gsess, home, hang_up)
    assert code == Exit.DONE


def test_what_is_chosen_is_gone_on_with_or_named(gsess: Gsess, home: Path, warm_python: WarmPython):
    def play(person: TerminalSession) -> None:
        person.watch_until("1 of 1")
        person.press(ENTER)

    code, person = browsed(gsess, home, play, "--source", "cli")
    assert (code, "Previous conversation" in person.screen.text) == (Exit.DONE, True)
    with warm_python.start(OWNER, home) as owner:
        assert owner.stdout.readline() == "open\n"
        code, person = browsed(gsess, home, play, "--source", "cli")
        assert (code, "has this store open" in person.screen.text) == (Exit.DONE, True)
        owner.stdin.close()
        assert owner.wait() == 0


def test_a_terminal_without_a_size_has_the_usual_one(gsess: Gsess, home: Path):
    def play(person: TerminalSession) -> None:
        person.watch_until("1 of 4")
        person.press("q")

    words = ["--home", str(home), "sessions", "browse"]
    code, person = run_at_terminal_here(lambda: main(words), play, size=(0, 0))
    assert code == Exit.DONE
    assert b"\x1b[24;1H" in person.drawn
