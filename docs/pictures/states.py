"""The states of sessions, messages and replies, drawn from the tables that the program uses."""

from __future__ import annotations

from types import MappingProxyType

from state_drawing import Bend, Drawing, picture

from gateway_sessions.core.queue.state_machine import ITEM_MOVES, REPLY_MOVES
from gateway_sessions.core.sessions.state_machine import TRANSITIONS

GREEN, YELLOW, GREY, RED, BLUE, WHITE = "#dafbe1", "#fff8c5", "#eaeef2", "#ffebe9", "#ddf4ff", "#ffffff"

SESSIONS = Drawing(
    title="The states of a session",
    width=940,
    height=464,
    moves=TRANSITIONS,
    fills={"active": GREEN, "resume_pending": YELLOW, "expired": GREY, "suspended": RED},
    places={
        "active": (165, 240),
        "resume_pending": (470, 80),
        "expired": (470, 410),
        "suspended": (775, 240),
    },
    loops={"active": (-1, 0), "resume_pending": (0, -1), "suspended": (1, 0)},
    bends={
        ("active", "resume_pending"): Bend(-40, 0.55),
        ("resume_pending", "active"): Bend(-40, 0.4),
        ("active", "expired"): Bend(40, 0.55),
        ("expired", "active"): Bend(40, 0.4),
        ("active", "suspended"): Bend(-18, 0.68),
        ("suspended", "active"): Bend(-18, 0.32),
        ("resume_pending", "expired"): Bend(0, 0.25),
        ("resume_pending", "suspended"): Bend(-30),
        ("expired", "suspended"): Bend(30),
    },
)
ITEMS = Drawing(
    title="The states of a message in a queue",
    width=1100,
    height=680,
    moves=ITEM_MOVES,
    fills={
        "new": WHITE,
        "waiting": YELLOW,
        "running": GREEN,
        "noted": YELLOW,
        "dead": RED,
        "turned": BLUE,
        "interrupted": GREY,
        "rolled_back": GREY,
        "cancelled": GREY,
        "dropped": GREY,
        "observed": BLUE,
        "applied": BLUE,
        "command": BLUE,
    },
    places={
        "new": (95, 270),
        "waiting": (390, 270),
        "running": (690, 150),
        "noted": (210, 600),
        "dead": (490, 440),
        "turned": (1000, 50),
        "interrupted": (1000, 150),
        "rolled_back": (1000, 250),
        "cancelled": (1000, 440),
        "dropped": (270, 90),
        "observed": (95, 90),
        "applied": (610, 570),
        "command": (610, 640),
    },
    loops={"waiting": (0, -1), "running": (0, -1), "dead": (0, 1)},
    bends={
        ("new", "waiting"): Bend(0, 0.4),
        ("new", "running"): Bend(-20, 0.25),
        ("new", "noted"): Bend(0),
        ("new", "observed"): Bend(0),
        ("new", "applied"): Bend(40, 0.45),
        ("waiting", "running"): Bend(-24, 0.55),
        ("running", "waiting"): Bend(-24, 0.35),
        ("waiting", "dead"): Bend(-30, 0.35),
        ("dead", "waiting"): Bend(-30, 0.35),
        ("running", "dead"): Bend(-10, 0.4),
        ("waiting", "cancelled"): Bend(-30, 0.52),
        ("waiting", "dropped"): Bend(0, 0.5),
        ("running", "turned"): Bend(0, 0.62),
        ("running", "interrupted"): Bend(0),
        ("running", "rolled_back"): Bend(0),
        ("running", "cancelled"): Bend(-10, 0.6),
        ("dead", "cancelled"): Bend(0, 0.4),
        ("noted", "applied"): Bend(0),
        ("noted", "command"): Bend(0),
        ("noted", "cancelled"): Bend(-20, 0.8),
    },
    inside={"merged": "waiting", "running_merged": "running", "steered": "running", "dead_merged": "dead"},
    hidden=frozenset({"forgotten"}),
)
REPLIES = Drawing(
    title="The states of a reply",
    width=1090,
    height=360,
    moves=REPLY_MOVES,
    fills={"new": WHITE, "owed": YELLOW, "sending": GREEN, "sent": BLUE, "dead": RED},
    places={
        "new": (95, 150),
        "owed": (345, 150),
        "sending": (710, 150),
        "sent": (990, 150),
        "dead": (640, 310),
    },
    loops={"owed": (0, 1), "sending": (1, 0)},
    bends={
        ("new", "owed"): Bend(0),
        ("new", "sending"): Bend(-70, 0.25),
        ("owed", "sending"): Bend(-14, 0.5),
        ("sending", "owed"): Bend(-14, 0.4),
        ("owed", "sent"): Bend(-90, 0.7),
        ("sending", "sent"): Bend(0, 0.7),
        ("owed", "dead"): Bend(-30, 0.7),
        ("dead", "owed"): Bend(-30, 0.5),
        ("sending", "dead"): Bend(0, 0.6),
    },
    hidden=frozenset({"forgotten"}),
)
DRAWINGS = MappingProxyType({"states": SESSIONS, "item-states": ITEMS, "reply-states": REPLIES})


def pictures() -> dict[str, str]:
    """Return every drawing by the name of its file."""
    return {f"{name}.svg": picture(drawing) for name, drawing in DRAWINGS.items()}
