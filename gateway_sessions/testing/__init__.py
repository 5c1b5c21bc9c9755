"""Test tools for programs that embed the package: a clock, a platform, agents, faults, contracts.

- ``agents``: `ScriptedAgent`: agents that play a script turn by turn and record what was done with them.
- ``clock``: `FakeClock`: time that a test advances, and that waits until every task rests again.
- ``contract``: Contract tests that every database and adapter must pass, as classes to inherit from.
- ``fake_platform``: A messaging platform for tests: people who write on it, an adapter to it, and
  everything that can go wrong.
- ``fakes``: Servers on loopback that behave like platforms, also at their worst, for any client library.
- ``faults``: Faults on purpose: file calls that fail, and crashes at named failpoints.
- ``inside``: The inside of a store, as far as contract tests look at it: its queue, transactions, rows and
  texts.
"""

from gateway_sessions.testing.agents import ScriptedAgent, ScriptedAgents, SteerableScriptedAgent
from gateway_sessions.testing.clock import FakeClock
from gateway_sessions.testing.fake_platform import FakePlatform

__all__ = ["FakeClock", "FakePlatform", "ScriptedAgent", "ScriptedAgents", "SteerableScriptedAgent"]
