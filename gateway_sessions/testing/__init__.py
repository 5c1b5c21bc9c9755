"""What a program that embeds gateway_sessions needs to test itself."""

from gateway_sessions.testing.clock import FakeClock
from gateway_sessions.testing.fake_platform import FakePlatform
from gateway_sessions.testing.scripted_agent import ScriptedAgent, ScriptedAgents, SteerableScriptedAgent

__all__ = ["FakeClock", "FakePlatform", "ScriptedAgent", "ScriptedAgents", "SteerableScriptedAgent"]
