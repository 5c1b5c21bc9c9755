"""What a store is put through: who writes, under which policies, and how time passes."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from hypothesis import strategies as st

from gateway_sessions import Config, SessionResetPolicy, SessionSource
from gateway_sessions.config import (
    AgentConfig,
    Durability,
    ExpiryWatcherConfig,
    PlatformConfig,
    SessionDBConfig,
    SessionsJsonConfig,
    SnapshotMode,
)
from gateway_sessions.core.sessions.reset_policy import Require, ResetMode

SOURCES: Final = (
    SessionSource(platform="telegram", chat_id="5", user_id="5", chat_type="dm"),
    SessionSource(platform="telegram", chat_id="5", user_id="5", chat_type="dm", account="support"),
    SessionSource(platform="telegram", chat_id="-9", user_id="5", chat_type="group"),
    SessionSource(platform="irc", chat_id="#room", user_id="anne", chat_type="channel"),
)
"""Four lanes, two of them at two accounts: one policy is set for the platform of the last one alone."""

POLICIES: Final = (
    SessionResetPolicy(mode=ResetMode.NONE),
    SessionResetPolicy(mode=ResetMode.IDLE, idle_minutes=60),
    SessionResetPolicy(mode=ResetMode.IDLE, idle_minutes=1440, grace_minutes=2000),
    SessionResetPolicy(mode=ResetMode.DAILY, at_hour=2),
    SessionResetPolicy(mode=ResetMode.DAILY, at_hour=4, grace_minutes=120),
    SessionResetPolicy(mode=ResetMode.BOTH, idle_minutes=600, bg_process_max_age_hours=3),
    SessionResetPolicy(
        mode=ResetMode.BOTH, idle_minutes=600, require=Require.ALL, bg_process_max_age_hours=3
    ),
    SessionResetPolicy(mode=ResetMode.CRON, cron="30 2 * * mon,thu"),
)
ZONES: Final = ("UTC", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia")
NEVER: Final = timedelta(days=36_500)
"""The duties rest: passes are made by rules, so that the model knows of each."""


def _config(
    policy: SessionResetPolicy,
    irc: SessionResetPolicy,
    zone: str,
    freshness: timedelta | None,
    mode: SnapshotMode,
) -> Config:
    return Config(
        timezone=zone,
        session_reset=policy,
        platforms={"irc": PlatformConfig(session_reset=irc)},
        agent=AgentConfig(gateway_auto_continue_freshness=freshness, max_restart_attempts=2),
        sessiondb=SessionDBConfig(durability=Durability.OS),
        sessions_json=SessionsJsonConfig(mode=mode),
        expiry_watcher=ExpiryWatcherConfig(first_pass=NEVER),
    )


configs = st.builds(
    _config,
    policy=st.sampled_from(POLICIES),
    irc=st.sampled_from(POLICIES),
    zone=st.sampled_from(ZONES),
    freshness=st.sampled_from([timedelta(hours=1), timedelta(days=2), None]),
    mode=st.sampled_from([SnapshotMode.OFF, SnapshotMode.COALESCED]),
)

lanes = st.integers(0, len(SOURCES) - 1)

# In the four weeks from here the clocks of New York, Berlin and Lord Howe move.
STARTS: Final = ("2026-03-07T12:00:00+00:00", "2026-10-24T22:30:00+00:00", "2026-03-28T22:00:00+00:00")
starts = st.sampled_from(STARTS)

spans = st.one_of(
    st.integers(1, 180).map(lambda count: timedelta(minutes=count)),
    st.integers(1, 40).map(lambda count: timedelta(hours=count)),
    st.integers(1, 21).map(lambda count: timedelta(days=count)),
    st.sampled_from(
        [
            timedelta(microseconds=1),
            timedelta(minutes=60),
            timedelta(minutes=60, microseconds=1),
            timedelta(hours=24),
        ]
    ),
)
steps_back = st.integers(1, 300).map(lambda count: timedelta(minutes=count))
