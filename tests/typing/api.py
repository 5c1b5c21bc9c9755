"""The public API as users type it: checked by mypy and pyright, never run.

`assert_type` fails the check when a type changes; a line with `type: ignore[code]` fails it when the mistake
it makes is accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, assert_type
from zoneinfo import ZoneInfo

from gateway_sessions import (
    BusyMode,
    Config,
    EndReason,
    GatewaySessionsError,
    Message,
    Scope,
    SessionBusyError,
    SessionDB,
    SessionEntry,
    SessionFinalized,
    SessionResetPolicy,
    SessionSource,
    SessionState,
    SessionStore,
    StorageError,
    SystemClock,
    build_session_key,
    load_config,
)
from gateway_sessions.blocking import BlockingSessionDB, BlockingSessionStore
from gateway_sessions.budgets import Allowed, Budgets, Spent, Stop, Warn, plan_budget
from gateway_sessions.config import parse_config
from gateway_sessions.sessions import (
    HomeChannel,
    ResumeReason,
    SessionContext,
    SessionRecord,
    build_session_context_prompt,
    is_shared_multi_user_session,
    next_reset,
    reset_due,
)
from gateway_sessions.testing import FakeClock
from gateway_sessions.transcripts import Rewind
from gateway_sessions.usage import Insights, SessionUsage


async def file_summary(event: SessionFinalized) -> None:
    assert_type(event.session_key, str)
    assert_type(event.session_id, str)
    assert_type(event.reason, EndReason)
    assert_type(event.platform, str | None)
    assert_type(event.ended_at, datetime)
    assert_type(event.idempotency_key, str)
    assert_type(event.attempt, int)


class Archive:
    """A hook may be any object that can be called so."""

    async def __call__(self, event: SessionFinalized) -> None: ...


async def resolve(platform: str, identifier: str) -> str:
    return f"{platform}:{identifier}"


def works(session_key: str) -> bool:
    return bool(session_key)


async def works_later(session_key: str) -> bool:
    return bool(session_key)


async def opening(config: Config) -> None:
    async with SessionStore.open("state/") as store:
        assert_type(store, SessionStore)
    async with SessionStore.open(
        Path("state"),
        config,
        has_active_processes=works,
        clock=SystemClock(),
        hooks=[file_summary, Archive()],
        aliases=resolve,
        wait=5,
    ) as store:
        assert_type(store.home, Path)
        assert_type(store.config, Config)
        assert_type(store.db, SessionDB)
        assert_type(store.started.clean, bool)
        assert_type(store.started.resumed, tuple[str, ...])
        assert_type([incident.action for incident in store.incidents], list[str])
    async with SessionStore.open("state/", has_active_processes=works_later, clock=FakeClock()) as store:
        assert_type(store.hooks.names, tuple[str, ...])
        store.hooks.register(file_summary, name="summary")
        for call in await store.hooks.dead_letters(limit=10):
            assert_type(call.last_error, str | None)
            await store.hooks.requeue(call.idempotency_key)
        assert_type(await store.hooks.sweep(), int)
        assert_type((await store.watcher.sweep()).finalised, int)


async def talking(store: SessionStore, source: SessionSource) -> None:
    entry = await store.get_or_create_session(source)
    assert_type(entry, SessionEntry)
    assert_type(await store.get_or_create_session(source, True), SessionEntry)
    assert_type(await store.get_or_create_session(source, force_new=False, touch=False), SessionEntry)
    assert_type(await store.update_session(entry.session_key), SessionEntry | None)
    assert_type(
        await store.update_session(entry.session_key, 100, session_id=entry.session_id), SessionEntry | None
    )
    assert_type(await store.reset_session(entry.session_key), SessionEntry | None)
    assert_type(await store.undo_reset(entry.session_key), SessionEntry | None)
    scope = Scope.of(source)
    assert_type(scope, Scope)
    try:
        switched = await store.switch_session(entry.session_key, "20260101_000000_abcd", scope=scope)
    except SessionBusyError as busy:
        assert_type(busy.session_id, str)
    else:
        assert_type(switched, SessionEntry | None)
    assert_type(await store.suspend_session(entry.session_key), bool)
    assert_type(await store.mark_resume_pending(entry.session_key), bool)
    assert_type(await store.mark_resume_pending(entry.session_key, ResumeReason.SHUTDOWN_TIMEOUT), bool)
    assert_type(await store.clear_resume_pending(entry.session_key), bool)
    assert_type(await store.suspend_recently_active(60), int)
    assert_type(await store.prune_old_entries(None), int)
    assert_type(await store.set_model_override(entry.session_key, {"model": "m"}), SessionEntry | None)
    assert_type(await store.set_busy_mode(entry.session_key, BusyMode.QUEUE), SessionEntry | None)
    assert_type(await store.set_reset_policy(entry.session_key, SessionResetPolicy()), SessionEntry | None)
    assert_type(await store.set_zone(entry.session_key, "Europe/Berlin"), SessionEntry | None)


async def looking(store: SessionStore) -> None:
    page = await store.list_sessions(60, scope=Scope.operator(), limit=10)
    assert_type(page, list[SessionEntry])
    assert_type(await store.list_sessions(scope=Scope.lane("key"), after=page[-1]), list[SessionEntry])
    assert_type(await store.lookup_by_session_id("id", scope=Scope.operator()), SessionEntry | None)
    assert_type(await store.get_session("key"), SessionEntry | None)
    assert_type(await store.peek_session_id("key"), str | None)
    assert_type(await store.has_any_sessions(), bool)
    explanation = await store.explain("key")
    assert_type(explanation.next_reset_at, datetime | None)
    assert_type(explanation.next_message, str)
    await store.flush()


def an_entry(entry: SessionEntry) -> None:
    assert_type(entry.state, SessionState)
    assert_type(entry.created_at, datetime)
    assert_type(entry.due_at, datetime | None)
    assert_type(entry.was_auto_reset, bool)
    assert_type(entry.auto_reset_reason, EndReason | None)
    assert_type(entry.previous_session_id, str | None)
    match entry.state:
        case SessionState.ACTIVE | SessionState.RESUME_PENDING:
            pass
        case SessionState.EXPIRED | SessionState.SUSPENDED:
            pass
    entry.session_id = "another"  # type: ignore[misc]  # an entry is a value


def pure_functions(source: SessionSource, entry: SessionEntry) -> None:
    assert_type(build_session_key(source), str)
    assert_type(build_session_key(source, group_sessions_per_user=False), str)
    assert_type(is_shared_multi_user_session(source), bool)
    policy = SessionResetPolicy(idle_minutes=60, at_hour=4)
    coming = next_reset(policy, entry, ZoneInfo("Europe/Berlin"))
    if coming is not None:
        assert_type(coming.at, datetime)
        assert_type(coming.reason, EndReason)
    due = reset_due(policy, entry, datetime(2026, 1, 1, tzinfo=UTC), UTC)
    assert_type(due is None, bool)


def configuration() -> None:
    assert_type(load_config("config.yaml"), Config)
    assert_type(parse_config("timezone: UTC", origin="config.yaml", environ={}), Config)
    config = Config(timezone="UTC", session_store_max_age=timedelta(days=30))
    assert_type(config.session_store_max_age, timedelta | None)
    assert_type(config.session_reset, SessionResetPolicy)
    Config(timezone=5)  # type: ignore[arg-type]
    Config(no_such_key=True)  # type: ignore[call-arg]


def prompts(context: SessionContext) -> None:
    assert_type(build_session_context_prompt(context), str)
    HomeChannel(platform="telegram", chat_id="5", name="home")


async def mistakes(store: SessionStore, source: SessionSource) -> None:
    """Each of these lines is refused."""
    await store.get_or_create_session("telegram")  # type: ignore[arg-type]
    await store.list_sessions()  # type: ignore[call-arg]  # whoever reads across lanes says as whom
    await store.switch_session("key", "id", Scope.operator())  # type: ignore[call-arg]
    SessionStore.open("state/", hooks=[print])  # type: ignore[list-item]
    SessionStore.open("state/", clock=datetime.now)  # type: ignore[arg-type]
    SessionSource(platform="irc", chat=5)  # type: ignore[call-arg]


async def time_in_tests(clock: FakeClock) -> None:
    assert_type(clock.now(), datetime)
    await clock.advance(timedelta(hours=1))
    await clock.advance(days=1, minutes=2.5)
    await clock.advance_to("2026-01-01T00:00:00+00:00")
    clock.step(hours=-1)
    await clock.wait_for_sleepers(1)
    assert_type(clock.sleepers, int)


async def transcripts(store: SessionStore) -> None:
    assert_type(await store.append_to_transcript("id", {"role": "user", "content": "hi"}), int | None)
    assert_type(await store.load_transcript("id"), list[dict[str, Any]])
    assert_type(await store.rewind_session("id"), Rewind | None)
    assert_type(await store.db.append_message("id", "tool", "ok", tool_call_id="c", timestamp=5.0), int)
    assert_type(await store.db.append_messages("id", [Message("user", "hi"), {"role": "tool"}]), list[int])
    assert_type(await store.db.get_messages("id", limit=5), list[Message])
    assert_type(await store.db.get_session("id"), SessionRecord | None)
    await store.db.append_message("id", "user", mood="good")  # type: ignore[call-arg]


async def usage(store: SessionStore) -> None:
    assert_type(await store.db.record_usage("id", "event", model="m", input_tokens=5), bool)
    assert_type(await store.db.record_usage("id", "event", at=5.0, estimated_cost_usd=0.1), bool)
    assert_type(await store.db.usage_of_session("id"), SessionUsage)
    assert_type((await store.db.usage_of_session("id")).total.cost_usd, float | None)
    assert_type(await store.db.spent("id", zone="UTC"), Spent)
    assert_type(plan_budget(Budgets(), await store.db.spent("id")), Allowed | Warn | Stop)
    assert_type(await store.db.insights(7, scope=Scope.operator()), Insights)
    await store.db.insights()  # type: ignore[call-arg]
    await store.db.record_usage("id", "event", input_token=5)  # type: ignore[call-arg]


def without_a_loop(path: Path) -> None:
    with BlockingSessionStore.open(path) as store:
        assert_type(store, BlockingSessionStore)
        assert_type(store.get_or_create_session(SessionSource(platform="cli", chat_id="1")), SessionEntry)
        assert_type(store.db, BlockingSessionDB)
        assert_type(store.db.get_messages("id"), list[Message])
        assert_type(store.db.record_usage("id", "event", input_tokens=5), bool)
        for session in store.db.export_all(scope=Scope.operator()):
            assert_type(session, dict[str, Any])


def errors() -> None:
    try:
        pass
    except StorageError as error:
        assert_type(error.what, str)
    except GatewaySessionsError:
        pass


def a_bot(store: SessionStore) -> Callable[[SessionSource], Coroutine[Any, Any, str]]:
    """What a program around a store looks like to a type checker."""

    async def answer(source: SessionSource) -> str:
        entry = await store.get_or_create_session(source)
        await store.update_session(entry.session_key, session_id=entry.session_id)
        return entry.session_id

    return answer
