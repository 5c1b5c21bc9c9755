"""A bot on a Telegram of this machine: the bare client library, and the same library before a gateway.

Measured is the time from the moment at which a person writes to the moment at which the answer's call reaches
the platform. The fake looks every five milliseconds at what people wrote, which all contenders pay.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from gateway_sessions import Config, Gateway, SessionStore, TurnContext
from gateway_sessions.testing.fakes.telegram import FakeTelegram
from tests.benchmarks.child import Figures, answer, latencies
from tests.benchmarks.contenders.our_fairness import CONFIG
from tests.integration.platforms.telegram_doors import DOORS, aiogram_bot

PERSON = "ann"


async def echo(turn: TurnContext) -> str:
    return f"You said {turn.text}"


@asynccontextmanager
async def running(work: Callable[[], Awaitable[object]]) -> AsyncIterator[None]:
    task = asyncio.ensure_future(work())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def bare_aiogram(fake: FakeTelegram) -> AsyncIterator[None]:
    """Fetch updates and answer each, as the library does it; nothing is stored."""
    async with aiogram_bot(fake) as bot:

        async def poll() -> None:
            offset = 0
            while True:
                for update in await bot.get_updates(offset=offset, timeout=30):
                    offset = update.update_id + 1
                    assert update.message is not None
                    await bot.send_message(update.message.chat.id, f"You said {update.message.text}")

        async with running(poll):
            yield


@asynccontextmanager
async def before_gateway(fake: FakeTelegram, folder: str, door: str) -> AsyncIterator[None]:
    config = Config.from_mapping(CONFIG)
    async with (
        DOORS[door](fake) as adapter,
        SessionStore.open(folder, config) as store,
        Gateway(store, agent=echo, adapters=[adapter]),
    ):
        yield


async def measure(folder: str, door: str | None, messages: int) -> Figures:
    """Let a person write so many messages, each after the answer to the last."""
    taken: list[int] = []
    async with FakeTelegram() as fake:
        fake.chats.person(PERSON)
        bot: Any = bare_aiogram(fake) if door is None else before_gateway(fake, folder, door)
        async with bot:
            for number in range(messages + 10):
                begun = time.monotonic()
                fake.says(PERSON, f"message {number}")
                await fake.wait_until(lambda number=number: len(fake.texts(PERSON)) > number)  # type: ignore[misc]
                sent = [call for call in fake.calls if call.method == "sendMessage"]
                taken.append(int((sent[-1].at - begun) * 1e9))
    return latencies(taken[10:])


if __name__ == "__main__":
    answer({"measure": lambda **task: asyncio.run(measure(**task))})
