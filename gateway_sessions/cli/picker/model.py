"""The state of a picker over a list that may be endless, and what each key makes of it.

Nothing is drawn and nobody is asked here. `Picker.next_page` says which page to ask the database for next,
`Picker.deleting` what to remove, and `Picker.outcome` that it is over.

As long as nothing is looked for, letters are commands. Once something is, they are text, and Escape leads
back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from types import MappingProxyType
from typing import Final, TypeAlias

from gateway_sessions.core.display_text import visible_text
from gateway_sessions.core.sessions.record import SessionSummary

LONGEST_TEXT: Final = 200
"""The longest search text: longer than any title, and short enough for a paste by mistake."""
MOST_HELD: Final = 64
"""The most keys that wait for rows: a key held down must not be acted on for minutes."""
SCREENS_AHEAD: Final = 2
"""The screens of rows that are fetched ahead of the selection, so that nobody has to wait."""


class PickerKey(Enum):
    """An action of a person, whatever key their terminal has for it."""

    UP = auto()
    DOWN = auto()
    PAGE_UP = auto()
    PAGE_DOWN = auto()
    HOME = auto()
    END = auto()
    ENTER = auto()
    DELETE = auto()
    FIND = auto()
    ESCAPE = auto()
    BACKSPACE = auto()
    CLEAR = auto()
    WORD_BACK = auto()
    LEAVE = auto()
    INTERRUPT = auto()


@dataclass(frozen=True, slots=True)
class Typed:
    """One character."""

    character: str


@dataclass(frozen=True, slots=True)
class Pasted:
    """A pasted text, which is never a command."""

    text: str


Press: TypeAlias = PickerKey | Typed | Pasted

COMMANDS: Final[Mapping[str, PickerKey]] = MappingProxyType(
    {
        "j": PickerKey.DOWN,
        "k": PickerKey.UP,
        " ": PickerKey.PAGE_DOWN,
        "g": PickerKey.HOME,
        "G": PickerKey.END,
        "d": PickerKey.DELETE,
        "/": PickerKey.FIND,
        "q": PickerKey.LEAVE,
    }
)
"""The characters that are commands as long as there is no search text; all others begin a search."""
ON_ROWS: Final = frozenset(
    {
        PickerKey.UP,
        PickerKey.DOWN,
        PickerKey.PAGE_UP,
        PickerKey.PAGE_DOWN,
        PickerKey.HOME,
        PickerKey.END,
        PickerKey.ENTER,
        PickerKey.DELETE,
    }
)
"""Keys that refer to a row, and so wait for the rows of the current search text."""


class PickerOutcome(Enum):
    """The ways in which a picker ends."""

    CHOSEN = auto()
    LEFT = auto()
    INTERRUPTED = auto()


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A request to the database for one page of rows."""

    text: str
    after: SessionSummary | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Picker:
    """The state of a picker: known rows, the selection, the search text and pending work."""

    rows: tuple[SessionSummary, ...] = ()
    answered_text: str | None = None
    """The search text that the rows answer; None before the first answer of the database."""
    has_all_rows: bool = False
    """Whether these are all rows that there are."""
    typed_text: str | None = None
    """The search text as typed; None: letters are commands."""
    selected_index: int = 0
    first_shown: int = 0
    """The first row that is shown."""
    height: int = 1
    """The number of rows that can be shown."""
    going_to_end: bool = False
    """Whether the selection moves to the last row, which is not known yet."""
    held_keys: tuple[PickerKey, ...] = ()
    """Pressed keys that wait for rows."""
    to_confirm: SessionSummary | None = None
    """The session that is deleted after a confirmation."""
    deleting: SessionSummary | None = None
    """The session that is just being deleted."""
    note: str = ""
    outcome: PickerOutcome | None = None

    @property
    def search_text(self) -> str:
        """The text that rows have to contain; empty for all rows."""
        return (self.typed_text or "").strip()

    @property
    def is_fresh(self) -> bool:
        """Whether the rows answer the current search text."""
        return self.answered_text == self.search_text

    @property
    def selected(self) -> SessionSummary | None:
        """The selected row."""
        return self.rows[self.selected_index] if self.rows else None

    @property
    def next_page(self) -> PageRequest | None:
        """The page to ask the database for next, if any."""
        if not self.is_fresh:
            return PageRequest(self.search_text, None)
        near = self.selected_index + SCREENS_AHEAD * self.height >= len(self.rows)
        if not self.has_all_rows and (self.going_to_end or near):
            return PageRequest(self.search_text, self.rows[-1] if self.rows else None)
        return None

    @property
    def is_over(self) -> bool:
        """Whether to leave; only an interrupt does not wait for a running deletion."""
        if self.outcome is PickerOutcome.INTERRUPTED:
            return True
        return self.outcome is not None and self.deleting is None


def after_resize(picker: Picker, height: int) -> Picker:
    """Return the picker after the terminal has another height."""
    return _scroll_to_selection(replace(picker, height=max(height, 1)))


def after_page(
    picker: Picker, request: PageRequest, rows: Sequence[SessionSummary], *, whole: bool
) -> Picker:
    """Return the picker after a page has come; a page that is no longer wanted changes nothing."""
    if request.text != picker.search_text:
        return picker
    if request.after is None:
        return _with_held_keys(
            replace(
                picker,
                rows=tuple(rows),
                answered_text=request.text,
                has_all_rows=whole,
                selected_index=0,
                first_shown=0,
            )
        )
    if not picker.is_fresh or not picker.rows or picker.rows[-1] != request.after:
        return picker
    known = {one.session_id for one in picker.rows}
    more = tuple(one for one in rows if one.session_id not in known)
    longer = replace(picker, rows=picker.rows + more, has_all_rows=whole)
    return _with_held_keys(_moved_to_end(longer) if picker.going_to_end else longer)


def _with_held_keys(picker: Picker) -> Picker:
    """Return the picker after the keys that waited for rows; some may wait again."""
    now = replace(picker, held_keys=())
    for key in picker.held_keys:
        now = _scroll_to_selection(_after_key(now, key))
    return _scroll_to_selection(now)


def after_deletion(picker: Picker, one: SessionSummary, problem: str | None) -> Picker:
    """Return the picker after a session was deleted, or could not be deleted."""
    if problem is not None:
        return replace(picker, deleting=None, note=problem)
    left = tuple(row for row in picker.rows if row.session_id != one.session_id)
    return _scroll_to_selection(replace(picker, rows=left, deleting=None, note=f"Deleted {one.session_id}."))


def after_press(picker: Picker, press: Press) -> Picker:
    """Return the picker after a key, a character or a paste."""
    quiet = replace(picker, note="")
    if picker.to_confirm is not None and press is not PickerKey.INTERRUPT:
        certain = isinstance(press, Typed) and press.character in "yY"
        return replace(quiet, to_confirm=None, deleting=picker.to_confirm if certain else picker.deleting)
    match press:
        case Pasted(text):
            return _with_text(quiet, (picker.typed_text or "") + text)
        case Typed(character) if picker.typed_text is None and character in COMMANDS:
            return _scroll_to_selection(_after_key(quiet, COMMANDS[character]))
        case Typed(character):
            return _with_text(quiet, (picker.typed_text or "") + character)
        case PickerKey():
            return _scroll_to_selection(_after_key(quiet, press))


def _after_key(picker: Picker, key: PickerKey) -> Picker:
    if key in ON_ROWS:
        return (
            _hold_key(picker, key)
            if picker.held_keys or _needs_more_rows(picker, key)
            else _after_row_key(picker, key)
        )
    match key:
        case PickerKey.INTERRUPT:
            return replace(picker, outcome=PickerOutcome.INTERRUPTED)
        case PickerKey.LEAVE:
            return replace(picker, outcome=PickerOutcome.LEFT)
        case PickerKey.ESCAPE if picker.typed_text is None:
            return replace(picker, outcome=PickerOutcome.LEFT)
        case PickerKey.ESCAPE:
            return replace(picker, typed_text=None, held_keys=())
        case _:
            return _after_edit_key(picker, key)


def _needs_more_rows(picker: Picker, key: PickerKey) -> bool:
    steps = {PickerKey.DOWN: 1, PickerKey.PAGE_DOWN: picker.height}.get(key, 0)
    beyond = steps > 0 and picker.selected_index + steps >= len(picker.rows)
    return not picker.is_fresh or (beyond and not picker.has_all_rows)


def _hold_key(picker: Picker, key: PickerKey) -> Picker:
    return replace(picker, held_keys=(*picker.held_keys, key)[:MOST_HELD])


def _after_edit_key(picker: Picker, key: PickerKey) -> Picker:
    text = picker.typed_text
    if key is PickerKey.FIND:
        return replace(picker, typed_text=text or "")
    if text is None:
        return picker
    if key is PickerKey.CLEAR:
        return _with_text(picker, "")
    if key is PickerKey.WORD_BACK:
        return _with_text(picker, text.rstrip().rpartition(" ")[0])
    return replace(picker, typed_text=None) if not text else _with_text(picker, text[:-1])


def _with_text(picker: Picker, text: str) -> Picker:
    """Return the picker with another search text; waiting keys are forgotten."""
    harmless = (
        visible_text(f"|{text}|").replace("\n", " ").replace("\t", " ")[1:-1]
    )  # blanks at its ends stay
    return replace(picker, typed_text=harmless[:LONGEST_TEXT], held_keys=())


def _after_row_key(picker: Picker, key: PickerKey) -> Picker:
    here = picker.selected
    if here is None:
        return picker
    if key is PickerKey.ENTER:
        return replace(picker, outcome=PickerOutcome.CHOSEN)
    if key is PickerKey.DELETE:
        return replace(picker, to_confirm=here) if picker.deleting is None else picker
    return _after_move_key(replace(picker, going_to_end=False), key)


def _after_move_key(picker: Picker, key: PickerKey) -> Picker:
    last = len(picker.rows) - 1
    match key:
        case PickerKey.UP if picker.selected_index == 0:
            return replace(picker, selected_index=last if picker.has_all_rows else 0)
        case PickerKey.DOWN if picker.selected_index == last:
            return replace(picker, selected_index=0)
        case PickerKey.UP | PickerKey.DOWN:
            return replace(
                picker, selected_index=picker.selected_index + (1 if key is PickerKey.DOWN else -1)
            )
        case PickerKey.PAGE_UP | PickerKey.PAGE_DOWN:
            return replace(
                picker,
                selected_index=picker.selected_index
                + (1 if key is PickerKey.PAGE_DOWN else -1) * picker.height,
            )
        case PickerKey.HOME:
            return replace(picker, selected_index=0)
        case _:
            return _moved_to_end(picker)


def _moved_to_end(picker: Picker) -> Picker:
    return replace(picker, selected_index=len(picker.rows) - 1, going_to_end=not picker.has_all_rows)


def _scroll_to_selection(picker: Picker) -> Picker:
    """Return the picker with its selection within the list and on the screen."""
    rows, height = len(picker.rows), picker.height
    at = max(min(picker.selected_index, rows - 1), 0)
    top = min(max(picker.first_shown, at - height + 1), at, max(rows - height, 0))
    return replace(picker, selected_index=at, first_shown=max(top, 0))
