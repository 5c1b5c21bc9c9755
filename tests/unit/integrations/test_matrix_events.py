"""Matrix events as messages: where and who, for whom, and what; and whatever else may come."""

from __future__ import annotations

import copy
import random
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from gateway_sessions.adapters.group_talk import GroupRules, GroupTalk, as_group_rules, without_mention
from gateway_sessions.core.queue.inbound import (
    Attachment,
    AttachmentKind,
    InboundMessage,
    MessageKind,
    ReplyTo,
)
from gateway_sessions.integrations.matrix.events import (
    MatrixIdentity,
    RoomRules,
    UnreadableEventError,
    mentions_in,
    read_event,
    related_id,
    seen_message,
)
from gateway_sessions.integrations.matrix.objects import RoomEvent
from gateway_sessions.integrations.matrix.rooms import (
    MOST_SEEN,
    KnownRoom,
    SeenMessage,
    came_invited,
    invite_of,
    own_entry,
)

BOT = MatrixIdentity("@helper:e.org", "Helper Bot")
ANN, BOB = "@ann:e.org", "@bob:e.org"
PRIVATE = KnownRoom("!p:e.org", members={ANN: "Ann", BOT.user_id: "Helper Bot"})
GROUP = KnownRoom("!g:e.org", name="Team", members={ANN: "Ann", BOB: "Bob", BOT.user_id: "Helper Bot"})
OWN = SeenMessage(BOT.user_id, None, "what the bot said")
ANNS = SeenMessage(ANN, None, "what ann said")
FILE = {"url": "mxc://e.org/F1", "filename": "n.x", "info": {"mimetype": "a/b", "size": 12}}


def event(kind: str = "m.room.message", content: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Return an event of ann's."""
    return {
        "type": kind,
        "sender": ANN,
        "event_id": "$5",
        "origin_server_ts": 1_700_000_000_000,
        "content": content or {},
        **more,
    }


def said(body: str = "hello", **content: Any) -> dict[str, Any]:
    return event(content={"msgtype": "m.text", "body": body, **content})


def relating(**relation: Any) -> dict[str, Any]:
    return {"m.relates_to": relation}


def answering(event_id: str = "$1", **more: Any) -> dict[str, Any]:
    return relating(**{"m.in_reply_to": {"event_id": event_id}}, **more)


def edit(body: str = "hello!", **new: Any) -> dict[str, Any]:
    content = {"m.new_content": {"msgtype": "m.text", "body": body, **new}}
    return said(f"* {body}", **content, **relating(rel_type="m.replace", event_id="$1"))


def read(
    raw: dict[str, Any],
    room: KnownRoom = PRIVATE,
    related: SeenMessage | None = None,
    groups: Any = "mention",
    **rules: Any,
) -> InboundMessage | None:
    return read_event(raw, room, RoomRules(BOT, groups=as_group_rules(groups), **rules), related=related)


def heard(raw: dict[str, Any], room: KnownRoom = PRIVATE, **more: Any) -> InboundMessage:
    found = read(raw, room, **more)
    assert found is not None
    return found


# Where and who


def test_a_private_message_says_all_that_matrix_tells():
    found = heard(said(), account="main")
    assert (found.text, found.message_id, found.kind, found.revision) == ("hello", "$5", MessageKind.NEW, 0)
    assert found.sent_at == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
    source = found.source
    assert (source.platform, source.chat_type, source.chat_id) == ("matrix", "dm", "!p:e.org")
    assert (source.user_id, source.user_name, source.account, source.thread_id) == (ANN, "Ann", "main", None)


def test_a_room_with_several_people_is_a_group_with_its_name():
    source = heard(said(), GROUP, groups=GroupTalk.ALL).source
    assert (source.chat_type, source.chat_name) == ("group", "Team")
    alias = KnownRoom("!a:e.org", alias="#team:e.org")
    assert heard(said(), alias, groups=GroupTalk.ALL).source.chat_name == "#team:e.org"


def test_an_upgraded_room_has_the_name_of_its_conversation():
    found = read_event(said(), PRIVATE, RoomRules(BOT), chat_id="!old:e.org")
    assert found is not None
    assert found.source.chat_id == "!old:e.org"


def test_a_thread_is_named_by_the_message_that_began_it():
    thread = said(**relating(rel_type="m.thread", event_id="$root", is_falling_back=True))
    assert heard(thread).source.thread_id == "$root"
    assert heard(said()).source.thread_id is None


@pytest.mark.parametrize(
    "raw",
    [
        event(content={"msgtype": "m.text", "body": "echo"}, sender=BOT.user_id),
        event("m.room.name", {"name": "x"}, state_key=""),
        event("m.reaction", relating(rel_type="m.annotation", event_id="$1", key="x")),
        event(content={}),
        said(""),
        said("beep", msgtype="m.notice"),
        said("x", msgtype="m.server_notice"),
        said("x", msgtype="m.key.verification.request"),
        event("m.poll.start", {"m.poll": "none"}),
        event("m.room.redaction", {}),
        edit(),
    ],
    ids=range(11),
)
def test_what_is_nothing_for_the_bot_is_none(raw: dict[str, Any]):
    assert read(raw) is None


# What changes


def test_an_edit_is_numbered_and_stands_where_its_original_stands():
    found = heard(edit(), related=SeenMessage(ANN, "$root", "hello"))
    assert (found.kind, found.text, found.message_id) == (MessageKind.EDIT, "hello!", "$1")
    assert found.source.thread_id == "$root"
    later = heard({**edit(), "origin_server_ts": 1_700_000_000_001}, related=ANNS)
    twin = heard({**edit(), "event_id": "$6"}, related=ANNS)
    assert later.revision > found.revision > 0
    assert twin.revision != found.revision
    assert heard(edit(), GROUP, related=ANNS).source.chat_type == "group"


def test_who_edits_what_somebody_else_wrote_is_not_heard():
    assert read(edit(), related=SeenMessage(BOB, None, "hello")) is None
    assert read(edit(), related=OWN) is None
    assert read(said("x", **relating(rel_type="m.replace", event_id="$1")), related=ANNS) is None


@pytest.mark.parametrize("more", [{"content": {"redacts": "$1"}}, {"redacts": "$1"}])
def test_what_is_taken_back_is_deleted(more: dict[str, Any]):
    found = heard({**event("m.room.redaction"), **more}, related=SeenMessage(ANN, "$root", "x"))
    assert (found.kind, found.message_id, found.source.thread_id) == (MessageKind.DELETE, "$1", "$root")
    assert heard({**event("m.room.redaction"), **more}, GROUP).source.thread_id is None


# For whom

LINK = '<a href="https://matrix.to/#/%40helper%3Ae.org">Helper Bot</a>: hi'


@pytest.mark.parametrize(
    ("raw", "related", "is_heard"),
    [
        (said(), None, False),
        (said(**{"m.mentions": {"user_ids": [BOT.user_id]}}), None, True),
        (said("helper", **{"m.mentions": {}}), None, False),
        (said("helper", **{"m.mentions": {"user_ids": BOT.user_id}}), None, False),
        (said("Helper Bot: hi", formatted_body=LINK), None, True),
        (said("ask @helper:e.org!"), None, True),
        (said("ask @helper:example.com"), None, False),
        (said("helpers are here"), None, False),
        (said("HELPER, are you there?"), None, True),
        (said("/new"), None, True),
        (said("please /new"), None, False),
        (said("yes", **answering()), OWN, True),
        (said("yes", **answering()), ANNS, False),
        (said("yes", **answering(), **{"m.mentions": {}}), OWN, True),
    ],
    ids=range(14),
)
def test_in_groups_only_what_addresses_the_bot_is_heard(
    raw: dict[str, Any], related: SeenMessage | None, is_heard: bool
):
    assert (read(raw, GROUP, related) is not None) is is_heard
    assert read(raw, PRIVATE, related) is not None


def test_what_people_say_to_each_other_is_observed_if_that_is_wanted():
    observing = GroupRules("mention", observe=True)
    talk = heard(said(), GROUP, groups=observing)
    assert (talk.observed, talk.source.user_id) == (True, "@ann:e.org")
    assert read(said(), GROUP) is None
    assert not heard(said("@helper hi"), GROUP, groups=observing).observed
    assert not heard(said(), PRIVATE, groups=observing).observed
    assert read(said("/stop@other"), GROUP, groups=observing) is None


def test_a_group_may_be_heard_whole_or_as_a_function_says():
    assert read(said(), GROUP, groups=GroupTalk.ALL) is not None
    rule = {"groups": lambda raw: "!" in raw["content"]["body"]}
    assert read(said("hello!"), GROUP, **rule) is not None
    assert read(said(), GROUP, **rule) is None


def test_what_the_program_answers_itself_is_not_heard():
    rule = {"taken": lambda raw: raw["content"].get("body", "").startswith("!")}
    assert read(said("!help"), **rule) is None
    assert read(said("help"), **rule) is not None


@pytest.mark.parametrize("rule", ["groups", "taken"])
def test_a_function_that_fails_makes_the_event_unreadable(rule: str):
    def fail(raw: object) -> bool:
        raise LookupError(raw)

    with pytest.raises(UnreadableEventError, match="a function of the program failed"):
        read(said(), GROUP, **{rule: fail})


@pytest.mark.parametrize(
    ("text", "is_named", "left"),
    [
        ("Helper Bot: what now?", False, "what now?"),
        ("@helper, what now?", False, "what now?"),
        ("@helper:e.org what now?", False, "what now?"),
        ("what now? @Helper", False, "what now?"),
        ("[Helper Bot](https://matrix.to/#/@helper:e.org) what now?", True, "what now?"),
        ("helper functions are good", False, "helper functions are good"),
        ("helper functions are good", True, "functions are good"),
        ("thanks, helper", False, "thanks, helper"),
        ("ask helper about it", True, "ask helper about it"),
        ("\U0001f600 @helper", False, "\U0001f600"),
    ],
)
def test_a_mention_at_an_end_is_no_part_of_the_text(text: str, is_named: bool, left: str):
    assert without_mention(text, mentions_in(text, BOT, is_named=is_named)) == left


# What


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ({"msgtype": "m.file"}, AttachmentKind.DOCUMENT),
        ({"msgtype": "m.image"}, AttachmentKind.PHOTO),
        ({"msgtype": "m.video"}, AttachmentKind.VIDEO),
        ({"msgtype": "m.audio"}, AttachmentKind.AUDIO),
        ({"msgtype": "m.audio", "org.matrix.msc3245.voice": {}}, AttachmentKind.VOICE),
    ],
    ids=range(5),
)
def test_a_file_is_an_attachment_with_its_caption(content: dict[str, Any], kind: AttachmentKind):
    found = heard(event(content={"body": "look", **FILE, **content}))
    assert found.text == "look"
    expected = Attachment(kind=kind, url="mxc://e.org/F1", media_type="a/b", name="n.x", size=12)
    assert found.attachments == (expected,)
    assert heard(event(content={**FILE, "body": "n.x", **content})).text == ""


def test_a_sticker_and_a_place_are_attachments():
    sticker = heard(event("m.sticker", {"body": "a cat", "url": "mxc://e.org/1", "info": {"size": True}}))
    assert sticker.attachments == (
        Attachment(kind=AttachmentKind.STICKER, url="mxc://e.org/1", name="a cat", size=None),
    )
    place = heard(said("home", msgtype="m.location", geo_uri="geo:1,2"))
    assert place.attachments == (Attachment(kind=AttachmentKind.LOCATION, url="geo:1,2", name="home"),)


def test_what_has_no_file_is_told_in_words():
    assert heard(said("waves", msgtype="m.emote")).text == "* Ann waves"
    new = {
        "question": {"m.text": [{"body": "Tea?"}]},
        "answers": [{"m.text": [{"body": "yes"}]}, {"m.text": []}],
    }
    old = {
        "question": {"body": "Tea?"},
        "answers": [{"org.matrix.msc1767.text": "yes"}, "no"],
    }
    assert heard(event("m.poll.start", {"m.poll": new})).text == "[poll: Tea? (yes, )]"
    older = {"org.matrix.msc3381.poll.start": old}
    assert heard(event("org.matrix.msc3381.poll.start", older)).text == "[poll: Tea? (yes, )]"


def test_an_answer_names_what_it_answers_without_the_quotation_of_old_clients():
    body = "> <@helper:e.org> what the bot said\n> and more\n\nyes"
    found = heard(said(body, **answering()), related=OWN)
    assert found.text == "yes"
    assert found.reply_to == ReplyTo(
        message_id="$1", text="what the bot said", author_id=BOT.user_id, author_name="Helper Bot", own=True
    )
    assert heard(said("> a quotation", **answering())).text == "> a quotation"
    assert heard(said(**answering())).reply_to == ReplyTo(message_id="$1")


def test_in_a_thread_the_last_message_is_not_answered():
    thread = {"rel_type": "m.thread", "event_id": "$root"}
    assert heard(said(**answering(**thread, is_falling_back=True)), related=OWN).reply_to is None
    assert heard(said(**answering(**thread, is_falling_back=False)), related=OWN).reply_to is not None


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {**said(), "event_id": 5},
        {**said(), "origin_server_ts": 10**20},
        {**said(), "sender": None},
        said(7),  # type: ignore[arg-type]
        event(content={"msgtype": "m.image", "body": "x", "file": {"url": "mxc://e.org/1"}}),
        {**said(), "event_id": "$a\nb"},
    ],
    ids=range(7),
)
def test_what_has_another_form_is_unreadable(raw: dict[str, Any]):
    with pytest.raises(UnreadableEventError):
        read(raw)


# What is known of rooms


def known(raw: dict[str, Any]) -> RoomEvent:
    return msgspec.convert(raw, RoomEvent)


def member(user: str, membership: str, **unsigned: Any) -> dict[str, Any]:
    content = {"membership": membership, "displayname": user[1:4].title()}
    return event("m.room.member", content, state_key=user, unsigned=unsigned)


def test_a_room_learns_from_what_happens_in_it():
    room = KnownRoom("!r:e.org")
    room.apply(known(member(ANN, "join")))
    assert (room.members, room.is_private, room.name_of(ANN)) == (None, False, None)
    room.members = {BOT.user_id: "Helper Bot"}
    for raw in (
        member(ANN, "join"),
        event("m.room.name", {"name": "Team"}, state_key=""),
        event("m.room.canonical_alias", {"alias": 7}, state_key=""),
        event("m.room.encryption", {}, state_key=""),
        event("m.room.topic", {}, state_key=""),
    ):
        room.apply(known(raw))
    assert (room.is_private, room.name, room.alias, room.is_encrypted) == (True, "Team", None, True)
    room.apply(known(member(BOB, "join")))
    assert not room.is_private
    room.apply(known(member(BOB, "leave")))
    assert room.is_private


def test_a_room_remembers_its_last_messages():
    room = KnownRoom("!r:e.org")
    for number in range(MOST_SEEN + 5):
        room.remember(f"${number}", ANNS)
    assert len(room.seen) == MOST_SEEN
    assert "$4" not in room.seen
    assert "$5" in room.seen


def test_messages_are_seen_and_edits_and_states_are_not():
    assert seen_message(known(said(**relating(rel_type="m.thread", event_id="$r")))) == SeenMessage(
        ANN, "$r", "hello"
    )
    assert seen_message(known(edit())) is None
    assert seen_message(known(event("m.room.topic", {}))) is None
    assert seen_message(known(event(content={"body": 7}))) == SeenMessage(ANN, None, "")


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (said(), None),
        (edit(), "$1"),
        (said(**answering()), "$1"),
        (event("m.room.redaction", {"redacts": "$1"}), "$1"),
        (said(**{"m.relates_to": "$1"}), None),
        (said(**{"m.relates_to": {"m.in_reply_to": "$1"}}), None),
    ],
    ids=range(6),
)
def test_what_an_event_belongs_to_is_told(raw: dict[str, Any], expected: str | None):
    assert related_id(known(raw)) == expected


@pytest.mark.parametrize(
    ("events", "entry"),
    [
        ([said()], None),
        ([said(), member(BOT.user_id, "invite"), said(), member(BOT.user_id, "join", **{
            "prev_content": {"membership": "invite"}})], 1),
        ([said(), member(BOT.user_id, "join", prev_content={"membership": "leave"})], 1),
        ([said(), member(BOT.user_id, "join")], 1),
        ([said(), member(BOT.user_id, "join", replaces_state="$0")], None),
        ([said(), member(BOT.user_id, "join", prev_content={"membership": "join"})], None),
        ([{"broken": True}, member(ANN, "join"), member(BOT.user_id, "leave")], None),
    ],
    ids=range(7),
)  # fmt: skip
def test_what_was_said_before_the_account_came_is_told_apart(events: list[Any], entry: int | None):
    assert own_entry(events, BOT.user_id) == entry


def test_who_followed_an_invitation_is_told():
    assert came_invited([member(BOT.user_id, "join", prev_content={"membership": "invite"})], BOT.user_id)
    assert not came_invited([member(BOT.user_id, "join"), 7], BOT.user_id)


def test_an_invitation_says_who_asks_where():
    state = [
        event("m.room.name", {"name": "Team"}),
        event("m.room.name", 7),
        7,
        member(BOT.user_id, "invite"),
    ]  # type: ignore[arg-type]
    assert invite_of("!r:e.org", state, BOT.user_id) == ("!r:e.org", ANN, "Team")


# Whatever may come


def test_no_change_of_an_event_raises_anything_else():
    seeds: list[dict[str, Any]] = [
        said(
            "@helper \U0001f600 hello", **answering(rel_type="m.thread", event_id="$r"), **{"m.mentions": {}}
        ),
        edit("x", **FILE),
        event(content={"msgtype": "m.image", "body": "c", **FILE}),
        event("m.sticker", {"body": "c", **FILE}),
        event("m.room.redaction", {"redacts": "$1"}),
        event("m.poll.start", {"m.poll": {"question": {"m.text": [{"body": "q"}]}, "answers": []}}),
        said("place", msgtype="m.location", geo_uri="geo:1,2"),
    ]
    draw = random.Random(20261120)
    outcomes = {"message": 0, "none": 0, "unreadable": 0}
    for _ in range(10_000):
        raw = copy.deepcopy(draw.choice(seeds))
        for _ in range(draw.randint(1, 3)):
            mutate(raw, draw)
        try:
            rules = {"groups": draw.choice([*GroupTalk])}
            found = read(raw, draw.choice([GROUP, PRIVATE]), draw.choice([None, OWN, ANNS]), **rules)
        except UnreadableEventError:
            outcomes["unreadable"] += 1
        else:
            outcomes["none" if found is None else "message"] += 1
    assert min(outcomes.values()) > 100, outcomes


def mutate(content: dict[str, Any], draw: random.Random) -> None:
    """Change one member somewhere in an event."""
    found = [content]
    while isinstance(deeper := draw.choice([*found[-1].values()]) if found[-1] else None, dict):
        found.append(deeper)
        if draw.random() < 0.3:
            break
    holder = found[-1]
    name = draw.choice([*holder, "m.relates_to", "m.mentions", "body", "redacts"])
    junk = [None, 7, -1, 1e300, "", "x\n\x00", "\ud800", "$" * 600, [], [{}], {}, {"event_id": "$1"}, True]
    if draw.random() < 0.2:
        holder.pop(name, None)
    else:
        holder[name] = draw.choice(junk)
