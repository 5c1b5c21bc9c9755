"""Whatever is pressed and answered in whatever order, somebody is in the list that they see."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway_sessions.cli.picker.model import (
    COMMANDS,
    LONGEST_TEXT,
    MOST_HELD,
    ON_ROWS,
    PageRequest,
    Pasted,
    Picker,
    PickerKey,
    PickerOutcome,
    Press,
    Typed,
    after_deletion,
    after_page,
    after_press,
    after_resize,
)
from gateway_sessions.sessions import SessionSummary

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def row(number: int) -> SessionSummary:
    return SessionSummary(
        session_id=f"s{number}",
        source="cli",
        title=None,
        preview=f"said {number}",
        last_active=NOW,
        started_at=NOW,
        lineage_root=f"s{number}",
    )


def page(first: int, count: int) -> tuple[SessionSummary, ...]:
    return tuple(row(number) for number in range(first, first + count))


def picker(count: int = 10, *, whole: bool = True, height: int = 4, at: int = 0) -> Picker:
    fresh = after_page(after_resize(Picker(), height), PageRequest("", None), page(0, count), whole=whole)
    return after_resize(replace(fresh, selected_index=at), height)


def after(start: Picker, *presses: Press | str) -> Picker:
    """Strings are typed letter by letter."""
    for press in presses:
        for one in map(Typed, press) if isinstance(press, str) else [press]:
            start = after_press(start, one)
    return start


# Moving


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("at", range(10))
@pytest.mark.parametrize(
    ("key", "leads_to"),
    [
        (PickerKey.UP, lambda at, whole: at - 1 if at else (9 if whole else 0)),
        (PickerKey.DOWN, lambda at, whole: at + 1 if at < 9 else (0 if whole else 9)),
        (PickerKey.PAGE_UP, lambda at, _: max(at - 4, 0)),
        (PickerKey.PAGE_DOWN, lambda at, whole: min(at + 4, 9) if whole or at < 6 else at),
        (PickerKey.HOME, lambda *_: 0),
        (PickerKey.END, lambda *_: 9),
    ],
)
def test_each_key_leads_from_each_row_where_it_should(
    key: PickerKey, leads_to: Callable[[int, bool], int], at: int, whole: bool
):
    assert after_press(picker(at=at, whole=whole), key).selected_index == leads_to(at, whole)


@pytest.mark.parametrize(("character", "key"), COMMANDS.items())
def test_letters_are_commands_as_long_as_nothing_is_looked_for(character: str, key: PickerKey):
    assert after_press(picker(at=3), Typed(character)) == after_press(picker(at=3), key)


def test_every_other_letter_begins_to_look_for_something():
    for character in [*map(chr, range(33, 127)), "é", "火", "🚂"]:
        if character not in COMMANDS:
            assert after_press(picker(), Typed(character)).typed_text == character


def test_what_is_at_is_shown():
    down = after(picker(), PickerKey.DOWN, PickerKey.DOWN, PickerKey.DOWN, PickerKey.DOWN)
    assert (down.selected_index, down.first_shown) == (4, 1)
    assert (
        after(down, PickerKey.UP).first_shown,
        after(down, PickerKey.HOME).first_shown,
        after(down, PickerKey.END).first_shown,
    ) == (1, 0, 6)
    assert after_resize(after(down, PickerKey.END), 100).first_shown == 0
    assert after_resize(after(down, PickerKey.END), 1).first_shown == 9
    assert after_resize(down, 0).height == 1


# Lists that do not end


def test_more_is_asked_for_before_the_last_row_is_reached():
    many = picker(20, whole=False)
    assert many.next_page is None
    near = after(many, *[PickerKey.DOWN] * 12)
    assert near.next_page == PageRequest("", row(19))
    more = after_page(near, near.next_page, page(20, 20), whole=False)
    assert (len(more.rows), more.selected_index, more.next_page) == (40, 12, None)
    assert picker(20, at=19).next_page is None, "there is no more"


def test_the_way_to_the_end_leads_through_all_pages_unless_somebody_turns_round():
    going = after(picker(20, whole=False), PickerKey.END)
    assert (going.selected_index, going.next_page) == (19, PageRequest("", row(19)))
    further = after_page(going, PageRequest("", row(19)), page(20, 20), whole=False)
    assert (further.selected_index, further.next_page) == (39, PageRequest("", row(39)))
    there = after_page(further, PageRequest("", row(39)), page(40, 5), whole=True)
    assert (there.selected_index, there.next_page) == (44, None)
    turned = after_page(after(further, PickerKey.HOME), PageRequest("", row(39)), page(40, 20), whole=False)
    assert (turned.selected_index, turned.next_page) == (0, None)


def test_keys_that_lead_further_than_what_is_known_wait_for_it():
    waiting = after(
        picker(10, whole=False, at=8),
        PickerKey.PAGE_DOWN,
        PickerKey.DOWN,
        PickerKey.UP,
        PickerKey.PAGE_DOWN,
        PickerKey.ENTER,
    )
    assert (waiting.selected_index, len(waiting.held_keys), waiting.outcome) == (8, 5, None)
    assert waiting.next_page == PageRequest("", row(9))
    further = after_page(waiting, PageRequest("", row(9)), page(10, 5), whole=False)
    assert (further.selected_index, further.held_keys) == (12, (PickerKey.PAGE_DOWN, PickerKey.ENTER))
    there = after_page(further, PageRequest("", row(14)), page(15, 5), whole=True)
    assert (there.selected, there.outcome, there.held_keys) == (row(16), PickerOutcome.CHOSEN, ())
    at_last = after_page(
        after(picker(10, whole=False, at=9), PickerKey.PAGE_DOWN), PageRequest("", row(9)), (), whole=True
    )
    assert (at_last.selected_index, at_last.held_keys) == (9, ())
    assert after(waiting, PickerKey.ESCAPE).is_over, "nobody has to wait"


def test_a_row_that_moved_between_two_pages_is_shown_once():
    twice = after_page(picker(4, whole=False), PageRequest("", row(3)), (row(2), row(9)), whole=True)
    assert [one.session_id for one in twice.rows] == ["s0", "s1", "s2", "s3", "s9"]


def test_answers_that_nobody_waits_for_any_more_change_nothing():
    typed = after(picker(), "x")
    assert after_page(typed, PageRequest("", None), page(50, 3), whole=True) == typed
    assert after_page(typed, PageRequest("", row(9)), page(50, 3), whole=True) == typed
    shown = picker(whole=False)
    assert after_page(shown, PageRequest("", row(5)), page(50, 3), whole=True) == shown
    emptied = replace(shown, rows=())
    assert after_page(emptied, PageRequest("", row(5)), page(50, 3), whole=True) == emptied
    assert emptied.next_page == PageRequest("", None), "whatever is left behind what was deleted"


# Looking for something


def test_typing_asks_for_what_is_typed_and_escape_for_everything_again():
    typed = after(picker(at=5), "/my p")
    assert (typed.typed_text, typed.next_page, typed.selected_index) == ("my p", PageRequest("my p", None), 5)
    found = after_page(typed, PageRequest("my p", None), page(30, 2), whole=True)
    assert (found.selected_index, found.selected, found.next_page) == (0, row(30), None)
    back = after(found, PickerKey.ESCAPE)
    assert (back.typed_text, back.next_page, back.outcome) == (None, PageRequest("", None), None)


def test_blanks_around_it_are_typed_and_not_looked_for():
    found = after_page(after(picker(), "/ab "), PageRequest("ab", None), page(0, 1), whole=True)
    assert (found.typed_text, found.next_page) == ("ab ", None)


@pytest.mark.parametrize(
    ("text", "key", "left"),
    [
        ("two words", PickerKey.BACKSPACE, "two word"),
        ("two words", PickerKey.WORD_BACK, "two"),
        ("two words  ", PickerKey.WORD_BACK, "two"),
        ("one", PickerKey.WORD_BACK, ""),
        ("two words", PickerKey.CLEAR, ""),
        ("", PickerKey.CLEAR, ""),
        ("", PickerKey.BACKSPACE, None),
        ("two", PickerKey.FIND, "two"),
        ("two", PickerKey.ESCAPE, None),
        (None, PickerKey.FIND, ""),
        (None, PickerKey.BACKSPACE, None),
        (None, PickerKey.WORD_BACK, None),
        (None, PickerKey.CLEAR, None),
    ],
)
def test_what_is_looked_for_can_be_edited(text: str | None, key: PickerKey, left: str | None):
    assert after_press(replace(picker(), typed_text=text), key).typed_text == left


@pytest.mark.parametrize("text", [None, "x"])
def test_what_is_pasted_is_never_a_command(text: str | None):
    pasted = after_press(replace(picker(), typed_text=text), Pasted("q\ndaily\x1b[31m\treport"))
    assert (pasted.typed_text, pasted.outcome, pasted.to_confirm) == (
        f"{text or ''}q daily [31m report",
        None,
        None,
    )


def test_a_text_has_an_end():
    assert len(after_press(picker(), Pasted("x" * 1000)).typed_text or "") == LONGEST_TEXT


def test_keys_wait_for_the_list_they_are_meant_for():
    hurried = after(picker(), "/foo", PickerKey.DOWN, PickerKey.ENTER)
    assert (hurried.held_keys, hurried.outcome) == ((PickerKey.DOWN, PickerKey.ENTER), None)
    found = after_page(hurried, PageRequest("foo", None), page(30, 3), whole=True)
    assert (found.outcome, found.selected) == (PickerOutcome.CHOSEN, row(31))
    nothing = after_page(hurried, PageRequest("foo", None), (), whole=True)
    assert (nothing.outcome, nothing.selected, nothing.held_keys) == (None, None, ())
    assert after(hurried, "x").held_keys == (), "meant something else"
    assert after(hurried, PickerKey.ESCAPE).held_keys == ()
    assert len(after(Picker(), *[PickerKey.DOWN] * 100).held_keys) == MOST_HELD


@pytest.mark.parametrize("key", [key for key in PickerKey if key in ON_ROWS])
def test_no_key_means_a_row_of_a_list_that_is_not_wanted_any_more(key: PickerKey):
    stale = after(picker(at=3), "/x")
    held = after_press(stale, key)
    assert replace(held, held_keys=()) == stale


# Choosing, leaving, deleting


def test_enter_chooses_and_there_is_nothing_to_choose_in_an_empty_list():
    chosen = after(picker(at=2), PickerKey.ENTER)
    assert (chosen.outcome, chosen.selected, chosen.is_over) == (PickerOutcome.CHOSEN, row(2), True)
    assert after(picker(0), PickerKey.ENTER, PickerKey.DOWN, PickerKey.END, "d").outcome is None


@pytest.mark.parametrize(
    ("text", "key", "outcome"),
    [
        (None, PickerKey.ESCAPE, PickerOutcome.LEFT),
        ("x", PickerKey.ESCAPE, None),
        (None, PickerKey.LEAVE, PickerOutcome.LEFT),
        ("x", PickerKey.LEAVE, PickerOutcome.LEFT),
        (None, PickerKey.INTERRUPT, PickerOutcome.INTERRUPTED),
        ("x", PickerKey.INTERRUPT, PickerOutcome.INTERRUPTED),
        ("x", Typed("q"), None),
    ],
)
def test_one_leaves_by_escape_q_and_ctrl_c(text: str | None, key: Press, outcome: PickerOutcome | None):
    assert after_press(replace(picker(), typed_text=text), key).outcome is outcome


@pytest.mark.parametrize(
    ("press", "certain"),
    [(Typed("y"), True), (Typed("Y"), True)]
    + [
        (press, False)
        for press in (
            *(key for key in PickerKey if key is not PickerKey.INTERRUPT),
            Typed("n"),
            Typed("j"),
            Pasted("y"),
        )
    ],
)
def test_only_a_yes_deletes(press: Press, certain: bool):
    asked = after(picker(at=2), "d")
    assert asked.to_confirm == row(2)
    answer = after_press(asked, press)
    assert (answer.deleting == row(2), answer.to_confirm, answer.selected_index, answer.outcome) == (
        certain,
        None,
        2,
        None,
    )


def test_ctrl_c_leaves_whatever_is_asked():
    assert after(picker(), "d", PickerKey.INTERRUPT).is_over


def test_what_is_being_deleted_is_waited_for_unless_somebody_cannot_wait():
    deleting = after(picker(), "dyq")
    assert (deleting.outcome, deleting.is_over) == (PickerOutcome.LEFT, False)
    assert after(deleting, PickerKey.INTERRUPT).is_over
    assert after_deletion(deleting, row(0), None).is_over
    assert after(picker(), "dyjd").to_confirm is None, "one after the other"


def test_what_is_deleted_leaves_the_list_and_what_is_not_says_why():
    deleting = after(picker(at=9), "dy")
    gone = after_deletion(deleting, row(9), None)
    assert ([one.session_id for one in gone.rows][-1], gone.selected_index, gone.deleting) == ("s8", 8, None)
    assert "s9" in gone.note
    refused = after_deletion(deleting, row(9), "it is in use")
    assert (len(refused.rows), refused.note, refused.deleting) == (10, "it is in use", None)
    assert after(refused, "k").note == ""


# Everything at once

PRESSES = st.one_of(
    st.sampled_from([key for key in PickerKey if key is not PickerKey.INTERRUPT]),
    st.sampled_from(["y", "n", "x", *COMMANDS]).map(Typed),
    st.text(max_size=5).map(Pasted),
)
STEPS = st.one_of(PRESSES, st.integers(0, 20), st.sampled_from(["answer", "delete"]))


@given(st.lists(STEPS, max_size=60), st.integers(0, 300))
def test_somebody_is_always_at_a_row_that_is_shown(steps: list[Press | int | str], there: int):
    """A database of so many rows answers now and then, and each row is there once, in its order."""
    now, every = Picker(), page(0, there)
    for step in steps:
        if isinstance(step, int):
            now = after_resize(now, step)
        elif step == "delete":
            now = after_deletion(now, now.deleting, None) if now.deleting else now
        elif step == "answer":
            if (ask := now.next_page) is not None:
                first = 0 if ask.after is None else every.index(ask.after) + 1
                now = after_page(now, ask, every[first : first + 7], whole=first + 7 > there)
        elif not isinstance(step, str):
            now = after_press(now, step)
        assert 0 <= now.selected_index < max(len(now.rows), 1)
        assert now.first_shown <= now.selected_index < now.first_shown + now.height
        numbers = [int(one.session_id[1:]) for one in now.rows]
        assert numbers == sorted(set(numbers))
        assert (now.selected is None) == (not now.rows)
        if now.outcome is PickerOutcome.CHOSEN:
            assert now.is_fresh
            assert now.selected is not None
            return
