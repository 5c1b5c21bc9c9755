"""The state machines of a message in a queue and of a reply, exhaustively, and how columns tell a state."""

from __future__ import annotations

from itertools import product

import pytest

from gateway_sessions.core.queue.items import ItemKind, Outcome
from gateway_sessions.core.queue.state_machine import (
    GIVEN_UP,
    ITEM_CAUSES,
    ITEM_MOVES,
    NO_ROW,
    REPLY_CAUSES,
    REPLY_MOVES,
    RUNS,
    SETTLED,
    TURN_ENDS,
    WAITS,
    Cause,
    ItemColumns,
    ItemEvent,
    ItemState,
    ReplyEvent,
    ReplyState,
    TurnOutcome,
    advance_item,
    advance_reply,
    item_state,
    outcome_after,
    reply_state,
)
from gateway_sessions.errors import InvalidTransitionError

MACHINES = {
    "items": (ItemState, ItemEvent, ITEM_MOVES, advance_item, ITEM_CAUSES),
    "replies": (ReplyState, ReplyEvent, REPLY_MOVES, advance_reply, REPLY_CAUSES),
}
WAITING = ItemColumns("message", None, None, None, None, 1, None)


@pytest.fixture(params=MACHINES)
def machine(request: pytest.FixtureRequest):
    return MACHINES[request.param]


class TestTables:
    @pytest.mark.parametrize(
        ("state", "event", "moves", "advance"),
        [
            (state, event, moves, advance)
            for states, events, moves, advance, _ in MACHINES.values()
            for state, event in product(states, events)
        ],
    )
    def test_inside_the_table_a_state_moves_and_outside_it_raises(self, state, event, moves, advance):
        before = dict(moves)
        if (state, event) in moves:
            assert advance(state, event) is moves[state, event]
        else:
            with pytest.raises(InvalidTransitionError) as caught:
                advance(state, event)
            assert (caught.value.state, caught.value.event) == (state, event)
            assert str(caught.value) == f"{caught.value.thing} that is {state} does not take {event}"
        assert dict(moves) == before

    def test_the_table_cannot_be_changed(self, machine):
        states, events, moves, *_ = machine
        with pytest.raises(TypeError):
            moves[next(iter(states)), next(iter(events))] = next(iter(states))

    def test_every_state_is_reached_from_nothing(self, machine):
        states, _, moves, *_ = machine
        reached, frontier = set(), {states.NEW}
        while frontier:
            reached |= frontier
            frontier = {after for (before, _), after in moves.items() if before in reached} - reached
        assert reached == set(states)

    def test_every_event_happens_somewhere_and_somebody_causes_it(self, machine):
        _, events, moves, _, causes = machine
        assert {event for _, event in moves} == set(events) == set(causes)
        assert all(causes.values())

    def test_only_what_is_forgotten_stays_as_it_is_for_good(self, machine):
        states, _, moves, *_ = machine
        assert set(states) - {before for before, _ in moves} == {states.FORGOTTEN}

    def test_nothing_comes_back_to_not_being_written(self, machine):
        states, _, moves, *_ = machine
        assert states.NEW not in moves.values()

    def test_everything_can_be_erased(self, machine):
        states, events, moves, *_ = machine
        erased = {before for before, event in moves if event is events.ERASED}
        assert erased == set(states) - {states.NEW, states.FORGOTTEN}

    def test_every_cause_makes_something_happen(self):
        named = {one for causes in (ITEM_CAUSES, REPLY_CAUSES) for some in causes.values() for one in some}
        assert named == set(Cause)


class TestItems:
    def test_each_state_belongs_to_one_group(self):
        groups = [NO_ROW, WAITS, RUNS, GIVEN_UP, SETTLED, {ItemState.NOTED}]
        assert sorted(state for group in groups for state in group) == sorted(ItemState)

    def test_whatever_is_settled_can_only_be_removed(self):
        for state in SETTLED:
            assert {after for (before, _), after in ITEM_MOVES.items() if before is state} == {
                ItemState.FORGOTTEN
            }

    def test_what_runs_comes_from_what_waits_and_was_not_given_up(self):
        before = {one for (one, _), after in ITEM_MOVES.items() if after in RUNS} - RUNS
        assert before == WAITS | {ItemState.NEW}

    def test_only_the_end_of_a_turn_leaves_an_outcome_of_turns(self):
        ends = {ItemState.TURNED, ItemState.INTERRUPTED, ItemState.ROLLED_BACK}
        assert {before for (before, _), after in ITEM_MOVES.items() if after in ends} == RUNS

    def test_what_was_said_into_a_turn_is_not_given_up_with_it(self):
        assert (ItemState.STEERED, ItemEvent.GIVEN_UP) not in ITEM_MOVES
        assert advance_item(ItemState.STEERED, ItemEvent.RELEASED) is ItemState.WAITING

    def test_the_words_of_outcomes_are_those_of_states(self):
        assert {str(one) for one in Outcome} == {str(one) for one in SETTLED | {ItemState.DEAD}}

    @pytest.mark.parametrize(("state", "event"), [one for one in ITEM_MOVES if one[1] is ItemEvent.GIVEN_UP])
    def test_whatever_is_given_up_is_stored_as_dead(self, state, event):
        assert outcome_after(state, event) is Outcome.DEAD

    def test_the_outcome_of_an_item_that_is_not_settled_is_none_of_the_words(self):
        with pytest.raises(ValueError, match="waiting"):
            outcome_after(ItemState.NEW, ItemEvent.QUEUED)


class TestTurns:
    def test_every_end_of_a_turn_says_what_it_is_for_its_messages(self):
        assert set(TURN_ENDS) == set(TurnOutcome)

    def test_each_of_them_is_an_event_that_a_turn_causes_and_its_leader_takes(self):
        for event in filter(None, TURN_ENDS.values()):
            assert Cause.TURN in ITEM_CAUSES[event]
            assert (ItemState.RUNNING, event) in ITEM_MOVES


class TestColumns:
    @pytest.mark.parametrize(
        ("columns", "state"),
        [
            ({}, ItemState.WAITING),
            ({"kind": "internal"}, ItemState.WAITING),
            ({"steered_into": 3}, ItemState.WAITING),
            ({"merged_into": 1}, ItemState.MERGED),
            ({"token": 4}, ItemState.RUNNING),
            ({"token": 4, "steered_into": 3}, ItemState.RUNNING),
            ({"token": 4, "merged_into": 1}, ItemState.RUNNING_MERGED),
            ({"token": 4, "steered_into": 4}, ItemState.STEERED),
            ({"token": 4, "messages": 0}, ItemState.STEERED),
            ({"kind": "command"}, ItemState.NOTED),
            ({"kind": "change"}, ItemState.NOTED),
            ({"outcome": "dead", "settled_at": 9}, ItemState.DEAD),
            ({"outcome": "dead", "settled_at": 9, "token": 4, "merged_into": 1}, ItemState.DEAD_MERGED),
            ({"outcome": "turned", "settled_at": 9, "token": 4, "merged_into": 1}, ItemState.TURNED),
            ({"kind": "change", "outcome": "applied", "settled_at": 9}, ItemState.APPLIED),
            ({"kind": "command", "outcome": "cancelled", "settled_at": 9}, ItemState.CANCELLED),
        ],
    )
    def test_an_item_is_in_the_state_that_its_columns_tell(self, columns, state):
        assert item_state(WAITING._replace(**columns)) is state

    @pytest.mark.parametrize(
        "columns",
        [
            {"kind": "massage"},
            {"outcome": "turned"},
            {"settled_at": 9},
            {"outcome": "tuned", "settled_at": 9},
            {"outcome": "command", "settled_at": 9},
            {"kind": "command", "outcome": "turned", "settled_at": 9},
            {"kind": "command", "token": 4},
            {"kind": "change", "merged_into": 1},
            {"token": 4, "steered_into": 4, "merged_into": 1},
        ],
    )
    def test_columns_that_contradict_each_other_tell_none(self, columns):
        assert item_state(WAITING._replace(**columns)) is None

    def test_every_state_with_a_row_can_be_told(self):
        outcomes = [(None, None), *((one, 9) for one in Outcome)]
        rows = product(ItemKind, outcomes, (None, 4), (None, 1), (None, 4))
        told = {
            item_state(ItemColumns(kind, outcome, token, merged, steered, 1, settled))
            for kind, (outcome, settled), token, merged, steered in rows
        }
        assert told - {None} == set(ItemState) - NO_ROW

    @pytest.mark.parametrize(
        ("row", "state"),
        [
            (("owed", None), ReplyState.OWED),
            (("sending", None), ReplyState.SENDING),
            (("sent", 9), ReplyState.SENT),
            (("dead", 9), ReplyState.DEAD),
            (("sent", None), None),
            (("owed", 9), None),
            (("new", None), None),
            (("lost", None), None),
        ],
    )
    def test_a_reply_is_in_the_state_that_its_columns_tell(self, row, state):
        assert reply_state(*row) is state


def test_the_kinds_of_messages_are_those_that_have_turns():
    turned = {kind for kind in ItemKind if item_state(WAITING._replace(kind=kind, token=4)) is not None}
    assert turned == {ItemKind.MESSAGE, ItemKind.INTERNAL}
