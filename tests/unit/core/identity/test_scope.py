"""Who may see what."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway_sessions.core.identity.keys import Isolation, session_owner
from gateway_sessions.core.identity.scope import Scope
from gateway_sessions.core.identity.source import SessionSource


def source(chat_type="dm", chat="c", user="u", thread=None, platform="telegram", **more) -> SessionSource:
    return SessionSource(
        platform=platform, chat_type=chat_type, chat_id=chat, user_id=user, thread_id=thread, **more
    )


def sees(asking: SessionSource, asked: SessionSource, flags: Isolation | None = None) -> bool:
    flags = flags or Isolation()
    return Scope.of(asking, flags).sees(owner=session_owner(asked, flags), session_key="agent:main:any")


def test_nothing_is_visible_by_default():
    assert not Scope().sees(owner="", session_key=None)
    assert not Scope().sees(owner="main:telegram:user:u", session_key="agent:main:telegram:dm:c")


def test_an_operator_sees_everything():
    assert Scope.operator().sees(owner="whoever", session_key=None)


def test_a_lane_is_seen_alone():
    scope = Scope.lane("agent:main:telegram:dm:1")
    assert scope.sees(owner="whoever", session_key="agent:main:telegram:dm:1")
    assert not scope.sees(owner="whoever", session_key="agent:main:telegram:dm:11")
    assert not scope.sees(owner="whoever", session_key=None)


@pytest.mark.parametrize(
    "asked",
    [
        source(),
        source(chat="other"),
        source("group", "g"),
        source("thread", "g", thread="t"),
        source(thread="t"),
    ],
    ids=str,
)
def test_a_person_sees_all_of_their_own_sessions_on_the_account(asked):
    private = Isolation(thread_sessions_per_user=True)
    assert sees(source(), asked, private)


@pytest.mark.parametrize(
    "asked",
    [
        source(user="v", chat="d"),
        source("group", "g", user="v"),
        source(platform="discord"),
        source(user="U"),
    ],
    ids=str,
)
def test_a_person_sees_nobody_else_s_sessions(asked):
    assert not sees(source(), asked)


def test_the_sessions_of_a_shared_room_are_seen_by_who_is_in_it():
    shared = Isolation(group_sessions_per_user=False)
    assert sees(source("group", "g", "u"), source("group", "g", "v"), shared)
    assert not sees(source("group", "g", "u"), source("group", "h", "v"), shared)


def test_the_sessions_of_a_shared_room_are_not_seen_from_outside():
    shared = Isolation(group_sessions_per_user=False)
    assert not sees(source("dm", "d", "u"), source("group", "g", "u"), shared)


def test_the_sessions_of_a_thread_are_seen_from_the_thread_only():
    assert sees(source("thread", "g", "u", "t"), source("thread", "g", "v", "t"))
    assert not sees(source("thread", "g", "u"), source("thread", "g", "v", "t"))
    assert not sees(source("thread", "g", "u", "s"), source("thread", "g", "v", "t"))


def test_a_direct_chat_whose_id_is_that_of_a_group_does_not_open_the_group():
    shared = Isolation(group_sessions_per_user=False)
    assert not sees(source("dm", "5", "u"), source("group", "5", "v"), shared)


def test_where_a_platform_names_no_person_a_direct_chat_sees_its_own_sessions_only():
    assert sees(source(user=None), source(user=None))
    assert not sees(source(user=None), source(user=None, chat="other"))


def test_a_nameless_person_in_a_group_sees_the_room_only():
    assert sees(source("group", "g", None), source("group", "g", None))
    assert not sees(source("group", "g", None), source("group", "g", "u"))


def test_the_same_names_under_another_profile_are_other_people():
    mine = Scope.of(source(), Isolation(profile="work"))
    assert not mine.sees(owner=session_owner(source(), Isolation()), session_key=None)


def test_another_account_of_the_platform_sees_nothing_of_this_one():
    mine = replace(source(), account="support")
    for other in (source(), replace(source(), account="sales")):
        assert not sees(other, mine)
        assert not sees(mine, other)
    room, shared = replace(source("group", "g"), account="support"), Isolation(group_sessions_per_user=False)
    assert sees(room, room, shared)
    assert not sees(replace(room, account="sales"), room, shared)


def test_separators_in_names_do_not_make_somebody_else():
    assert not sees(source(user="u:x"), source(user="u%3Ax"))
    shared = Isolation(group_sessions_per_user=False)
    assert not sees(source("group", "a:b"), source("group", "a", thread="b"), shared)


def test_in_a_direct_chat_the_owners_sessions_are_shown_and_elsewhere_those_of_the_lane():
    person = Scope(owners=frozenset({"ann", "room"}))
    assert person.shown_in(owner="ann", session_key="k", direct=True) == Scope(owners=frozenset({"ann"}))
    assert person.shown_in(owner="bob", session_key="k", direct=True) == Scope()
    assert person.shown_in(owner="ann", session_key="k", direct=False) == Scope.lane("k")
