"""Words that are like others."""

import pytest

from gateway_sessions.core.search.near_words import MOST_NEAR, MOST_READ, NearWords, is_one_slip, trigrams


def near(word: str, *words: str) -> list[str]:
    one = NearWords([word])
    one.compare_words(words)
    return list(one.found.get(word, ()))


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("dokcer", "docker"),
        ("exakt", "exact"),
        ("dcker", "docker"),
        ("doccker", "docker"),
        ("dockers", "docker"),
        ("wrold", "world"),
        ("recieve", "receive"),
        ("neccesary", "necessary"),
        ("elastcsearh", "elasticsearch"),
        ("kubrnets", "kubernetes"),
        ("развертвание", "развертывание"),
    ],
)
def test_a_misspelt_word_is_like_the_right_one_and_the_other_way_round(wrong: str, right: str):
    assert near(wrong, right) == [right]
    assert near(right, wrong) == [wrong]


@pytest.mark.parametrize(
    ("word", "other"),
    [("docker", "docker"), ("docker", "python"), ("cat", "cats"), ("2024", "2025"), ("walrus", "zebra")],
)
def test_the_word_itself_strangers_short_words_and_numbers_are_not(word: str, other: str):
    assert near(word, other) == []


def test_the_likest_come_first_and_no_more_than_some():
    words = [f"docker{letter}{more}" for letter in "abcdefgh" for more in ("", "x", "y", "z")]
    found = near("docker", *words)
    assert len(found) == MOST_NEAR
    assert found[:8] == [f"docker{letter}" for letter in "abcdefgh"]


def test_words_are_compared_once_and_not_without_end():
    one = NearWords(["docker"])
    one.compare_words({"dokcer", "docker"})
    one.compare_words({"dokcer"})
    assert not one.is_full
    one.compare_words([str(number) for number in range(MOST_READ)])
    assert one.is_full
    one.compare_words(["dcker"])
    assert one.found == {"docker": ("dokcer",)}


def test_groups_are_counted_as_pg_trgm_does():
    assert trigrams("cat") == {"  c", " ca", "cat", "at "}


@pytest.mark.parametrize(
    ("one", "other", "slip"),
    [
        ("abcd", "abdc", True),
        ("abcd", "abcde", True),
        ("abcd", "bcd", True),
        ("abcd", "abxd", True),
        ("abcd", "badc", False),
        ("abcd", "abcdef", False),
        ("abcd", "axyd", False),
        ("aaaa", "aaa", True),
    ],
)
def test_one_slip_is_a_letter_or_two_that_changed_places(one: str, other: str, slip: bool):
    assert is_one_slip(one, other) is slip
    assert is_one_slip(other, one) is slip
