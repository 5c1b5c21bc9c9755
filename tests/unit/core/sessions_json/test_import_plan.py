"""An index is brought in so that each session belongs to one lane, and nobody else's."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway_sessions.core.identity.keys import Isolation, session_owner
from gateway_sessions.core.identity.source import SessionSource
from gateway_sessions.core.sessions.entry import SessionEntry, SessionState
from gateway_sessions.core.sessions.reasons import EndReason
from gateway_sessions.core.sessions_json.import_plan import Continuation, plan_import

NOON = datetime(2026, 6, 10, 12, tzinfo=UTC)
FLAGS = Isolation()


def entry(lane: str, session: str, minutes: int = 0, **members) -> SessionEntry:
    at = NOON + timedelta(minutes=minutes)
    return SessionEntry(
        session_key=f"agent:main:telegram:dm:{lane}",
        session_id=session,
        created_at=NOON,
        updated_at=at,
        last_interaction_at=at,
        **members,
    )


def new_ids():
    return (f"new{number}" for number in itertools.count(1))


def planned(*entries: SessionEntry) -> dict[str, SessionEntry]:
    plan = plan_import(entries, new_ids(), FLAGS)
    return {one.session_key.rpartition(":")[2]: one for one in plan.entries}


def test_an_empty_index_brings_nothing():
    plan = plan_import([], new_ids(), FLAGS)
    assert plan.entries == plan.continuations == ()


def test_a_session_of_one_lane_stays_as_it_is():
    one = entry("a", "s1", owner="me", state=SessionState.SUSPENDED, state_reason="stopped")
    assert plan_import([one], new_ids(), FLAGS).entries == (one,)


def test_the_lane_that_used_a_shared_session_last_keeps_it():
    lanes = planned(entry("a", "s", 1), entry("b", "s", 3), entry("c", "s", 2))
    assert lanes["b"].session_id == "s"
    assert {lanes["a"].session_id, lanes["c"].session_id} == {"new1", "new2"}


def test_at_the_same_instant_the_keys_decide_so_that_a_repeat_decides_alike():
    first = planned(entry("a", "s"), entry("b", "s"))
    again = planned(entry("b", "s"), entry("a", "s"))
    assert first["b"].session_id == again["b"].session_id == "s"


def test_the_others_go_on_with_a_new_session_linked_to_the_shared_one():
    lost = planned(entry("a", "s", 1), entry("b", "s", 2))["a"]
    assert lost.previous_session_id == "s"
    assert lost.opened_by is EndReason.MOVED


@pytest.mark.parametrize("state", SessionState)
def test_a_mark_of_the_shared_session_does_not_pass_to_its_continuation(state):
    marked = entry("a", "s", 1, state=state, state_reason="restart_timeout", state_since=NOON)
    lost = planned(marked, entry("b", "s", 2))["a"]
    assert (lost.state, lost.state_reason, lost.state_since) == (SessionState.ACTIVE, None, None)


def test_each_continuation_is_reported():
    plan = plan_import([entry("a", "s", 1), entry("b", "s", 2)], new_ids(), FLAGS)
    prefix = "agent:main:telegram:dm:"
    assert plan.continuations == (Continuation(f"{prefix}a", "s", "new1", f"{prefix}b"),)


MATRIX = SessionSource(
    platform="matrix", chat_type="group", chat_id="!r:x.org", user_id="@a:x.org", thread_id="$t:1"
)


def under(key: str, session: str = "s", **members) -> SessionEntry:
    return entry("a", session, **members).altered(session_key=key)


class TestKeys:
    """Hermes joins parts raw; a lane under such a key would never be found again."""

    @pytest.mark.parametrize("flags", [Isolation(), Isolation(thread_sessions_per_user=True)])
    @pytest.mark.parametrize(
        ("theirs", "ours"),
        [
            ("agent:main:matrix:group:!r:x.org:$t:1", "agent:main:matrix:group:!r%3Ax.org:$t%3A1"),
            (
                "agent:main:matrix:group:!r:x.org:$t:1:@a:x.org",
                "agent:main:matrix:group:!r%3Ax.org:$t%3A1:@a%3Ax.org",
            ),
        ],
    )
    def test_a_lane_is_brought_in_under_the_key_that_its_origin_has_here(self, theirs, ours, flags):
        plan = plan_import([under(theirs, origin=MATRIX)], new_ids(), flags)
        assert [one.session_key for one in plan.entries] == [ours]

    @pytest.mark.parametrize(
        "key", ["agent:main:matrix:group:other:1", "agent:main:matrix:group:!r%3Ax.org:$t%3A1", "agent:x:y:z"]
    )
    def test_any_other_key_stays_as_it_is(self, key):
        plan = plan_import([under(key, origin=MATRIX)], new_ids(), FLAGS)
        assert [one.session_key for one in plan.entries] == [key]

    def test_a_lane_without_an_origin_stays_where_it_is(self):
        key = "agent:main:matrix:dm:a:b"
        assert plan_import([under(key)], new_ids(), FLAGS).entries[0].session_key == key

    def test_no_lane_takes_the_place_of_another(self):
        theirs, ours = "agent:main:matrix:group:!r:x.org:$t:1", "agent:main:matrix:group:!r%3Ax.org:$t%3A1"
        lanes = [under(theirs, "s1", origin=MATRIX), under(ours, "s2", origin=MATRIX)]
        for found in (lanes, lanes[::-1]):
            plan = plan_import(found, new_ids(), FLAGS)
            assert {one.session_key: one.session_id for one in plan.entries} == {theirs: "s1", ours: "s2"}


class TestOwners:
    def test_an_owner_that_is_known_stays(self):
        assert planned(entry("a", "s", owner="me"))["a"].owner == "me"

    def test_else_the_origin_tells_it(self):
        origin = SessionSource(platform="telegram", chat_id="a", user_id="7")
        assert planned(entry("a", "s", origin=origin))["a"].owner == session_owner(origin, FLAGS)

    def test_else_nobody_but_the_lane_may_see_it(self):
        lanes = planned(entry("a", "s1"), entry("b", "s2"))
        assert lanes["a"].owner != lanes["b"].owner
        assert lanes["a"].owner.startswith("lane:")


@given(
    found=st.lists(
        st.tuples(st.sampled_from("abcdef"), st.sampled_from(["s1", "s2", "s3"]), st.integers(0, 3)),
        unique_by=lambda one: one[0],
    )
)
def test_no_lane_is_lost_and_no_session_has_two(found):
    plan = plan_import([entry(*one) for one in found], new_ids(), FLAGS)
    assert {one.session_key[-1] for one in plan.entries} == {lane for lane, _, _ in found}
    sessions = [one.session_id for one in plan.entries]
    assert len(set(sessions)) == len(sessions)
    assert {session for _, session, _ in found} <= set(sessions)
    assert len(plan.continuations) == len(found) - len({session for _, session, _ in found})
