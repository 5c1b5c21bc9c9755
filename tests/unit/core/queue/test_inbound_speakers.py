"""Who a model is told has said something."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway_sessions import SessionSource
from gateway_sessions.core.identity.keys import Isolation, session_key
from gateway_sessions.core.identity.pseudonyms import Pseudonyms
from gateway_sessions.core.queue.inbound import InboundMessage, ReplyTo, Speakers, make_user_row

NAMES = Pseudonyms(b"a secret of the installation")
SHARED, PRIVATE = Isolation(group_sessions_per_user=False), Isolation()
ROOM = SessionSource(platform="telegram", chat_type="group", chat_id="C", user_id="7", user_name="Ann")
NAMELESS = replace(ROOM, user_name=None)


def named(
    source: SessionSource, flags: Isolation = SHARED, *, redact: bool = False, **members
) -> InboundMessage:
    speakers = Speakers(pseudonyms=NAMES, flags=flags, redact=redact)
    message = InboundMessage(source=source, text="hello", **members)
    return speakers.with_speaker_names(message, session_key(source, flags))


def told(message: InboundMessage, *, shared: bool = True) -> object:
    row = make_user_row([message], shared=shared)
    return row.content if row.api_content is None else row.api_content


class TestWithoutRedaction:
    def test_a_name_is_told_as_it_is(self):
        assert named(ROOM).speaker is None
        assert told(named(ROOM)) == "[Ann] hello"

    @pytest.mark.parametrize("name", [None, "", " ", "\u200b"])
    def test_somebody_without_a_name_in_a_shared_room_has_a_pseudonym_of_the_lane(self, name):
        one = named(replace(ROOM, user_name=name))
        assert one.speaker == NAMES.speaker("agent:main:telegram:group:C", "7")
        assert told(one) == f"[{one.speaker}] hello"
        assert named(replace(ROOM, user_name=name)).speaker == one.speaker

    def test_it_tells_people_apart_and_is_another_one_on_every_other_lane(self):
        others = (NAMELESS, replace(NAMELESS, user_id="8"), replace(NAMELESS, chat_id="D"))
        assert len({named(one).speaker for one in others}) == 3

    def test_the_id_that_does_not_change_decides(self):
        moved = [replace(NAMELESS, user_id=one, user_id_alt="uuid") for one in ("7", "8")]
        assert named(moved[0]).speaker == named(moved[1]).speaker

    def test_where_nobody_shares_a_session_nobody_has_to_be_told_apart(self):
        assert named(NAMELESS, PRIVATE).speaker is None
        assert named(replace(NAMELESS, chat_type="dm")).speaker is None

    def test_nobody_at_all_stays_unnamed(self):
        assert told(named(replace(NAMELESS, user_id=None))) == "[unnamed] hello"

    def test_whoever_is_answered_has_the_pseudonym_that_they_speak_under(self):
        answer = named(ROOM, reply_to=ReplyTo(message_id="1", text="when?", author_id="8"))
        other = named(replace(NAMELESS, user_id="8")).speaker
        assert str(told(answer)).startswith(f"[In reply to what {other} said:]")


class TestWithRedaction:
    def test_names_are_the_pseudonyms_that_prompts_show(self):
        for source in (ROOM, NAMELESS):
            one = named(source, redact=True)
            assert one.speaker == NAMES.user("telegram", "7")
            assert told(one) == f"[{one.speaker}] hello"
            assert make_user_row([one]).extra == {"name": one.speaker}

    def test_so_they_are_where_nobody_shares_a_session(self):
        one = named(ROOM, PRIVATE, redact=True)
        assert make_user_row([one]).extra == {"name": NAMES.user("telegram", "7")}

    @pytest.mark.parametrize("author", [{"author_id": "8"}, {"author_name": "Bob"}])
    def test_whoever_is_answered_is_hidden_as_well(self, author):
        answered = ReplyTo(message_id="1", text="when?", **author)
        one = named(ROOM, PRIVATE, redact=True, reply_to=answered)
        assert f"what {NAMES.user('telegram', next(iter(author.values())))} said" in str(
            told(one, shared=False)
        )

    def test_what_the_agent_said_is_its_own(self):
        own = ReplyTo(message_id="1", text="when?", own=True)
        assert named(ROOM, redact=True, reply_to=own).reply_to == own

    def test_a_name_without_an_id_is_hidden_too(self):
        assert named(replace(ROOM, user_id=None), redact=True).speaker == NAMES.user("telegram", "Ann")

    @pytest.mark.parametrize("platform", ["discord", "slack", "matrix"])
    def test_names_stay_where_a_reply_has_to_mention_people(self, platform):
        assert told(named(replace(ROOM, platform=platform), redact=True)) == "[Ann] hello"

    def test_the_source_stays_as_the_platform_says(self):
        assert named(ROOM, redact=True).source == ROOM
