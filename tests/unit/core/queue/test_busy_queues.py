"""Queues that do what the plans say: nothing is lost, mixed or reordered, as it was elsewhere."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway_sessions.core.notices.notice_texts import acknowledgement_notice
from gateway_sessions.core.queue.busy_modes import (
    GROUP_PAUSE,
    BusyRules,
    Demotion,
    DropPolicy,
    Enqueue,
    Refuse,
    is_acknowledgement_due,
    plan_arrival,
)
from gateway_sessions.core.queue.inbound import AttachmentKind, Disposition, RejectReason, turn_text
from gateway_sessions.core.sessions.busy_mode import BusyMode
from tests.unit.core.queue.busy_lanes import (
    AT,
    CAP,
    DEBOUNCE,
    EVERY,
    LATER,
    SECOND,
    Lane,
    arrival,
    busy_lane_load,
    message,
    photo,
    plan_in_words,
)

SENDERS: Final = st.sampled_from(["alice", "bob", "carol", ""])
PAUSES: Final = st.sampled_from(
    [timedelta(0), SECOND / 10, DEBOUNCE, SECOND / 2, LATER, -SECOND / 10, -LATER]
)
KINDS: Final[dict[str, dict[str, Any]]] = {
    "text": {},
    "photo": {"has_media": True, "has_text": False, "characters": 0},
    "caption": {"has_media": True},
    "queue": {"solo": True},
    "internal": {"internal": True},
    "long": {"characters": 50},
    "album": {"has_media": True, "has_text": False, "characters": 0, "grouped": True},
}
ARRIVALS: Final = st.tuples(PAUSES, SENDERS, st.sampled_from([*KINDS]))
STEPS: Final = st.lists(st.one_of(ARRIVALS, ARRIVALS, st.sampled_from(["finish", "start"])), max_size=40)
RULES: Final = st.builds(
    BusyRules,
    mode=st.sampled_from(BusyMode),
    drop=st.sampled_from(DropPolicy),
    max_queued=st.integers(1, 5),
    merge_limit=st.integers(1, 4),
    merge_chars=st.sampled_from([5, 12, 60]),
    debounce=st.sampled_from([timedelta(0), DEBOUNCE]),
)


@given(RULES, st.booleans(), st.booleans(), STEPS)
def test_no_sequence_loses_reorders_or_mixes_messages_or_fills_a_queue_beyond_its_cap(
    rules, can_steer, sub_work, steps
):
    lane, now = Lane(rules, can_steer=can_steer, sub_work=sub_work), AT
    for step in steps:
        match step:
            case "finish":
                lane.finish()
            case "start":
                lane.start(now)
            case pause, sender, kind:
                now += pause
                lane.send(arrival(sender, at=now, **KINDS[kind]))
        assert len(lane.items) <= rules.max_queued
        assert all(len(item.messages) <= rules.merge_limit for item in lane.items)
    turned = lane.drain()
    went = [number for turn in turned for number in turn]
    assert went == sorted(went)
    assert sorted([*went, *lane.steered, *lane.dropped, *lane.refused]) == [*lane.senders]
    assert rules.drop is DropPolicy.DROP_OLDEST or not lane.dropped
    for turn in turned:
        people = {lane.senders[number] for number in turn}
        assert len(turn) == 1 or (len(people) == 1 and people != {""})


# ---------------------------------------------------------------- what went wrong elsewhere


class TestWhatWentWrongElsewhere:
    def busy(self, **rules: Any) -> Lane:
        """A lane whose first turn runs."""
        lane = Lane(BusyRules(**rules))
        lane.send(arrival("zoe", at=AT - LATER))
        lane.start(AT)
        return lane

    def test_the_third_and_fourth_person_to_write_in_a_burst_are_not_dropped(self):
        lane = self.busy(mode=BusyMode.COLLECT)
        for sender in ("alice", "bob", "carol", "dave"):
            lane.send(arrival(sender))
        assert lane.drain() == [[1], [2], [3], [4], [5]]

    @pytest.mark.parametrize("mode", EVERY)
    def test_bobs_words_do_not_become_the_caption_of_alices_photo(self, mode):
        lane = Lane(BusyRules(mode=mode))
        lane.send(photo("alice"))
        lane.send(arrival("bob"))
        assert [1, 2] not in lane.drain()

    @pytest.mark.parametrize("mode", EVERY)
    def test_a_photo_does_not_join_another_persons_photo(self, mode):
        lane = Lane(BusyRules(mode=mode))
        lane.send(photo("alice"))
        lane.send(photo("bob"))
        assert [1, 2] not in lane.drain()

    @pytest.mark.parametrize("mode", EVERY)
    def test_two_people_whose_names_nobody_knows_are_not_taken_for_one(self, mode):
        lane = Lane(BusyRules(mode=mode))
        lane.send(photo(""))
        lane.send(photo(""))
        assert [1, 2] not in lane.drain()

    def test_a_later_text_does_not_take_the_place_of_one_that_waits(self):
        lane = self.busy(mode=BusyMode.INTERRUPT)
        lane.send(arrival())
        lane.send(arrival(at=AT + LATER))
        assert lane.drain() == [[1], [2], [3]]

    def test_nothing_that_was_said_to_be_queued_is_dropped_at_the_cap(self):
        lane = self.busy(max_queued=32)
        plans = [lane.send(arrival(at=AT + LATER * number)) for number in range(40)]
        refused = [plan for plan in plans if isinstance(plan, Refuse)]
        assert [plan.reason for plan in refused] == [RejectReason.QUEUE_FULL] * 8
        assert len(lane.drain()) == 1 + 32

    def test_whoever_makes_room_at_the_cap_is_known(self):
        lane = self.busy(max_queued=2, drop=DropPolicy.DROP_OLDEST)
        plans = [lane.send(arrival(at=AT + LATER * number)) for number in range(3)]
        assert isinstance(plans[-1], Enqueue)
        assert plans[-1].drop == 2
        assert (lane.dropped, lane.drain()) == ([2], [[1], [3], [4]])

    def test_of_seven_waiting_messages_the_fifth_is_not_lost(self):
        lane = self.busy()
        for number in range(7):
            lane.send(arrival(at=AT + LATER * number))
        assert lane.drain() == [[number] for number in range(1, 9)]

    @pytest.mark.parametrize("mode", EVERY)
    def test_messages_of_queue_commands_are_not_merged(self, mode):
        lane = self.busy(mode=mode)
        for _ in range(3):
            lane.send(arrival(solo=True))
        lane.send(photo())
        assert lane.drain() == [[1], [2], [3], [4], *([[5]] if mode is not BusyMode.REJECT else [])]

    @pytest.mark.parametrize("mode", [BusyMode.STEER, BusyMode.INTERRUPT, BusyMode.ROLLBACK])
    def test_a_queue_command_does_not_disturb_the_running_turn(self, mode):
        lane = Lane(BusyRules(mode=mode), can_steer=True)
        lane.send(arrival(at=AT - LATER))
        lane.start(AT)
        plan = lane.send(arrival(solo=True))
        assert plan == Enqueue(ready_at=AT, then=Disposition.QUEUED)

    @pytest.mark.parametrize("mode", EVERY)
    def test_an_album_and_its_captions_are_one_turn_on_an_idle_lane(self, mode):
        lane = Lane(BusyRules(mode=mode))
        for number in range(3):
            lane.send(photo(at=AT + number * DEBOUNCE))
            lane.start(AT + number * DEBOUNCE + DEBOUNCE / 2)
        lane.send(arrival(at=AT + CAP))
        assert lane.drain() == [[1, 2, 3, 4]]

    @pytest.mark.parametrize("debounce", [timedelta(0), DEBOUNCE])
    def test_an_album_whose_parts_come_slowly_is_one_turn(self, debounce):
        lane = Lane(BusyRules(debounce=debounce))
        for number in range(4):
            at = AT + number * SECOND * 1.2
            lane.start(at)
            plan = lane.send(photo(at=at, grouped=True))
            assert plan_in_words(plan)[1] == ("joins" if number else None)
        lane.start(at + GROUP_PAUSE - SECOND / 10)
        assert lane.running is None
        assert lane.drain() == [[1, 2, 3, 4]]

    def test_a_picture_that_is_no_album_does_not_wait_as_long(self):
        lane = Lane(BusyRules())
        lane.send(photo())
        lane.send(photo(at=AT + SECOND))
        assert lane.drain() == [[1], [2]]

    def test_an_album_of_somebody_else_and_a_word_before_it_are_turns_of_their_own(self):
        lane = self.busy()
        lane.send(arrival())
        lane.send(photo(at=AT + SECOND, grouped=True))
        lane.send(photo("bob", at=AT + SECOND, grouped=True))
        assert lane.drain() == [[1], [2], [3], [4]]

    def test_an_album_does_not_wait_for_ever(self):
        lane = Lane(BusyRules())
        for number in range(12):
            lane.send(photo(at=AT + number * SECOND, grouped=True))
        assert [len(turn) for turn in lane.drain()] == [11, 1]

    def test_an_album_does_not_interrupt_the_turn_of_its_own_first_picture(self):
        lane = self.busy(mode=BusyMode.INTERRUPT)
        assert plan_in_words(lane.send(photo(has_text=True, characters=9))) == ("queued", None)
        assert plan_in_words(lane.send(photo())) == ("merged", "joins")
        assert not lane.interrupted

    def test_the_parts_of_a_split_message_do_not_interrupt_each_other_one_by_one(self):
        lane = self.busy(mode=BusyMode.INTERRUPT)
        for part in range(4):
            lane.send(arrival(at=AT + part * SECOND / 5))
            lane.finish()
            lane.start(AT + part * SECOND / 5)
        assert lane.drain() == [[1], [2, 3, 4, 5]]

    def test_a_message_that_interrupts_is_in_the_queue_before_the_old_turn_ends(self):
        lane = self.busy(mode=BusyMode.INTERRUPT)
        assert plan_in_words(lane.send(arrival())) == ("interrupts", None)
        assert [item.messages for item in lane.items] == [[2]]

    def test_a_turn_that_is_being_stopped_is_not_stopped_for_every_further_message(self):
        lane = self.busy(mode=BusyMode.INTERRUPT)
        plans = [lane.send(arrival(at=AT + LATER * number)) for number in range(3)]
        assert [plan_in_words(plan)[0] for plan in plans] == ["interrupts", "queued", "queued"]

    def test_work_of_others_is_not_cut_off_and_the_person_hears_why(self):
        plan = plan_arrival(arrival(), busy_lane_load(sub_work=True), BusyRules(mode=BusyMode.INTERRUPT))
        assert isinstance(plan, Enqueue)
        assert plan.demotion is Demotion.SUB_WORK
        said = acknowledgement_notice(plan.then, 1, plan.demotion)
        assert said is not None
        assert "/stop" in said

    def test_what_the_program_says_is_not_taken_for_a_persons_words(self):
        lane = self.busy(mode=BusyMode.COLLECT)
        lane.send(arrival("zoe"))
        lane.send(arrival("zoe", internal=True))
        lane.send(arrival("zoe"))
        assert lane.drain() == [[1], [2], [3], [4]]

    def test_what_the_program_says_costs_no_person_their_place(self):
        lane = self.busy(max_queued=1, drop=DropPolicy.DROP_OLDEST)
        lane.send(arrival())
        assert isinstance(lane.send(arrival(internal=True)), Refuse)
        assert lane.drain() == [[1], [2]]

    def test_the_running_turn_does_not_hear_later_words_before_a_picture_that_waits(self):
        lane = Lane(BusyRules(mode=BusyMode.STEER), can_steer=True)
        lane.send(arrival(at=AT - LATER))
        lane.start(AT)
        lane.send(photo())
        lane.send(arrival(at=AT + LATER))
        assert (lane.steered, lane.drain()) == ([], [[1], [2], [3]])

    def test_captions_are_compared_as_a_whole_and_not_by_substring(self):
        lane = Lane(BusyRules())
        captions = ["a cat on a mat", "a cat", "a cat"]
        for number, caption in enumerate(captions):
            lane.send(photo(at=AT + number * SECOND / 10, has_text=True, characters=len(caption)))
        assert lane.drain() == [[1, 2, 3]]
        album = [message(AttachmentKind.PHOTO, text=caption) for caption in captions]
        assert turn_text(album) == "a cat on a mat\na cat"

    def test_two_interruptions_in_a_row_are_acknowledged_once_and_both_happen(self):
        lane, rules = self.busy(mode=BusyMode.INTERRUPT), BusyRules()
        assert plan_in_words(lane.send(arrival())) == ("interrupts", None)
        assert is_acknowledgement_due(None, AT, rules)
        lane.finish()
        lane.start(AT + SECOND)
        assert plan_in_words(lane.send(arrival(at=AT + SECOND))) == ("interrupts", None)
        assert not is_acknowledgement_due(AT, AT + SECOND, rules)
