"""Who shares a conversation with whom."""

from __future__ import annotations

from dataclasses import replace

from gateway_sessions import SessionSource, build_session_key, is_shared_multi_user_session
from gateway_sessions.cli.demo.paint import code, dim, row, say, scene, strong

ADA = SessionSource(platform="telegram", chat_id="4711", user_id="4711", user_name="Ada")
TEAM = SessionSource(platform="telegram", chat_id="-100", chat_type="group", chat_name="Team")
ADA_IN_TEAM = replace(TEAM, user_id="4711", user_name="Ada")
BOB_IN_TEAM = replace(TEAM, user_id="4712", user_name="Bob")
TRICKSTER = SessionSource(platform="telegram", chat_id="-100:4711", chat_type="group")
WIDTHS = (18, 38)


def show_keys() -> None:
    """The keys of one person in two places, and of two people in one."""
    scene(
        1,
        "Every conversation has a lane, named by where the message came from",
        "One lane has one session at a time, one queue and one turn at a time.",
    )
    for who, source in (
        ("Ada, alone", ADA),
        ("Ada in group Team", ADA_IN_TEAM),
        ("Bob in group Team", BOB_IN_TEAM),
    ):
        say(row(who, code(build_session_key(source)), widths=WIDTHS))
    shared = build_session_key(ADA_IN_TEAM, group_sessions_per_user=False)
    say(row("Team as one lane", code(shared), dim("if so configured"), widths=WIDTHS))
    trick = build_session_key(TRICKSTER)
    say(row("chat “-100:4711”", code(trick), dim("no part poses as two"), widths=WIDTHS))
    say("")
    compare("Ada and Ada", ADA, ADA_IN_TEAM)
    compare("Ada and Bob", ADA_IN_TEAM, BOB_IN_TEAM)
    both = {is_shared_multi_user_session(one, group_sessions_per_user=False) for one in (ADA, ADA_IN_TEAM)}
    assert both == {False, True}  # noqa: S101 -- a private chat is never shared


def compare(who: str, one: SessionSource, other: SessionSource) -> None:
    """Say why two sources are different lanes."""
    parts = ("chat_type", "chat_id", "user_id")
    names = [name for name in parts if getattr(one, name) != getattr(other, name)]
    kind = "same lane" if build_session_key(one) == build_session_key(other) else "different lanes"
    say(row(who, f"{strong(kind)}: not the same {' and '.join(names)}", widths=WIDTHS))
