"""Which messages of a group are for the bot: one decision for all platforms, tried in every combination."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway_sessions.adapters.group_talk import (
    BEHIND_MENTION,
    Address,
    GroupRules,
    GroupTalk,
    Hearing,
    as_group_rules,
    hearing_in_thread,
    without_mention,
)
from gateway_sessions.errors import InvalidInputError

YES, NO = True, False
COMMANDS = {"": None, "hello": None, "/new": "", " /new now": "", "/new@Helper": "own", "/new@other": "other"}
"""Texts, and whom a command in them calls: nobody by name, the bot, or another bot; None: there is none."""


def every_address() -> Iterator[Address]:
    flags = ("private", "own", "by_bot", "changes", "mentions", "answers")
    for text, takes_part in itertools.product(COMMANDS, (YES, NO, None)):
        for values in itertools.product((YES, NO), repeat=len(flags)):
            told: dict[str, Any] = dict(zip(flags, values, strict=True))
            yield Address(text=text, takes_part=takes_part, names=("helper",), **told)


def expected(address: Address, groups: GroupTalk | Callable[[Any], bool]) -> Hearing:
    """Return what the how-to pages promise, as a list in which the first line that holds decides."""
    called = COMMANDS[address.text]
    talk = groups if isinstance(groups, GroupTalk) else None
    rules: list[tuple[bool, Hearing]] = [
        (address.own, Hearing.IGNORED),
        (called == "other", Hearing.IGNORED),
        (address.changes, Hearing.FOR_BOT),
        (address.by_bot and address.mentions, Hearing.FOR_BOT),
        (address.by_bot, Hearing.OVERHEARD),
        (address.private, Hearing.FOR_BOT),
        (talk is None, Hearing.FOR_BOT if talk is None and groups("raw") else Hearing.OVERHEARD),
        (talk is GroupTalk.ALL, Hearing.FOR_BOT),
        (address.mentions, Hearing.FOR_BOT),
        (address.answers, Hearing.FOR_BOT),
        (called is not None, Hearing.FOR_BOT),
        (address.takes_part is True, Hearing.FOR_BOT),
        (address.takes_part is None, Hearing.UNDECIDED),
        (YES, Hearing.OVERHEARD),
    ]
    return next(hearing for holds, hearing in rules if holds)


@pytest.mark.parametrize(
    "groups", [*GroupTalk, lambda raw: raw == "raw", lambda _: NO], ids=["mention", "all", "yes", "no"]
)
def test_each_combination_is_decided_as_the_pages_say(groups: GroupTalk | Callable[[Any], bool]):
    rules = GroupRules[Any](groups)
    addresses = list(every_address())
    assert len(addresses) == 6 * 3 * 2**6
    for address in addresses:
        assert rules.hearing(address, "raw") is expected(address, groups), address


def test_what_a_function_decides_is_not_asked_of_it_where_it_decides_nothing():
    asked: list[object] = []
    rules = GroupRules[Any](asked.append)
    private, own, change = Address(private=YES), Address(own=YES), Address(changes=YES)
    assert [rules.hearing(one, "raw") for one in (private, own, change)] == [
        Hearing.FOR_BOT,
        Hearing.IGNORED,
        Hearing.FOR_BOT,
    ]
    assert not asked
    assert rules.hearing(Address(mentions=YES), "raw") is Hearing.OVERHEARD
    assert asked == ["raw"]


def test_a_bot_without_known_names_takes_each_command_as_its_own():
    assert GroupRules[Any]().hearing(Address(text="/stop@anybody"), None) is Hearing.FOR_BOT


@pytest.mark.parametrize("text", ["/", "//", "/etc/hosts", "and/or", "a /new"])
def test_a_path_is_no_command(text: str):
    assert GroupRules[Any]().hearing(Address(text=text), None) is Hearing.OVERHEARD


@pytest.mark.parametrize(
    ("takes_part", "hearing"), [(YES, Hearing.FOR_BOT), (NO, Hearing.OVERHEARD), (None, Hearing.UNDECIDED)]
)
def test_a_thread_decides_for_what_only_it_addresses(takes_part: bool | None, hearing: Hearing):
    assert hearing_in_thread(takes_part=takes_part) is hearing


def test_a_word_says_what_the_member_says():
    assert GroupRules[Any]("all").hearing(Address(), None) is Hearing.FOR_BOT
    assert GroupRules[Any]("all").hear_all
    assert GroupRules[Any](lambda _: YES).hear_all
    assert not GroupRules[Any]("mention").hear_all


def test_another_word_is_refused_in_one_sentence():
    with pytest.raises(InvalidInputError, match="groups = 'some': must be 'mention', 'all', or a function"):
        GroupRules[Any]("some")


def test_a_function_that_fails_makes_the_message_unreadable():
    with pytest.raises(InvalidInputError, match=r"a function of the program failed with it \(KeyError"):
        GroupRules[dict[str, str]](lambda raw: bool(raw["nothing"])).hearing(Address(), {})


# The text


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("@me hello", "hello"),
        ("  @me, hello", "hello"),
        ("@me: @me hello", "hello"),
        ("hello @me", "hello"),
        ("hello @me @me  ", "hello"),
        ("hello, @me you", "hello, @me you"),
        ("@me hello @me", "hello @me"),
        ("hello", "hello"),
        ("@me", ""),
        ("", ""),
        (" hello ", " hello "),
        ("@me /new", "/new"),
    ],
)
def test_a_mention_at_an_end_is_no_part_of_the_text(text: str, left: str):
    places = [(at, at + 3) for at in range(len(text)) if text.startswith("@me", at)]
    assert without_mention(text, places) == left
    assert without_mention(text, reversed(places)) == left


@given(st.lists(st.sampled_from(["@me", " ", ",", "\n", "word", "😀"]), max_size=12))
def test_nothing_but_mentions_and_what_stands_between_them_is_taken_away(parts: list[str]):
    text, places = "", list[tuple[int, int]]()
    for part in parts:
        if part == "@me":
            places.append((len(text), len(text) + 3))
        text += part
    left = without_mention(text, places)
    assert left in text
    for word in ("word", "😀"):
        assert left.count(word) == text.count(word)
    if places and not text[: places[0][0]].strip(BEHIND_MENTION):
        assert not left.startswith("@me")


# What is kept


@pytest.mark.parametrize("observe", [NO, YES])
def test_what_people_say_to_each_other_is_kept_only_if_that_is_wanted(observe: bool):
    rules = GroupRules[Any]("mention", observe=observe)
    kept = [hearing for hearing in Hearing if rules.keeps(hearing)]
    assert kept == [Hearing.FOR_BOT, Hearing.UNDECIDED, *([Hearing.OVERHEARD] if observe else [])]
    assert rules.hear_all is observe


def test_an_adapter_takes_a_word_a_function_or_rules():
    rules = GroupRules[Any]("all", observe=YES)
    assert as_group_rules(rules) is rules
    assert as_group_rules("all") == GroupRules("all")
    assert as_group_rules(GroupTalk.MENTION) == GroupRules()
