"""Mattermost's posts as messages: where and who, for whom, and what; and whatever else may come."""

from __future__ import annotations

import copy
import random
from datetime import UTC, datetime
from typing import Any

import pytest

from gateway_sessions.adapters import Attachment, AttachmentKind, InboundMessage, MessageKind
from gateway_sessions.adapters.group_talk import GroupRules, GroupTalk, as_group_rules
from gateway_sessions.core.markdown.dialects import MATTERMOST
from gateway_sessions.core.markdown.rendering import render_markdown
from gateway_sessions.integrations.mattermost.objects import MattermostChannel, MattermostUser
from gateway_sessions.integrations.mattermost.posts import (
    MattermostIdentity,
    PostChange,
    PostPlace,
    PostRules,
    UnreadablePostError,
    changes_since,
    joins,
    post_of,
    read_post,
)

BOT = MattermostIdentity("bot1", "helper")
DIRECT = MattermostChannel("d1", "D", 1)
TEAM = MattermostChannel("c1", "O", 1, display_name="Team", team_id="t1")
FILE = {"id": "f1", "name": "n.x", "size": 12, "mime_type": "a/b"}


def post(message: str = "hello", **more: Any) -> dict[str, Any]:
    """Return a post of ann's."""
    at = 1_700_000_000_000
    return {"id": "p1", "user_id": "ann", "channel_id": "c1", "create_at": at, "update_at": at,
            "message": message, **more}  # fmt: skip


def read(
    raw: dict[str, Any],
    channel: MattermostChannel = DIRECT,
    change: PostChange = PostChange.CREATED,
    takes_part: bool = False,
    groups: Any = "mention",
    **rules: Any,
) -> InboundMessage | None:
    return read_post(
        raw,
        change,
        PostPlace(channel, "Ann", takes_part),
        PostRules(BOT, groups=as_group_rules(groups), **rules),
    )


def heard(raw: dict[str, Any], *more: Any, **rules: Any) -> InboundMessage:
    found = read(raw, *more, **rules)
    assert found is not None
    return found


def test_a_direct_message_says_all_that_mattermost_tells():
    found = heard(post(), account="main")
    assert (found.text, found.message_id, found.kind, found.revision) == ("hello", "p1", MessageKind.NEW, 0)
    assert found.sent_at == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
    source = found.source
    assert (source.platform, source.chat_type, source.chat_id) == ("mattermost", "dm", "d1")
    assert (source.user_id, source.user_name, source.account, source.thread_id) == (
        "ann", "Ann", "main", None
    )  # fmt: skip


def test_a_post_in_a_channel_begins_a_thread_that_its_answers_belong_to():
    source = heard(post("@helper hi"), TEAM).source
    assert (source.chat_type, source.chat_name, source.guild_id, source.thread_id) == (
        "group", "Team", "t1", "p1"
    )  # fmt: skip
    assert heard(post("@helper hi", id="p2", root_id="p1"), TEAM).source.thread_id == "p1"
    assert heard(post(root_id="p1")).source.thread_id == "p1"
    assert heard(post("@helper hi"), TEAM, threads=False).source.thread_id is None


def test_edits_and_deletions_are_told_as_such():
    edited = heard(post("hello!", edit_at=5), DIRECT, PostChange.EDITED)
    assert (edited.kind, edited.text, edited.revision) == (MessageKind.EDIT, "hello!", 5)
    deleted = heard(post("", delete_at=5), TEAM, PostChange.DELETED)
    assert (deleted.kind, deleted.text, deleted.source.thread_id) == (MessageKind.DELETE, "", "p1")


@pytest.mark.parametrize(
    ("times", "since", "changes"),
    [
        ({"create_at": 10}, 5, [(10, PostChange.CREATED)]),
        ({"create_at": 10, "edit_at": 20}, 5, [(10, PostChange.CREATED), (20, PostChange.EDITED)]),
        ({"create_at": 10, "edit_at": 20}, 15, [(20, PostChange.EDITED)]),
        ({"create_at": 10, "edit_at": 20, "update_at": 30}, 25, []),
        ({"create_at": 10, "delete_at": 30}, 5, [(30, PostChange.DELETED)]),
    ],
)
def test_what_happened_since_a_time_is_told(times: dict[str, int], since: int, changes: list[Any]):
    assert changes_since(post_of(post(**times)), since) == changes


@pytest.mark.parametrize(
    ("raw", "takes_part", "is_heard"),
    [
        (post(), False, False),
        (post(), True, True),
        (post("@helper hi"), False, True),
        (post("hi @Helper."), False, True),
        (post("@helper.two hi"), False, False),
        (post("@helper-two hi"), False, False),
        (post("me@helper hi"), False, False),
        (post(" /new"), False, True),
        (post("please /new"), False, False),
    ],
    ids=range(9),
)
def test_in_channels_only_what_addresses_the_bot_is_heard(
    raw: dict[str, Any], takes_part: bool, is_heard: bool
):
    assert (read(raw, TEAM, takes_part=takes_part) is not None) is is_heard
    assert read(raw, DIRECT) is not None


def test_what_people_say_to_each_other_is_observed_if_that_is_wanted():
    observing = GroupRules("mention", observe=True)
    talk = heard(post(), TEAM, groups=observing)
    assert (talk.observed, talk.source.user_name) == (True, "Ann")
    assert read(post(), TEAM) is None
    assert not heard(post("@helper hi"), TEAM, groups=observing).observed
    assert not heard(post(), DIRECT, groups=observing).observed
    assert not heard(post(), TEAM, takes_part=True, groups=observing).observed
    assert heard(post(props={"from_bot": "true"}), TEAM, groups=observing).observed
    assert read(post(" /stop@other"), TEAM, groups=observing) is None


def test_bots_are_heard_only_where_they_mention_the_bot():
    by_bot = {"props": {"from_bot": "true"}}
    assert read(post(**by_bot), DIRECT) is None
    assert read(post(**by_bot), TEAM, groups=GroupTalk.ALL) is None
    assert heard(post("@helper look", **by_bot), TEAM).source.is_bot
    assert read(post(props={"from_webhook": "true"}), DIRECT) is None


def test_a_channel_may_be_heard_whole_or_as_a_function_says():
    assert read(post(), TEAM, groups=GroupTalk.ALL) is not None
    assert read(post("hi!"), TEAM, groups=lambda raw: "!" in raw["message"]) is not None
    assert read(post(), TEAM, groups=lambda raw: "!" in raw["message"]) is None
    with pytest.raises(UnreadablePostError, match="a function of the program failed"):
        read(post(), TEAM, groups=lambda raw: raw["nothing"])


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("@helper, what now?", "what now?"),
        ("what now? @Helper", "what now?"),
        ("ask @helper about it", "ask @helper about it"),
        ("  /new trip", "/new trip"),
    ],
)
def test_a_mention_at_an_end_is_no_part_of_the_text(text: str, left: str):
    assert heard(post(text), TEAM).text == left


@pytest.mark.parametrize(
    "raw",
    [
        post(user_id="bot1"),
        post("Ann has left", type="system_leave_channel"),
        post(""),
        post(metadata={}, message=""),
    ],
    ids=range(4),
)
def test_what_is_nothing_for_the_bot_is_none(raw: dict[str, Any]):
    assert read(raw) is None


def test_files_are_attachments_and_actions_are_told_in_words():
    found = heard(post("look", metadata={"files": [FILE, {"id": "f2", "mime_type": "image/png"}]}))
    assert found.attachments == (
        Attachment(kind=AttachmentKind.DOCUMENT, url="mattermost:f1", media_type="a/b", name="n.x", size=12),
        Attachment(kind=AttachmentKind.PHOTO, url="mattermost:f2", media_type="image/png"),
    )
    assert heard(post("*waves*", type="me")).text == "* Ann waves"


def test_who_joins_is_told():
    assert joins(post_of(post(type="system_add_to_channel", props={"addedUserId": "bot1"})), "bot1")
    assert not joins(post_of(post(type="system_add_to_channel", props={"addedUserId": "bob"})), "bot1")
    assert joins(post_of(post(type="system_join_channel", user_id="bot1")), "bot1")
    assert not joins(post_of(post(user_id="bot1")), "bot1")


def test_people_are_called_as_they_want():
    assert MattermostUser("u", "ann", nickname="Annie").name == "Annie"
    assert MattermostUser("u", "ann", first_name="Ann", last_name="Lee").name == "Ann Lee"
    assert MattermostUser("u", "ann").name == "ann"


def test_markdown_calls_nobody_by_calling_everybody():
    (part,) = render_markdown("**Hello** @channel, @All and @ann: a_b", MATTERMOST)
    assert part.markup == "**Hello** @\u200bchannel, @\u200bAll and @ann: a\\_b"


def test_no_change_of_a_post_raises_anything_else():
    seeds = [
        post("@helper \U0001f600 hello", props={"from_bot": "false"}, root_id="p0"),
        post("look", metadata={"files": [FILE]}, edit_at=5),
        post("*waves*", type="me", delete_at=3),
    ]
    draw = random.Random(20261120)
    outcomes = {"message": 0, "none": 0, "unreadable": 0}
    junk = [None, 7, -1, 10**20, "", "x\n\x00", "\ud800", "p" * 600, [], [{}], {}, True, {"files": [7]}]
    for _ in range(10_000):
        raw: dict[str, Any] = copy.deepcopy(draw.choice(seeds))
        for _ in range(draw.randint(1, 3)):
            holder = draw.choice([raw, raw, *(one for one in raw.values() if isinstance(one, dict))])
            name = draw.choice([*holder, "type", "metadata", "props"])
            if draw.random() < 0.2:
                holder.pop(name, None)
            else:
                holder[name] = draw.choice(junk)
        try:
            found = read(raw, draw.choice([TEAM, DIRECT]), draw.choice([*PostChange]), draw.random() < 0.5)
        except UnreadablePostError:
            outcomes["unreadable"] += 1
        else:
            outcomes["none" if found is None else "message"] += 1
    assert min(outcomes.values()) > 100, outcomes
