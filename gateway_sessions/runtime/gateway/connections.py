"""Connections of adapters, made again after failures, and the adapter of each account."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Final, cast

import anyio
from anyio.abc import TaskGroup

from gateway_sessions._process.background import is_block_cancelled
from gateway_sessions._process.retry import Backoff
from gateway_sessions.adapters.protocol import Adapter, CommandMenuAdapter, FindingAdapter, Submit
from gateway_sessions.core.notices.command_replies import CommandHelp
from gateway_sessions.errors import AdapterError, InvalidInputError
from gateway_sessions.ports import Clock
from gateway_sessions.runtime.observability.event_stream import EventKind, Events
from gateway_sessions.runtime.user_code import problem_within

logger: Final = logging.getLogger(__name__)

BACKOFF: Final = Backoff(timedelta(seconds=1), timedelta(minutes=1))
MENU: Final = timedelta(seconds=30)
"""The time that a platform may take to set its menu of commands: nobody waits for that."""
PATIENCE: Final = timedelta(seconds=10)
"""The time for which a gateway that starts waits for its adapters; then it begins without the slow ones."""


class Connections:
    """Connects adapters, and connects them again when a connection is lost."""

    def __init__(self, clock: Clock, events: Events) -> None:
        self._clock = clock
        self._events = events
        self._tried: list[anyio.Event] = []
        self._commands: Sequence[CommandHelp] = ()
        self.platforms: set[str] = set()
        """The platforms that have been connected; one that is away for a while stays in the set."""
        self.accounts: set[tuple[str, str]] = set()
        """The platforms and accounts that are connected at this moment."""

    def connect_all(
        self, tasks: TaskGroup, adapters: Iterable[Adapter], submit: Submit, commands: Sequence[CommandHelp]
    ) -> None:
        """Connect all adapters in *tasks*, and keep them connected; menus show the *commands*."""
        self._commands = commands
        for adapter in adapters:
            tried = anyio.Event()
            self._tried.append(tried)
            tasks.start_soon(self._keep_connected, adapter, submit, tried)

    async def wait_until_tried(self) -> None:
        """Wait until each adapter has tried to connect, at most for `PATIENCE`."""
        with anyio.move_on_after(PATIENCE.total_seconds()):
            for tried in self._tried:
                await tried.wait()

    async def _keep_connected(self, adapter: Adapter, submit: Submit, tried: anyio.Event) -> None:
        failures = 0  # since the last connection
        platform, account = adapter.platform, adapter.name
        facts = {"platform": platform, "account": account}
        while True:
            try:
                async with adapter.connect(submit):
                    failures = 0
                    self.platforms.add(platform)
                    self.accounts.add((platform, account))
                    self._events.emit(EventKind.ADAPTER_CONNECTED, platform=platform, account=account)
                    tried.set()
                    await self._show_commands(adapter)
                    await anyio.Event().wait()  # for ever, without work that a fake clock would wait for
            except (Exception, asyncio.CancelledError) as error:
                # Foreign code: a platform that is down must not end the others, nor must a library that leaks
                # a cancellation of its own.
                if isinstance(error, asyncio.CancelledError) and is_block_cancelled():
                    raise
                _log_lost(error, facts)
                self._events.emit(EventKind.ADAPTER_LOST, platform=platform, account=account)
            finally:
                self.accounts.discard((platform, account))
            tried.set()
            await self._clock.sleep(BACKOFF.after(failures).total_seconds())
            failures += 1

    async def _show_commands(self, adapter: Adapter) -> None:
        """Put the commands into the menu of a platform that has one."""
        if not isinstance(adapter, CommandMenuAdapter):
            return
        show = partial(adapter.show_commands, self._commands)
        if (problem := await problem_within(MENU, self._clock, show)) is not None:
            facts = {"action": "menu_not_shown", "platform": adapter.platform, "account": adapter.name}
            logger.warning("the menu of commands could not be set: %s", problem, extra=facts)


def _log_lost(error: BaseException, facts: Mapping[str, str]) -> None:
    """Log why an adapter is not connected: its sentence, or the traceback of anything else."""
    extra = {"action": "adapter_lost", **facts}
    said = _sentence_of(error)
    if said is None:
        logger.error("an adapter lost its connection", exc_info=error, extra=extra)
    else:
        # A wrong token is no bug: its traceback, again each minute, would hide what is to be done.
        trace = error if logger.isEnabledFor(logging.DEBUG) else None
        logger.error("an adapter is not connected, and tries again: %s", said, exc_info=trace, extra=extra)


def _sentence_of(error: BaseException) -> AdapterError | None:
    """Return the error of an adapter that *error* is, alone or as the only one of task groups."""
    while isinstance(error, BaseExceptionGroup):
        (error, *others) = cast("BaseExceptionGroup[BaseException]", error).exceptions
        if others:
            return None
    return error if isinstance(error, AdapterError) else None


def adapters_by_account(adapters: Iterable[Adapter]) -> dict[tuple[str, str], Adapter]:
    """Return the adapters by platform and account.

    Raise `InvalidInputError` if two serve the same account, or one lacks what its capabilities promise.
    """
    found: dict[tuple[str, str], Adapter] = {}
    for adapter in adapters:
        account = (adapter.platform, adapter.name)
        if account in found:
            where = f"{adapter.platform!r} as {adapter.name!r}"
            problem = f"two adapters serve {where}: give each a name of its own"
            raise InvalidInputError(problem)
        if adapter.capabilities.finds and not isinstance(adapter, FindingAdapter):
            problem = f"the capabilities of {type(adapter).__name__} say `finds`, and it has no method `find`"
            raise InvalidInputError(problem)
        found[account] = adapter
    return found
