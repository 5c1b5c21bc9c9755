"""Whoever operates a store connects to it, checks, repairs and moves it, and reads these reports."""

from gateway_sessions.core.identity.account_lane_assignment import (
    LanesReport,
    LeftLane,
    LinkedLane,
    MovedLane,
)
from gateway_sessions.core.progress import WorkProgress
from gateway_sessions.core.sessions.erasure import ErasureReceipt, Kept
from gateway_sessions.core.sessions.retention import PruneReport
from gateway_sessions.runtime.duties.restart_recovery import StartReport
from gateway_sessions.runtime.observability.incidents import Incident
from gateway_sessions.runtime.operator.store_client import StoreClient, connect
from gateway_sessions.runtime.store.control import Control, OwnerStatus
from gateway_sessions.storage.engines.protocol import VacuumReport
from gateway_sessions.storage.maintenance.copy_store import MigrationProgress, MigrationReport, migrate_store
from gateway_sessions.storage.maintenance.repair import CheckReport, RepairReport, check_store, repair_store

__all__ = [
    "CheckReport",
    "Control",
    "ErasureReceipt",
    "Incident",
    "Kept",
    "LanesReport",
    "LeftLane",
    "LinkedLane",
    "MigrationProgress",
    "MigrationReport",
    "MovedLane",
    "OwnerStatus",
    "PruneReport",
    "RepairReport",
    "StartReport",
    "StoreClient",
    "VacuumReport",
    "WorkProgress",
    "check_store",
    "connect",
    "migrate_store",
    "repair_store",
]
