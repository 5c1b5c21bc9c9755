"""Keys as Hermes spells them, and which of two lanes gets one that both would have there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway_sessions.core.identity.hermes_keys import hermes_key, spell_for_hermes
from gateway_sessions.core.identity.keys import identity_key, session_key, unencoded_key
from tests.property.store.test_keys import flags, sources

ROOM = "agent:main:matrix:group:!r%3Ahs.org:@u%3Ahs.org"


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("agent:main:telegram:dm:99", "agent:main:telegram:dm:99"),
        (ROOM, "agent:main:matrix:group:!r:hs.org:@u:hs.org"),
        ("agent:main:email:dm:50%25", "agent:main:email:dm:50%"),
        ("agent:main:email:dm:%253A", "agent:main:email:dm:%3A"),
        ("agent:main:slack:group:%chat:C:%thread:7", "agent:main:slack:group:C:7"),
        ("agent:main:telegram:dm:%account:support:99", "agent:main:telegram:dm:99"),
        ("agent:main:matrix:group:%account:a%3Ab:%chat:!r%3Ah", "agent:main:matrix:group:!r:h"),
        ("agent:main:matrix:group:%25chat:x", "agent:main:matrix:group:%chat:x"),
    ],
)
def test_parts_are_joined_as_they_are(ours, theirs):
    assert hermes_key(ours) == theirs


@given(sources, flags)
def test_it_is_what_hermes_makes_of_the_same_origin(source, isolation):
    theirs = unencoded_key(source, isolation)
    assert hermes_key(session_key(source, isolation)) == theirs
    assert hermes_key(identity_key(source, isolation)) == theirs


def test_only_keys_that_differ_are_spelt():
    assert spell_for_hermes(["agent:main:telegram:dm:99", ROOM]).keys == {ROOM: hermes_key(ROOM)}
    assert spell_for_hermes(["agent:main:telegram:dm:99"]).keys == {}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("agent:main:slack:group:C:7", "agent:main:slack:group:%chat:C:%thread:7"),
        ("agent:main:telegram:dm:99", "agent:main:telegram:dm:%account:support:99"),
        ("agent:main:telegram:dm:%account:sales:99", "agent:main:telegram:dm:%account:support:99"),
        ("agent:main:matrix:dm:a%3Ab", "agent:main:matrix:dm:%account:support:a%3Ab"),
        ("agent:main:matrix:dm:a%3Ab:c", "agent:main:matrix:dm:a:b%3Ac"),
    ],
)
def test_of_two_lanes_with_one_key_there_one_keeps_its_own(first, second):
    for keys in ([first, second], [second, first]):
        spelling = spell_for_hermes(keys)
        names = [spelling.keys.get(one, one) for one in keys]
        assert len(set(names)) == 2
        assert hermes_key(first) in names
        assert len(spelling.taken) == 1
    assert spell_for_hermes([first]).taken == ()


@given(st.lists(sources, max_size=6), flags, st.data())
def test_no_two_lanes_ever_have_one_name_in_the_file(found, isolation, data):
    make = data.draw(st.sampled_from([session_key, identity_key]))
    keys = {session_key(found[0], isolation)} if found else set()
    keys |= {make(one, isolation) for one in found}
    spelling = spell_for_hermes(keys)
    assert len({spelling.keys.get(one, one) for one in keys}) == len(keys)
    assert set(spelling.taken) | set(spelling.keys) <= keys
