"""Whatever people call themselves, the prompt keeps its shape; whatever their ids, none of them is in it."""

import json
import re
import unicodedata
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from gateway_sessions.core.display_text import MAX_SHOWN, inline_name, prefix_with_name, quote_as_json
from gateway_sessions.core.identity.pseudonyms import Pseudonyms
from gateway_sessions.core.identity.source import SessionSource
from gateway_sessions.core.sessions.titles import MAX_TITLE, clean_title, next_title, split_numbered_title
from gateway_sessions.core.transcript.session_context_prompt import (
    HomeChannel,
    build_session_context,
    build_session_context_prompt,
)
from gateway_sessions.errors import InvalidTitleError

TRICKY = '\n\r\t\x0b\x0c\x1c\x85\u2028\u2029\u200b\u202e\ufeff\U000e0041[]\uff3b\uff3d"\\#*`->: '
ANYTHING = st.text() | st.text(alphabet=st.sampled_from(TRICKY + "aZ7")) | st.text(min_size=200, max_size=400)
NAMES = ANYTHING.filter(bool)
CHAT_TYPES = st.sampled_from(["dm", "group", "channel", "thread", "forum"])
REDACTED = st.sampled_from(["telegram", "signal", "whatsapp", "sms", "email", "irc"])
PLATFORMS = REDACTED | st.sampled_from(["discord", "slack", "matrix", "local", "bluebubbles"])

DIGITS = st.text(alphabet="0123456789", min_size=5, max_size=14)
IDS = st.one_of(
    DIGITS,
    DIGITS.map(lambda number: f"+{number}"),
    DIGITS.map(lambda number: f"-100{number}"),
    DIGITS.map(lambda number: f"{number}@s.whatsapp.net"),
    st.text(alphabet='0189$%&()*.\\"[]|^?{}', min_size=5, max_size=20).filter(lambda raw: ".." not in raw),
    st.uuids().map(str),
)
ID_FIELDS = ("chat_id", "user_id", "thread_id", "user_id_alt", "chat_id_alt", "guild_id", "parent_chat_id")
NAME_FIELDS = ("user_name", "chat_name", "chat_topic")

PSEUDONYMS = Pseudonyms(b"a secret of the installation")


def prompt_of(source, homes, *, shared=False, **options):
    context = build_session_context(
        source,
        connected_platforms=["telegram", "discord", "signal"],
        home_channels=homes,
        group_sessions_per_user=not shared,
    )
    return build_session_context_prompt(context, **options)


@given(
    platform=PLATFORMS,
    chat_type=CHAT_TYPES,
    names=st.tuples(NAMES, NAMES, NAMES, NAMES),
    ids=st.booleans(),
    shared=st.booleans(),
    pseudonyms=st.sampled_from([None, PSEUDONYMS]),
)
def test_names_never_change_the_lines_of_the_prompt(platform, chat_type, names, ids, shared, pseudonyms):
    def lines(user_name, chat_name, chat_topic, home_name):
        source = SessionSource(
            platform=platform,
            chat_type=chat_type,
            chat_id="1" if ids else "",
            user_id="2" if ids else None,
            user_name=user_name,
            chat_name=chat_name,
            chat_topic=chat_topic,
        )
        homes = {"telegram": HomeChannel(platform="telegram", chat_id="3", name=home_name)}
        return prompt_of(source, homes, shared=shared, pseudonyms=pseudonyms).splitlines()

    plain, hostile = lines("a", "b", "c", "d"), lines(*names)
    assert len(hostile) == len(plain)
    for expected, line in zip(plain, hostile, strict=True):
        fixed = expected.split('"')[0]
        assert line.startswith(fixed.replace("**User:** ", "**User"))


@st.composite
def canaries(draw):
    """Draw a source whose names are made of its own ids, in pieces and whole."""
    ids = {name: draw(IDS | st.none()) for name in ID_FIELDS}
    known = [value for value in ids.values() if value] or ["none at all"]
    piece = st.sampled_from(known) | st.sampled_from(known).map(str.upper) | st.text(max_size=3)
    names = {name: draw(st.lists(piece, max_size=4).map("".join) | st.none()) for name in NAME_FIELDS}
    source = SessionSource(
        platform=draw(REDACTED),
        chat_type=draw(CHAT_TYPES),
        **{**ids, "chat_id": ids["chat_id"] or ""},
        **names,
        message_id=draw(st.uuids()).hex,
    )
    home = HomeChannel(
        platform="telegram",
        chat_id=draw(st.sampled_from(known) | IDS),
        name=draw(st.lists(piece, max_size=3).map("".join)),
        thread_id=draw(IDS | st.none()),
    )
    return source, home


@given(canaries(), st.booleans())
def test_no_id_of_a_redacted_source_is_anywhere_in_the_prompt(found, shared):
    source, home = found
    prompt = prompt_of(source, {"telegram": home}, shared=shared, pseudonyms=PSEUDONYMS)
    unescaped = re.sub(r'"(?:[^"\\]|\\.)*"', lambda quoted: json.loads(quoted[0]), prompt)
    for raw in [
        *(getattr(source, name) for name in (*ID_FIELDS, "message_id")),
        home.chat_id,
        home.thread_id,
    ]:
        if raw:
            assert raw not in prompt
            assert raw not in unescaped


@given(canaries())
def test_redaction_never_changes_the_lines_of_the_prompt(found):
    source, home = found
    plain = prompt_of(replace(source, platform="signal"), {"telegram": home})
    redacted = prompt_of(replace(source, platform="signal"), {"telegram": home}, pseudonyms=PSEUDONYMS)
    assert len(redacted.splitlines()) == len(plain.splitlines()) + 1


@given(ANYTHING)
def test_an_inert_value_is_one_bounded_line_of_json(text):
    shown = quote_as_json(text)
    assert shown.splitlines() == [shown]
    assert len(json.loads(shown)) <= MAX_SHOWN
    assert quote_as_json(json.loads(shown)) == shown


@given(ANYTHING, ANYTHING)
def test_nobody_can_write_a_line_in_the_name_of_another(name, text):
    first, *rest = prefix_with_name(name, text).split("\n")
    prefix = f"[{inline_name(name)}] "
    assert first.startswith(prefix)
    assert not set(prefix[1:-2]) & set("[]\n\r\u2028\u2029\x85\uff3b\uff3d")
    for line in rest:
        assert not re.match(r"\s*\[[^\]]*\] ", line)


@given(ANYTHING | st.text(max_size=MAX_TITLE + 5))
def test_a_clean_title_is_clean_already(text):
    try:
        title = clean_title(text)
    except InvalidTitleError as refused:
        assert refused.length == 0 or refused.length > MAX_TITLE  # noqa: PT017 -- both outcomes are right
        return
    assert clean_title(title) == title
    assert title.splitlines() == [title]
    assert unicodedata.is_normalized("NFC", title)
    assert len(title) <= MAX_TITLE


TITLES = st.one_of(
    st.sampled_from(["a", "b", "a #2", "x" * 97, "x" * 100, "y " * 49 + "yy"]),
    st.builds("{} #{}".format, st.sampled_from(["a", "x" * 96]), st.integers(0, 10**10)),
).map(lambda title: title[:MAX_TITLE].strip())


@given(TITLES, st.sets(TITLES, max_size=8))
def test_the_next_title_is_free_clean_and_of_the_same_lineage(title, taken):
    following = next_title(title, taken)
    assert following not in taken
    assert clean_title(following) == following
    assert (
        split_numbered_title(title)[0].startswith(split_numbered_title(following)[0])
        or split_numbered_title(following)[1] == 1
    )
