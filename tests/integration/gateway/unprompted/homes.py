"""Configurations with a home channel, for tests of what a gateway says by itself."""

from __future__ import annotations

from dataclasses import replace

from gateway_sessions import Config
from gateway_sessions.config import PlatformConfig
from gateway_sessions.core.transcript.session_context_prompt import HomeChannel
from tests.integration.gateway.gateway_harness import QUICK


def with_home(chat: str = "lobby", platform: str = "fake", config: Config = QUICK) -> Config:
    """A quick configuration with a home channel."""
    home = HomeChannel(platform=platform, chat_id=chat)
    return replace(config, platforms={platform: PlatformConfig(home_channel=home)})
