"""Usage counts what models and tools were used for, and what it cost."""

from gateway_sessions.core.usage.insights import (
    Activity,
    Insights,
    PlatformUse,
    ToolUse,
    TopSession,
    TopSessions,
)
from gateway_sessions.core.usage.usage_events import CostStatus, ModelUsage, SessionUsage, Usage, UsageSum

__all__ = [
    "Activity",
    "CostStatus",
    "Insights",
    "ModelUsage",
    "PlatformUse",
    "SessionUsage",
    "ToolUse",
    "TopSession",
    "TopSessions",
    "Usage",
    "UsageSum",
]
