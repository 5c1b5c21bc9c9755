"""Which account gets a lane that several may have used."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway_sessions.core.identity.account_lane_assignment import (
    AccountUse,
    LaneChoice,
    choose_accounts,
    fallback_accounts,
)
from gateway_sessions.core.identity.keys import key_at_account

ANN = "agent:main:telegram:dm:ann"
BOB = "agent:main:telegram:dm:bob"


def test_the_account_that_wrote_last_gets_the_lane_and_the_others_a_link():
    used = [AccountUse(ANN, "sales", 5), AccountUse(ANN, "support", 7), AccountUse(ANN, "sales", 6)]
    assert choose_accounts(used) == [LaneChoice(ANN, "support", ("sales",))]


def test_at_the_same_instant_the_name_decides():
    used = [AccountUse(ANN, "b", 5), AccountUse(ANN, "a", 5)]
    assert choose_accounts(used) == choose_accounts(reversed(used)) == [LaneChoice(ANN, "a", ("b",))]


def test_an_account_without_a_name_keeps_the_lane_that_it_used_last():
    used = [AccountUse(ANN, "support", 5), AccountUse(ANN, "", 7)]
    assert choose_accounts(used) == [LaneChoice(ANN, "", ("support",))]
    assert choose_accounts([AccountUse(ANN, "", 7)]) == []


def test_an_account_without_a_name_is_linked_to_a_lane_that_it_lost():
    used = [AccountUse(ANN, "support", 7), AccountUse(ANN, "", 5)]
    assert choose_accounts(used) == [LaneChoice(ANN, "support", ("",))]


def test_lanes_of_accounts_are_theirs_already():
    named = key_at_account(ANN, "support")
    used = [AccountUse(named, "support", 7), AccountUse(named, "sales", 9)]
    assert choose_accounts(used, [named], {"telegram": "sales"}) == []


def test_lanes_of_which_nothing_tells_go_where_they_are_meant_to():
    choices = choose_accounts([AccountUse(ANN, "", 1)], [ANN, BOB], {"telegram": "support"})
    assert choices == [LaneChoice(BOB, "support", known=False)]
    assert choose_accounts([], [ANN, BOB]) == []


def test_an_account_that_gets_a_name_takes_its_lanes_along():
    used = [
        AccountUse(ANN, "", 7),
        AccountUse(ANN, "sales", 5),
        AccountUse(BOB, "sales", 7),
        AccountUse(BOB, "", 5),
    ]
    choices = choose_accounts(used, [ANN, BOB], {"telegram": "support"}, unnamed_too=True)
    assert choices == [LaneChoice(ANN, "support", ("sales",)), LaneChoice(BOB, "sales", ("support",))]


def test_an_account_that_used_a_lane_with_and_without_a_name_is_one():
    used = [AccountUse(BOB, "", 0), AccountUse(BOB, "a", 0), AccountUse(BOB, "b", 1)]
    assert choose_accounts(used, [BOB], {"telegram": "a"}, unnamed_too=True) == [LaneChoice(BOB, "b", ("a",))]


@pytest.mark.parametrize(
    ("serving", "goes_to"),
    [
        ([("telegram", "support")], {"telegram": "support"}),
        ([("telegram", "support"), ("telegram", "sales")], {"telegram": "support"}),
        ([("telegram", "support"), ("telegram", "")], {}),
        ([("telegram", "")], {}),
        ([("telegram", "a"), ("slack", "b")], {"telegram": "a", "slack": "b"}),
        ([], {}),
    ],
)
def test_where_lanes_go_of_which_nothing_tells(serving, goes_to):
    assert fallback_accounts(serving) == goes_to


ACCOUNTS = st.sampled_from(["", "a", "b", "c"])
USES = st.lists(st.builds(AccountUse, st.sampled_from([ANN, BOB]), ACCOUNTS, st.integers(0, 9)))


@given(USES, st.sampled_from([{}, {"telegram": "a"}]), st.booleans())
def test_every_account_that_used_a_lane_gets_it_or_a_link_to_it(used, fallback, unnamed_too):
    choices = {
        one.session_key: one for one in choose_accounts(used, [ANN, BOB], fallback, unnamed_too=unnamed_too)
    }
    renamed = fallback.get("telegram", "") if unnamed_too else ""
    for key in (ANN, BOB):
        wrote = {one.account or renamed for one in used if one.session_key == key}
        choice = choices.get(key)
        if choice is None:
            assert wrote <= {""}
            continue
        got = {choice.account, *choice.others}
        assert len(got) == 1 + len(choice.others), "no account gets it twice"
        assert got == (wrote or {fallback.get("telegram", "")})
