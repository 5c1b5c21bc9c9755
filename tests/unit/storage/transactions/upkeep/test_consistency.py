"""What tables disagree about is told in words that fit one thing and many."""

from __future__ import annotations

import re

import pytest

from gateway_sessions.storage.transactions.upkeep.consistency import CHECKS, Inconsistency

OF_MANY = re.compile(r"\b(do|come|they|their|them|themselves)\b")


@pytest.mark.parametrize("check", CHECKS)
def test_one_thing_is_told_as_one_and_many_as_many(check: str):
    one, many = str(Inconsistency(check, 1, "x")), str(Inconsistency(check, 1200, "x"))
    assert re.fullmatch(r"1 \w+[^s] .*: x", one), one
    assert re.fullmatch(r"1,200 \w+s .*, such as x", many), many
    assert not OF_MANY.search(one), one
