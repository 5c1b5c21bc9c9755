"""What may name the origin of a message, what is refused by name, and how it is stored."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway_sessions.core.identity.source import MAX_IDENTIFIER, MAX_NAME, Platform, SessionSource
from gateway_sessions.errors import InvalidInputError, InvalidSourceError

IDENTIFIERS = (
    "platform", "chat_id", "chat_type", "user_id", "thread_id", "user_id_alt", "chat_id_alt", "guild_id",
    "parent_chat_id", "message_id", "profile",
)  # fmt: skip
NAMES = ("chat_name", "user_name", "chat_topic")
OPTIONAL = ("user_id_alt", "chat_id_alt", "guild_id", "parent_chat_id", "message_id", "profile")


def source(**members) -> SessionSource:
    return SessionSource(**{"platform": "telegram", "chat_id": "c1"} | members)


class TestIdentifiers:
    @pytest.mark.parametrize("name", IDENTIFIERS)
    @pytest.mark.parametrize(
        ("value", "problem"),
        [
            ("a\nb", "control"), ("a\x00b", "control"), ("a\x1bb", "control"), ("a\x85b", "control"),
            ("a\u2028b", "control"), ("a\u2029b", "control"),
            ("\ud83d", "surrogate"), ("a\udc00b", "surrogate"),
            ("..", "path"), ("../b", "path"), ("a/../b", "path"), ("a\\..\\b", "path"), ("a/..", "path"),
            ("x" * (MAX_IDENTIFIER + 1), "longer"), ("x" * 10_000, "longer"),
            (5, "text"), (5.0, "text"), (True, "text"), (b"a", "text"), (["a"], "text"), ({}, "text"),
        ],
        ids=repr,
    )  # fmt: skip
    def test_what_could_not_be_stored_or_told_from_a_path_is_refused_by_name(self, name, value, problem):
        with pytest.raises(InvalidSourceError) as caught:
            source(**{name: value})
        assert caught.value.field == name
        assert problem in str(caught.value)

    def test_the_error_is_an_invalid_input_and_a_value_error(self):
        with pytest.raises(InvalidInputError):
            source(chat_id="\n")
        with pytest.raises(ValueError, match="chat_id"):
            source(chat_id="\n")

    @pytest.mark.parametrize("name", IDENTIFIERS)
    @pytest.mark.parametrize(
        "value",
        ["a:b", "50%", "…", "a..b", "...", "a/b", "/a", "C:", "x" * MAX_IDENTIFIER, "😀", "e\u0301", " a "],
    )
    def test_ids_are_never_rewritten(self, name, value):
        kept = getattr(source(**{name: value}), name)
        assert kept == (value.strip().lower() if name == "platform" else value)

    @pytest.mark.parametrize("platform", [None, "", "  "])
    def test_a_source_without_a_platform_is_refused(self, platform):
        with pytest.raises(InvalidSourceError) as caught:
            SessionSource(platform=platform, chat_id="c1")
        assert caught.value.field == "platform"

    def test_any_platform_is_welcome_in_lower_case(self):
        assert source(platform=" My-Own ").platform == "my-own"

    def test_a_platform_is_plain_text_however_it_was_given(self):
        assert type(source(platform=Platform.SIGNAL).platform) is str

    def test_a_chat_without_a_type_is_a_direct_one(self):
        assert source(chat_type="").chat_type == source(chat_type=None).chat_type == "dm"

    def test_no_chat_is_an_empty_one(self):
        """None would be stored as it is, and an origin without a chat cannot be read again."""
        assert source(chat_id=None, user_id="7").chat_id == ""

    @pytest.mark.parametrize("name", OPTIONAL)
    def test_an_empty_optional_id_is_none_because_it_is_stored_so(self, name):
        assert getattr(source(**{name: ""}), name) is None

    @pytest.mark.parametrize("name", ["is_bot", "role_authorized"])
    @pytest.mark.parametrize("value", ["no", 1, None])
    def test_a_flag_is_true_or_false(self, name, value):
        with pytest.raises(InvalidSourceError) as caught:
            source(**{name: value})
        assert caught.value.field == name


class TestNames:
    @pytest.mark.parametrize("name", NAMES)
    def test_a_name_is_bounded(self, name):
        assert len(getattr(source(**{name: "x" * 10_000}), name)) == MAX_NAME

    @pytest.mark.parametrize("name", NAMES)
    def test_what_no_database_holds_is_replaced_and_the_rest_kept(self, name):
        assert getattr(source(**{name: "a\x00b\ud800c\nd"}), name) == "a\ufffdb\ufffdc\nd"

    @pytest.mark.parametrize("name", NAMES)
    @pytest.mark.parametrize("value", [5, b"x", ["x"]])
    def test_a_name_that_is_not_text_is_refused(self, name, value):
        with pytest.raises(InvalidSourceError) as caught:
            source(**{name: value})
        assert caught.value.field == name

    @pytest.mark.parametrize("name", NAMES)
    def test_an_empty_name_stays_empty(self, name):
        assert getattr(source(**{name: ""}), name) == ""


class TestWhoAndWhere:
    def test_it_cannot_be_changed(self):
        with pytest.raises(FrozenInstanceError):
            source().chat_id = "other"

    def test_it_can_be_a_key(self):
        assert len({source(), source(), source(chat_id="c2")}) == 2

    @pytest.mark.parametrize(
        ("members", "participant"),
        [
            ({}, None),
            ({"user_id": "u"}, "u"),
            ({"user_id_alt": "a"}, "a"),
            ({"user_id": "u", "user_id_alt": "a"}, "a"),
            ({"user_id": ""}, ""),
        ],
    )
    def test_the_id_that_does_not_change_names_the_person(self, members, participant):
        assert source(**members).participant_id == participant

    @pytest.mark.parametrize(
        ("members", "has_one"),
        [
            ({}, False),
            ({"chat_id": "c"}, True),
            ({"user_id": "u"}, True),
            ({"user_id_alt": "a"}, True),
            ({"thread_id": "t"}, True),
            ({"chat_name": "Team", "user_name": "Alice"}, False),
            ({"guild_id": "g", "message_id": "m", "chat_id_alt": "x", "parent_chat_id": "p"}, False),
        ],
    )
    def test_only_a_chat_a_person_or_a_thread_tells_origins_apart(self, members, has_one):
        assert SessionSource(platform="x", **members).has_identifier is has_one

    @pytest.mark.parametrize(
        ("members", "text"),
        [
            ({"platform": "local"}, "CLI terminal"),
            ({"user_name": "Alice", "user_id": "7"}, "DM with Alice"),
            ({"user_id": "7"}, "DM with 7"),
            ({}, "DM with user"),
            ({"user_name": "Alice", "thread_id": "t"}, "DM with Alice, thread: t"),
            ({"chat_type": "group", "chat_name": "Team"}, "group: Team"),
            ({"chat_type": "channel"}, "channel: c1"),
            ({"chat_type": "thread", "chat_name": "Plan", "thread_id": "9"}, "Plan, thread: 9"),
            ({"chat_type": "forum"}, "c1"),
        ],
    )
    def test_its_description_is_for_people(self, members, text):
        assert source(**members).description == text


class TestStoredForm:
    def test_what_tells_of_one_message_is_not_stored(self):
        stored = source(is_bot=True, role_authorized=True).to_dict()
        assert not {"is_bot", "role_authorized"} & set(stored)

    def test_a_guild_is_stored_under_both_of_its_names(self):
        stored = source(guild_id="g").to_dict()
        assert stored["scope_id"] == stored["guild_id"] == "g"

    def test_members_that_nobody_knows_are_written_back(self):
        stored = source().to_dict() | {"later": {"a": [1]}, "auto_thread_created": True}
        assert SessionSource.from_dict(stored).to_dict() == stored

    def test_members_that_nobody_knows_do_not_replace_known_ones(self):
        assert source(extra={"chat_id": "other"}).to_dict()["chat_id"] == "c1"

    def test_unknown_members_do_not_tell_origins_apart(self):
        assert source(extra={"a": 1}) == source()

    @pytest.mark.parametrize(
        ("stored", "field"),
        [
            ({}, "platform"),
            ({"platform": None, "chat_id": "c"}, "platform"),
            ({"platform": 5, "chat_id": "c"}, "platform"),
            ({"platform": "x"}, "chat_id"),
            ({"platform": "x", "chat_id": None}, "chat_id"),
            ({"platform": "x", "chat_id": "../c"}, "chat_id"),
            ({"platform": "x", "chat_id": "c", "user_id": "\n"}, "user_id"),
        ],
    )
    def test_a_stored_source_that_cannot_be_one_is_refused_by_name(self, stored, field):
        with pytest.raises(InvalidSourceError) as caught:
            SessionSource.from_dict(stored)
        assert caught.value.field == field

    def test_numbers_are_read_as_text(self):
        read = SessionSource.from_dict({"platform": "x", "chat_id": -100, "user_id": 7})
        assert (read.chat_id, read.user_id) == ("-100", "7")

    @pytest.mark.parametrize(
        ("stored", "guild"),
        [
            ({"guild_id": "g"}, "g"),
            ({"scope_id": "s", "guild_id": "g"}, "s"),
            ({"scope_id": None, "guild_id": "g"}, None),
            ({}, None),
        ],
    )
    def test_the_newer_name_of_a_guild_wins_by_being_there(self, stored, guild):
        assert SessionSource.from_dict({"platform": "x", "chat_id": "c"} | stored).guild_id == guild


texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
sources = st.builds(
    SessionSource,
    platform=st.sampled_from(["telegram", "whatsapp", "local"]),
    chat_id=st.sampled_from(["", "c", "a:b", "50%"]),
    chat_type=st.sampled_from(["dm", "group", "thread", ""]),
    **{name: st.none() | texts for name in NAMES},
    **{
        name: st.none() | st.sampled_from(["", "a", "ü:%", "a b"])
        for name in (*OPTIONAL, "user_id", "thread_id")
    },
    extra=st.dictionaries(st.sampled_from(["later", "much_later"]), st.integers() | st.none() | texts),
)


@given(one=sources)
def test_a_source_that_was_accepted_is_read_back_as_it_was(one):
    read = SessionSource.from_dict(one.to_dict())
    assert read == one
    assert dict(read.extra) == dict(one.extra)


def test_a_message_s_own_flags_are_all_that_storing_loses():
    one = source(is_bot=True, role_authorized=True, user_name="Alice")
    assert SessionSource.from_dict(one.to_dict()) == replace(one, is_bot=False, role_authorized=False)
