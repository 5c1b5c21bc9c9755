"""Which rules count for whom while a lane is busy."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from gateway_sessions.core.queue.busy_modes import BusyBook, BusyRules
from gateway_sessions.core.sessions.busy_mode import BusyMode

DEFAULT = BusyRules(max_queued=1)
PLATFORM = BusyRules(mode=BusyMode.STEER, max_queued=2)
GROUP = BusyRules(mode=BusyMode.COLLECT, max_queued=3)
BOOK = BusyBook(
    default=DEFAULT, by_platform={" Telegram": PLATFORM}, by_chat_type={("TELEGRAM", "group"): GROUP}
)


@pytest.mark.parametrize(
    ("platform", "chat_type", "rules"),
    [
        ("telegram", "group", GROUP),
        ("telegram", "dm", PLATFORM),
        ("discord", "group", DEFAULT),
        ("discord", "dm", DEFAULT),
        (None, "dm", DEFAULT),
    ],
)
def test_the_nearest_rules_count(platform, chat_type, rules):
    assert BOOK.rules_for(platform, chat_type) is rules
    assert BOOK.rules_for(platform, chat_type, rules.mode) is rules


@pytest.mark.parametrize(
    "where", [("telegram", "group"), ("telegram", "dm"), ("discord", "dm"), (None, "dm")]
)
def test_a_session_of_its_own_mind_comes_first(where):
    own = BusyRules(mode=BusyMode.REJECT, max_queued=9)
    assert BOOK.rules_for(*where, own) is own
    mode_alone = BOOK.rules_for(*where, BusyMode.REJECT)
    assert mode_alone == replace(BOOK.rules_for(*where), mode=BusyMode.REJECT)


def test_it_knows_where_a_burst_may_pause_longest():
    patient = BusyRules(debounce=timedelta(seconds=0.7))
    assert BusyBook().longest_debounce == BusyRules().debounce
    assert BusyBook(default=patient).longest_debounce == patient.debounce
    assert BusyBook(by_platform={"telegram": patient}).longest_debounce == patient.debounce
    assert BusyBook(by_chat_type={("telegram", "group"): patient}).longest_debounce == patient.debounce


def test_changing_what_it_was_made_from_changes_nothing():
    rules = {"telegram": PLATFORM}
    book = BusyBook(by_platform=rules)
    rules["telegram"] = GROUP
    assert book.rules_for("telegram", "dm") is PLATFORM
    assert book.rules_for("discord", "dm") == BusyRules()
    with pytest.raises(TypeError):
        book.by_platform["telegram"] = GROUP
