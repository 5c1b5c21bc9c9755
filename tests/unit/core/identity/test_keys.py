"""Which lane a message belongs to, and whose it is."""

from __future__ import annotations

import inspect
from itertools import product

import pytest

from gateway_sessions.core.identity.keys import (
    Isolation,
    Sharing,
    account_in_key,
    build_session_key,
    decode_part,
    encode_part,
    identity_key,
    ids_to_resolve,
    is_room_owner,
    is_shared_multi_user_session,
    normalize_whatsapp_id,
    person_owner,
    platform_and_chat_type,
    room_owner,
    same_conversation,
    session_key,
    session_owner,
    sharing_rule,
    without_account,
)
from gateway_sessions.core.identity.source import SessionSource

FLAGS = Isolation()


def source(platform="telegram", chat_type="dm", chat_id="", **members) -> SessionSource:
    return SessionSource(platform=platform, chat_type=chat_type, chat_id=chat_id, **members)


def key(*args, **members) -> str:
    return session_key(source(*args, **members), FLAGS)


class TestDirectChats:
    def test_the_chat_names_it(self):
        assert key(chat_id="99", user_id="7") == "agent:main:telegram:dm:99"

    def test_a_thread_in_it_is_a_lane_of_its_own(self):
        assert key(chat_id="99", thread_id="t1") == "agent:main:telegram:dm:99:t1"

    def test_without_a_chat_the_person_names_it(self):
        assert key(user_id="7") == "agent:main:telegram:dm:7"
        assert key(user_id="7", user_id_alt="stable", thread_id="t") == "agent:main:telegram:dm:stable:t"

    def test_without_either_the_thread_names_it(self):
        assert key(thread_id="t") == "agent:main:telegram:dm:t"

    def test_without_anything_all_share_one(self):
        assert key() == "agent:main:telegram:dm"


ROOMS = ("group", "channel", "thread", "forum", "anything")


class TestRooms:
    @pytest.mark.parametrize(
        ("chat_type", "group", "thread_flag", "thread"),
        list(product(ROOMS, (False, True), (False, True), (None, "t"))),
    )
    def test_the_person_is_part_of_the_key_exactly_where_people_are_apart(
        self, chat_type, group, thread_flag, thread
    ):
        one = source(chat_type=chat_type, chat_id="c", user_id="u", thread_id=thread)
        apart = group and (thread is None or thread_flag)
        expected = ":".join(
            filter(None, ["agent:main:telegram", chat_type, "c", thread, "u" if apart else None])
        )
        assert build_session_key(one, group, thread_flag) == expected

    @pytest.mark.parametrize(
        ("chat_type", "group", "thread_flag", "thread"),
        list(product(("dm", *ROOMS), (False, True), (False, True), (None, "t"))),
    )
    def test_a_session_is_shared_exactly_where_the_key_names_no_person(
        self, chat_type, group, thread_flag, thread
    ):
        alice, bob = (
            source(chat_type=chat_type, chat_id="c", user_id=user, thread_id=thread)
            for user in ("alice", "bob")
        )
        same_key = build_session_key(alice, group, thread_flag) == build_session_key(bob, group, thread_flag)
        shared = is_shared_multi_user_session(
            alice, group_sessions_per_user=group, thread_sessions_per_user=thread_flag
        )
        assert shared == (same_key and chat_type != "dm")

    def test_a_group_without_an_id_is_told_by_the_person(self):
        assert key(chat_type="group", user_id="9") == "agent:main:telegram:group:9"

    def test_nobody_in_particular_has_the_room_s_key(self):
        assert key(chat_type="group", chat_id="c") == "agent:main:telegram:group:c"


class TestProfiles:
    @pytest.mark.parametrize("profile", [None, "", "default", "main"])
    def test_the_default_profile_is_called_main(self, profile):
        assert build_session_key(source(chat_id="1"), profile=profile) == "agent:main:telegram:dm:1"

    def test_another_profile_has_lanes_of_its_own(self):
        assert build_session_key(source(chat_id="1"), profile="work") == "agent:work:telegram:dm:1"

    def test_a_profile_of_the_source_changes_no_key(self):
        assert key(chat_id="1", profile="work") == "agent:main:telegram:dm:1"

    def test_a_gateway_of_several_profiles_goes_by_that_of_the_source(self):
        flags = Isolation(multiplex_profiles=True)
        one = source(chat_id="1", user_id="7", profile="work")
        assert session_key(one, flags) == "agent:work:telegram:dm:1"
        assert identity_key(one, flags) == "agent:work:telegram:dm:%chat:1"
        assert session_owner(one, flags) == "work:telegram:user:7"
        assert room_owner(one, flags) == "work:telegram:room:dm:1"
        assert not same_conversation(one, source(chat_id="1", user_id="7"), flags)

    @pytest.mark.parametrize("profile", [None, "", "default", "main"])
    def test_a_source_without_a_profile_of_its_own_has_the_gateway_s(self, profile):
        flags = Isolation(multiplex_profiles=True)
        assert session_key(source(chat_id="1", profile=profile), flags) == "agent:main:telegram:dm:1"


class TestAccounts:
    """Each named account of a platform has lanes, owners and rooms of its own."""

    def test_an_account_without_a_name_changes_nothing(self):
        assert key(chat_id="1", account="") == "agent:main:telegram:dm:1"

    def test_a_named_one_stands_behind_the_chat_type(self):
        assert key(chat_id="1", account="support") == "agent:main:telegram:dm:%account:support:1"
        room = source(chat_type="group", chat_id="C", user_id="7", thread_id="t", account="a:b")
        assert session_key(room, FLAGS) == "agent:main:telegram:group:%account:a%3Ab:C:t"
        assert identity_key(room, FLAGS) == "agent:main:telegram:group:%account:a%3Ab:%chat:C:%thread:t"

    def test_its_owners_are_its_own(self):
        one = source(chat_id="1", user_id="7", account="support")
        assert person_owner(one, FLAGS) == "main:telegram:user:%account:support:7"
        assert person_owner(source(chat_id="1", account="support"), FLAGS) == (
            "main:telegram:chat:%account:support:1"
        )
        room = room_owner(source(chat_type="group", chat_id="C", account="support"), FLAGS)
        assert room == "main:telegram:room:%account:support:group:C"
        assert is_room_owner(room)

    def test_two_accounts_are_never_one_conversation(self):
        here, there = (source(chat_id="1", user_id="7", account=name) for name in ("support", "sales"))
        assert not same_conversation(here, there, FLAGS)
        assert not same_conversation(here, source(chat_id="1", user_id="7"), FLAGS)

    def test_a_key_still_tells_its_place(self):
        assert platform_and_chat_type(key("telegram", "group", "C", account="support")) == (
            "telegram",
            "group",
        )

    @pytest.mark.parametrize("of", ["agent:main:telegram:dm:1", "main:telegram:user:7", "lane:x", ""])
    def test_what_names_no_account_is_left_as_it_is(self, of):
        assert account_in_key(of) == ""
        assert without_account(of) == of


class TestSeparators:
    @pytest.mark.parametrize(
        ("part", "encoded"),
        [
            ("plain", "plain"),
            ("a:b", "a%3Ab"),
            ("50%", "50%25"),
            ("%3A", "%253A"),
            (":", "%3A"),
            ("%", "%25"),
        ],
    )
    def test_a_separator_inside_a_part_is_encoded(self, part, encoded):
        assert encode_part(part) == encoded
        assert key(chat_id=part) == f"agent:main:telegram:dm:{encoded}"

    def test_every_part_is_encoded(self):
        one = source("a:b", "c:d", "e:f", user_id="g:h", thread_id="i:j")
        flags = Isolation(thread_sessions_per_user=True, profile="k:l")
        assert session_key(one, flags) == "agent:k%3Al:a%3Ab:c%3Ad:e%3Af:i%3Aj:g%3Ah"
        assert identity_key(one, flags) == "agent:k%3Al:a%3Ab:c%3Ad:%chat:e%3Af:%thread:i%3Aj:%user:g%3Ah"


COLLIDING = [
    (
        source(chat_type="group", chat_id="C", user_id="7"),
        source(chat_type="group", chat_id="C", thread_id="7"),
    ),
    (source(chat_id="5"), source(user_id="5")),
    (source(chat_id="5"), source(thread_id="5")),
    (source(user_id="5"), source(thread_id="5")),
    (source(chat_id="5", thread_id="6"), source(user_id="5", thread_id="6")),
    (source(chat_type="group", chat_id="C"), source(chat_type="group", user_id="C")),
]


class TestIdentity:
    @pytest.mark.parametrize(("one", "other"), COLLIDING)
    def test_it_tells_apart_what_has_one_plain_key(self, one, other):
        assert session_key(one, FLAGS) == session_key(other, FLAGS)
        assert identity_key(one, FLAGS) != identity_key(other, FLAGS)
        assert not same_conversation(one, other, FLAGS)

    def test_what_does_not_route_a_message_does_not_part_conversations(self):
        one = source(chat_id="1", user_id="u", message_id="m1", chat_name="a", is_bot=True)
        other = source(chat_id="1", user_id="u", message_id="m2", user_name="b")
        assert same_conversation(one, other, FLAGS)

    def test_another_person_in_a_shared_room_has_the_same_conversation(self):
        alice, bob = (source(chat_type="group", chat_id="C", user_id=user) for user in ("alice", "bob"))
        assert same_conversation(alice, bob, Isolation(group_sessions_per_user=False))
        assert not same_conversation(alice, bob, FLAGS)


class TestOwners:
    def test_a_private_lane_belongs_to_the_person_wherever_it_is(self):
        places = [source(chat_id="d", user_id="u"), source(chat_type="group", chat_id="g", user_id="u")]
        assert {session_owner(one, FLAGS) for one in places} == {"main:telegram:user:u"}

    def test_a_shared_lane_belongs_to_the_room(self):
        shared = source(chat_type="thread", chat_id="g", user_id="u", thread_id="t")
        assert session_owner(shared, FLAGS) == room_owner(shared, FLAGS) == "main:telegram:room:thread:g:t"

    def test_a_direct_chat_without_a_person_belongs_to_the_chat(self):
        assert (
            session_owner(source(chat_id="d"), FLAGS)
            == person_owner(source(chat_id="d"), FLAGS)
            == "main:telegram:chat:d"
        )

    def test_a_room_s_message_of_nobody_belongs_to_the_room(self):
        one = source(chat_type="group", chat_id="g")
        assert person_owner(one, FLAGS) is None
        assert session_owner(one, FLAGS) == room_owner(one, FLAGS)

    def test_the_aliases_of_a_person_are_one_owner(self):
        one = source("whatsapp", chat_id="999@lid")
        assert session_owner(one, FLAGS, {"999": "1555"}) == "main:whatsapp:chat:1555"


class TestWhatsApp:
    @pytest.mark.parametrize(
        ("given", "bare"),
        [
            ("49155@s.whatsapp.net", "49155"), ("49155:3@lid", "49155"), ("+49155", "49155"),
            (" 49155 ", "49155"), ("++49155", "+49155"), ("", ""), ("@lid", ""), ("+", ""),
            ("+49 155", "49155"), ("+49 (155) 12-34", "491551234"), ("49\u00a0155@s.whatsapp.net", "49155"),
            ("49.155/12", "4915512"), ("le na", "lena"), ("120-456@g.us", "120456"), ("x-1", "x-1"),
        ],
    )  # fmt: skip
    def test_all_forms_of_a_number_are_one(self, given, bare):
        assert normalize_whatsapp_id(given) == bare

    def test_the_alias_of_a_chat_or_a_person_is_in_the_key(self):
        aliases = {"999": "1555"}
        direct = source("whatsapp", chat_id="999@lid")
        grouped = source("whatsapp", "group", "120@g.us", user_id="999:2@lid")
        assert session_key(direct, FLAGS, aliases) == "agent:main:whatsapp:dm:1555"
        assert session_key(grouped, FLAGS, aliases) == "agent:main:whatsapp:group:120@g.us:1555"

    def test_only_the_ids_of_people_have_aliases(self):
        assert ids_to_resolve(source("whatsapp", chat_id="1@lid", user_id="2@lid")) == ("1", "2")
        assert ids_to_resolve(
            source("whatsapp", "group", "1@g.us", user_id="2@lid", user_id_alt="3@lid")
        ) == ("3",)
        assert ids_to_resolve(source("whatsapp", chat_id="1@lid", user_id="1@s.whatsapp.net")) == ("1",)
        assert ids_to_resolve(source("whatsapp", chat_id="@lid")) == ()
        assert ids_to_resolve(source("telegram", chat_id="1", user_id="2")) == ()

    def test_an_id_of_which_nothing_is_left_stands_for_itself(self):
        """Else all such chats would be one lane without an identifier."""
        assert key("whatsapp", chat_id="@lid") == "agent:main:whatsapp:dm:@lid"
        assert key("whatsapp", chat_id="@lid", user_id="+") == "agent:main:whatsapp:dm:+"
        assert key("whatsapp", chat_id="@lid", user_id="7@lid") == "agent:main:whatsapp:dm:7"

    def test_other_platforms_have_their_ids_as_they_are(self):
        assert key("signal", chat_id="+49155") == "agent:main:signal:dm:+49155"


def test_the_flags_may_be_given_in_their_established_order():
    assert list(inspect.signature(build_session_key).parameters)[:4] == [
        "source",
        "group_sessions_per_user",
        "thread_sessions_per_user",
        "profile",
    ]


class TestSharing:
    @pytest.mark.parametrize(
        ("group", "thread", "of"), list(product((True, False), (True, False), ("dm", "group", "thread")))
    )
    def test_the_rule_is_the_one_that_the_key_was_made_by(self, group, thread, of):
        """Where people are said to share a session, its key names nobody; and the other way round."""
        flags = Isolation(group_sessions_per_user=group, thread_sessions_per_user=thread)
        inside = {"thread_id": "t"} if of == "thread" else {}
        written = source(chat_type="dm" if of == "dm" else "group", chat_id="c", user_id="7", **inside)
        rule = sharing_rule(written.chat_type, written.thread_id, session_owner(written, flags))
        named = session_key(written, flags).endswith(":7")
        expected = {
            ("dm", False): Sharing.DIRECT,
            ("group", True): Sharing.PERSON,
            ("group", False): Sharing.ROOM,
            ("thread", True): Sharing.PERSON_IN_THREAD,
            ("thread", False): Sharing.THREAD,
        }
        assert rule is expected[of, named]

    def test_where_nobody_is_named_all_share(self):
        nameless = source(chat_type="channel", chat_id="c")
        assert sharing_rule("channel", None, session_owner(nameless, FLAGS)) is Sharing.ROOM


class TestPlaceInKey:
    @pytest.mark.parametrize("platform", ["telegram", "a:b", "50%", "%3a"])
    @pytest.mark.parametrize("chat_type", ["dm", "group", "x:y"])
    def test_it_is_the_one_that_the_key_was_made_of(self, platform, chat_type):
        assert platform_and_chat_type(key(platform, chat_type, chat_id="1")) == (platform, chat_type)
        assert decode_part(encode_part(platform)) == platform

    @pytest.mark.parametrize("text", ["", "a", "a:b", "agent:main:telegram", "lane:main:telegram:dm:1"])
    def test_what_is_no_key_of_ours_tells_nothing(self, text):
        assert platform_and_chat_type(text) == ("", "dm")
