"""The old places of modules and names still work, with a warning at the line that imports from them.

An old place hands out the very object of the new place, so that a class is the same wherever it was imported
from.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final

MOVED_MODULES: Final = {
    f"gateway_sessions.{old}": f"gateway_sessions.{new}"
    for old, new in {
        "adapters.aside": "adapters.set_aside",
        "adapters.background": "adapters",
        "adapters.port": "adapters.protocol",
        "model_errors": "errors",
        "storage.drivers.server": "storage.engines.server.driver",
        "storage.drivers.sqlite_engine": "storage.engines.sqlite.engine",
        "storage.engine": "storage.engines.protocol",
        "storage_errors": "errors",
        "testing.crash": "testing.faults",
        "testing.faulty_files": "testing.faults",
        "testing.scripted_agent": "testing.agents",
    }.items()
}
"""The old name of each module, and its new one. They go in the release after 0.2."""

PUBLIC_MODULE_OF: Final = {
    name: f"gateway_sessions.{module}"
    for module, names in {
        "adapters": """
            AdapterCapabilities MessageKind OutboundMessage ReplyTarget ReplyTo
        """,
        "budgets": """
            Allowed BudgetLimit BudgetOf BudgetPlan Budgets BudgetUnit BudgetUse plan_budget Spent
            Stop UnknownPrices Warn
        """,
        "config": """
            parse_config
        """,
        "errors": """
            AdapterError AdapterUnavailableError AliasUnknownError AmbiguousSessionError
            CancelledItselfError ConfigError ConfigProblem ControlError DeliveryRefusedError
            EventLoopRunningError ForeignDatabaseError InvalidPolicyError InvalidSessionIdError
            InvalidSnapshotError InvalidSourceError InvalidTitleError InvalidTransitionError
            MigrationError MissingRightError NoStoreError NotGivenUpError NothingToUndoError
            NoTurnError OperatorsTaskError RateLimitedError SchemaTooNewError SchemaTooOldError
            SentBeforeErasureError SessionCandidate SessionEndedError SessionOnLaneError SnapshotError
            StorageCorruptError StorageFullError StorageLockedError StorageUnavailableError
            StoreStoppedError TitleTakenError TurnEndedError UnidentifiedSourceError
            UnsupportedStorageError
        """,
        "events": """
            EventKind Events GatewayEvent Hook Listener ObservedTurn Observer
        """,
        "operator": """
            check_store CheckReport connect Control ErasureReceipt Incident Kept LanesReport LeftLane
            LinkedLane migrate_store MigrationProgress MigrationReport MovedLane OwnerStatus
            PruneReport repair_store RepairReport StartReport StoreClient VacuumReport WorkProgress
        """,
        "queue": """
            DeadLetter Disposition DropPolicy Overtaken Owed OwedReply QueuedMessage RejectReason
        """,
        "search": """
            ContextLine FoundMessage IndexReport IndexState Passage SearchHit SearchResult
            SessionMatch SessionSearch SessionSearchResult Summariser
        """,
        "sessions": """
            AliasResolver build_session_context build_session_context_prompt CachedAliases Explanation
            FirstExchange HomeChannel is_shared_multi_user_session Isolation next_reset plain_titler
            PRESETS Relation Require reset_due ResumeReason SessionContext SessionRecord
            SessionSummary Titler WhatsAppAliasFiles
        """,
        "transcripts": """
            AnchoredView ExportReport Finding FindingKind Hidden ImportReport MessageVersion
            MessageWindow Rewind Role TransferProgress UserTurn
        """,
        "usage": """
            Activity CostStatus Insights ModelUsage PlatformUse SessionUsage ToolUse TopSession
            TopSessions Usage UsageSum
        """,
    }.items()
    for name in names.split()
}
"""Each name that the package itself handed out once, and the public module that has it now."""

RENAMED_CLASSES: Final = {"Seat": "StoreClient"}
"""The old name of each public class that has another one now. They go in the release after 0.2, too."""

REMOVED_PACKAGES: Final = frozenset({"gateway_sessions.storage.drivers"})
"""Folders that are gone, but on the way to a module that has moved."""


class MovedModuleFinder(MetaPathFinder, Loader):
    """Finds modules by their old names, after every other finder has found nothing."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec for the old name of a module, and nothing for any other name."""
        if fullname in MOVED_MODULES or fullname in REMOVED_PACKAGES:
            return ModuleSpec(fullname, self, is_package=fullname in REMOVED_PACKAGES)
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Put the module of the new name in the place of *module*, and warn."""
        new = MOVED_MODULES.get(module.__name__)
        if new is None:
            return
        # The import system leaves out its own frames: this is the line that has the import.
        warnings.warn(f"{module.__name__} is {new} now.", DeprecationWarning, stacklevel=2)
        sys.modules[module.__name__] = import_module(new)


def find_moved_name(name: str) -> Any:
    """Return what the package itself handed out as *name*, and warn at the line that asks."""
    new = RENAMED_CLASSES.get(name, name)
    module = PUBLIC_MODULE_OF[new]
    warnings.warn(f"gateway_sessions.{name} is {module}.{new} now.", DeprecationWarning, stacklevel=3)
    return getattr(import_module(module), new)


def install_moved_module_finder() -> None:
    """Let imports of old module names succeed, once in a process."""
    if not any(isinstance(one, MovedModuleFinder) for one in sys.meta_path):
        sys.meta_path.append(MovedModuleFinder())
