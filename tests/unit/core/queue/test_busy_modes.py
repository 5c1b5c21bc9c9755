"""What becomes of a message on a busy lane, in every situation, and what people are told about it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import product
from typing import Final

import pytest

from gateway_sessions.core.notices.notice_texts import (
    acknowledgement_notice,
    demotion_note,
    dropped_notice,
    refusal_notice,
)
from gateway_sessions.core.queue.busy_modes import (
    BUSY,
    FULL,
    Arrival,
    BusyRules,
    Demotion,
    DropPolicy,
    Enqueue,
    LaneLoad,
    Merge,
    Refuse,
    is_acknowledgement_due,
    plan_arrival,
    refuse_by_count,
)
from gateway_sessions.core.queue.inbound import AttachmentKind, Disposition, RejectReason
from gateway_sessions.core.sessions.busy_mode import BusyMode
from gateway_sessions.errors import ConfigError
from tests.unit.core.queue.busy_lanes import (
    AT,
    CAP,
    DEBOUNCE,
    EVERY,
    LATER,
    SECOND,
    arrival,
    busy_lane_load,
    message,
    photo,
    plan_in_words,
    waiting_slot,
)

# ---------------------------------------------------------------- every situation

# What the plain words of a person do that join nothing, while there is room. Where a turn runs: whether it
# takes messages, and whether work is under way that must not be cut off.
WORDS: Final = """
                 collect     queue     steer     interrupt    rollback     reject
idle             starts      starts    starts    starts       starts       starts
waits            queued      queued    queued    queued       queued       busy
runs             queued      queued    queued*   interrupts   rolls_back   busy
runs-steerable   queued      queued    steers    interrupts   rolls_back   busy
runs-work        queued      queued    queued*   queued*      queued*      busy
runs-both        queued      queued    steers    queued*      queued*      busy
ends             queued      queued    queued    queued       queued       busy
"""
# What disturbs nothing: pictures and files.
QUIET: Final = """
                 collect     queue     steer     interrupt    rollback     reject
idle             starts      starts    starts    starts       starts       starts
waits            queued      queued    queued    queued       queued       busy
runs             queued      queued    queued    queued       queued       busy
ends             queued      queued    queued    queued       queued       busy
"""
# What waits in any mode: what was asked for with /queue, and what the program says.
PATIENT: Final = """
                 collect     queue     steer     interrupt    rollback     reject
idle             starts      starts    starts    starts       starts       starts
waits            queued      queued    queued    queued       queued       queued
runs             queued      queued    queued    queued       queued       queued
ends             queued      queued    queued    queued       queued       queued
"""


def table(text: str) -> dict[tuple[str, str], str]:
    head, *rows = (line.split() for line in text.strip().splitlines())
    return {(row[0], mode): outcome for row in rows for mode, outcome in zip(head, row[1:], strict=True)}


WORDS_TABLE, QUIET_TABLE, PATIENT_TABLE = table(WORDS), table(QUIET), table(PATIENT)


@dataclass(frozen=True)
class Case:
    mode: BusyMode
    running: bool
    stopping: bool
    can_steer: bool
    sub_work: bool
    waiting: str
    """none; ours: of the same person; theirs; alone: nothing may join it; full: ours, and no room left."""
    burst: bool
    drop: DropPolicy
    solo: bool
    media: bool
    text: bool
    internal: bool

    @property
    def rules(self) -> BusyRules:
        return BusyRules(mode=self.mode, drop=self.drop, max_queued=2)

    @property
    def load(self) -> LaneLoad:
        ago = DEBOUNCE if self.burst else LATER
        last = waiting_slot("bob" if self.waiting == "theirs" else "alice", ago, solo=self.waiting == "alone")
        waiting = {"none": 0, "full": 2}.get(self.waiting, 1)
        return LaneLoad(
            running=self.running,
            stopping=self.stopping,
            can_steer=self.can_steer,
            sub_work=self.sub_work,
            waiting=waiting,
            last=last if waiting else None,
            oldest=3 if waiting else None,
        )

    @property
    def arrival(self) -> Arrival:
        return arrival(solo=self.solo, has_media=self.media, has_text=self.text, internal=self.internal)

    @property
    def situation(self) -> str:
        if not self.running:
            return "idle" if self.waiting == "none" else "waits"
        return "ends" if self.stopping else "runs"

    @property
    def joins(self) -> bool:
        """Whether it is more of what the same person said last and what has not begun yet."""
        alone = self.solo or self.internal
        return self.waiting in {"ours", "full"} and not alone and (self.burst or self.mode == "collect")

    def expected(self) -> tuple[str, str | None]:
        """The outcome, and what of that is done besides: joining, or dropping somebody."""
        said = self.text and not self.media
        if self.solo or self.internal:
            outcome = PATIENT_TABLE[self.situation, self.mode]
        elif not said:
            outcome = QUIET_TABLE[self.situation, self.mode]
        else:
            flags = {(0, 0): "", (1, 0): "-steerable", (0, 1): "-work", (1, 1): "-both"}
            kind = flags[self.can_steer, self.sub_work] if self.situation == "runs" else ""
            outcome = WORDS_TABLE[self.situation + kind, self.mode]
        if outcome == "steers" and self.waiting != "none":
            outcome = "queued*"  # the running turn is not to hear the later words first
        if outcome == "busy" and self.running:
            return outcome, None
        if self.joins:
            return {"interrupts": "interrupts", "rolls_back": "rolls_back"}.get(outcome, "merged"), "joins"
        if outcome in {"busy", "steers"} or self.waiting != "full":
            return outcome, None
        room = self.drop is DropPolicy.DROP_OLDEST and not self.internal
        return (outcome, "drops") if room else ("queue_full", None)


@pytest.mark.parametrize("mode", EVERY)
def test_every_situation_ends_as_the_tables_say(mode):
    flag = (False, True)
    waiting = ("none", "ours", "theirs", "alone", "full")
    count = 0
    for facts in product(flag, flag, flag, flag, waiting, flag, DropPolicy, flag, flag, flag, flag):
        case = Case(mode, *facts)
        assert plan_in_words(plan_arrival(case.arrival, case.load, case.rules)) == case.expected(), case
        count += 1
    assert count == 2**10 * len(waiting)


# ---------------------------------------------------------------- when a turn may begin


class TestWhenATurnMayBegin:
    @pytest.mark.parametrize("mode", [mode for mode in EVERY if mode is not BusyMode.COLLECT])
    def test_words_on_an_idle_lane_begin_at_once(self, mode):
        plan = plan_arrival(arrival(), LaneLoad(), BusyRules(mode=mode))
        assert plan == Enqueue(ready_at=AT, then=Disposition.STARTS)

    def test_collected_words_wait_for_more(self):
        plan = plan_arrival(arrival(), LaneLoad(), BusyRules(mode=BusyMode.COLLECT))
        assert plan == Enqueue(ready_at=AT + DEBOUNCE, then=Disposition.STARTS)

    @pytest.mark.parametrize("mode", EVERY)
    @pytest.mark.parametrize("text", [False, True])
    def test_a_picture_on_an_idle_lane_waits_for_the_rest_of_its_album(self, mode, text):
        plan = plan_arrival(photo(has_text=text), LaneLoad(), BusyRules(mode=mode))
        assert plan == Enqueue(ready_at=AT + DEBOUNCE, then=Disposition.STARTS)

    @pytest.mark.parametrize("kind", ["solo", "internal"])
    @pytest.mark.parametrize("mode", EVERY)
    def test_what_nothing_may_join_waits_for_nothing(self, mode, kind):
        plan = plan_arrival(photo(**{kind: True}), LaneLoad(), BusyRules(mode=mode))
        assert plan == Enqueue(ready_at=AT, then=Disposition.STARTS)

    @pytest.mark.parametrize("mode", [BusyMode.INTERRUPT, BusyMode.ROLLBACK])
    def test_what_ends_a_turn_waits_for_the_rest_of_the_thought(self, mode):
        plan = plan_arrival(arrival(), busy_lane_load(), BusyRules(mode=mode))
        assert isinstance(plan, Enqueue)
        assert plan.ready_at == AT + DEBOUNCE

    @pytest.mark.parametrize("mode", EVERY)
    def test_every_joining_message_prolongs_the_wait(self, mode):
        plan = plan_arrival(photo(), busy_lane_load(waiting_slot(), running=False), BusyRules(mode=mode))
        assert isinstance(plan, Merge)
        assert plan.ready_at == AT + DEBOUNCE

    def test_but_never_beyond_the_cap(self):
        last = waiting_slot(first_at=AT - CAP + SECOND / 10, last_at=AT)
        plan = plan_arrival(arrival(), busy_lane_load(last), BusyRules())
        assert plan == Merge(into=7, ready_at=AT + SECOND / 10)

    def test_collecting_behind_a_long_turn_does_not_begin_to_wait_anew(self):
        plan = plan_arrival(
            arrival(), busy_lane_load(waiting_slot(ago=LATER)), BusyRules(mode=BusyMode.COLLECT)
        )
        assert plan == Merge(into=7, ready_at=AT - LATER + CAP)


class TestBursts:
    @pytest.mark.parametrize(
        ("pause", "length", "merged"),
        [
            (DEBOUNCE, CAP, True),
            (DEBOUNCE + timedelta(microseconds=1), CAP, False),
            (timedelta(0), CAP + timedelta(microseconds=1), False),
            (timedelta(0), timedelta(0), True),
        ],
    )
    def test_a_burst_ends_after_a_pause_or_at_its_cap(self, pause, length, merged):
        last = waiting_slot(first_at=AT - length, last_at=AT - pause)
        assert isinstance(plan_arrival(arrival(), busy_lane_load(last), BusyRules()), Merge) is merged

    def test_a_clock_that_was_set_back_makes_no_burst_of_an_hours_messages(self):
        last = waiting_slot(first_at=AT + timedelta(hours=1), last_at=AT + timedelta(hours=1))
        plan = plan_arrival(arrival(), busy_lane_load(last), BusyRules())
        assert plan == Enqueue(ready_at=AT, then=Disposition.QUEUED)

    def test_a_clock_that_was_set_back_delays_no_collected_turn(self):
        last = waiting_slot(first_at=AT + timedelta(hours=1), last_at=AT + timedelta(hours=1))
        plan = plan_arrival(arrival(), busy_lane_load(last), BusyRules(mode=BusyMode.COLLECT))
        assert plan == Merge(into=7, ready_at=AT + DEBOUNCE)

    @pytest.mark.parametrize("kind", [arrival(), photo()])
    def test_without_a_debounce_nothing_is_a_burst(self, kind):
        rules = BusyRules(debounce=timedelta(0))
        plan = plan_arrival(kind, busy_lane_load(waiting_slot(ago=timedelta(0))), rules)
        assert plan == Enqueue(ready_at=AT, then=Disposition.QUEUED)

    def test_a_turn_holds_no_more_messages_than_allowed(self):
        rules = BusyRules(merge_limit=3)
        assert isinstance(plan_arrival(arrival(), busy_lane_load(waiting_slot(messages=2)), rules), Merge)
        assert isinstance(plan_arrival(arrival(), busy_lane_load(waiting_slot(messages=3)), rules), Enqueue)

    def test_a_turn_says_no_more_than_allowed(self):
        rules = BusyRules(merge_chars=10)
        assert isinstance(plan_arrival(arrival(characters=5), busy_lane_load(waiting_slot()), rules), Merge)
        assert isinstance(plan_arrival(arrival(characters=6), busy_lane_load(waiting_slot()), rules), Enqueue)
        assert isinstance(plan_arrival(arrival(characters=99), LaneLoad(), rules), Enqueue)


class TestSteering:
    RULES = BusyRules(mode=BusyMode.STEER, max_queued=4)
    STEERED = Enqueue(ready_at=AT, then=Disposition.STEERS)

    def test_it_passes_what_was_put_off_on_purpose(self):
        lane = busy_lane_load(waiting_slot(solo=True), can_steer=True, waiting=4, deferred=4)
        assert plan_arrival(arrival(), lane, self.RULES) == self.STEERED

    def test_it_passes_nothing_else_that_waits(self):
        lane = busy_lane_load(waiting_slot("bob"), can_steer=True, waiting=2, deferred=1)
        plan = plan_arrival(arrival(), lane, self.RULES)
        assert plan == Enqueue(ready_at=AT, then=Disposition.QUEUED, demotion=Demotion.CANNOT_STEER)

    def test_one_turn_is_given_no_more_messages_than_may_wait(self):
        assert plan_arrival(arrival(), busy_lane_load(can_steer=True, steered=3), self.RULES) == self.STEERED
        plan = plan_arrival(arrival(), busy_lane_load(can_steer=True, steered=4), self.RULES)
        assert plan == Enqueue(ready_at=AT, then=Disposition.QUEUED, demotion=Demotion.CANNOT_STEER)


def test_a_refusal_says_when_to_try_again():
    busy = plan_arrival(arrival(), busy_lane_load(), BusyRules(mode=BusyMode.REJECT))
    full = plan_arrival(arrival(), busy_lane_load(waiting_slot("bob")), BusyRules(max_queued=1))
    assert isinstance(busy, Refuse)
    assert isinstance(full, Refuse)
    assert 0 < busy.retry_after < full.retry_after


def test_a_full_queue_with_nothing_that_may_go_refuses():
    rules = BusyRules(max_queued=1, drop=DropPolicy.DROP_OLDEST)
    plan = plan_arrival(arrival(), busy_lane_load(waiting_slot(solo=True), oldest=None), rules)
    assert isinstance(plan, Refuse)
    assert plan.reason is RejectReason.QUEUE_FULL


# ---------------------------------------------------------------- what an arrival is


class TestArrivals:
    @pytest.mark.parametrize(
        ("kinds", "text", "media", "words"),
        [
            ((), "hello", False, True),
            ((), "  ", False, False),
            ((AttachmentKind.PHOTO,), "", True, False),
            ((AttachmentKind.PHOTO,), "look", True, True),
            ((AttachmentKind.LOCATION,), "", True, False),
            ((AttachmentKind.VOICE,), "", False, True),
            ((AttachmentKind.VOICE, AttachmentKind.PHOTO), "", True, True),
        ],
    )
    def test_speech_counts_as_words_and_all_else_that_comes_along_as_media(self, kinds, text, media, words):
        made = Arrival.of(message(*kinds, text=text), at=AT)
        assert (made.has_media, made.has_text, made.characters) == (media, words, len(text))

    def test_the_rest_is_as_it_was_said(self):
        made = Arrival.of(message(text="x", internal=True), at=AT, solo=True)
        assert made == Arrival(sender="alice", at=AT, solo=True, characters=1, internal=True)

    def test_a_spoken_message_interrupts_like_a_written_one(self):
        plan = plan_arrival(
            Arrival.of(message(AttachmentKind.VOICE), at=AT),
            busy_lane_load(),
            BusyRules(mode=BusyMode.INTERRUPT),
        )
        assert isinstance(plan, Enqueue)
        assert plan.then is Disposition.INTERRUPTS


# ---------------------------------------------------------------- what people are told


class TestAcknowledgements:
    @pytest.mark.parametrize(
        ("after", "due"),
        [(timedelta(0), False), (timedelta(seconds=29.9), False), (30 * SECOND, True), (-SECOND, True)],
    )
    def test_one_is_due_when_the_last_is_long_enough_ago_or_in_a_future_that_the_clock_has_left(
        self, after, due
    ):
        assert is_acknowledgement_due(AT, AT + after, BusyRules()) is due

    def test_without_a_cooldown_each_is_due_and_switched_off_none(self):
        assert is_acknowledgement_due(AT, AT, BusyRules(ack_cooldown=timedelta(0)))
        assert not is_acknowledgement_due(None, AT, BusyRules(acknowledge=False))

    @pytest.mark.parametrize(
        ("depth", "text"),
        [
            (0, "Queued: I will answer this when I am done."),
            (1, "Queued: I will answer this when I am done."),
            (2, "Queued: I will answer this when I am done, after 1 other."),
            (5, "Queued: I will answer this when I am done, after 4 others."),
        ],
    )
    def test_a_queued_message_is_told_its_place(self, depth, text):
        assert acknowledgement_notice(Disposition.QUEUED, depth) == text

    @pytest.mark.parametrize(
        ("disposition", "first"),
        [
            (Disposition.INTERRUPTS, "Stopping what I was doing"),
            (Disposition.ROLLS_BACK, "Taking back what I was doing"),
        ],
    )
    def test_what_ends_a_turn_is_told_what_comes_before_it(self, disposition, first):
        assert acknowledgement_notice(disposition, 1) != acknowledgement_notice(disposition, 2)
        assert acknowledgement_notice(disposition, 2) == f"{first}. I will answer this after 1 other."
        assert acknowledgement_notice(disposition, 3) == f"{first}. I will answer this after 2 others."

    def test_what_happens_at_once_is_not_announced_and_all_else_differently(self):
        texts = {each: acknowledgement_notice(each, 1) for each in Disposition}
        silent = {each for each, text in texts.items() if text is None}
        assert silent == {
            Disposition.STARTS,
            Disposition.MERGED,
            Disposition.APPLIED,
            Disposition.COMMAND,
            Disposition.OBSERVED,
        }
        assert len(set(texts.values())) == len(texts) - len(silent) + 1

    def test_a_demotion_is_explained_behind_the_acknowledgement(self):
        for demotion in Demotion:
            note = demotion_note(demotion)
            assert note.strip()
            assert acknowledgement_notice(Disposition.QUEUED, 1, demotion) == (
                f"{acknowledgement_notice(Disposition.QUEUED, 1)}{note}"
            )

    def test_every_refusal_has_its_own_words(self):
        assert len({refusal_notice(reason) for reason in RejectReason}) == len(RejectReason)

    def test_whoever_made_room_is_told_how_much_is_gone(self):
        assert "a message of yours had to" in dropped_notice()
        assert "3 messages of yours had to" in dropped_notice(3)


# ---------------------------------------------------------------- rules


class TestRules:
    def test_words_stand_for_modes_and_policies(self):
        rules = BusyRules(mode="steer", drop="drop_oldest")
        assert (rules.mode, rules.drop) == (BusyMode.STEER, DropPolicy.DROP_OLDEST)

    @pytest.mark.parametrize(
        ("field", "value", "key"),
        [
            ("mode", "shout", "mode"),
            ("mode", None, "mode"),
            ("drop", "newest", "drop"),
            ("debounce", -SECOND, "debounce_seconds"),
            ("debounce", timedelta(days=40_000), "debounce_seconds"),
            ("debounce", CAP + SECOND, "debounce_cap_seconds"),
            ("debounce_cap", DEBOUNCE - SECOND / 10, "debounce_cap_seconds"),
            ("debounce_cap", -SECOND, "debounce_cap_seconds"),
            ("ack_cooldown", -SECOND, "ack_cooldown_seconds"),
            ("max_queued", 0, "max_queued"),
            ("max_queued", 1_000_001, "max_queued"),
            ("merge_limit", 0, "merge_limit"),
            ("merge_chars", -1, "merge_chars"),
        ],
    )
    def test_rules_that_nothing_could_keep_cannot_be_made(self, field, value, key):
        with pytest.raises(ConfigError) as raised:
            BusyRules(**{field: value})
        assert [problem.path for problem in raised.value.problems] == [f"busy.{key}"]

    def test_all_that_is_wrong_with_them_is_told_at_once(self):
        with pytest.raises(ConfigError) as raised:
            BusyRules(mode="shout", max_queued=0, merge_limit=0)
        assert [problem.path for problem in raised.value.problems] == [
            "busy.mode",
            "busy.max_queued",
            "busy.merge_limit",
        ]

    def test_the_least_of_everything_is_allowed(self):
        nothing = timedelta(0)
        rules = BusyRules(debounce=nothing, debounce_cap=nothing, ack_cooldown=nothing, max_queued=1)
        assert replace(rules, merge_limit=1, merge_chars=1).debounce_cap == nothing


# ---------------------------------------------------------------- full, whatever else is true of the lane


def test_what_is_refused_by_count_is_refused_so_on_every_lane_on_which_so_many_wait():
    """A refusal that is decided from a count alone is the one that a look at the whole lane would bring."""
    refused = 0
    for mode, drop, debounce in product(EVERY, DropPolicy, (timedelta(0), DEBOUNCE)):
        rules = BusyRules(mode=mode, drop=drop, debounce=debounce, max_queued=2)
        for one, can_steer, waiting in product(
            (arrival(), arrival(solo=True), arrival(internal=True), arrival(""), photo()),
            (False, True),
            (1, 2, 3),
        ):
            refusal = refuse_by_count(one, waiting, rules, can_steer=can_steer)
            if refusal is None:
                continue
            refused += 1
            for running, last, oldest, stopping in product(
                (False, True), (None, waiting_slot(), waiting_slot("bob")), (None, 3), (False, True)
            ):
                lane = LaneLoad(
                    running=running,
                    can_steer=can_steer,
                    stopping=stopping,
                    waiting=waiting,
                    deferred=waiting,
                    last=last,
                    oldest=oldest,
                )
                assert plan_arrival(one, lane, rules) == refusal, (one, lane, rules)
    assert refused > 50


def test_where_there_is_room_or_a_way_around_the_line_the_lane_has_to_be_looked_at():
    rules = BusyRules(debounce=timedelta(0), max_queued=2)
    assert refuse_by_count(arrival(), 2, rules, can_steer=False) == FULL
    assert refuse_by_count(arrival(), 1, rules, can_steer=False) is None
    assert refuse_by_count(arrival(), 2, replace(rules, drop=DropPolicy.DROP_OLDEST), can_steer=False) is None
    assert refuse_by_count(arrival(), 2, replace(rules, mode=BusyMode.COLLECT), can_steer=False) is None
    assert refuse_by_count(arrival(), 2, replace(rules, debounce=DEBOUNCE), can_steer=False) is None
    assert refuse_by_count(arrival(""), 2, replace(rules, debounce=DEBOUNCE), can_steer=False) == FULL
    steering = replace(rules, mode=BusyMode.STEER)
    assert refuse_by_count(arrival(), 2, steering, can_steer=False) == FULL
    assert refuse_by_count(arrival(), 2, steering, can_steer=True) is None


def test_the_mode_that_refuses_says_busy_however_many_wait_and_may_wait():
    rules = BusyRules(mode=BusyMode.REJECT, debounce=timedelta(0), max_queued=2)
    assert refuse_by_count(arrival(), 0, rules, can_steer=False) is None
    assert refuse_by_count(arrival(), 1, rules, can_steer=False) == BUSY
    assert refuse_by_count(arrival(), 2, rules, can_steer=True) == BUSY
    assert refuse_by_count(arrival(solo=True), 1, rules, can_steer=False) is None
    assert refuse_by_count(arrival(solo=True), 2, rules, can_steer=False) == FULL
