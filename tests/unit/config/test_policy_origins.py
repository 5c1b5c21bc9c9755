"""Each field of a policy is traced to the line, the variable or the entry that has decided it."""

from pathlib import Path

import pytest

from gateway_sessions import SessionResetPolicy
from gateway_sessions.config import load_config
from gateway_sessions.config.origins import (
    DEFAULT,
    OF_THE_CHAT,
    OF_THE_MACHINE,
    THEIR_OWN,
    policy_origins,
    written_values,
)
from gateway_sessions.core.sessions.reset_policy import ResetMode, deciding_fields

EVERY_LEVEL = """\
timezone: Europe/Berlin
session_reset:
  mode: both
  idle_minutes: 90
platforms:
  Telegram:
    session_reset:
      at_hour: 3
      notify: false
    chat_types:
      group:
        session_reset:
          grace_minutes: 5
"""


class Trace:
    """What is told about one chat, under one configuration."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "c.yaml"

    def __call__(
        self,
        text: str,
        platform: str | None = "telegram",
        chat_type: str = "dm",
        *,
        own: SessionResetPolicy | None = None,
        zone: str | None = None,
        environ: dict[str, str] | None = None,
    ) -> dict[str, tuple[str, str | None, str]]:
        self._file.write_text(text)
        known = environ or {}
        book = load_config(self._file, environ=known).policy_book("Asia/Tokyo")
        resolved = book.resolve(platform, chat_type, override=own, chat_zone=zone)
        written = written_values(self._file, known)
        found = policy_origins(resolved, written, platform, chat_type, zone)
        shown = str(self._file) + ", "
        return {one.field: (one.value, one.key, one.where.removeprefix(shown)) for one in found}


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    return Trace(tmp_path)


def test_each_level_is_told_for_what_it_has_decided(trace: Trace):
    platform, chat_type = "platforms.Telegram", "platforms.Telegram.chat_types.group"
    assert trace(EVERY_LEVEL, chat_type="group") == {
        "mode": ("both", "session_reset.mode", "line 3"),
        "at_hour": ("3", f"{platform}.session_reset.at_hour", "line 8"),
        "idle_minutes": ("90", "session_reset.idle_minutes", "line 4"),
        "require": ("any", None, DEFAULT),
        "grace_minutes": ("5", f"{chat_type}.session_reset.grace_minutes", "line 13"),
        "notify": ("False", f"{platform}.session_reset.notify", "line 9"),
        "timezone": ("Europe/Berlin", "timezone", "line 1"),
    }


@pytest.mark.parametrize(("platform", "hour"), [("telegram", "line 8"), ("slack", DEFAULT), (None, DEFAULT)])
def test_what_another_platform_says_counts_for_nothing(trace: Trace, platform: str | None, hour: str):
    assert trace(EVERY_LEVEL, platform)["at_hour"][2] == hour


def test_nothing_but_defaults(trace: Trace):
    assert trace("") == {
        "mode": ("both", None, DEFAULT),
        "at_hour": ("4", None, DEFAULT),
        "idle_minutes": ("1440", None, DEFAULT),
        "require": ("any", None, DEFAULT),
        "timezone": ("Asia/Tokyo", None, OF_THE_MACHINE),
    }


def test_a_policy_of_the_session_is_nobody_elses(trace: Trace):
    own = SessionResetPolicy(mode=ResetMode.IDLE, idle_minutes=7, notify_exclude_platforms=("irc", "cli"))
    found = trace(EVERY_LEVEL, own=own)
    assert found.pop("timezone") == ("Europe/Berlin", "timezone", "line 1")
    assert found == {
        "mode": ("idle", None, THEIR_OWN),
        "idle_minutes": ("7", None, THEIR_OWN),
        "notify_exclude_platforms": ("irc, cli", None, THEIR_OWN),
    }


def test_the_zone_is_the_policys_then_the_chats_then_that_of_all(trace: Trace):
    zoned = f"{EVERY_LEVEL}          timezone: Asia/Kolkata\n"
    own = SessionResetPolicy(zone="Africa/Cairo")
    assert trace(zoned, zone="Asia/Dubai", own=own)["timezone"] == ("Africa/Cairo", None, THEIR_OWN)
    key = "platforms.Telegram.chat_types.group.session_reset.timezone"
    assert trace(zoned, chat_type="group", zone="Asia/Dubai")["timezone"] == ("Asia/Kolkata", key, "line 14")
    assert trace(zoned, zone="Asia/Dubai")["timezone"] == ("Asia/Dubai", None, OF_THE_CHAT)


def test_a_variable_is_named(trace: Trace):
    name = "GATEWAY_SESSIONS__SESSION_RESET__IDLE_MINUTES"
    found = trace(EVERY_LEVEL, environ={name: "5"})
    assert found["idle_minutes"] == ("5", "session_reset.idle_minutes", f"${name}")


def test_a_word_for_a_policy_decides_all_of_it(trace: Trace):
    found = trace("platforms: {telegram: {session_reset: hermes-classic}}\nsession_reset: {at_hour: 9}\n")
    place = ("platforms.telegram.session_reset", "line 1")
    assert found["at_hour"] == ("4", *place)
    assert found["idle_minutes"] == ("1440", *place)


def test_what_a_mode_between_has_not_handed_down_is_the_default(trace: Trace):
    text = """\
session_reset: {mode: both, require: all}
platforms:
  telegram:
    session_reset: {mode: idle}
    chat_types: {group: {session_reset: {mode: both}}}
"""
    assert trace(text, "slack")["require"] == ("all", "session_reset.require", "line 1")
    assert trace(text, chat_type="group")["require"] == ("any", None, DEFAULT)


@pytest.mark.parametrize("mode", ResetMode)
def test_what_does_not_count_in_a_mode_is_not_said_to(mode: ResetMode):
    expected = {
        ResetMode.NONE: set[str](),
        ResetMode.IDLE: {"idle_minutes"},
        ResetMode.DAILY: {"at_hour"},
        ResetMode.BOTH: {"at_hour", "idle_minutes", "require"},
        ResetMode.CRON: {"cron"},
    }
    assert set(deciding_fields(mode)) == expected[mode] | {"mode"}
