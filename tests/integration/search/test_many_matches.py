"""A search that finds more than it ranks."""

from __future__ import annotations

from gateway_sessions import SessionDB
from gateway_sessions.storage.search.search import WINDOW
from tests.integration.search.conftest import EVERYTHING, append_words, found_snippets


async def test_the_best_are_chosen_among_the_newest_matches(db: SessionDB):
    best = "docker"
    await append_words(db, "s", best, *(f"docker with more words around it {n}" for n in range(WINDOW)))
    await db.catch_up_search_index()
    await append_words(db, "s", "docker in the tail")
    result = await db.search_messages("docker", scope=EVERYTHING)
    assert result.ranked_among == WINDOW + 1
    assert not result.degraded
    assert best not in [hit.snippet for hit in result.hits]
    assert await found_snippets(db, "docker", sort="oldest", limit=1) == [best]
    assert len(await found_snippets(db, "docker", sort="newest", limit=1_000, offset=WINDOW - 10)) == 12


async def test_a_rare_match_behind_many_others_is_found(db: SessionDB):
    await append_words(db, "hidden", *(f"docker {n}" for n in range(WINDOW)))
    await append_words(db, "shown", "docker shown")
    await append_words(db, "hidden", *(f"docker {n}" for n in range(WINDOW + 5)))
    await db.catch_up_search_index()
    assert await found_snippets(db, "docker", exclude_sessions=["hidden"]) == ["docker shown"]
