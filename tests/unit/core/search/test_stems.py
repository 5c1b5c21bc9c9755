"""Words in all their forms."""

import random
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from importlib.metadata import version
from importlib.resources import files

import pytest
from snowballstemmer.among import Among

from gateway_sessions.core.search.criteria import Words, criterion_of
from gateway_sessions.core.search.stems import (
    CHANGE_BEGINNINGS,
    FORM,
    NO_STEMS,
    SNOWBALL,
    Stemming,
    Stems,
    stemming_of,
)
from gateway_sessions.core.search.tokenizer import folded_words, tokens_of_text, without_accents
from gateway_sessions.errors import InvalidInputError

ENGLISH, GERMAN, RUSSIAN, FRENCH = (
    Stems(one) for one in (Stemming.ENGLISH, Stemming.GERMAN, Stemming.RUSSIAN, Stemming.FRENCH)
)


def finds(stems: Stems, query: str, text: str) -> bool:
    wanted = criterion_of(query, literal=False, stems=stems)
    assert isinstance(wanted, Words)
    return wanted.matches_fields([text])


@pytest.mark.parametrize(
    ("stems", "query", "text"),
    [
        (ENGLISH, "run", "I was RUNNING late"),
        (ENGLISH, "running", "run!"),
        (ENGLISH, "deployments", "a deployment failed"),
        (ENGLISH, "happy", "happiness"),
        (ENGLISH, "dying", "to die"),
        (ENGLISH, "run fail", "running, it failed"),
        (ENGLISH, "die OR cat", "cats"),
        (GERMAN, "Häuser", "das Haus"),
        (GERMAN, "hauser", "das Häuschen und die Häuser"),
        (GERMAN, "Straßen", "an der Strasse"),
        (RUSSIAN, "красного", "красный"),
        (RUSSIAN, "красныи", "красный"),
        (FRENCH, "mangee", "mangée"),
        (FRENCH, "mangées", "mangée"),
        (ENGLISH, "部署", "模型部署失败"),
    ],
)
def test_a_word_is_found_in_its_other_forms(stems: Stems, query: str, text: str):
    assert finds(stems, query, text)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ('"run"', "running"),
        ('"the run"', "the running"),
        ("run_fast", "running fast"),
        ("running*", "run"),
        ("run", "runt"),
        ("a" * 65 + "s", "a" * 65),
        ("x264s", "x264"),
        ("3cats", "3cat"),
    ],
)
def test_what_is_quoted_held_together_or_has_a_star_or_a_digit_means_what_is_written(query: str, text: str):
    assert not finds(ENGLISH, query, text)


def test_a_word_that_must_not_be_there_must_not_in_any_form():
    assert not finds(ENGLISH, "late -runs", "running late")
    assert finds(ENGLISH, 'late -"runs"', "running late")


def test_without_stems_nothing_is_added():
    assert NO_STEMS.stem_tokens_of_texts(["running"]) == []
    assert NO_STEMS.other_forms("running") == ()
    assert NO_STEMS.stem_tokens_of_word("running") == frozenset()
    assert NO_STEMS.made_by == "off"
    assert criterion_of("running", literal=False, stems=NO_STEMS) == criterion_of("running", literal=False)


def test_a_stem_that_is_the_word_itself_takes_no_room():
    assert ENGLISH.stem_tokens_of_texts(["run running", "runs the car"]) == [f"{FORM}run"]


def test_no_text_has_a_token_that_is_taken_for_a_stem():
    assert tokens_of_text(f"{FORM}run {FORM}") == ["run"]


def test_of_several_words_held_together_there_are_no_other_forms():
    assert ENGLISH.other_forms("running_late") == ENGLISH.other_forms("...") == ()


@pytest.mark.parametrize("stemming", list(Stemming))
def test_every_language_has_its_rules(stemming: Stemming):
    stems = Stems(stemming)
    assert stems.are_off is (stemming is Stemming.OFF)
    assert finds(stems, "kubernetes", "the Kubernetes")
    assert not finds(stems, "kubernetes", "a docker")
    assert stems.made_by in {"off", f"{stemming} {SNOWBALL}"}


def test_the_rules_are_those_of_the_package_that_is_installed():
    assert version("snowballstemmer").startswith(f"{SNOWBALL}.")
    modules = {one.name for one in files("snowballstemmer").iterdir()}
    assert {f"{one}_stemmer.py" for one in Stemming if one is not Stemming.OFF} <= modules


def endings_of(stemming: Stemming) -> list[str]:
    """All that the rules of a language look for."""
    module = import_module(f"snowballstemmer.{stemming}_stemmer")
    rules = vars(getattr(module, f"{stemming.title()}Stemmer")).values()
    some = (one for rule in rules if isinstance(rule, tuple | list) for one in rule)
    return sorted({one.s for one in some if isinstance(one, Among) and one.s})


@pytest.mark.parametrize("stemming", sorted(set(Stemming) - CHANGE_BEGINNINGS - {Stemming.OFF}))
def test_a_word_and_its_stems_begin_with_the_same_letter(stemming: Stemming):
    stems, choice, endings = Stems(stemming), random.Random(3), endings_of(stemming)
    letters = sorted(set("".join(endings)))
    words = set[str]()
    for _ in range(1_000):
        parts = ("".join(choice.choices(letters, k=choice.randrange(4))), *choice.choices(endings, k=2))
        words |= folded_words("".join(parts))
    assert len(words) > 300
    assert [
        word
        for word in words
        if {one[1] for one in stems.stem_tokens_of_word(word)} - {without_accents(word)[0]}
    ] == []


def test_only_words_that_may_have_a_stem_are_asked_for_theirs(monkeypatch: pytest.MonkeyPatch):
    asked: list[str] = []
    find = Stems._stem_tokens_beside_word  # noqa: SLF001 -- what takes its time

    def counted(self: Stems, word: str) -> frozenset[str]:
        asked.append(word)
        return find(self, word)

    monkeypatch.setattr(Stems, "_stem_tokens_beside_word", counted)
    wanted = criterion_of("running", literal=False, stems=Stems(Stemming.ENGLISH))
    assert isinstance(wanted, Words)
    texts = [f"{one}s were late" for one in ("dog", "cat", "roof", "runner", "rabbit", "run", "house")]
    assert 5 in wanted.preselect(texts)
    assert sorted(asked) == ["rabbits", "roofs", "runners", "runs"]
    asked.clear()
    assert wanted.matches_fields(["running " + " ".join(texts)])  # as it is written
    assert asked == []


def test_threads_do_not_disturb_each_other():
    words = [
        f"{start}{end}" for start in ("run", "deploy", "fail", "search") for end in ("s", "ing", "ed", "er")
    ]
    alone = {word: Stems(Stemming.ENGLISH).stem_tokens_of_word(word) for word in words}
    shared = Stems(Stemming.ENGLISH)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(shared.stem_tokens_of_word, words * 50)) == [alone[word] for word in words * 50]


def test_a_language_that_nobody_knows_is_told_with_those_that_are_known():
    assert stemming_of("english") is Stemming.ENGLISH
    with pytest.raises(InvalidInputError, match=r"stemming must be one of off, .*english.*, not 'klingon'"):
        stemming_of("klingon")
