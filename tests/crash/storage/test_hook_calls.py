"""A session that ends owes its hooks a call, each time that it ends."""

from pathlib import Path

from gateway_sessions import Config, Scope, SessionFinalized, SessionStore
from gateway_sessions.testing import FakeClock
from tests.crash.kills.store_workload import key, source


async def test_a_session_that_ends_on_two_lanes_owes_two_calls_with_different_keys(tmp_path: Path):
    calls: list[SessionFinalized] = []

    async def hook(event: SessionFinalized) -> None:
        calls.append(event)

    clock = FakeClock()
    async with SessionStore.open(tmp_path, Config(timezone="UTC"), clock=clock, hooks=(hook,)) as store:
        wanderer = await store.get_or_create_session(source("a"))
        await store.get_or_create_session(source("a"))
        await store.reset_session(key("a"))
        await store.get_or_create_session(source("b"))
        there = await store.switch_session(key("b"), wanderer.session_id, scope=Scope.operator(), move=True)
        assert there is not None
        # The version of an entry belongs to its lane: here it is what it was at the first end.
        await store.get_or_create_session(source("c"))
        again = await store.switch_session(key("c"), wanderer.session_id, scope=Scope.operator(), move=True)
        assert again is not None
        await store.reset_session(key("c"))
        await clock.advance()
        await store.hooks.sweep()
    ends = [call for call in calls if call.session_id == wanderer.session_id]
    assert len({call.idempotency_key for call in ends}) == 2
