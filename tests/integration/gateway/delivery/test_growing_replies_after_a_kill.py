"""A reply that was growing when its process ended goes on in the same message, or says that it ends there."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from gateway_sessions import SessionStore
from gateway_sessions.core.delivery.outbound_messages import Reply
from gateway_sessions.core.notices.notice_texts import FAILED, GIVEN_UP, UNFINISHED
from gateway_sessions.core.sessions.busy_mode import BusyMode
from gateway_sessions.errors import StorageUnavailableError
from gateway_sessions.runtime.queue.turn import Turn
from gateway_sessions.testing.agents import ScriptedAgent, answers, fails, hangs, says, shows
from gateway_sessions.testing.fake_platform import ABLE
from gateway_sessions.testing.faults import crash_at, raising
from gateway_sessions.testing.inside import queue_of
from tests.integration.gateway.gateway_harness import QUICK, busy_config, open_harness
from tests.integration.gateway.restartable_gateway import AT_ONCE, RestartableGateway

LONG = " ".join(f"word{number}" for number in range(40))


@pytest.fixture
async def half_answered(restartable: RestartableGateway) -> RestartableGateway:
    """A message of which half an answer was shown when its process was killed."""
    async with restartable.run(killed=True, agent=ScriptedAgent([shows("The ans"), hangs()])) as harness:
        await harness.platform.says("ann", "look", message_id="m1")
    assert restartable.platform.shown("ann") == ["The ans"]
    return restartable


async def ended(restartable: RestartableGateway, agent: ScriptedAgent | None = None) -> list[str]:
    """What people see once the next process has done all that there is to do."""
    async with restartable.run(agent=agent or ScriptedAgent("The answer.")) as harness:
        await harness.clock.advance(seconds=5)
        await harness.wait_until_idle()
    return restartable.platform.shown("ann")


async def test_the_next_process_goes_on_in_the_message_that_was_growing(half_answered: RestartableGateway):
    agent = ScriptedAgent([shows("The"), shows("The answer"), answers("The answer.")])
    assert await ended(half_answered, agent) == ["The answer."]
    (sent,) = half_answered.platform.sent
    assert [one.text for one in sent.before] == ["The ans", "The", "The answer"]


async def test_an_answer_that_does_not_grow_again_takes_the_place_as_well(half_answered: RestartableGateway):
    assert await ended(half_answered) == ["The answer."]


async def test_so_does_one_after_any_number_of_kills(restartable: RestartableGateway):
    for number in range(2):
        text = "so far"[: 2 + number]
        agent = ScriptedAgent([shows(text), hangs()], [shows(text), hangs()])
        async with restartable.run(killed=True, agent=agent) as harness:
            await harness.platform.says("ann", "look", message_id="m1")
        assert restartable.platform.shown("ann") == [text]
    assert await ended(restartable) == ["The answer."]


async def test_so_does_one_that_a_drain_had_no_time_for(restartable: RestartableGateway):
    async with restartable.run(agent=ScriptedAgent([shows("The ans"), hangs()])) as harness:
        await harness.platform.says("ann", "look")
        await harness.wait_until_idle()
        await harness.gateway.drain(AT_ONCE)
    assert await ended(restartable) == ["The answer."]


async def test_so_does_one_that_was_spoilt_by_the_database(tmp_path: Path):
    away = StorageUnavailableError("a store", "it is away")
    agent = ScriptedAgent([shows("The ans"), fails(away)], "The answer.")
    async with open_harness(tmp_path, agent=agent) as harness:
        await harness.platform.says("ann", "look")
        await harness.clock.advance(seconds=30)
        await harness.wait_until_idle()
        assert harness.platform.shown("ann") == ["The answer."]


async def test_a_long_answer_begins_where_it_was_growing_and_goes_on_below(tmp_path: Path):
    restartable = RestartableGateway(tmp_path)
    restartable.platform.capabilities = replace(ABLE, max_length=100)
    async with restartable.run(killed=True, agent=ScriptedAgent([shows(LONG[:50]), hangs()])) as harness:
        await harness.platform.says("ann", "look")
    first, *others = await ended(restartable, ScriptedAgent(LONG))
    assert others
    assert " ".join(one.strip() for one in (first, *others)) == LONG
    assert [len(one.before) for one in restartable.platform.sent] == [1] + [0] * len(others)


async def test_what_was_said_meanwhile_has_the_place_and_the_next_process_begins_below(
    restartable: RestartableGateway,
):
    """What is said takes the place of what was shown: nobody must write over that after a kill."""
    agent = ScriptedAgent([shows("Thinking"), says("Found a file."), hangs()])
    async with restartable.run(killed=True, agent=agent) as harness:
        await harness.platform.says("ann", "look")
    assert await ended(restartable, ScriptedAgent([shows("The"), answers("The answer.")])) == [
        "Found a file.",
        "The answer.",
    ]
    assert len({one.idempotency_key for one in restartable.platform.attempts}) == 2


async def test_of_several_messages_that_grew_one_after_another_the_last_one_goes_on(
    restartable: RestartableGateway,
):
    agent = ScriptedAgent([shows("Thinking"), says("Found a file."), shows("The ans"), hangs()])
    async with restartable.run(killed=True, agent=agent) as harness:
        await harness.platform.says("ann", "look")
    agent = ScriptedAgent([says("Found two."), shows("The answ"), answers("The answer.")])
    assert await ended(restartable, agent) == ["Found a file.", "Found two.", "The answer."]
    assert len({one.idempotency_key for one in restartable.platform.attempts}) == 3


async def test_an_answer_whose_half_people_have_taken_away_is_sent_anew(half_answered: RestartableGateway):
    half_answered.platform.sent.clear()
    assert await ended(half_answered) == ["The answer."]


async def test_on_a_platform_that_changes_nothing_any_more_the_answer_is_sent_below(
    half_answered: RestartableGateway,
):
    half_answered.platform.capabilities = replace(ABLE, edit=False)
    assert await ended(half_answered) == ["The ans", "The answer."]


@pytest.mark.parametrize(("shown_once", "seen"), [(True, ["The answer."]), (False, ["The a", "The answer."])])
async def test_where_the_process_ended_before_the_id_was_written_down_a_platform_that_knows_repeats_helps(
    tmp_path: Path, *, shown_once: bool, seen: list[str]
):
    """Nobody knows of what was shown. The same key finds it again where that is shown once."""
    restartable = RestartableGateway(tmp_path)
    restartable.platform.capabilities = replace(ABLE, idempotent_for=timedelta.max if shown_once else None)
    with crash_at("growing_sent", action=raising(OSError("no power"))):
        async with restartable.run(killed=True, agent=ScriptedAgent([shows("The a"), hangs()])) as harness:
            await harness.platform.says("ann", "look")
    assert restartable.platform.shown("ann") == ["The a"]
    assert await ended(restartable, ScriptedAgent([shows("The ans"), answers("The answer.")])) == seen


async def test_an_id_that_could_not_be_written_down_is_with_the_next_piece(
    restartable: RestartableGateway, monkeypatch: pytest.MonkeyPatch
):
    noting, failures = Turn.note_growing, [StorageUnavailableError("a store", "it is away")]

    async def note_badly(turn: Turn, growing: object) -> None:
        if failures:
            raise failures.pop()
        await noting(turn, growing)  # type: ignore[arg-type]  # handed on as it came

    monkeypatch.setattr(Turn, "note_growing", note_badly)
    agent = ScriptedAgent([shows("The"), shows("The ans"), hangs()])
    async with restartable.run(killed=True, agent=agent) as harness:
        await harness.platform.says("ann", "look")
    assert await ended(restartable) == ["The answer."]
    assert len(restartable.platform.attempts) == 1


async def test_what_is_shown_is_written_down_once_and_what_is_not_shown_never(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    written: list[object] = []
    noting = Turn.note_growing

    async def note(turn: Turn, growing: object) -> None:
        written.append(growing)
        await noting(turn, growing)  # type: ignore[arg-type]  # handed on as it came

    monkeypatch.setattr(Turn, "note_growing", note)
    agent = ScriptedAgent("at once", [*map(shows, ("The", "The ans", "The answ")), answers("The answer.")])
    async with open_harness(tmp_path, agent=agent) as harness:
        await harness.platform.says("ann", "one")
        await harness.wait_until_idle()
        assert written == []
        await harness.platform.says("ann", "two")
        await harness.wait_until_idle()
        assert len(written) == 1


async def test_what_was_written_down_and_is_damaged_stops_nothing(half_answered: RestartableGateway):
    with closing(sqlite3.connect(half_answered.home / "sessions.db")) as connection, connection:
        assert connection.execute("UPDATE inbox SET growing = '{half'").rowcount == 1
    assert await ended(half_answered) == ["The ans", "The answer."]


# What never gets an answer


async def test_one_that_was_cut_off_too_often_says_so(tmp_path: Path):
    restartable = RestartableGateway(
        tmp_path, replace(QUICK, agent=replace(QUICK.agent, max_restart_attempts=1))
    )
    async with restartable.run(killed=True, agent=ScriptedAgent([shows("The ans"), hangs()])) as harness:
        await harness.platform.says("ann", "look")
    assert await ended(restartable) == [UNFINISHED, GIVEN_UP]


async def test_one_that_a_drain_cut_off_too_often_keeps_what_was_shown(tmp_path: Path):
    restartable = RestartableGateway(
        tmp_path, replace(QUICK, agent=replace(QUICK.agent, max_restart_attempts=1))
    )
    async with restartable.run(agent=ScriptedAgent([shows("The ans"), hangs()])) as harness:
        await harness.platform.says("ann", "look")
        await harness.wait_until_idle()
        await harness.gateway.drain(AT_ONCE)
    assert await ended(restartable) == [f"The ans\n\n{UNFINISHED}", GIVEN_UP]


async def test_one_that_waited_too_long_says_so(half_answered: RestartableGateway):
    half_answered.clock.step(timedelta(hours=2))
    first, notice = await ended(half_answered)
    assert first == UNFINISHED
    assert "/retry" in notice


async def test_one_that_fails_in_the_next_process_says_so_and_a_retry_begins_below(
    half_answered: RestartableGateway,
):
    agent = ScriptedAgent([fails(ValueError("no"))], [shows("The ans"), answers("The answer.")])
    async with half_answered.run(agent=agent) as harness:
        await harness.wait_until_idle()
        assert harness.platform.shown("ann") == [UNFINISHED, FAILED]
        await harness.platform.says("ann", "/retry")
        await harness.wait_until_idle()
        assert harness.platform.shown("ann")[:2] == [UNFINISHED, FAILED]
        assert harness.platform.shown("ann")[-1] == "The answer."
        assert "The ans" not in harness.platform.shown("ann")


@pytest.mark.parametrize("after_a_kill", [False, True])
async def test_one_that_fails_keeps_what_was_shown_and_says_so(
    restartable: RestartableGateway, *, after_a_kill: bool
):
    if after_a_kill:
        async with restartable.run(killed=True, agent=ScriptedAgent([shows("The"), hangs()])) as harness:
            await harness.platform.says("ann", "look", message_id="m1")
    async with restartable.run(agent=ScriptedAgent([shows("The ans"), fails(ValueError("no"))])) as harness:
        await harness.platform.says("ann", "look", message_id="m1")
        await harness.wait_until_idle()
        assert harness.platform.shown("ann") == [f"The ans\n\n{UNFINISHED}", FAILED]


@pytest.mark.parametrize(
    ("mode", "outcome"), [(BusyMode.INTERRUPT, "interrupted"), (BusyMode.ROLLBACK, "rolled_back")]
)
async def test_one_that_another_message_ends_says_so(tmp_path: Path, mode: BusyMode, outcome: str):
    agent = ScriptedAgent([shows("The ans"), hangs()], "Of course.")
    async with open_harness(tmp_path, busy_config(mode), agent=agent) as harness:
        await harness.platform.says("ann", "look")
        await harness.wait_until_idle()
        await harness.platform.says("ann", "no, stop")
        await harness.clock.advance(seconds=5)
        await harness.wait_until_idle()
        shown = [one.text for one in harness.platform.sent if not one.message.is_notice]
        assert shown == [f"The ans\n\n{UNFINISHED}", "Of course."]
        assert (await harness.outcomes("ann")).get(outcome) == 1


@pytest.mark.parametrize("answer", ["", Reply("kept", silent=True)])
async def test_one_that_comes_to_nothing_says_so(tmp_path: Path, answer: str | Reply):
    async with open_harness(tmp_path, agent=ScriptedAgent([shows("The ans"), answers(answer)])) as harness:
        await harness.platform.says("ann", "look")
        await harness.wait_until_idle()
        assert harness.platform.shown("ann") == [f"The ans\n\n{UNFINISHED}"]


async def test_one_whose_commit_is_refused_says_so(tmp_path: Path):
    """What was to take its place was not stored, and the half answer stood there for good."""
    bad = Reply("The answer.", extra={"name": object()})
    async with open_harness(tmp_path, agent=ScriptedAgent([shows("The ans"), answers(bad)])) as harness:
        await harness.platform.says("ann", "look")
        await harness.wait_until_idle()
        assert harness.platform.shown("ann") == [f"The ans\n\n{UNFINISHED}", FAILED]


@pytest.mark.parametrize("how", ["/stop", "/new", "cancel", "clear", "delete"])
async def test_one_that_is_taken_out_of_the_queue_says_so(half_answered: RestartableGateway, how: str):
    """It waits for its next try when a person or an operator takes it out."""
    await waits(half_answered)
    agent = ScriptedAgent()
    async with half_answered.run(agent=agent) as harness:
        key = harness.key("ann")
        match how:
            case "delete":
                await harness.platform.deletes("m1")
            case "cancel":
                assert await harness.store.cancel_queued(key, 1) == 1
            case "clear":
                assert await harness.store.clear_queue(key) == 1
            case _:
                await harness.platform.says("ann", how)
        await harness.wait_until_idle()
        assert half_answered.platform.shown("ann")[0] == UNFINISHED
        assert agent.turns == []


async def waits(restartable: RestartableGateway) -> None:
    """Let what was cut off begin later than anybody looks."""
    async with SessionStore.open(restartable.home, restartable.config, clock=restartable.clock) as store:
        ((key, _),) = await queue_of(store).ready_lanes()
        await queue_of(store).put_turn_off(key, timedelta(hours=1))
