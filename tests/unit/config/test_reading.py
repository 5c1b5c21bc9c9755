"""A configuration is read exactly or not at all, and all that is wrong with it is told at once."""

import subprocess
import sys
import traceback
from collections.abc import Mapping
from dataclasses import FrozenInstanceError
from datetime import timedelta
from types import MappingProxyType
from typing import Any

import pytest

from gateway_sessions.config import (
    AgentConfig,
    CacheConfig,
    ChatTypeConfig,
    Config,
    Durability,
    ExpiryWatcherConfig,
    HooksConfig,
    PlatformConfig,
    PrivacyConfig,
    SessionDBConfig,
    SessionsJsonConfig,
    SnapshotMode,
)
from gateway_sessions.core.sessions.policy_rules import PolicyLevel
from gateway_sessions.core.sessions.reset_policy import PRESETS, Require, ResetMode, SessionResetPolicy
from gateway_sessions.core.sessions_json.entries import Dialect
from gateway_sessions.core.transcript.session_context_prompt import HomeChannel
from gateway_sessions.errors import ConfigError, ConfigProblem, InvalidPolicyError
from tests.unit.config.config_texts import parse, problems_of

HOSTILE_REPEATS = 20_000
SECRETS = {"GEHEIM": "postgresql://me:geheim@host/db"}


def problem_of(text: str, environ: Mapping[str, str] | None = None) -> ConfigProblem:
    [problem] = problems_of(text, environ)
    return problem


class TestDefaults:
    @pytest.mark.parametrize(
        "text", ["", "\n", "# nothing\n", "---\n", "null", "{}", "session_reset:\nplatforms:\n"]
    )
    def test_what_says_nothing_is_the_default_configuration(self, text: str) -> None:
        assert parse(text) == Config() == Config.from_mapping({})

    def test_they_are_those_of_the_reference(self) -> None:
        config = Config()
        assert (config.group_sessions_per_user, config.thread_sessions_per_user) == (True, False)
        assert not config.allow_unidentified_sources
        assert config.session_store_max_age is None
        assert config.timezone is None
        assert config.session_reset == SessionResetPolicy(
            mode=ResetMode.BOTH,
            at_hour=4,
            idle_minutes=1440,
            require=Require.ANY,
            notify=True,
            notify_exclude_platforms=("api_server", "webhook"),
            bg_process_max_age_hours=24,
        )
        assert config.agent.gateway_auto_continue_freshness == timedelta(seconds=3600)
        assert config.agent.gateway_timeout == timedelta(seconds=1800)
        assert config.agent.max_restart_attempts == 3
        assert (config.sessiondb.provider, config.sessiondb.url) == ("sqlite", None)
        assert (config.sessiondb.durability, config.sessiondb.allow_network_filesystem) == ("full", False)
        assert config.sessions_json == SessionsJsonConfig(
            mode=None, format=Dialect.NATIVE, interval=timedelta(seconds=1)
        )
        assert config.expiry_watcher == ExpiryWatcherConfig(
            first_pass=timedelta(seconds=60),
            interval=timedelta(seconds=300),
            prune_interval=timedelta(seconds=3600),
        )
        assert config.hooks == HooksConfig(
            timeout=timedelta(seconds=30), max_attempts=3, retry=timedelta(seconds=60), concurrency=8
        )
        assert config.cache.entries == 4096
        assert not config.privacy.redact_pii
        assert config.platforms == {}

    def test_a_configuration_cannot_be_changed(self) -> None:
        config = Config(platforms={"slack": PlatformConfig(chat_types={"dm": ChatTypeConfig()})})
        with pytest.raises(FrozenInstanceError):
            config.timezone = "UTC"  # type: ignore[misc]
        with pytest.raises(TypeError):
            config.platforms["x"] = PlatformConfig()  # type: ignore[index]
        with pytest.raises(TypeError):
            config.platforms["slack"].chat_types["x"] = ChatTypeConfig()  # type: ignore[index]


class TestReading:
    def test_every_key_reaches_its_field(self) -> None:
        config = parse("""
group_sessions_per_user: false
thread_sessions_per_user: true
allow_unidentified_sources: true
session_store_max_age_days: 90
session_retention_days: 365
timezone: Europe/Berlin
session_reset: {mode: both, at_hour: 5, idle_minutes: 60, require: all, grace_minutes: 2,
  timezone: Asia/Tokyo, notify: false, notify_exclude_platforms: [sms], bg_process_max_age_hours: 0}
agent: {gateway_auto_continue_freshness: 60, gateway_timeout: 90.5, max_restart_attempts: 5}
sessiondb: {provider: sqlite, url: "sqlite:///x.db", durability: os, allow_network_filesystem: true}
sessions_json: {mode: "off", format: hermes, interval_seconds: 2}
expiry_watcher: {first_pass_seconds: 0, interval_seconds: 5, prune_interval_seconds: 6}
hooks: {timeout_seconds: 1, max_attempts: 2, retry_seconds: 0, concurrency: 4}
cache: {entries: 1}
privacy: {redact_pii: true}
platforms:
  telegram:
    enabled: false
    session_reset: {mode: idle}
    chat_types: {group: {session_reset: {mode: cron, cron: "0 4 * * mon"}}}
    home_channel: {chat_id: "1", name: Lobby, thread_id: "2"}
""")
        reset = SessionResetPolicy(
            at_hour=5,
            idle_minutes=60,
            require=Require.ALL,
            grace_minutes=2,
            zone="Asia/Tokyo",
            notify=False,
            notify_exclude_platforms=("sms",),
            bg_process_max_age_hours=0,
        )
        below: dict[str, Any] = {
            "at_hour": 5,
            "idle_minutes": 60,
            "grace_minutes": 2,
            "zone": "Asia/Tokyo",
            "notify": False,
            "notify_exclude_platforms": ("sms",),
            "bg_process_max_age_hours": 0,
        }
        cron = SessionResetPolicy(mode=ResetMode.CRON, cron="0 4 * * mon", **below)
        assert config == Config(
            group_sessions_per_user=False,
            thread_sessions_per_user=True,
            allow_unidentified_sources=True,
            session_store_max_age=timedelta(days=90),
            session_retention=timedelta(days=365),
            timezone="Europe/Berlin",
            session_reset=reset,
            agent=AgentConfig(
                gateway_auto_continue_freshness=timedelta(minutes=1),
                gateway_timeout=timedelta(seconds=90.5),
                max_restart_attempts=5,
            ),
            sessiondb=SessionDBConfig(
                url="sqlite:///x.db", durability=Durability.OS, allow_network_filesystem=True
            ),
            sessions_json=SessionsJsonConfig(
                mode=SnapshotMode.OFF, format=Dialect.HERMES, interval=timedelta(seconds=2)
            ),
            expiry_watcher=ExpiryWatcherConfig(
                first_pass=timedelta(0), interval=timedelta(seconds=5), prune_interval=timedelta(seconds=6)
            ),
            hooks=HooksConfig(
                timeout=timedelta(seconds=1), max_attempts=2, retry=timedelta(0), concurrency=4
            ),
            cache=CacheConfig(entries=1),
            privacy=PrivacyConfig(redact_pii=True),
            platforms={
                "telegram": PlatformConfig(
                    enabled=False,
                    session_reset=SessionResetPolicy(mode=ResetMode.IDLE, **below),
                    chat_types={"group": ChatTypeConfig(session_reset=cron)},
                    home_channel=HomeChannel(platform="telegram", chat_id="1", name="Lobby", thread_id="2"),
                )
            },
        )

    def test_what_means_off_is_none_inside(self) -> None:
        config = parse(
            "session_store_max_age_days: 0\nagent: {gateway_auto_continue_freshness: 0, gateway_timeout: 0}"
        )
        assert config.session_store_max_age is None
        assert config.agent.gateway_auto_continue_freshness is None
        assert config.agent.gateway_timeout is None

    @pytest.mark.parametrize("word", [*SnapshotMode])
    def test_sessions_json_may_be_the_word_of_its_mode(self, word: str) -> None:
        assert parse(f"sessions_json: {word}").sessions_json == SessionsJsonConfig(mode=SnapshotMode(word))

    def test_a_leading_zero_changes_no_number(self) -> None:
        assert parse("session_reset: {at_hour: 08}").session_reset.at_hour == 8

    def test_a_home_channel_may_be_named_by_a_number(self) -> None:
        home = parse("platforms: {telegram: {home_channel: {chat_id: -100123, thread_id: 7}}}").platforms[
            "telegram"
        ]
        assert home.home_channel == HomeChannel(platform="telegram", chat_id="-100123", thread_id="7")

    def test_a_platform_is_known_by_its_name_in_lower_case(self) -> None:
        config = parse("platforms: {Telegram: {session_reset: never, home_channel: {chat_id: a}}}")
        assert (
            config.get_reset_policy("telegram") == config.get_reset_policy(" TELEGRAM ") == PRESETS["never"]
        )
        assert config.platforms["telegram"].home_channel == HomeChannel(platform="telegram", chat_id="a")

    def test_an_alias_repeats_what_its_anchor_names(self) -> None:
        config = parse(
            "platforms: {slack: {session_reset: &quiet {mode: none}}, sms: {session_reset: *quiet}}"
        )
        assert config.get_reset_policy("sms") == config.get_reset_policy("slack")
        assert config.get_reset_policy("sms").mode is ResetMode.NONE

    def test_a_mapping_of_a_program_is_read_like_a_file(self) -> None:
        values = MappingProxyType(
            {"session_reset": {"notify_exclude_platforms": ("sms",), "mode": ResetMode.IDLE}}
        )
        assert Config.from_mapping(values) == parse(
            "session_reset: {mode: idle, notify_exclude_platforms: [sms]}"
        )

    def test_the_mapping_of_a_program_is_left_as_it_was(self) -> None:
        values: dict[str, Any] = {"session_reset": "never", "sessions_json": "sync"}
        Config.from_mapping(values)
        assert values == {"session_reset": "never", "sessions_json": "sync"}


class TestPolicies:
    @pytest.mark.parametrize("word", [*PRESETS])
    def test_a_word_stands_for_a_policy(self, word: str) -> None:
        assert parse(f"session_reset: {word}").session_reset == PRESETS[word]

    def test_an_override_takes_what_it_does_not_set_from_the_level_above(self) -> None:
        config = parse("""
session_reset: {idle_minutes: 60, notify: false}
platforms:
  slack:
    session_reset: {at_hour: 6}
    chat_types: {group: {session_reset: {idle_minutes: 5}}, channel: {session_reset: }}
  sms:
    chat_types: {dm: {session_reset: {at_hour: 9}}}
""")
        slack = SessionResetPolicy(idle_minutes=60, notify=False, at_hour=6)
        assert config.get_reset_policy("discord", "dm") == SessionResetPolicy(idle_minutes=60, notify=False)
        assert config.get_reset_policy("slack", "dm") == config.get_reset_policy("slack", "channel") == slack
        assert config.get_reset_policy("slack", "group") == SessionResetPolicy(
            idle_minutes=5, notify=False, at_hour=6
        )
        assert config.get_reset_policy("sms", "dm") == SessionResetPolicy(
            idle_minutes=60, notify=False, at_hour=9
        )

    def test_a_word_takes_nothing_from_the_level_above(self) -> None:
        config = parse(
            "session_reset: {notify: false, timezone: Asia/Tokyo}\nplatforms: {slack: {session_reset: never}}"
        )
        assert config.get_reset_policy("slack") == PRESETS["never"]

    def test_a_level_with_a_mode_of_its_own_takes_nothing_that_belongs_to_another(self) -> None:
        config = parse("""
session_reset: {mode: cron, cron: "0 4 * * *"}
platforms:
  slack: {session_reset: {mode: both, require: all}, chat_types: {dm: {session_reset: {mode: idle}}}}
  sms: {session_reset: {at_hour: 5}}
""")
        assert config.get_reset_policy("slack", "group").cron is None
        assert config.get_reset_policy("slack", "dm").require is Require.ANY
        assert config.get_reset_policy("sms", "dm").cron == "0 4 * * *"

    def test_the_book_names_the_level_at_which_a_policy_was_found(self) -> None:
        book = parse("""
platforms: {slack: {session_reset: {at_hour: 1}, chat_types: {dm: {session_reset: {at_hour: 2}}, group: {}}}}
""").policy_book("UTC")
        assert book.resolve("slack", "dm").level is PolicyLevel.CHAT_TYPE
        assert book.resolve("slack", "group").level is PolicyLevel.PLATFORM
        assert book.resolve("sms", "dm").level is PolicyLevel.DEFAULT

    def test_the_zone_is_that_of_the_policy_else_of_the_configuration_else_of_the_machine(self) -> None:
        text = "platforms: {slack: {session_reset: {timezone: Asia/Tokyo}}}\n"
        book = parse(text + "timezone: Europe/Berlin").policy_book("America/Lima")
        assert book.resolve("slack", "dm").zone_name == "Asia/Tokyo"
        assert book.resolve("sms", "dm").zone_name == "Europe/Berlin"
        assert parse(text).policy_book("America/Lima").resolve("sms", "dm").zone_name == "America/Lima"

    def test_a_zone_of_the_machine_that_nobody_knows_is_refused(self) -> None:
        with pytest.raises(InvalidPolicyError):
            Config().policy_book("Europe/Atlantis")


class TestReferences:
    def test_a_name_stands_for_its_variable(self) -> None:
        assert (
            parse("sessiondb: {url: '${HOME_DIR}/s.db'}", {"HOME_DIR": "/srv"}).sessiondb.url == "/srv/s.db"
        )

    @pytest.mark.parametrize("environ", [{}, {"IDLE": ""}])
    def test_a_default_stands_for_a_variable_that_is_unset_or_empty(self, environ: dict[str, str]) -> None:
        assert parse("session_reset:\n  idle_minutes: ${IDLE:-7}", environ).session_reset.idle_minutes == 7

    def test_a_variable_that_is_set_wins_over_the_default(self) -> None:
        assert (
            parse("session_reset:\n  idle_minutes: ${IDLE:-7}", {"IDLE": "8"}).session_reset.idle_minutes == 8
        )

    def test_what_is_quoted_stays_text(self) -> None:
        assert problem_of("cache: {entries: '${N}'}", {"N": "5"}).path == "cache.entries"

    def test_two_dollars_stand_for_a_literal_brace(self) -> None:
        home = parse("platforms: {sms: {home_channel: {chat_id: '$${X}', name: 'a $ b'}}}").platforms["sms"]
        assert home.home_channel == HomeChannel(platform="sms", chat_id="${X}", name="a $ b")

    def test_what_a_variable_holds_is_not_filled_in_again(self) -> None:
        assert parse("sessiondb: {url: '${A}'}", {"A": "${B}", "B": "x"}).sessiondb.url == "${B}"

    def test_a_missing_variable_is_told_and_nothing_that_follows_from_it(self) -> None:
        problem = problem_of("cache:\n  entries: ${ENTRIES}")
        assert (problem.path, problem.line) == ("cache.entries", 2)
        assert "ENTRIES" in problem.message

    @pytest.mark.parametrize("text", ["${", "${}", "${1}", "${A", "${A-b}"])
    def test_a_reference_that_is_none_is_told(self, text: str) -> None:
        problem = problem_of(f"\nsessiondb: {{url: 'x{text}'}}", {"A": "1"})
        assert (problem.path, problem.line) == ("sessiondb.url", 2)
        assert "${NAME}" in problem.message or "'${'" in problem.message


class TestEnvironment:
    @pytest.mark.parametrize(
        ("variable", "value", "values"),
        [
            ("GROUP_SESSIONS_PER_USER", "false", {"group_sessions_per_user": False}),
            ("CACHE__ENTRIES", "7", {"cache": {"entries": 7}}),
            ("SESSION_RESET", "never", {"session_reset": "never"}),
            ("SESSION_RESET__CRON", "'0 4 * * *'", {"session_reset": {"mode": "cron", "cron": "0 4 * * *"}}),
            ("SESSIONS_JSON", "off", {"sessions_json": "off"}),
            ("SESSIONDB__URL", "a: [b", {"sessiondb": {"url": "a: [b"}}),
            ("HOOKS", "{retry_seconds: 0}", {"hooks": {"retry_seconds": 0}}),
            (
                "PLATFORMS__API_SERVER__SESSION_RESET__NOTIFY_EXCLUDE_PLATFORMS",
                "[a, b]",
                {"platforms": {"api_server": {"session_reset": {"notify_exclude_platforms": ["a", "b"]}}}},
            ),
            (
                "PLATFORMS__SLACK__CHAT_TYPES__DM__SESSION_RESET",
                "never",
                {"platforms": {"slack": {"chat_types": {"dm": {"session_reset": "never"}}}}},
            ),
            (
                "PLATFORMS__SMS__HOME_CHANNEL__CHAT_ID",
                "5",
                {"platforms": {"sms": {"home_channel": {"chat_id": "5"}}}},
            ),
        ],
    )
    def test_a_variable_sets_any_key(self, variable: str, value: str, values: dict[str, Any]) -> None:
        text = "session_reset: {mode: cron, cron: '0 1 * * *'}" if variable.endswith("CRON") else ""
        assert parse(text, {f"GATEWAY_SESSIONS__{variable}": value}) == Config.from_mapping(values)

    def test_a_variable_wins_over_the_file_and_leaves_the_rest(self) -> None:
        config = parse(
            "hooks: {max_attempts: 5, concurrency: 2}", {"GATEWAY_SESSIONS__HOOKS__MAX_ATTEMPTS": "6"}
        )
        assert config.hooks == HooksConfig(max_attempts=6, concurrency=2)

    def test_a_block_in_a_variable_is_merged_into_the_file(self) -> None:
        config = parse(
            "hooks: {max_attempts: 5, concurrency: 2}", {"GATEWAY_SESSIONS__HOOKS": "{max_attempts: 6}"}
        )
        assert config.hooks == HooksConfig(max_attempts=6, concurrency=2)

    def test_a_word_in_a_variable_sets_the_mode_and_leaves_the_rest(self) -> None:
        config = parse("sessions_json: {format: hermes}", {"GATEWAY_SESSIONS__SESSIONS_JSON": "off"})
        assert config.sessions_json == SessionsJsonConfig(mode=SnapshotMode.OFF, format=Dialect.HERMES)

    def test_a_word_in_a_variable_replaces_the_whole_policy(self) -> None:
        config = parse(
            "session_reset: {notify: false}", {"GATEWAY_SESSIONS__SESSION_RESET": "hermes-classic"}
        )
        assert config.session_reset == PRESETS["hermes-classic"]

    def test_a_variable_for_a_key_wins_over_one_for_its_block(self) -> None:
        environ = {
            "GATEWAY_SESSIONS__SESSION_RESET__IDLE_MINUTES": "5",
            "GATEWAY_SESSIONS__SESSION_RESET": "never",
        }
        assert parse("", environ).session_reset == SessionResetPolicy(mode=ResetMode.NONE, idle_minutes=5)

    def test_a_variable_changes_a_policy_that_a_word_stands_for(self) -> None:
        environ = {"GATEWAY_SESSIONS__SESSION_RESET__AT_HOUR": "6"}
        assert parse("session_reset: hermes-classic", environ).session_reset == SessionResetPolicy(at_hour=6)

    def test_changing_one_platform_leaves_another_with_the_same_alias(self) -> None:
        config = parse(
            "platforms: {slack: &both {enabled: true}, sms: *both}",
            {"GATEWAY_SESSIONS__PLATFORMS__SMS__ENABLED": "false"},
        )
        assert (config.platforms["slack"].enabled, config.platforms["sms"].enabled) == (True, False)

    def test_the_variables_of_hermes_set_the_default_policy(self) -> None:
        environ = {"SESSION_IDLE_MINUTES": "30", "SESSION_RESET_HOUR": "6"}
        config = parse(
            "session_reset: {idle_minutes: 10}\nplatforms: {sms: {session_reset: {at_hour: 1}}}", environ
        )
        assert config.session_reset == SessionResetPolicy(idle_minutes=30, at_hour=6)
        assert config.get_reset_policy("sms") == SessionResetPolicy(idle_minutes=30, at_hour=1)

    def test_the_variables_of_hermes_are_weaker_than_ours(self) -> None:
        environ = {"SESSION_RESET_HOUR": "6", "GATEWAY_SESSIONS__SESSION_RESET__AT_HOUR": "7"}
        assert parse("", environ).session_reset.at_hour == 7

    def test_an_empty_variable_of_hermes_is_not_set(self) -> None:
        assert parse("", {"SESSION_IDLE_MINUTES": "", "SESSION_RESET_HOUR": ""}) == Config()

    @pytest.mark.parametrize(
        ("variable", "value"),
        [
            ("SESSION_RESET_HOUR", "24"),
            ("SESSION_RESET_HOUR", "four"),
            ("SESSION_IDLE_MINUTES", "0"),
            ("SESSION_IDLE_MINUTES", "1.5"),
            ("GATEWAY_SESSIONS__HOOKS__CONCURRENCY", "0"),
            ("GATEWAY_SESSIONS__HOOKS__CONCURRENCY", ""),
            ("GATEWAY_SESSIONS__HOOKS", "5"),
            ("GATEWAY_SESSIONS__HOOKS", "{"),
            ("GATEWAY_SESSIONS__TIMEZONE", "Mars"),
            ("GATEWAY_SESSIONS__SESSIONDB__URL", "a\udcffb"),
            ("GATEWAY_SESSIONS__NONSENSE", "1"),
            ("GATEWAY_SESSIONS__", "1"),
            ("GATEWAY_SESSIONS__HOOKS__CONCURRENCY__MORE", "1"),
            ("GATEWAY_SESSIONS__PLATFORMS____ENABLED", "true"),
        ],
    )
    def test_a_wrong_variable_is_named(self, variable: str, value: str) -> None:
        problem = problem_of("hooks: {concurrency: 5}", {variable: value})
        assert (problem.path, problem.line) == (variable, None)

    def test_a_mistake_inside_a_variable_names_both(self) -> None:
        problem = problem_of("hooks: {concurrency: 5}", {"GATEWAY_SESSIONS__HOOKS": "{concurrency: 0}"})
        assert problem.path == "GATEWAY_SESSIONS__HOOKS (hooks.concurrency)"

    @pytest.mark.parametrize(
        ("variable", "meant"),
        [
            ("CACHE__ENTRYS", "CACHE__ENTRIES"),
            ("CASH__ENTRIES", "CACHE__ENTRIES"),
            ("PLATFORMS__SLACK__ENABLE", "PLATFORMS__SLACK__ENABLED"),
        ],
    )
    def test_an_unknown_variable_is_a_problem_with_a_suggestion(self, variable: str, meant: str) -> None:
        problem = problem_of("", {f"GATEWAY_SESSIONS__{variable}": "1"})
        assert problem.suggestion == f"GATEWAY_SESSIONS__{meant}"

    def test_a_variable_does_not_hide_a_mistake_in_the_file(self) -> None:
        problem = problem_of("hooks: 5", {"GATEWAY_SESSIONS__HOOKS__CONCURRENCY": "5"})
        assert (problem.path, problem.line) == ("hooks", 1)

    def test_variables_of_others_are_none_of_our_business(self) -> None:
        assert (
            parse("", {"GATEWAY_SESSIONS_HOME": "x", "gateway_sessions__x": "1", "PATH": "/bin"}) == Config()
        )


HOME = "platforms:\n  sms:\n    home_channel:\n      "
HOME_PATH = "platforms.sms.home_channel"
LIST = "session_reset:\n  notify_exclude_platforms:"
LIST_PATH = "session_reset.notify_exclude_platforms"

WRONG = [
    # the text, and of its only problem: line, path, suggestion
    ("platfroms: {}", 1, "platfroms", "platforms"),
    ("\n\ngroup_session_per_user: true", 3, "group_session_per_user", "group_sessions_per_user"),
    ("hooks:\n  timeout: 5", 2, "hooks.timeout", "timeout_seconds"),
    ("idle_minutes: 5", 1, "idle_minutes", "session_reset.idle_minutes"),
    ("gateway_timeout: 5", 1, "gateway_timeout", "agent.gateway_timeout"),
    ("gateway:\n  session_reset: never", 2, "gateway.session_reset", "session_reset"),
    ("reset_by_platform: {}", 1, "reset_by_platform", "platforms.<name>.session_reset"),
    ("platforms:\n  sms:\n    chat_type: {}", 3, "platforms.sms.chat_type", "chat_types"),
    ("platforms:\n  x:\n    chat_types:\n      dm: {resets: 1}", 4, "platforms.x.chat_types.dm.resets", None),
    ("'a b\"c': 1", 1, '"a b\\"c"', None),
    ("<<: {}", 1, '"<<"', None),
    ("session_reset:\n  mode: dayly", 2, "session_reset.mode", "daily"),
    ("session_reset:\n  mode: None", 2, "session_reset.mode", "none"),
    ("session_reset:\n  mode: null", 2, "session_reset.mode", "none"),
    ("session_reset:\n  require: al", 2, "session_reset.require", "all"),
    ("session_reset: hermes_classic", 1, "session_reset", "hermes-classic"),
    ("session_reset: daily", 1, "session_reset", "{mode: daily}"),
    ("session_reset: false", 1, "session_reset", "never"),
    ("session_reset: 4", 1, "session_reset", None),
    ("session_reset:\n  at_hour: 24", 2, "session_reset.at_hour", None),
    ("session_reset:\n  at_hour: 4:00", 2, "session_reset.at_hour", None),
    ("session_reset:\n  idle_minutes: 0", 2, "session_reset.idle_minutes", None),
    ('session_reset:\n  idle_minutes: "60"', 2, "session_reset.idle_minutes", None),
    ("session_reset:\n  idle_minutes: yes", 2, "session_reset.idle_minutes", None),
    ("session_reset:\n  idle_minutes: true", 2, "session_reset.idle_minutes", None),
    ("session_reset:\n  idle_minutes: 60.0", 2, "session_reset.idle_minutes", None),
    ("session_reset:\n  idle_minutes:", 2, "session_reset.idle_minutes", None),
    ("session_reset:\n  notify: yes", 2, "session_reset.notify", "true"),
    ("session_reset:\n  notify: Off", 2, "session_reset.notify", "false"),
    ("session_reset:\n  notify: 1", 2, "session_reset.notify", "true"),
    (LIST + " sms", 2, LIST_PATH, None),
    (LIST + "\n  - sms\n  - 5", 4, LIST_PATH + "[1]", None),
    ("session_reset:\n  timezone: Europe/Berln", 2, "session_reset.timezone", "Europe/Berlin"),
    ("session_reset:\n  mode: cron", 1, "session_reset.cron", None),
    ("session_reset:\n  mode: cron\n  cron: '* *'", 3, "session_reset.cron", None),
    ("session_reset:\n  cron: '0 4 * * *'", 2, "session_reset.cron", None),
    ("session_reset:\n  mode: idle\n  require: all", 3, "session_reset.require", None),
    ("timezone: berlin", 1, "timezone", "Europe/Berlin"),
    ("timezone: New York", 1, "timezone", "America/New_York"),
    ("timezone: ''", 1, "timezone", None),
    ("timezone: 5", 1, "timezone", None),
    ("session_store_max_age_days: -1", 1, "session_store_max_age_days", None),
    ("session_store_max_age_days: 1.5", 1, "session_store_max_age_days", None),
    ("session_store_max_age_days: 36526", 1, "session_store_max_age_days", None),
    ("agent: [1]", 1, "agent", None),
    ("agent:\n  gateway_timeout: -1", 2, "agent.gateway_timeout", None),
    ("agent:\n  gateway_timeout: true", 2, "agent.gateway_timeout", None),
    ("agent:\n  gateway_timeout: .inf", 2, "agent.gateway_timeout", None),
    ("agent:\n  gateway_timeout: 1e999", 2, "agent.gateway_timeout", None),
    ("agent:\n  max_restart_attempts: 0", 2, "agent.max_restart_attempts", None),
    ("sessiondb:\n  provider: sqlit", 2, "sessiondb.provider", "sqlite"),
    ("sessiondb:\n  url: postgresql://host/db", 2, "sessiondb.url", None),
    ("sessiondb:\n  durability: ful", 2, "sessiondb.durability", "full"),
    ("sessions_json: sinc", 1, "sessions_json.mode", "sync"),
    ("sessions_json: false", 1, "sessions_json", "off"),
    ("sessions_json:\n  format: hermse", 2, "sessions_json.format", "hermes"),
    ("sessions_json:\n  interval_seconds: 0", 2, "sessions_json.interval_seconds", None),
    ("expiry_watcher:\n  first_pass_seconds: -1", 2, "expiry_watcher.first_pass_seconds", None),
    ("hooks:\n  retry_seconds: 9999999999999", 2, "hooks.retry_seconds", None),
    ("cache:\n  entries: 1000001", 2, "cache.entries", None),
    ("cache:\n  entries: " + "9" * 5000, 2, "cache.entries", None),
    ("platforms: [telegram]", 1, "platforms", None),
    ("platforms:\n  telegram: true", 2, "platforms.telegram", None),
    ("platforms:\n  '': {}", 1, "platforms", None),
    ("platforms:\n  sms: {}\n  SMS: {}", 1, "platforms", None),
    (HOME + "name: Lobby", 3, HOME_PATH + ".chat_id", None),
    (HOME + "chat_id: ''", 4, HOME_PATH + ".chat_id", None),
    (HOME + 'chat_id: "a\\nb"', 4, HOME_PATH + ".chat_id", None),
    (HOME + "chat_id: ../b", 4, HOME_PATH + ".chat_id", None),
    (HOME + "chat_id: a\n      name: 5", 5, HOME_PATH + ".name", None),
    ("platforms:\n  'a b': {session_reset: {mode: x}}", 2, 'platforms."a b".session_reset.mode', None),
    ("cache: {entries: 1}\nhooks: {}\ncache: {entries: 1}", 3, "cache", None),
    ("cache:\n  entries: !!int 5", 2, "cache.entries", None),
    ("platforms:\n  sms: &a\n    chat_types: *a", 3, "platforms.sms.chat_types", None),
    ("platforms:\n  ? [a]\n  : {}", 2, "platforms", None),
    ("- cache", 1, "configuration", None),
    ("cache", 1, "configuration", None),
]  # fmt: skip

BROKEN = [
    ("cache:\n\tentries: 1", 2, "tabs"),
    ("cache: {entries: 1", 1, "expected"),
    ("cache: 1\nx: 'never ends\n\n\n", 2, "end of stream"),
    ("a: b: c", 1, "mapping values"),
    ("session_reset:\n  cron: */5 * * * *", 2, "quote"),
    ("session_reset:\n  cron: *secret", 2, "quote"),
    ("a: @b", 1, "quote"),
    ("a: &x 1\nb: & 2", 2, "quote"),
    ("a: 1\n---\nb: 1", 2, "document"),
    ("a: 1\nb: \x07", 2, "control character"),
    ('a: "\\U00110000"', None, "escape"),
    ("%YAML 1." + "9" * 5000 + "\n---\n", None, "version"),
    ("[" * 40, 1, "levels deep"),
    ("[" * HOSTILE_REPEATS, 1, "levels deep"),
    ("{a: " * HOSTILE_REPEATS, 1, "levels deep"),
    ("- " * HOSTILE_REPEATS, 1, "levels deep"),
]


class TestMistakes:
    @pytest.mark.parametrize(("text", "line", "path", "suggestion"), WRONG)
    def test_each_is_told_with_its_place_and_what_was_meant(
        self, text: str, line: int, path: str, suggestion: str | None
    ) -> None:
        problem = problem_of(text)
        assert (problem.line, problem.path, problem.suggestion) == (line, path, suggestion)

    @pytest.mark.parametrize(("text", "line", "word"), BROKEN)
    def test_text_that_is_no_yaml_is_told_with_its_line(self, text: str, line: int | None, word: str) -> None:
        problem = problem_of(text)
        assert (problem.path, problem.line) == ("configuration", line)
        assert problem.message.startswith("is not valid YAML: ")
        assert word in problem.message

    def test_all_are_told_at_once_in_the_order_of_the_file(self) -> None:
        text = "cache: 5\nplatfroms: {}\nhooks:\n  timeout: 5\ntimezone: berlin\nhooks: {}"
        problems = problems_of(text, {"SESSION_RESET_HOUR": "x"})
        assert [(one.line, one.path) for one in problems] == [
            (1, "cache"),
            (2, "platfroms"),
            (4, "hooks.timeout"),
            (5, "timezone"),
            (6, "hooks"),
            (None, "SESSION_RESET_HOUR"),
        ]

    def test_a_mistake_does_not_hide_another_in_the_same_block(self) -> None:
        problems = problems_of(
            "hooks:\n  max_attempts: x\n  concurrency: 0\n  timeout_seconds: 0\n  retry: 5"
        )
        assert [one.line for one in problems] == [2, 3, 4, 5]

    def test_a_wrong_mode_hides_no_other_mistake_of_the_policy_and_makes_up_none(self) -> None:
        problems = problems_of("session_reset:\n  mode: x\n  cron: '* *'\n  require: all\n  at_hour: 99")
        assert [one.path for one in problems] == [
            f"session_reset.{key}" for key in ("mode", "cron", "at_hour")
        ]

    def test_the_policies_of_all_levels_are_checked(self) -> None:
        problems = problems_of(
            "session_reset: {at_hour: 99}\nplatforms:\n  a:\n    session_reset: {at_hour: 98}\n"
            "    chat_types:\n      dm: {session_reset: {at_hour: 97}}\n"
            "      group: {session_reset: {idle_minutes: -1}}"
        )
        assert [one.line for one in problems] == [1, 4, 6, 7]

    def test_the_error_shows_origin_line_path_and_suggestion(self) -> None:
        with pytest.raises(ConfigError) as caught:
            parse("a: 1\nplatfroms: {}")
        assert str(caught.value) == (
            "config.yaml: 2 problems\n"
            "  line 1: a: is not a known key\n"
            "  line 2: platfroms: is not a known key (did you mean 'platforms'?)"
        )

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("timezone: 5", "must be text or null, not a number"),
            ("cache: {entries: 1.5}", "must be a whole number, not a decimal number"),
            ("session_reset: {at_hour: 24}", "must be from 0 to 23"),
            ("session_reset: {idle_minutes: 0}", "must be a whole number from 1 to 5260320"),
            ("serve: {health_port: -1}", "must be from 0 to 65535, or null"),
            ("sessions_json: {mode: 5}", "must be one of coalesced, sync, off, or null"),
            ("backups: {interval_days: 1.5}", "must be a whole number of days"),
            ("platforms: 5", "must be a block of names, not a number"),
        ],
    )
    def test_a_message_says_all_that_would_be_right(self, text: str, message: str) -> None:
        assert problem_of(text).message == message

    @pytest.mark.parametrize(
        "text",
        [
            "serve: {webhook_port: -1}",
            "delivery: {retry_seconds: x, retry_cap_seconds: 1}",
            "cluster: {heartbeat_seconds: x, ttl_seconds: 1}",
            "sessiondb: {provider: x, url: 'mysql://host/db'}",
        ],
    )
    def test_what_would_only_follow_from_a_mistake_is_not_told(self, text: str) -> None:
        assert len(problems_of(text)) == 1

    def test_a_key_that_is_missing_hides_no_other_mistake_of_its_block(self) -> None:
        found = problems_of("platforms: {sms: {home_channel: {name: 5}}}")
        assert sorted(one.path.rpartition(".")[2] for one in found) == ["chat_id", "name"]

    def test_very_many_mistakes_are_not_all_told(self) -> None:
        assert len(problems_of("\n".join(f"key{n}: 1" for n in range(500)))) == 100

    def test_aliases_that_multiply_are_refused(self) -> None:
        layers = [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 12)]
        problems = problems_of("\n".join(["l0: &l0 [x]", *layers]))
        assert "configuration: holds more than 20000 values" in str(problems[0]) + str(problems[-1])


class TestMappings:
    @pytest.mark.parametrize(
        "values",
        [
            {5: 1},
            {None: 1},
            {"": 1},
            {"a\nb": 1},
            {"\udcff": 1},
            {"timezone": "\udcff"},
            {"timezone": b"UTC"},
            {"cache": {"entries": 10**5000}},
            {"hooks": {"retry_seconds": 10**400}},
            {"hooks": {"retry_seconds": float("nan")}},
            {"session_reset": {"at_hour": 10**5000}},
            {"session_reset": {"notify_exclude_platforms": ["\udcff"]}},
            {"platforms": {"sms": {"home_channel": {"chat_id": 10**5000}}}},
            {"platforms": {"sms": object()}},
        ],
        ids=range(14),
    )
    def test_what_no_file_could_say_is_a_problem_like_any_other(self, values: dict[str, Any]) -> None:
        with pytest.raises(ConfigError):
            Config.from_mapping(values)

    def test_a_mapping_that_contains_itself_is_refused(self) -> None:
        endless: dict[str, Any] = {}
        endless |= {"platforms": endless, "agent": [endless, endless]}
        with pytest.raises(ConfigError, match="levels deep"):
            Config.from_mapping(endless)

    def test_too_many_values_are_refused(self) -> None:
        with pytest.raises(ConfigError, match=r"1 problem\n.*more than 20000 values"):
            Config.from_mapping({"session_reset": {"notify_exclude_platforms": ["x"] * 20_000}})

    def test_something_else_than_a_mapping_is_refused(self) -> None:
        with pytest.raises(ConfigError, match="must be a block of keys"):
            Config.from_mapping([1])  # type: ignore[arg-type]


class TestRecords:
    @pytest.mark.parametrize(
        ("build", "paths"),
        [
            (lambda: Config(timezone="Berlin"), ["timezone"]),
            (lambda: Config(session_store_max_age=timedelta(0)), ["session_store_max_age_days"]),
            (lambda: Config(platforms={"A": PlatformConfig(), "a": PlatformConfig()}), ["platforms"]),
            (lambda: CacheConfig(entries=0), ["cache.entries"]),
            (lambda: SessionsJsonConfig(interval=timedelta(0)), ["sessions_json.interval_seconds"]),
            (lambda: SessionDBConfig(url=""), ["sessiondb.url"]),
            (lambda: AgentConfig(gateway_timeout=timedelta(0)), ["agent.gateway_timeout"]),
            (
                lambda: HooksConfig(timeout=timedelta(0), retry=timedelta(-1), max_attempts=0, concurrency=0),
                ["hooks.timeout_seconds", "hooks.max_attempts", "hooks.retry_seconds", "hooks.concurrency"],
            ),
            (lambda: ExpiryWatcherConfig(interval=timedelta.max), ["expiry_watcher.interval_seconds"]),
        ],
    )
    def test_a_program_cannot_make_what_a_file_could_not_say(self, build: Any, paths: list[str]) -> None:
        with pytest.raises(ConfigError) as caught:
            build()
        assert [problem.path for problem in caught.value.problems] == paths

    def test_platforms_of_a_program_are_known_in_lower_case(self) -> None:
        assert [*Config(platforms={" Slack ": PlatformConfig()}).platforms] == ["slack"]


class TestSecrets:
    @pytest.mark.parametrize(
        ("url", "shown"),
        [
            ("sqlite:///state/sessions.db", "sqlite:///state/sessions.db"),
            ("sqlite:///x.db?password=geheim", "sqlite:///x.db?password=***"),
            ("sqlite:///x.db?a=1&PassPhrase=geheim&b=2", "sqlite:///x.db?a=1&PassPhrase=***&b=2"),
            ("host=db password=geheim user=me", "host=db password=*** user=me"),
            (None, None),
        ],
    )
    def test_a_shown_url_has_no_password(self, url: str | None, shown: str | None) -> None:
        settings = SessionDBConfig(url=url)
        assert settings.shown_url == shown
        assert "geheim" not in repr(Config(sessiondb=settings))
        assert repr(shown) in repr(settings)

    @pytest.mark.parametrize(
        "text",
        [
            "sessiondb: {url: 'postgresql://me:geheim@host/db'}",
            "sessiondb: {url: ['postgresql://me:geheim@host/db']}",
            "sessiondb: {url: 'postgresql://me:geheim@host/db', provider: geheim}",
            "sessiondb: {urll: 'geheim'}",
            "sessiondb: {url: *geheim}",
            "sessiondb: {url: 'geheim}",
            "sessiondb: {url: \"geheim\\q\"}",
            "sessiondb: {url: '${GEHEIM}'}",
            "timezone: ${GEHEIM}",
            "session_reset: ${GEHEIM}",
            "session_reset: {mode: ${GEHEIM}}",
            "session_reset: {cron: '${GEHEIM}', mode: cron}",
            "platforms: {sms: {home_channel: {chat_id: '../${GEHEIM}'}}}",
        ],
    )  # fmt: skip
    def test_no_error_shows_a_value_and_neither_does_its_traceback(self, text: str) -> None:
        with pytest.raises(ConfigError) as caught:
            parse(text, SECRETS)
        assert "geheim" not in "".join(traceback.format_exception(caught.value))


def test_importing_the_package_reads_no_yaml_and_no_pydantic() -> None:
    program = "import sys, gateway_sessions; print(sorted({'yaml', 'pydantic'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
