"""Health checks of the adapters that a configuration asks for, for `doctor`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Final

import anyio

from gateway_sessions.adapters.protocol import AdvisingAdapter
from gateway_sessions.config import Config
from gateway_sessions.core.queue.inbound import InboundMessage, Receipt
from gateway_sessions.errors import ConfigError, GatewaySessionsError
from gateway_sessions.integrations.registry import ConfiguredAdapter, make_adapters
from gateway_sessions.runtime.operator.health import Health, Symptom
from gateway_sessions.storage.files.threads import in_thread

TO_CONNECT: Final = 15.0
"""The seconds within which a platform must answer."""


class NothingIsTakenError(GatewaySessionsError):
    """A check of a connection takes no messages in: the platform keeps them for the gateway."""

    def __init__(self) -> None:
        super().__init__("this is only a check of the connection")


async def examine_adapters(config: Config, home: Path | None, *, online: bool) -> AsyncIterator[Symptom]:
    """Check each adapter: its settings, and *online* whether its platform answers."""
    try:
        config.require("serve")
    except ConfigError as error:  # a variable is not set, which may be so on purpose: the service has it
        for problem in error.problems:
            yield Symptom("Adapters", Health.WARNING, str(problem), "set it where serve is started")
        return
    for place, one in enumerate(config.serve.adapters):
        what = f"Adapter {one.platform}{f' {one.name}' if one.name else ''}"
        try:
            (made,) = await in_thread(partial(make_adapters, [one], home))
        except ConfigError as error:
            told = "; ".join(problem.message for problem in error.problems)
            yield Symptom(what, Health.BAD, told, f"correct serve.adapters[{place}] of the configuration")
            continue
        yield await _check_connection(what, made) if online else _unchecked(what)


def _unchecked(what: str) -> Symptom:
    return Symptom(what, Health.GOOD, "is set up; --online asks the platform")


async def _check_connection(what: str, made: ConfiguredAdapter) -> Symptom:
    """Connect once; a message that comes meanwhile is not taken, so that the platform keeps it."""
    problem = advice = None
    try:
        with anyio.fail_after(TO_CONNECT):
            async with made.adapter.connect(_take_nothing):
                advice = made.adapter.advice() if isinstance(made.adapter, AdvisingAdapter) else None
    except TimeoutError:
        problem = f"did not answer within {TO_CONNECT:.0f} seconds"
    except Exception as error:  # noqa: BLE001 -- foreign code: whatever a library raises is the finding
        problem = str(error) or type(error).__name__
    finally:
        await made.settings.aclose()
    if problem is None:
        return Symptom(what, Health.GOOD if advice is None else Health.WARNING, "connects", advice)
    return Symptom(
        what, Health.BAD, problem, "see whether its token is right, and whether the platform is up"
    )


async def _take_nothing(message: InboundMessage) -> Receipt:
    raise NothingIsTakenError
