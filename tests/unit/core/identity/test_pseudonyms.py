import re

import pytest

from gateway_sessions.core.identity.pseudonyms import RAW_ID_PLATFORMS, IdScrubber, Pseudonyms, can_hide_ids
from gateway_sessions.core.identity.source import Platform
from gateway_sessions.errors import InvalidInputError

SECRET = bytes(range(32))
NAMES = Pseudonyms(SECRET)


class TestPseudonyms:
    def test_they_keep_their_value_for_ever(self):
        assert NAMES.user("telegram", "12345") == "user_v6ek4hpz6zkuer3t"
        assert NAMES.chat("telegram", "12345") == "telegram:mqxniba6j4dg6uqj"
        assert NAMES.thread("telegram", "12345") == "thread_aivq2z7daifg47eo"

    def test_they_hold_eighty_bits_of_lower_case_base32(self):
        for name, prefix in [
            (NAMES.user("signal", "+49"), "user_"),
            (NAMES.chat("signal", "+49"), "signal:"),
            (NAMES.thread("signal", "+49"), "thread_"),
        ]:
            assert re.fullmatch(prefix + "[a-z2-7]{16}", name)

    def test_another_secret_gives_others(self):
        assert Pseudonyms(b"x" * 32).user("telegram", "12345") != NAMES.user("telegram", "12345")

    def test_platforms_kinds_and_ids_never_share_one(self):
        parts = [
            ("telegram", "1"),
            ("telegram", "12"),
            ("telegram1", "2"),
            ("", "telegram1"),
            ("signal", "1"),
        ]
        digests = {
            re.split("[_:]", name)[-1]
            for platform, value in parts
            for name in (
                NAMES.user(platform, value),
                NAMES.chat(platform, value),
                NAMES.thread(platform, value),
            )
        }
        assert len(digests) == 3 * len(parts)

    @pytest.mark.parametrize("value", ["", "a:b", "ü", "李", "\ud800", "x" * 10_000])
    def test_any_text_has_one(self, value):
        assert NAMES.user("telegram", value).startswith("user_")

    @pytest.mark.parametrize("secret", [b"", b"x" * 15])
    def test_a_secret_that_can_be_guessed_is_refused(self, secret):
        with pytest.raises(InvalidInputError, match="at least 16"):
            Pseudonyms(secret)

    def test_the_secret_is_not_shown(self):
        assert repr(Pseudonyms(b"canary" * 4)) == "Pseudonyms()"

    def test_they_cannot_be_changed(self):
        with pytest.raises(AttributeError):
            NAMES.secret = b"x" * 32


class TestWhetherToRedact:
    @pytest.mark.parametrize("platform", [*sorted(set(Platform) - RAW_ID_PLATFORMS), "irc", "", "discord2"])
    def test_every_other_platform_is_redacted_known_or_not(self, platform):
        assert can_hide_ids(platform)

    def test_where_agents_mention_by_id_ids_stay(self):
        assert {"discord", "slack", "matrix"} == RAW_ID_PLATFORMS
        assert not any(can_hide_ids(platform) for platform in RAW_ID_PLATFORMS)

    def test_the_exceptions_can_be_chosen(self):
        assert can_hide_ids("discord", raw_id_platforms=())
        assert not can_hide_ids("irc", raw_id_platforms={"irc"})


class TestScrubber:
    @pytest.mark.parametrize(
        ("text", "clean"),
        [
            ("Alice", "Alice"),
            ("491701234567", "P"),
            ("+491701234567", "P"),
            ("+49 170 1234567", "P"),
            ("(+49) 170-123.45/67 Alice", "(P Alice"),
            ("call 49-170-1234567 now", "call P now"),
            ("x491701234567y", "xPy"),
            ("491701234567491701234567", "PP"),
            ("49170123456", "49170123456"),
        ],
    )
    def test_a_number_is_found_however_it_is_written(self, text, clean):
        assert IdScrubber({"491701234567": "P"}).replace_ids(text) == clean

    def test_a_number_is_found_without_what_the_platform_adds(self):
        scrubber = IdScrubber({"491701234567@s.whatsapp.net": "P"})
        assert scrubber.replace_ids("+49 170 1234567 / 491701234567@s.whatsapp.net") == "P / P"

    def test_case_does_not_hide_an_id(self):
        assert IdScrubber({"Alice@example.com": "P"}).replace_ids("ALICE@Example.com") == "P"

    def test_an_id_is_text_and_no_pattern(self):
        scrubber = IdScrubber({"a.b*(c)": "P"})
        assert scrubber.replace_ids("a.b*(c) axbbc") == "P axbbc"

    def test_the_longer_id_is_replaced_first(self):
        scrubber = IdScrubber({"12345": "short", "12345678": "long", "a12345678": "longest"})
        assert scrubber.replace_ids("12345 12345678 a12345678") == "short long longest"

    def test_a_short_id_stays_within_a_name_and_goes_if_it_is_the_name(self):
        scrubber = IdScrubber({"7": "P"})
        assert scrubber.replace_ids("Team 7") == "Team 7"
        assert scrubber.replace_ids(" 7 ") == "P"

    def test_without_ids_nothing_changes(self):
        assert IdScrubber({}).replace_ids("Alice") == "Alice"
        assert IdScrubber({}).replace_ids("") == ""
