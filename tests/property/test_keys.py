"""Keys are injective: who and where you are decides, and no spelling makes you somebody else."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from gateway_sessions.core.entry_codec import check_stored_key
from gateway_sessions.core.keys import Isolation, identity, owner_of, same_conversation, session_key
from gateway_sessions.core.scope import Scope
from gateway_sessions.core.source import SessionSource, check_identifier
from gateway_sessions.errors import InvalidSourceError


def is_identifier(text: str) -> bool:
    try:
        check_identifier("id", text)
    except InvalidSourceError:
        return False
    return bool(text)


# Few letters, so that equal and nearly equal ids are common; then anything at all.
tricky = st.text("aA7:%3/. ", min_size=1, max_size=4) | st.sampled_from(
    ["%chat", "%user", "%thread", ":%user:", "main", "dm", "é", "e\u0301", "ß", "ss", "\uff41", "%3A", "%25"]
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
)
flags = st.builds(
    Isolation,
    group_sessions_per_user=st.booleans(),
    thread_sessions_per_user=st.booleans(),
    profile=st.sampled_from([None, "work", "a:b", "%"]),
)


def who_and_where(source: SessionSource, isolation: Isolation) -> tuple[object, ...]:
    """The conversation in plain words: what has to be equal for two messages to be in one."""
    person = source.user_id_alt or source.user_id
    place = (isolation.namespace, source.platform, source.chat_type, source.chat_id)
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
    parts = [one.chat_id, one.user_id, one.user_id_alt, one.thread_id, draw(ids), None]
    chosen = [draw(st.sampled_from(parts)) for _ in range(4)]
    other = SessionSource(
        platform=draw(st.sampled_from([one.platform, "matrix"])),
        chat_type=draw(st.sampled_from([one.chat_type, "dm"])),
        chat_id=chosen[0] or "",
        user_id=chosen[1],
        user_id_alt=chosen[2],
        thread_id=chosen[3],
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
    assert (identity(one, isolation) == identity(other, isolation)) == same
    assert same_conversation(one, other, isolation) == same


@given(pair=pairs(), isolation=flags)
def test_one_conversation_has_one_plain_key_and_one_owner(pair, isolation):
    one, other = pair
    if who_and_where(one, isolation) == who_and_where(other, isolation):
        assert session_key(one, isolation) == session_key(other, isolation)
        if one.participant_id == other.participant_id or not isolation.separates_people(one):
            assert owner_of(one, isolation) == owner_of(other, isolation)


@given(pair=pairs(), isolation=flags)
def test_nobody_s_plain_key_is_somebody_s_identity(pair, isolation):
    one, other = pair
    if who_and_where(one, isolation)[3:] != ("", None, None):
        assert session_key(other, isolation) != identity(one, isolation)


@given(one=sources, isolation=flags)
def test_every_key_can_stand_in_sessions_json(one, isolation):
    for key in (session_key(one, isolation), identity(one, isolation)):
        assert check_stored_key(key) == key


@given(pair=pairs(), isolation=flags)
def test_nobody_sees_a_private_session_of_somebody_else(pair, isolation):
    asking, asked = pair
    seen = Scope.of(asking, isolation).sees(owner=owner_of(asked, isolation), session_key=None)
    if isolation.separates_people(asked) and asked.participant_id and seen:
        assert (asking.platform, asking.participant_id) == (asked.platform, asked.participant_id)


@given(pair=pairs(), isolation=flags)
def test_nobody_sees_the_sessions_of_a_room_they_are_not_in(pair, isolation):
    asking, asked = pair
    seen = Scope.of(asking, isolation).sees(owner=owner_of(asked, isolation), session_key=None)
    if not isolation.separates_people(asked) and seen:
        assert (asking.platform, asking.chat_type, asking.chat_id, asking.thread_id or None) == (
            asked.platform,
            asked.chat_type,
            asked.chat_id,
            asked.thread_id or None,
        )
