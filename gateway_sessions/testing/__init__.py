"""What a program that embeds gateway_sessions needs to test itself."""

from gateway_sessions.testing.clock import FakeClock

__all__ = ["FakeClock"]
