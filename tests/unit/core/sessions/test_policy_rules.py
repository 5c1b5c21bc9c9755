"""Which policy counts for whom, and in which zone."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from gateway_sessions.core.sessions.policy_rules import PolicyBook, PolicyLevel, ResolvedPolicy
from gateway_sessions.core.sessions.reset_policy import PRESETS, ResetMode, SessionResetPolicy
from gateway_sessions.errors import InvalidPolicyError

IDLE = SessionResetPolicy(mode=ResetMode.IDLE, idle_minutes=60)
DAILY = SessionResetPolicy(mode=ResetMode.DAILY)
CRON = SessionResetPolicy(mode=ResetMode.CRON, cron="0 4 * * *")
NEVER = PRESETS["never"]


class TestPolicyBook:
    BOOK = PolicyBook(
        default=DAILY,
        by_platform={"telegram": IDLE},
        by_chat_type={("telegram", "group"): NEVER},
        zone_name="Europe/Berlin",
    )

    @pytest.mark.parametrize(
        ("where", "policy", "level", "path"),
        [
            (("discord", "dm"), DAILY, "default", "session_reset"),
            ((None, "dm"), DAILY, "default", "session_reset"),
            (("telegram", "dm"), IDLE, "platform", "platforms.telegram.session_reset"),
            (("telegram", "group"), NEVER, "chat_type", "platforms.telegram.chat_types.group.session_reset"),
            (("discord", "group"), DAILY, "default", "session_reset"),
            (("local", "dm"), NEVER, "platform", "platforms.local.session_reset"),
        ],
    )
    def test_the_nearest_policy_counts_and_says_where_it_stands(self, where, policy, level, path):
        resolved = self.BOOK.resolve(*where)
        assert (resolved.policy, resolved.level, resolved.path) == (policy, level, path)

    def test_the_terminal_resets_only_as_its_own_policy_says(self):
        assert PolicyBook(by_platform={"Local": DAILY}).resolve("local", "dm").policy == DAILY
        book = PolicyBook(default=DAILY, by_chat_type={("local", "dm"): IDLE})
        assert book.resolve("local", "dm").policy == IDLE

    @pytest.mark.parametrize(
        "where", [("telegram", "group"), ("telegram", "dm"), ("discord", "dm"), (None, "dm")]
    )
    def test_a_session_of_its_own_mind_comes_first(self, where):
        resolved = self.BOOK.resolve(*where, override=CRON)
        assert (resolved.policy, resolved.level) == (CRON, PolicyLevel.SESSION)

    def test_the_zone_is_the_policys_else_the_chats_else_the_books(self):
        book = replace(self.BOOK, by_platform={"slack": replace(DAILY, zone="Asia/Tokyo")})
        assert book.resolve("slack", "dm", chat_zone="America/Lima").zone_name == "Asia/Tokyo"
        assert book.resolve("discord", "dm", chat_zone="America/Lima").zone_name == "America/Lima"
        assert book.resolve("discord", "dm").zone_name == "Europe/Berlin"
        assert book.resolve("discord", "dm").zone.key == "Europe/Berlin"
        assert PolicyBook().resolve("discord", "dm").zone_name == "UTC"

    def test_a_zone_that_does_not_exist_is_refused(self):
        with pytest.raises(InvalidPolicyError, match="IANA"):
            PolicyBook(zone_name="Mars/Olympus")
        with pytest.raises(InvalidPolicyError, match="IANA"):
            self.BOOK.resolve("discord", "dm", chat_zone="Mars/Olympus")

    def test_platforms_are_found_however_they_were_written(self):
        book = PolicyBook(by_platform={" Telegram ": IDLE}, by_chat_type={("TELEGRAM", "group"): NEVER})
        assert book.resolve("telegram", "dm").policy is IDLE
        assert book.resolve("telegram", "group").policy is NEVER

    def test_changing_what_it_was_made_from_changes_nothing(self):
        policies = {"telegram": IDLE}
        book = PolicyBook(by_platform=policies)
        policies["telegram"] = DAILY
        assert book.resolve("telegram", "dm").policy is IDLE
        with pytest.raises(TypeError):
            book.by_platform["telegram"] = DAILY

    def test_a_fingerprint_tells_policies_and_zones_apart(self):
        resolved = [
            self.BOOK.resolve("telegram", "dm"),
            self.BOOK.resolve("telegram", "group"),
            self.BOOK.resolve("discord", "dm"),
            self.BOOK.resolve("discord", "dm", chat_zone="America/Lima"),
        ]
        assert len({one.fingerprint for one in resolved}) == 4
        assert all(len(one.fingerprint) == 16 and int(one.fingerprint, 16) >= 0 for one in resolved)

    def test_a_fingerprint_does_not_tell_where_a_policy_stands(self):
        book = PolicyBook(default=IDLE, zone_name="Europe/Berlin")
        assert book.resolve("any", "dm").fingerprint == self.BOOK.resolve("telegram", "dm").fingerprint
        assert (
            self.BOOK.resolve("x", "dm", override=IDLE).fingerprint
            == self.BOOK.resolve("telegram", "dm").fingerprint
        )

    def test_a_fingerprint_stays_the_same_from_release_to_release(self):
        """Entries carry it: another value would have every stored instant computed again."""
        assert PolicyBook().resolve("telegram", "dm").fingerprint == "4c4066657a375a0c"
        assert PolicyBook().fingerprint == "db6c0b5883bae2c2"

    @pytest.mark.parametrize(
        "changes",
        [
            {"default": IDLE},
            {"by_platform": {}},
            {"by_chat_type": {("telegram", "dm"): NEVER}},
            {"by_chat_type": {("discord", "group"): NEVER}},
            {"zone_name": "UTC"},
        ],
    )
    def test_the_books_fingerprint_changes_with_any_part_of_it(self, changes):
        assert replace(self.BOOK, **changes).fingerprint != self.BOOK.fingerprint

    def test_the_books_fingerprint_does_not_depend_on_the_order_of_writing(self):
        book = PolicyBook(by_platform={"a": IDLE, "b": DAILY})
        assert book.fingerprint == PolicyBook(by_platform={"b": DAILY, "a": IDLE}).fingerprint
        assert book == PolicyBook(by_platform={"b": DAILY, "a": IDLE})

    def test_the_same_question_gets_the_same_object(self):
        assert self.BOOK.resolve("telegram", "dm") is self.BOOK.resolve("telegram", "dm")

    def test_many_different_questions_do_not_fill_the_memory(self):
        book = PolicyBook()
        gc.collect()
        before = sum(type(one) is ResolvedPolicy for one in gc.get_objects())
        for number in range(10_000):
            assert book.resolve("irc", f"kind {number}").policy is book.default
        assert sum(type(one) is ResolvedPolicy for one in gc.get_objects()) - before <= 4096

    def test_threads_get_the_same_answers(self):
        book = PolicyBook(by_chat_type={("irc", f"kind {number}"): IDLE for number in range(0, 6000, 2)})

        def ask(start):
            kinds = [(start + number) % 6000 for number in range(6000)]
            return all(
                book.resolve("irc", f"kind {kind}").policy == (DAILY, IDLE)[kind % 2 == 0] for kind in kinds
            )

        book = replace(book, default=DAILY)
        with ThreadPoolExecutor(4) as pool:
            assert all(pool.map(ask, range(0, 6000, 1500)))
