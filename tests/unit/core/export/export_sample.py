"""A session as an export gives it, with one message of every kind, and its rendering in a format."""

from collections.abc import Iterable

from gateway_sessions.core.export.formats import new_renderer
from gateway_sessions.core.export.page_texts import Exported

T = 1772722800.25

MESSAGES = [
    {
        "seq": 1,
        "role": "user",
        "content": "Why does `web` fail?\n\n```\nERROR: <none>\n```\n# Not a heading",
        "timestamp": T,
    },
    {
        "seq": 2,
        "role": "assistant",
        "content": "I'll look.",
        "reasoning": "A typo, perhaps.",
        "timestamp": T + 4,
        "tool_calls": [
            {"id": "c1", "function": {"name": "terminal", "arguments": '{"command": "grep FROM"}'}}
        ],
    },
    {"seq": 3, "role": "tool", "tool_name": "terminal", "content": "1:FROM ```x", "timestamp": T + 5},
    {"seq": 4, "role": "user", "content": "wait", "timestamp": T + 6, "hidden_because": "rewound"},
    {
        "seq": 5,
        "role": "user",
        "content": [{"type": "text", "text": "See:"}, {"type": "image_url", "image_url": {"url": "data:x"}}],
        "timestamp": T + 7,
        "observed": True,
    },
    {
        "seq": 6,
        "role": "assistant",
        "content": "Done.",
        "timestamp": T + 8,
        "edited_at": T + 9,
        "versions": [{"content": "Don.", "replaced_at": T + 9}],
    },
]
SESSION = {
    "id": "20260305_150000_0a1b2c3d",
    "source": "telegram",
    "user_id": "4711",
    "title": "Fix the build",
    "parent_session_id": "20260304_090000_ffffffff",
    "relation": "continuation",
    "started_at": T,
    "ended_at": T + 60,
    "end_reason": "idle",
    "model": "m-1",
    "system_prompt": "Be brief.",
    "message_count": 5,
    "tool_call_count": 1,
    "input_tokens": 1200,
    "output_tokens": 34,
    "estimated_cost_usd": 0.0731,
    "messages": MESSAGES,
}


def render_sessions(sessions: Iterable[Exported], name: str) -> bytes:
    """Return a file of whole sessions, given as `SessionDB.export_session` returns them."""
    format_renderer = new_renderer(name)
    parts = [format_renderer.begin_file()]
    for session in sessions:
        header = {key: value for key, value in session.items() if key != "messages"}
        parts += [
            format_renderer.begin_session(header),
            format_renderer.messages(session.get("messages") or ()),
            format_renderer.end_session(),
        ]
    return b"".join([*parts, format_renderer.end_file()])
