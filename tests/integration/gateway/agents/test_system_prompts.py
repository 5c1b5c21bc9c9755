"""What the agent of a session was told first can be read beside the session."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway_sessions import SessionDB, TurnContext
from gateway_sessions.errors import StorageUnavailableError
from tests.integration.gateway.gateway_harness import GatewayHarness, open_harness


class Listening:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.prompts: list[str] = []

    async def run_turn(self, turn: TurnContext) -> str:
        self.prompts.append(turn.prompt)
        return "yes"


async def prompt_of(harness: GatewayHarness, person: str) -> str | None:
    session_id = await harness.store.peek_session_id(harness.key(person))
    assert session_id is not None
    found = await harness.store.db.get_session(session_id)
    assert found is not None
    return found.system_prompt


async def test_each_session_has_the_prompt_of_its_first_turn(tmp_path: Path):
    agent = Listening()
    async with open_harness(tmp_path, agent=agent) as harness:
        await harness.platform.says("ann", "hello")
        await harness.wait_until_idle()
        first = await prompt_of(harness, "ann")
        assert first == agent.prompts[0]
        await harness.platform.says("ann", "/new")
        await harness.platform.says("ann", "hello again")
        await harness.wait_until_idle()
        assert await prompt_of(harness, "ann") == agent.prompts[1]


async def test_what_somebody_has_written_there_stays(tmp_path: Path):
    async with open_harness(tmp_path, agent=Listening()) as harness:
        entry = await harness.store.get_or_create_session(harness.platform.source("ann"))
        await harness.store.db.update_system_prompt(entry.session_id, "be kind")
        await harness.platform.says("ann", "hello")
        await harness.wait_until_idle()
        assert await prompt_of(harness, "ann") == "be kind"


async def test_a_database_that_fails_there_costs_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async def fail(*_: object) -> bool:
        raise StorageUnavailableError("sessions.db", "a disk that fails now and then")

    async with open_harness(tmp_path, agent=Listening()) as harness:
        with monkeypatch.context() as patch:
            patch.setattr(SessionDB, "note_system_prompt", fail)
            await harness.platform.says("ann", "hello")
            await harness.wait_until_idle()
            assert harness.platform.shown("ann") == ["yes"]
            assert await prompt_of(harness, "ann") is None
        await harness.platform.says("ann", "and again")
        await harness.wait_until_idle()
        assert await prompt_of(harness, "ann") is not None
