"""What the mutations take away is still there, and so are the tests that have to notice it."""

from pathlib import Path

import pytest

from tests.mutations import MUTATIONS, ROOT, Mutation


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda one: one.file)
def test_a_mutation_changes_one_place_and_names_tests_that_exist(mutation: Mutation, tmp_path: Path):
    copy = tmp_path / "gateway_sessions" / mutation.file
    copy.parent.mkdir(parents=True)
    before = (ROOT / "gateway_sessions" / mutation.file).read_text("utf-8")
    copy.write_text(before, "utf-8")
    mutation.apply(tmp_path)
    assert copy.read_text("utf-8") != before
    assert [name for name in mutation.tests if not (ROOT / name).exists()] == []
