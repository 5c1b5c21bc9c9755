"""Keys are injective: who and where you are decides, and no spelling makes you somebody else."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import example, given
from hypothesis import strategies as st

from gateway_sessions.core.identity.keys import (
    Isolation,
    account_in_key,
    identity_key,
    key_at_account,
    owner_at_account,
    same_conversation,
    session_key,
    session_owner,
    without_account,
)
from gateway_sessions.core.identity.scope import Scope
from gateway_sessions.core.identity.source import SessionSource, check_identifier
from gateway_sessions.core.sessions_json.entries import check_stored_key
from gateway_sessions.errors import InvalidSourceError


def is_identifier(text: str) -> bool:
    try:
        check_identifier("id", text)
    except InvalidSourceError:
        return False
    return bool(text)


# Few letters, so that equal and nearly equal ids are common; then anything at all.
tricky = st.text("aA7:%3/. ", min_size=1, max_size=4) | st.sampled_from(
    [
        "%chat",
        "%user",
        "%thread",
        "%account",
        ":%user:",
        "main",
        "dm",
        "é",
        "e\u0301",
        "ß",
        "ss",
        "\uff41",
        "%3A",
        "%25",
    ]
)
ids = (tricky | st.text(min_size=1, max_size=8)).filter(is_identifier)
sources = st.builds(
    SessionSource,
    platform=st.sampled_from(["telegram", "matrix", "a:b"]),
    chat_type=st.sampled_from(["dm", "group", "thread", "a:b"]),
    chat_id=st.just("") | ids,
    user_id=st.none() | ids,
    user_id_alt=st.none() | ids,
    thread_id=st.none() | ids,
    account=st.just("") | ids,
    profile=st.sampled_from([None, "default", "work", "a:b"]),
)
flags = st.builds(
    Isolation,
    group_sessions_per_user=st.booleans(),
    thread_sessions_per_user=st.booleans(),
    profile=st.sampled_from([None, "work", "a:b", "%"]),
    multiplex_profiles=st.booleans(),
)


def who_and_where(source: SessionSource, isolation: Isolation) -> tuple[object, ...]:
    """The conversation in plain words: what has to be equal for two messages to be in one."""
    person = source.user_id_alt or source.user_id
    profile = source.profile if isolation.multiplex_profiles and source.profile else isolation.profile
    through = (profile if profile not in (None, "default") else "main", source.platform, source.account)
    place = (through, source.chat_type, source.chat_id)
    if source.chat_type == "dm":
        return (*place, None if source.chat_id else person or None, source.thread_id or None)
    private = isolation.group_sessions_per_user and (
        not source.thread_id or isolation.thread_sessions_per_user
    )
    return (*place, person or None if private else None, source.thread_id or None)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[SessionSource, SessionSource]:
    """Two sources that differ in a little, or in which parts have changed places."""
    one = draw(sources)
    parts = [one.chat_id, one.user_id, one.user_id_alt, one.thread_id, one.account, draw(ids), None]
    chosen = [draw(st.sampled_from(parts)) for _ in range(4)]
    other = SessionSource(
        platform=draw(st.sampled_from([one.platform, "matrix"])),
        chat_type=draw(st.sampled_from([one.chat_type, "dm"])),
        chat_id=chosen[0] or "",
        user_id=chosen[1],
        user_id_alt=chosen[2],
        thread_id=chosen[3],
        account=draw(st.sampled_from([one.account, one.account, one.chat_id, ""])),
        profile=draw(st.sampled_from([one.profile, "work", None])),
    )
    return one, other


@given(pair=pairs(), isolation=flags)
@example(
    pair=(
        SessionSource(platform="slack", chat_type="group", chat_id="a:b"),
        SessionSource(platform="slack", chat_type="group", chat_id="a", thread_id="b"),
    ),
    isolation=Isolation(),
)
@example(
    pair=(
        SessionSource(platform="slack", chat_type="group", chat_id="C", user_id="7"),
        SessionSource(platform="slack", chat_type="group", chat_id="C", thread_id="7"),
    ),
    isolation=Isolation(),
)
def test_two_sources_have_one_identity_exactly_if_they_are_in_one_conversation(pair, isolation):
    one, other = pair
    same = who_and_where(one, isolation) == who_and_where(other, isolation)
    assert (identity_key(one, isolation) == identity_key(other, isolation)) == same
    assert same_conversation(one, other, isolation) == same


@given(pair=pairs(), isolation=flags)
def test_one_conversation_has_one_plain_key_and_one_owner(pair, isolation):
    one, other = pair
    if who_and_where(one, isolation) == who_and_where(other, isolation):
        assert session_key(one, isolation) == session_key(other, isolation)
        if one.participant_id == other.participant_id or not isolation.separates_people(one):
            assert session_owner(one, isolation) == session_owner(other, isolation)


@given(pair=pairs(), isolation=flags)
def test_nobody_s_plain_key_is_somebody_s_identity(pair, isolation):
    one, other = pair
    if who_and_where(one, isolation)[2:] != ("", None, None):
        assert session_key(other, isolation) != identity_key(one, isolation)


@given(one=sources, isolation=flags)
def test_an_account_is_a_part_of_its_own_in_keys_and_owners(one, isolation):
    nameless = replace(one, account="")
    for named in (session_key(one, isolation), identity_key(one, isolation), session_owner(one, isolation)):
        assert account_in_key(named) == one.account
    for key_of in (session_key, identity_key):
        key = key_of(nameless, isolation)
        assert without_account(key_of(one, isolation)) == key
        assert key_at_account(key, one.account) == key_of(one, isolation)
    owner = session_owner(nameless, isolation)
    assert without_account(session_owner(one, isolation)) == owner
    assert owner_at_account(owner, one.account) == session_owner(one, isolation)


@given(one=sources, isolation=flags)
def test_every_key_can_stand_in_sessions_json(one, isolation):
    for key in (session_key(one, isolation), identity_key(one, isolation)):
        assert check_stored_key(key) == key


@given(pair=pairs(), isolation=flags)
def test_nobody_sees_a_private_session_of_somebody_else(pair, isolation):
    asking, asked = pair
    seen = Scope.of(asking, isolation).sees(owner=session_owner(asked, isolation), session_key=None)
    if isolation.separates_people(asked) and asked.participant_id and seen:
        assert (asking.platform, asking.account) == (asked.platform, asked.account)
        assert asking.participant_id == asked.participant_id


@given(pair=pairs(), isolation=flags)
def test_nobody_sees_the_sessions_of_a_room_they_are_not_in(pair, isolation):
    asking, asked = pair
    seen = Scope.of(asking, isolation).sees(owner=session_owner(asked, isolation), session_key=None)
    if not isolation.separates_people(asked) and seen:
        assert (asking.platform, asking.account) == (asked.platform, asked.account)
        assert (asking.chat_type, asking.chat_id, asking.thread_id or None) == (
            asked.chat_type,
            asked.chat_id,
            asked.thread_id or None,
        )
