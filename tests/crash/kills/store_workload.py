"""Workload of a store: what a child does until it is killed, and the journal of what it was told.

A line is written before each call and another one as soon as the call has returned: whatever the second line
says was acknowledged. Time moves only where the script moves it, so the duties of the store run when the
script says so, and every run of a script passes the same points.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from gateway_sessions import (
    Config,
    GatewaySessionsError,
    Scope,
    SessionEntry,
    SessionFinalized,
    SessionSource,
)
from gateway_sessions.config import HooksConfig, SessionsJsonConfig, SnapshotMode
from gateway_sessions.storage.tables.sql_files import Migration, load_migrations
from tests.crash.kills.gateway_workload import GatewayWorkload
from tests.crash.kills.queue_workload import QueueWorkload
from tests.crash.stores import OpenedStore, SteppedClock, open_store

START: Final = datetime(2026, 3, 2, 12, tzinfo=UTC)
BURST: Final = 10
IMPORTED: Final = 205
"""More than a page of the import, so that it can be cut off between two."""
EVERYWHERE: Final = "*"
SHIPPED: Final = load_migrations("sqlite")[-1].version
NEXT: Final = Migration(SHIPPED + 1, "next", "CREATE TABLE next_a (x);\nCREATE TABLE next_b (x);\n")

Facts = dict[str, dict[str, Any] | None]


@dataclass(frozen=True, slots=True)
class Scenario:
    """A script, and the store that it runs on."""

    script: str
    mode: str = "coalesced"

    @property
    def migrations(self) -> Sequence[Migration]:
        return (*load_migrations("sqlite"), NEXT) if self.script == "migration" else ()

    @property
    def config(self) -> Config:
        form = SessionsJsonConfig(mode=SnapshotMode(self.mode), interval=timedelta(seconds=1))
        return Config(timezone="UTC", sessions_json=form, hooks=HooksConfig(retry=timedelta(seconds=5)))


SCENARIOS: Final = (
    Scenario("life", "sync"),
    Scenario("life", "coalesced"),
    Scenario("import"),
    Scenario("migration", "sync"),
    Scenario("talk", "off"),
    Scenario("conversation", "off"),
)


@dataclass(slots=True)
class Journal:
    """Lines of JSON, each with the system before the next thing happens: a kill takes none of them back."""

    path: Path
    _numbers: itertools.count[int] = field(default_factory=itertools.count)
    _descriptor: int = -1

    def line(self, **facts: Any) -> None:
        if self._descriptor < 0:
            self._descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(self._descriptor, json.dumps(facts).encode() + b"\n")

    async def call(
        self, name: str, lanes: list[str], work: Awaitable[Any], told: Callable[[Any], Facts]
    ) -> Any:
        """Do one call of the script; *told* says what its outcome promises about lanes."""
        number = next(self._numbers)
        self.line(n=number, begins=name, lanes=lanes)
        try:
            outcome = await work
        except GatewaySessionsError as error:
            self.line(n=number, failed=type(error).__name__, problem=str(error))
            return None
        self.line(n=number, done=told(outcome))
        return outcome

    def recorder(self) -> Callable[[SessionFinalized], Awaitable[None]]:
        async def recorder(event: SessionFinalized) -> None:
            self.line(hook=event.idempotency_key, session=event.session_id, attempt=event.attempt)

        return recorder


def facts_of(entry: SessionEntry | None) -> Facts:
    if entry is None:
        return {}
    return {
        entry.session_key: {
            "session_id": entry.session_id,
            "version": entry.version,
            "state": str(entry.state),
            "last_prompt_tokens": entry.last_prompt_tokens,
        }
    }


def source(name: str) -> SessionSource:
    return SessionSource(platform="telegram", chat_id=name, user_id=f"person-{name}")


def key(name: str) -> str:
    return f"agent:main:telegram:dm:{name}"


@dataclass(slots=True)
class StoreWorkload:
    """The calls of one child."""

    home: Path
    journal: Journal
    scenario: Scenario
    clock: SteppedClock = field(default_factory=lambda: SteppedClock(START))

    async def run(self) -> None:
        await getattr(self, f"_{self.scenario.script}")()

    @asynccontextmanager
    async def _store(self) -> AsyncIterator[OpenedStore]:
        self.journal.line(opening=True)
        async with open_store(
            self.home,
            self.scenario.config,
            clock=self.clock,
            hooks=(self.journal.recorder(),),
            migrations=self.scenario.migrations,
        ) as store:
            self.journal.line(opened=True)
            yield store
            self.journal.line(closing=True)

    async def _message(self, store: OpenedStore, name: str) -> SessionEntry | None:
        lane = key(name)
        return await self.journal.call("message", [lane], store.get_or_create_session(source(name)), facts_of)

    async def _one(self, name: str, lane: str, work: Awaitable[Any], *others: str) -> Any:
        return await self.journal.call(name, [key(lane), *map(key, others)], work, facts_of)

    async def _said(self, name: str, lane: str, work: Awaitable[Any], **facts: Any) -> Any:
        return await self.journal.call(
            name, [key(lane)], work, lambda answer: {key(lane): facts} if answer else {}
        )

    async def _all(self, name: str, work: Awaitable[Any]) -> Any:
        return await self.journal.call(name, [EVERYWHERE], work, lambda _: {})

    async def _say(self, store: OpenedStore, name: str, text: str) -> None:
        """Say something in the lane's session, and take back something else before."""
        session_id = await store.peek_session_id(key(name))
        if session_id is None:
            return
        try:
            await store.append_to_transcript(session_id, {"role": "user", "content": "hm"})
            await store.rewind_session(session_id)
            await store.append_to_transcript(session_id, {"role": "user", "content": text})
        except GatewaySessionsError as error:
            self.journal.line(refused=type(error).__name__)
        else:
            self.journal.line(said=session_id, text=text)

    async def _life(self) -> None:
        async with self._store() as store:
            for name in "abcde":
                await self._message(store, name)
            await self._say(store, "a", "one")
            await self._say(store, "a", "two")
            await asyncio.gather(*[self._message(store, f"burst-{n}") for n in range(BURST)])
            await self._changes(store)
            await self._marks(store)
        async with self._store() as store:
            await self._message(store, "a")
            await self._duties(store)

    async def _changes(self, store: OpenedStore) -> None:
        self.clock.advance(minutes=1)
        await self._message(store, "a")
        await self._one("settle", "a", store.update_session(key("a"), 10))
        await self._one("reset", "a", store.reset_session(key("a")))
        await self._one("undo", "a", store.undo_reset(key("a")))
        second = await self._one("reset", "b", store.reset_session(key("b")))
        await self._said("suspend", "b", store.suspend_session(key("b")), state="suspended")
        await self._message(store, "b")
        operator = Scope.operator()
        if second is not None:
            await self._one(
                "switch", "c", store.switch_session(key("c"), second.session_id, scope=operator, move=True)
            )
            await self._one(
                "switch",
                "d",
                store.switch_session(key("d"), second.session_id, scope=operator, move=True),
                "c",
            )
            await self._message(store, "c")
        await self._one("model", "e", store.set_model_override(key("e"), {"model": "m"}))

    async def _marks(self, store: OpenedStore) -> None:
        await self._said("mark", "e", store.mark_resume_pending(key("e")), state="resume_pending")
        await self._said("clear", "e", store.clear_resume_pending(key("e")), state="active")
        await self._all("suspend_recently_active", store.suspend_recently_active())
        await self._said("clear", "a", store.clear_resume_pending(key("a")), state="active")
        await self._message(store, "e")

    async def _duties(self, store: OpenedStore) -> None:
        self.clock.advance(days=2)
        await self._all("sweep", store.watcher.sweep())
        await self._all("hooks", store.hooks.sweep())
        await self._message(store, "a")
        await self._say(store, "a", "three")
        self.clock.advance(days=3)
        await self._message(store, "b")
        await self._all("prune", store.prune_old_entries(1))
        await self._all("hooks", store.hooks.sweep())
        await self._message(store, "c")
        await self._all("flush", store.flush())

    async def _import(self) -> None:
        async with self._store() as store:
            self.journal.line(imported=True)
            await self._message(store, "chat-0007")
            await self._message(store, "new")

    async def _migration(self) -> None:
        async with self._store() as store:
            await self._message(store, "a")
            await self._one("reset", "a", store.reset_session(key("a")))

    async def _conversation(self) -> None:
        await QueueWorkload(self.home, self.scenario.config, self.clock, self.journal.line).run()

    async def _talk(self) -> None:
        await GatewayWorkload(self.home, self.scenario.config, self.clock, self.journal.line).run()


async def prepare(home: Path, scenario: Scenario) -> None:
    """Lay out what the script finds."""
    if scenario.script == "import":
        home.mkdir()
        _lay_out_index(home)
    if scenario.script == "migration":
        async with open_store(home, scenario.config, clock=SteppedClock(START)) as store:
            for name in "abc":
                await store.get_or_create_session(source(name))


def lay_out(template: Path, home: Path) -> None:
    """Copy what was prepared, if anything was."""
    if template.exists():
        shutil.copytree(template, home)


def _lay_out_index(home: Path) -> None:
    """An index of Hermes with a complete older generation, torn, and one entry that cannot be read."""
    entries: dict[str, Any] = {
        key(f"chat-{n:04}"): {
            "session_key": key(f"chat-{n:04}"),
            "session_id": f"20260302_100000_{n:08x}",
            "created_at": "2026-03-02T10:00:00",
            "updated_at": "2026-03-02T11:00:00",
            "platform": "telegram",
            "chat_type": "dm",
            "origin": source(f"chat-{n:04}").to_dict(),
        }
        for n in range(IMPORTED)
    }
    entries["agent:main:telegram:dm:broken"] = {"session_id": 7}
    text = json.dumps(entries, indent=2)
    (home / "sessions.json.bak").write_text(text)
    (home / "sessions.json").write_text(text[: len(text) // 2])
