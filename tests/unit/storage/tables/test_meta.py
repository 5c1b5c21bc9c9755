"""Facts are stored as text, and understood as earlier programs stored them."""

from typing import TypeVar

import pytest

from gateway_sessions.ports import Rows, Statement, Transaction
from gateway_sessions.storage.tables import meta

T = TypeVar("T")

SECRET = bytes(range(32))


def ask(transaction: Transaction[T], facts: dict[str, object]) -> T:
    """Run the transaction on these facts."""
    answer: Rows | None = None
    try:
        while True:
            answer = _answer(transaction.send(answer) if answer is not None else next(transaction), facts)
    except StopIteration as stop:
        return stop.value


def _answer(statement: Statement, facts: dict[str, object]) -> Rows:
    match statement:
        case ("get_meta", (name,), *_):
            return [(facts[name],)] if name in facts else []
        case ("set_meta", (name, value), *_):
            facts[name] = value
            return [(1,)]
        case _:
            return [(None,)]


def test_every_fact_is_text():
    facts: dict[str, object] = {}
    for name, value in (("number", 7), ("word", "a"), ("install_secret", SECRET)):
        ask(meta.set_fact(name, value), facts)
    assert all(isinstance(value, str) for value in facts.values())
    assert ask(meta.get_number("number"), facts) == 7
    assert ask(meta.get_fact("word"), facts) == "a"
    assert ask(meta.install_secret(), facts) == SECRET


def test_what_was_never_told_is_nothing():
    assert ask(meta.get_fact("number"), {}) is None
    assert ask(meta.get_number("number"), {}) == 0
    assert ask(meta.install_secret(), {}) == b""


@pytest.mark.parametrize(
    "facts",
    [
        {"epoch": 4, "settled_epoch": 4, "generation": 9, "install_secret": SECRET},
        {"epoch": "4", "settled_epoch": "4", "generation": "9", "install_secret": SECRET.hex()},
    ],
)
def test_an_opening_understands_facts_in_either_form(facts: dict[str, object]):
    opening = ask(meta.open_store(b"another one"), facts)
    assert (opening.epoch, opening.generation, opening.settled) == (5, 9, True)
    assert opening.install_secret == SECRET
    assert facts["epoch"] == "5"


def test_the_first_opening_keeps_the_secret_it_is_given():
    facts: dict[str, object] = {}
    assert ask(meta.open_store(SECRET), facts).install_secret == SECRET
    assert facts["install_secret"] == SECRET.hex()
    again = ask(meta.open_store(b"another one"), facts)
    assert (again.install_secret, again.settled) == (SECRET, False)
