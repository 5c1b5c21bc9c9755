"""Drivers on one database: as many as a test needs, as different processes would have them."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TypeVar

from anyio.abc import TaskGroup

from gateway_sessions._process.background import Resource
from gateway_sessions.storage.engines.server.driver import ServerDriver

DriverT = TypeVar("DriverT", bound=ServerDriver)


class DriverResource(Resource):
    """What a driver runs in."""

    def __init__(self, driver: ServerDriver) -> None:
        super().__init__("host")
        self._driver = driver

    async def _start(self, tasks: TaskGroup, cleanup: AsyncExitStack) -> None:
        await self._driver.start(tasks, cleanup)


@asynccontextmanager
async def running_driver(driver: DriverT) -> AsyncIterator[DriverT]:
    async with DriverResource(driver):
        yield driver
