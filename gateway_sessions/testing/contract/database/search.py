"""Contract tests of search, before and after the search index has read the messages."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from gateway_sessions import InvalidInputError, Scope, SessionDB
from gateway_sessions.search import ContextLine
from gateway_sessions.testing.contract.database.bench import EVERYTHING, DatabaseContract, Settle, found
from gateway_sessions.transcripts import Hidden

ON_TELEGRAM: Final = {
    name: Scope(owners=frozenset({f"main:telegram:user:{name}"})) for name in ("alice", "bob")
}
WORDS: Final[dict[str, set[str]]] = {
    "docker deployment": {"the docker deployment"},
    '"docker deployment"': {"the docker deployment"},
    "docker OR kubernetes": {"the docker deployment", "docker only", "kubernetes"},
    "docker NOT deployment": {"docker only"},
    "docker -deployment": {"docker only"},
    "deploy*": {"the docker deployment"},
    "部署": {"模型部署失败"},
    "失": {"模型部署失败"},
    "user@host": {"mail user@host.de"},
    "'docker only?'": {"docker only"},
    "50%": {"50% of /a/b.py"},
    "/a/b.py": {"50% of /a/b.py"},
    "???": {"really???"},
    "nowhere": set(),
    "  ": set(),
}
TEXTS: Final[dict[str, set[str]]] = {
    "OCKE": {"the Docker build"},
    "er bu": {"the Docker build"},
    "型部": {"模型部署失败"},
    "x y": {"x y"},
    "ud": set(),
    "?": {"why?"},
    "he docker b": {"the Docker build"},
}
REFUSED: Final[tuple[tuple[dict[str, Any], str], ...]] = (
    ({"sort": "random"}, "sort must be one of best, newest, oldest"),
    ({"mode": "substring", "fuzzy": True}, "mode 'words' only"),
    ({"mode": "regex"}, "mode must be one of words, substring"),
    ({"limit": 0}, "limit"),
    ({"limit": 1_001}, "limit"),
    ({"offset": -1}, "offset"),
    ({"since": "yesterday"}, "since"),
    ({"role_filter": [1]}, "role_filter"),
    ({"query": "x" * 3_000}, "3000 characters"),
)


async def say(
    db: SessionDB, session_id: str, *texts: str, role: str = "user", source: str = "cli", **session: Any
) -> list[int]:
    """Create a session with these messages, and return their ids."""
    await db.create_session(session_id, source, **session)
    return await db.append_messages(session_id, [{"role": role, "content": text} for text in texts])


class SearchingContract(DatabaseContract):
    """Tests that searches are complete at once, whatever the state of the search index is."""

    @pytest.fixture(params=["tail", "index"])
    def settled(self, request: pytest.FixtureRequest) -> Settle:
        """With "index", wait until all messages are indexed; with "tail", do not wait."""

        async def settle(db: SessionDB) -> None:
            if request.param == "index":
                await db.catch_up_search_index()

        return settle

    async def test_words_are_found(self, db: SessionDB, settled: Settle) -> None:
        await say(
            db,
            "s",
            "the docker deployment",
            "docker only",
            "kubernetes",
            "模型部署失败",
            "mail user@host.de",
            "50% of /a/b.py",
            "really???",
        )
        await settled(db)
        assert {query: set(await found(db, query)) for query in WORDS} == WORDS

    async def test_a_text_is_found_wherever_it_stands(self, db: SessionDB, settled: Settle) -> None:
        await say(db, "s", "the Docker build", "模型部署失败", "x y", "why?")
        await settled(db)
        for scope in (EVERYTHING, Scope(owners=frozenset({"main:cli:local"}))):
            assert {
                needle: set(await found(db, needle, mode="substring", scope=scope)) for needle in TEXTS
            } == TEXTS

    async def test_calls_and_tools_are_searched_as_well(self, db: SessionDB, settled: Settle) -> None:
        await db.create_session("s", "cli")
        call = {
            "id": "c1",
            "type": "function",
            "function": {"name": "read_file", "arguments": '{"path": "/etc/hosts\\nx"}'},
        }
        await db.append_message("s", "assistant", None, tool_calls=[call])
        await db.append_message("s", "tool", "127.0.0.1", tool_name="grep_files", tool_call_id="c1")
        await db.append_message(
            "s", "user", [{"type": "text", "text": "look at"}, {"type": "image", "url": "x"}]
        )
        await settled(db)
        (hit,) = (await db.search_messages("/etc/hosts", scope=EVERYTHING)).hits
        assert hit.role == "assistant"
        assert ">>>etc/hosts<<<" in hit.snippet
        assert [one.tool_name for one in (await db.search_messages("grep", scope=EVERYTHING)).hits] == [
            "grep_files"
        ]
        assert await found(db, '"look at"') == ["look at"]
        assert await found(db, '"hosts 127"') == []

    async def test_a_hit_says_where_it_is_and_what_was_said_around_it(
        self, db: SessionDB, settled: Settle
    ) -> None:
        await db.create_session(
            "s", "telegram", user_id="alice", model="m-1", session_key="agent:main:telegram:dm:1"
        )
        await say(db, "t", "between")
        await db.append_messages(
            "s",
            [{"role": "user", "content": "b" * 300}, {"role": "assistant", "content": "the docker answer"}],
        )
        await say(db, "t", "between again")
        await db.append_message("s", "user", "after")
        await settled(db)
        (hit,) = (await db.search_messages("docker", scope=EVERYTHING)).hits
        assert (hit.session_id, hit.seq, hit.role, hit.source, hit.model) == (
            "s",
            2,
            "assistant",
            "telegram",
            "m-1",
        )
        assert hit.session_key == "agent:main:telegram:dm:1"
        assert hit.snippet == "the >>>docker<<< answer"
        assert hit.context == (
            ContextLine("user", "b" * 200),
            ContextLine("assistant", "the docker answer"),
            ContextLine("user", "after"),
        )
        assert hit.session_started <= hit.timestamp
        assert hit.title is None
        assert hit.hidden_because is None
        assert hit.score is not None

    async def test_filters_narrow_a_search(self, db: SessionDB, settled: Settle) -> None:
        await say(db, "a", "docker one", source="cli")
        await say(db, "b", "docker two", source="telegram", role="assistant")
        await say(db, "c", "docker three", source="discord", session_key="agent:main:discord:dm:3")
        await settled(db)
        assert await found(db, "docker", source_filter=["cli"]) == ["docker one"]
        assert await found(db, "docker", source_filter="telegram") == ["docker two"]
        assert set(await found(db, "docker", exclude_sources=["telegram"])) == {"docker one", "docker three"}
        assert await found(db, "docker", role_filter=["assistant", "tool"]) == ["docker two"]
        assert await found(db, "docker", session_id="c") == ["docker three"]
        assert await found(db, "docker", session_key="agent:main:discord:dm:3") == ["docker three"]
        assert set(await found(db, "docker", exclude_sessions=["b", "c"])) == {"docker one"}
        assert await found(db, "docker", source_filter=[]) == []

    async def test_a_time_narrows_a_search(self, db: SessionDB, settled: Settle) -> None:
        await db.create_session("s", "cli")
        start = datetime(2026, 1, 31, 12, tzinfo=UTC)
        for days in range(5):
            await db.append_message("s", "user", f"docker {days}", timestamp=start + timedelta(days=days))
        await settled(db)
        since, until = start + timedelta(days=1), start + timedelta(days=3)
        assert await found(db, "docker", since=since, until=until, sort="oldest") == ["docker 1", "docker 2"]
        assert await found(db, "docker", since=until, sort="newest") == ["docker 4", "docker 3"]
        assert await found(db, "docker", until=since.timestamp()) == ["docker 0"]
        assert await found(db, "docker", since=until, until=since) == []
        assert len(await found(db, "docker", since="1990-01-01", until=until)) == 3

    async def test_hits_come_in_the_order_that_is_asked_for(self, db: SessionDB, settled: Settle) -> None:
        await say(db, "s", "docker docker docker", "docker with many other words around it", "docker")
        await settled(db)
        oldest = ["docker docker docker", "docker with many other words around it", "docker"]
        assert await found(db, "docker", sort="oldest") == oldest
        assert await found(db, "docker", sort="newest") == oldest[::-1]
        best = await db.search_messages("docker", scope=EVERYTHING)
        assert best.hits[0].snippet.count(">>>") == 3
        assert best.ranked_among == best.matches == 3
        assert await found(db, "docker", sort="oldest", offset=1, limit=1) == oldest[1:2]
        assert await found(db, "docker", offset=3) == []

    async def test_what_was_taken_back_is_not_found_and_what_was_compacted_is(
        self, db: SessionDB, settled: Settle
    ) -> None:
        await say(db, "s", "docker one", "docker two")
        rows = [{"role": "user", "content": "docker three", "hidden_because": str(Hidden.COMPACTED)}]
        await db.append_messages("s", rows)
        await settled(db)
        await db.rewind_session("s")
        assert set(await found(db, "docker")) == {"docker one", "docker three"}
        await settled(db)
        assert set(await found(db, "docker")) == {"docker one", "docker three"}
        assert len(await found(db, "docker", include_hidden=True)) == 3
        await db.restore_rewound("s")
        await settled(db)
        assert len(await found(db, "docker")) == 3

    async def test_a_search_sees_edits_and_deletions_at_once(self, db: SessionDB, settled: Settle) -> None:
        await db.create_session("s", "cli")
        for name in ("a", "b"):
            await db.append_message("s", "user", f"docker {name}", platform_message_id=name)
        await settled(db)
        for round_ in range(3):
            await db.edit_message("s", "a", f"kubernetes {round_}")
            assert await found(db, "docker") == ["docker b"]
            assert await found(db, "kubernetes") == [f"kubernetes {round_}"]
            await settled(db)
            assert await found(db, "docker") == ["docker b"]
            assert await found(db, "kubernetes") == [f"kubernetes {round_}"]
        await db.retract_message("s", "b")
        assert await found(db, "docker") == []
        await db.clear_messages("s")
        assert await found(db, "kubernetes") == []
        await settled(db)
        assert await found(db, "kubernetes OR docker") == []

    async def test_nobody_finds_what_others_said(self, db: SessionDB, settled: Settle) -> None:
        await say(db, "a", "docker of alice", source="telegram", user_id="alice")
        await say(
            db, "b", "docker of bob", source="telegram", user_id="bob", session_key="agent:main:telegram:dm:9"
        )
        await settled(db)
        for mode in ("words", "substring"):
            assert await found(db, "docker", scope=ON_TELEGRAM["alice"], mode=mode) == ["docker of alice"]
            assert await found(db, "docker", scope=ON_TELEGRAM["bob"], mode=mode) == ["docker of bob"]
            assert await found(db, "docker", scope=Scope.lane("agent:main:telegram:dm:9"), mode=mode) == [
                "docker of bob"
            ]
            assert await found(db, "docker", scope=ON_TELEGRAM["alice"], session_id="b", mode=mode) == []
            assert await found(db, "docker", scope=Scope(), mode=mode) == []
            assert len(await found(db, "docker", mode=mode)) == 2

    async def test_conversations_are_found_once_with_their_best_message(
        self, db: SessionDB, settled: Settle
    ) -> None:
        await say(db, "a", "docker docker", "docker and other words that make it longer")
        await say(db, "b", "docker among quite a lot of other words in a long message about it")
        await say(db, "c", "docker docker docker", parent_session_id="a", relation="continuation")
        await say(db, "d", "nothing")
        await settled(db)
        result = await db.search_sessions("docker", scope=EVERYTHING)
        first, second = result.sessions
        assert (first.root_id, first.matches, set(first.session_ids)) == ("a", 3, {"a", "c"})
        assert first.best.session_id == "c"
        assert first.found[0] == ("c", first.best.id)
        assert (second.root_id, second.matches) == ("b", 1)
        assert result.ranked_among == 4
        assert len((await db.search_sessions("docker", scope=EVERYTHING, limit=1)).sessions) == 1
        assert (await db.search_sessions(" ", scope=EVERYTHING)).sessions == ()

    async def test_a_fuzzy_search_finds_words_that_are_alike_after_those_that_are_the_same(
        self, db: SessionDB, settled: Settle
    ) -> None:
        await say(db, "a", "a walrus", "wlarus", "a zebra")
        await settled(db)
        result = await db.search_messages("wlarus", scope=EVERYTHING, fuzzy=True)
        assert [hit.snippet for hit in result.hits] == [">>>wlarus<<<", "a >>>walrus<<<"]
        assert (result.near_words, result.degraded) == (("walrus",), False)
        assert await found(db, "wlarus") == ["wlarus"]

    async def test_a_search_that_cannot_be_meant_is_refused(self, db: SessionDB) -> None:
        for options, problem in REFUSED:
            rest = {name: value for name, value in options.items() if name != "query"}
            with pytest.raises(InvalidInputError, match=problem):
                await db.search_messages(options.get("query", "x"), scope=EVERYTHING, **rest)
