"""Descent, over every map of a few sessions, against an oracle that knows no better than to try."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from gateway_sessions.core.sessions.lineage import chain_of, family_of, root_of, tip_of

Parents = dict[str, str | None]

SESSIONS = "abcd"


def every_map() -> Iterator[Parents]:
    """Each session has any other one, itself, an unknown one, or none as its parent."""
    for chosen in itertools.product([None, *SESSIONS, "z"], repeat=len(SESSIONS)):
        yield dict(zip(SESSIONS, chosen, strict=True))


def up(start: str, parents: Parents, steps: int) -> str | None:
    one: str | None = start
    for _ in range(steps):
        one = parents.get(one) if one is not None else None
    return one


def naive_root(start: str, parents: Parents) -> str:
    """The last ancestor; where there is none, the smallest of those that come again and again."""
    far = len(parents) + 2
    last = [one for steps in range(far) if (one := up(start, parents, steps)) is not None]
    if up(start, parents, far) is None:
        return last[-1]
    return min(one for steps in range(far, 3 * far) if (one := up(start, parents, steps)) is not None)


def naive_family(start: str, parents: Parents) -> set[str]:
    root = naive_root(start, parents)
    everybody = {*parents, *filter(None, parents.values()), start}
    return {one for one in everybody if naive_root(one, parents) == root}


def test_a_root_is_where_descent_begins_whatever_the_map():
    for parents in every_map():
        for start in SESSIONS:
            assert root_of(start, parents) == naive_root(start, parents), parents


def test_a_family_is_all_that_has_the_same_root_whatever_the_map():
    for parents in every_map():
        for start in SESSIONS:
            assert family_of(start, parents) == naive_family(start, parents), parents


def test_a_chain_leads_from_the_root_through_the_session_to_a_tip_whatever_the_map():
    for parents in every_map():
        for start in SESSIONS:
            chain = chain_of(start, parents)
            assert chain[0] == root_of(start, parents)
            assert start in chain
            assert len(set(chain)) == len(chain)
            assert all(parents[child] == parent for parent, child in itertools.pairwise(chain))
            assert {one for one, parent in parents.items() if parent == chain[-1]} <= set(chain)
            assert tip_of(start, parents) == chain[-1]


def test_where_nothing_forks_all_of_a_chain_agree_on_it():
    for parents in every_map():
        known = [parent for parent in parents.values() if parent is not None]
        if len(set(known)) == len(known):
            for start in SESSIONS:
                chain = chain_of(start, parents)
                assert {chain_of(one, parents) for one in chain} == {chain}, parents


def test_a_session_that_nobody_knows_is_alone():
    assert chain_of("x", {}) == ("x",)
    assert root_of("x", {"a": None}) == tip_of("x", {"a": None}) == "x"
    assert family_of("x", {"a": "b"}) == {"x"}


@pytest.mark.parametrize("start", [0, 2_500, 4_999])
def test_long_chains_are_followed_to_their_ends(start: int):
    parents: Parents = {f"{n:05}": f"{n - 1:05}" if n else None for n in range(5_000)}
    chain = chain_of(f"{start:05}", parents)
    assert chain == tuple(parents)
    assert len(family_of(f"{start:05}", parents)) == 5_000
