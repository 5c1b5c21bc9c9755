"""A transcript is looked at, taken back, exported and imported with these records."""

from gateway_sessions.core.export.transfer_reports import (
    ExportReport,
    Finding,
    FindingKind,
    ImportReport,
    TransferProgress,
)
from gateway_sessions.core.transcript.messages import (
    AnchoredView,
    Hidden,
    MessageVersion,
    MessageWindow,
    Rewind,
    Role,
    UserTurn,
)

__all__ = [
    "AnchoredView",
    "ExportReport",
    "Finding",
    "FindingKind",
    "Hidden",
    "ImportReport",
    "MessageVersion",
    "MessageWindow",
    "Rewind",
    "Role",
    "TransferProgress",
    "UserTurn",
]
