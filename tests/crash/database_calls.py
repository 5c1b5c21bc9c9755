"""Calls of a database beside those for single sessions and their transcripts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from gateway_sessions import Message, Scope, SessionDB

Call = Callable[[SessionDB, list[int]], Awaitable[object]]
OPERATOR: Final = Scope.operator()
SUMMARY: Final = [Message("user", "summary"), Message("assistant", "ok")]

LINEAGE: Final[dict[str, Call]] = {
    "split_session": lambda db, _: db.split_session("whole", "rest", SUMMARY),
    "branch_session": lambda db, _: db.branch_session("talk", "branch"),
    "get_compression_tip": lambda db, _: db.get_compression_tip("talk"),
    "get_compression_lineage": lambda db, _: db.get_compression_lineage("talk"),
    "get_conversation_root": lambda db, _: db.get_conversation_root("talk"),
    "get_session_family": lambda db, _: db.get_session_family("talk"),
    "resolve_resume_session_id": lambda db, _: db.resolve_resume_session_id("talk"),
    "set_session_archived": lambda db, _: db.set_session_archived("talk"),
}
TITLES: Final[dict[str, Call]] = {
    "set_session_title": lambda db, _: db.set_session_title("talk", "Another"),
    "set_auto_title_if_empty": lambda db, _: db.set_auto_title_if_empty("over", "Of its own"),
    "get_session_title": lambda db, _: db.get_session_title("talk"),
    "get_next_title_in_lineage": lambda db, _: db.get_next_title_in_lineage("Talk", scope=OPERATOR),
    "resolve_session_by_title": lambda db, _: db.resolve_session_by_title("Talk", scope=OPERATOR),
    "resolve_session": lambda db, _: db.resolve_session("Talk", scope=OPERATOR),
}
LISTING: Final[dict[str, Call]] = {
    "list_sessions_rich": lambda db, _: db.list_sessions_rich(scope=OPERATOR),
    "recent_sessions": lambda db, _: db.recent_sessions(scope=OPERATOR),
    "search_sessions_by_id": lambda db, _: db.search_sessions_by_id("talk", scope=OPERATOR),
}
USAGE: Final[dict[str, Call]] = {
    "record_usage": lambda db, _: db.record_usage("talk", "another", input_tokens=1),
    "amend_usage": lambda db, _: db.amend_usage("once", 0.5),
    "usage_of_session": lambda db, _: db.usage_of_session("talk"),
    "spent": lambda db, _: db.spent("talk"),
    "insights": lambda db, _: db.insights(scope=OPERATOR),
}
SEARCH: Final[dict[str, Call]] = {
    "search_messages": lambda db, _: db.search_messages("docker", scope=OPERATOR),
    "search_sessions": lambda db, _: db.search_sessions("docker", scope=OPERATOR),
    "catch_up_search_index": lambda db, _: db.catch_up_search_index(),
    "check_search_index": lambda db, _: db.check_search_index(),
    "rebuild_search_index": lambda db, _: db.rebuild_search_index(),
}
RETENTION: Final[dict[str, Call]] = {
    "delete_session": lambda db, _: db.delete_session("doomed"),
    "delete_sessions": lambda db, _: db.delete_sessions(["doomed", "gone"]),
    "prune_sessions": lambda db, _: db.prune_sessions(unended=True, older_than_days=300),
    "finish_removals": lambda db, _: db.finish_removals(),
}
