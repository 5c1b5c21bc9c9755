"""The hash of an agent's settings: the same for the same, and another one for what makes another agent."""

import hashlib
import re
from collections import OrderedDict
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway_sessions.core.sessions.agent_validity import agent_config_hash
from gateway_sessions.errors import InvalidInputError

NAMES = st.text("abc", min_size=1, max_size=2)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
SETTINGS = st.dictionaries(NAMES, VALUES, max_size=4)


def turned_around(value):
    """The same settings, told in another order and other types."""
    if isinstance(value, dict):
        return MappingProxyType({name: turned_around(value[name]) for name in reversed(value)})
    return tuple(map(turned_around, value)) if isinstance(value, list) else value


def without_none(value):
    if isinstance(value, dict):
        return {name: without_none(one) for name, one in value.items() if one is not None}
    return [without_none(one) for one in value] if isinstance(value, list) else value


@given(SETTINGS)
def test_neither_the_order_of_members_nor_their_container_counts(settings):
    assert agent_config_hash(turned_around(settings)) == agent_config_hash(settings)


@given(SETTINGS)
def test_none_counts_as_absent_at_any_depth(settings):
    assert agent_config_hash(without_none(settings)) == agent_config_hash(settings)


@given(SETTINGS, NAMES, st.integers())
def test_another_value_gives_another_hash(settings, name, value):
    assert agent_config_hash({**settings, name: value}) != agent_config_hash({**settings, name: value + 1})


def test_it_is_sixteen_hexadecimal_digits_and_stays_the_same_from_release_to_release():
    known = agent_config_hash({"model": "m", "tools": ["b", "a"]}, secrets={"api_key": "k"})
    assert known == "f55e745932a4cfd0"
    assert re.fullmatch("[0-9a-f]{16}", agent_config_hash())


def test_no_settings_at_all_are_the_same_in_every_form():
    forms = [
        agent_config_hash(),
        agent_config_hash(None),
        agent_config_hash({}),
        agent_config_hash({"a": None}),
    ]
    forms += [agent_config_hash(secrets={}), agent_config_hash(secrets={"api_key": None})]
    assert len(set(forms)) == 1


def test_what_has_no_order_is_given_as_a_set_and_what_has_one_as_a_list():
    assert agent_config_hash({"tools": {"b", "a"}}) == agent_config_hash({"tools": frozenset({"a", "b"})})
    assert agent_config_hash({"tools": ["b", "a"]}) != agent_config_hash({"tools": ["a", "b"]})


def test_an_empty_list_of_tools_is_not_the_default_one():
    assert agent_config_hash({"tools": []}) != agent_config_hash({})


@pytest.mark.parametrize("pair", [(1, 1.0), (1, True), ("1", 1), ("", None), (0, False)], ids=repr)
def test_values_of_different_types_are_different(pair):
    one, other = (agent_config_hash({"n": value}) for value in pair)
    assert one != other


def test_another_key_makes_another_agent_and_a_secret_is_not_a_setting():
    one = agent_config_hash({"model": "m"}, secrets={"api_key": "sk-1"})
    assert one != agent_config_hash({"model": "m"}, secrets={"api_key": "sk-2"})
    assert one != agent_config_hash({"model": "m"}, secrets={"other_key": "sk-1"})
    digest = hashlib.sha256(b"sk-1").hexdigest()
    assert one != agent_config_hash({"model": "m", "secrets": {"api_key": digest}})


def test_halves_of_characters_are_hashed_like_any_other():
    assert agent_config_hash({"a": "\ud800"}, secrets={"k": "\ud800"}) != agent_config_hash({"a": "\ud801"})


@pytest.mark.parametrize(
    ("settings", "where"),
    [
        ({"a": {"b": [b"sk-secret"]}}, r"settings\.a\.b holds a value of bytes"),
        ({"a": object()}, r"settings\.a holds a value of object"),
        ({"a": {"b": {1: "sk-secret"}}}, r"settings\.a\.b has a member whose name is of int"),
    ],
)
def test_what_is_not_plain_is_refused_by_its_place_and_never_shown(settings, where):
    with pytest.raises(InvalidInputError, match=where) as caught:
        agent_config_hash(settings)
    assert "sk-secret" not in str(caught.value)


def test_settings_that_hold_themselves_are_refused():
    settings = OrderedDict(name="x")
    settings["self"] = settings
    with pytest.raises(InvalidInputError, match="nested too deeply"):
        agent_config_hash(settings)
