"""A program gives notices words of its own: owed ones, hints, answers to commands, and those of a start."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway_sessions import BusyMode, Command, CommandCall, Notice, Rejected
from gateway_sessions.adapters import OutboundMessage, ReplyTarget
from gateway_sessions.core.delivery.message_parts import REPEATED
from gateway_sessions.core.notices.notice_texts import FAILED, GIVEN_UP, UNFINISHED
from gateway_sessions.testing import FakeClock, FakePlatform
from gateway_sessions.testing.agents import Gate, ScriptedAgent, answers, fails, hangs, shows, waits_at
from gateway_sessions.testing.fake_platform import ABLE
from tests.integration.gateway.gateway_harness import QUICK, busy_config, open_harness
from tests.integration.gateway.restartable_gateway import AT_ONCE, RestartableGateway

ONCE = replace(QUICK, agent=replace(QUICK.agent, max_restart_attempts=1))


GERMAN = {
    "queued": "Vorgemerkt, nach {others} anderen.",
    "busy": "Ich bin beschäftigt.",
    "failed": "Das ist schiefgegangen. /retry versucht es noch einmal.",
    "given_up": "Ich habe aufgegeben.",
    "unfinished": "[Diese Antwort blieb unfertig.]",
    "not_carried_out": "Ob /{command} noch ausgeführt wurde, weiß niemand.",
    "cut_off": "Vor {seconds_ago:.0f} Sekunden wurde ich unterbrochen.",
    "new_conversation": "Ein neues Gespräch. /undo-reset holt das vorige zurück.",
    "status": "Es warten {waiting}; Gespräch {session_id}.",
    "unknown_session": "Ein Gespräch „{wanted}“ kenne ich nicht.",
    "pong": "Pong, {name}!",
}
"""The words of a translator who has not got to all notices yet."""


def in_german(notice: Notice, _: ReplyTarget) -> str | None:
    words = GERMAN.get(notice.code)
    return None if words is None else words.format(**notice.arguments)


def notices(platform: FakePlatform) -> list[tuple[str | None, str]]:
    """Code and text of each notice that people see."""
    return [(one.message.notice_code, one.text) for one in platform.sent if one.message.is_notice]


# Hints, failures, commands


async def test_hints_are_worded(tmp_path: Path):
    gate = Gate()
    agent = ScriptedAgent([waits_at(gate), answers("1")], "2")
    async with open_harness(tmp_path, busy_config(BusyMode.QUEUE), agent=agent, wording=in_german) as harness:
        await harness.platform.says("ann", "one")
        await gate.reached()
        await harness.platform.says("ann", "two")
        await harness.wait_until_idle()
        assert notices(harness.platform) == [("queued", "Vorgemerkt, nach 0 anderen.")]
        gate.open()
        await harness.wait_until_idle()


async def test_the_text_of_a_refusal_stays_ours_and_tells_its_code(tmp_path: Path):
    gate = Gate()
    agent = ScriptedAgent([waits_at(gate), answers("1")])
    async with open_harness(
        tmp_path, busy_config(BusyMode.REJECT), agent=agent, wording=in_german
    ) as harness:
        await harness.platform.says("ann", "one")
        await gate.reached()
        refused = await harness.platform.says("ann", "two")
        assert isinstance(refused, Rejected)
        assert refused.text.startswith("I am busy")
        assert isinstance(refused.text, Notice)
        assert refused.text.code == "busy"
        gate.open()
        await harness.wait_until_idle()
        assert notices(harness.platform) == [("busy", "Ich bin beschäftigt.")]


async def test_a_failed_turn_and_answers_to_commands_are_worded(tmp_path: Path):
    agent = ScriptedAgent([fails(ValueError("no"))])
    async with open_harness(tmp_path, agent=agent, wording=in_german) as harness:
        for text in ("hello", "/status", "/resume Oslo", "/title Rome"):
            await harness.platform.says("ann", text)
            await harness.wait_until_idle()
        session_id = await harness.store.peek_session_id(harness.key("ann"))
        assert notices(harness.platform) == [
            ("failed", "Das ist schiefgegangen. /retry versucht es noch einmal."),
            ("status", f"Es warten 0; Gespräch {session_id}."),
            ("unknown_session", "Ein Gespräch „Oslo“ kenne ich nicht."),
            ("title_set", "This conversation is called “Rome”."),
        ]
        answer = await harness.gateway.command(harness.platform.source("ann"), "/status")
        assert isinstance(answer, Notice)
        assert answer.code == "status"
        assert answer.startswith("Now: idle")


async def test_commands_in_the_new_words_are_spelled_as_people_can_tap_them(tmp_path: Path):
    platform = FakePlatform(
        clock=(clock := FakeClock()), capabilities=replace(ABLE, hyphens_in_commands=False)
    )
    async with open_harness(
        tmp_path, platform=platform, clock=clock, agent=ScriptedAgent("hi"), wording=in_german
    ) as harness:
        await platform.says("ann", "hello")
        await platform.says("ann", "/new")
        await harness.wait_until_idle()
        assert platform.shown("ann")[-1] == "Ein neues Gespräch. /undo_reset holt das vorige zurück."


async def test_a_command_of_the_program_may_answer_with_a_notice_of_its_own(tmp_path: Path):
    async def ping(call: CommandCall) -> str:
        name = call.source.user_name or ""
        return Notice("pong", f"pong, {name}", name=name) if call.arguments else "pong"

    commands = [Command("ping", ping)]
    async with open_harness(tmp_path, agent=ScriptedAgent(), wording=in_german, commands=commands) as harness:
        await harness.platform.says("ann", "/ping me")
        await harness.platform.says("ann", "/ping")
        await harness.wait_until_idle()
        assert notices(harness.platform) == [("pong", "Pong, Ann!"), (None, "pong")]


async def test_people_in_different_places_get_different_words(tmp_path: Path):
    def by_chat(notice: Notice, target: ReplyTarget) -> str | None:
        return f"{target.platform} {target.chat_id}: {notice.code}" if target.chat_id == "ann" else None

    agent = ScriptedAgent([fails(ValueError("no"))], [fails(ValueError("no"))])
    async with open_harness(tmp_path, agent=agent, wording=by_chat) as harness:
        for person in ("ann", "bob"):
            await harness.platform.says(person, "hello")
            await harness.wait_until_idle()
        assert harness.platform.shown("ann") == ["fake ann: failed"]
        assert harness.platform.shown("bob") == [FAILED]


async def test_each_notice_is_worded_once(tmp_path: Path):
    asked: list[str] = []

    def ours(notice: Notice, _: ReplyTarget) -> str | None:
        asked.append(notice.code)
        return None

    agent = ScriptedAgent([fails(ValueError("no"))])
    async with open_harness(tmp_path, agent=agent, wording=ours) as harness:
        with harness.platform.outage():
            await harness.platform.says("ann", "hello")
            await harness.clock.advance(seconds=3)
            await harness.wait_until_idle()
        await harness.clock.advance(minutes=5)
        await harness.wait_until_idle()
        assert harness.platform.shown("ann") == [FAILED]
        assert asked == ["failed"]


# Restarts


async def test_a_notice_that_was_owed_in_our_words_is_sent_in_those_of_the_next_process(
    restartable: RestartableGateway,
):
    with restartable.platform.outage():
        async with restartable.run(killed=True, agent=ScriptedAgent([fails(ValueError("no"))])) as harness:
            await harness.platform.says("ann", "hello")
            await harness.wait_until_idle()
    assert notices(restartable.platform) == []
    async with restartable.run(agent=ScriptedAgent(), wording=in_german) as harness:
        await harness.clock.advance(minutes=5)
        await harness.wait_until_idle()
    assert notices(restartable.platform) == [
        ("failed", "Das ist schiefgegangen. /retry versucht es noch einmal.")
    ]


async def test_a_notice_that_was_owed_in_other_words_keeps_them(restartable: RestartableGateway):
    with restartable.platform.outage():
        agent = ScriptedAgent([fails(ValueError("no"))])
        async with restartable.run(killed=True, agent=agent, wording=in_german) as harness:
            await harness.platform.says("ann", "hello")
            await harness.wait_until_idle()
    async with restartable.run(agent=ScriptedAgent()) as harness:
        await harness.clock.advance(minutes=5)
        await harness.wait_until_idle()
    assert notices(restartable.platform) == [
        ("failed", "Das ist schiefgegangen. /retry versucht es noch einmal.")
    ]


async def test_what_a_start_owes_is_worded(tmp_path: Path):
    restartable = RestartableGateway(tmp_path, ONCE)
    agent = ScriptedAgent([shows("The ans"), hangs()])
    async with restartable.run(killed=True, agent=agent) as harness:
        await harness.platform.says("ann", "look")
    async with restartable.run(agent=ScriptedAgent(), wording=in_german) as harness:
        await harness.wait_until_idle()
    assert notices(restartable.platform) == [
        ("unfinished", "[Diese Antwort blieb unfertig.]"),
        ("given_up", "Ich habe aufgegeben."),
    ]


async def test_a_turn_that_is_too_old_is_told_with_its_age(restartable: RestartableGateway):
    async with restartable.run(killed=True, agent=ScriptedAgent([hangs()])) as harness:
        await harness.platform.says("ann", "look")
        await harness.wait_until_idle()
    restartable.clock.step(hours=5)
    async with restartable.run(agent=ScriptedAgent(), wording=in_german) as harness:
        await harness.wait_until_idle()
    assert notices(restartable.platform) == [("cut_off", "Vor 18000 Sekunden wurde ich unterbrochen.")]


async def test_the_end_of_what_was_shown_is_worded_and_what_was_shown_stays(tmp_path: Path):
    restartable = RestartableGateway(tmp_path, ONCE)
    agent = ScriptedAgent([shows("The ans"), hangs()])
    async with restartable.run(agent=agent, wording=in_german) as harness:
        await harness.platform.says("ann", "look")
        await harness.wait_until_idle()
        await harness.gateway.drain(AT_ONCE)
    async with restartable.run(agent=ScriptedAgent(), wording=in_german) as harness:
        await harness.clock.advance(seconds=5)
        await harness.wait_until_idle()
    assert restartable.platform.shown("ann") == [
        "The ans\n\n[Diese Antwort blieb unfertig.]",
        "Ich habe aufgegeben.",
    ]


async def test_without_a_wording_a_start_tells_everything_in_our_words(tmp_path: Path):
    restartable = RestartableGateway(tmp_path, ONCE)
    async with restartable.run(killed=True, agent=ScriptedAgent([shows("The ans"), hangs()])) as harness:
        await harness.platform.says("ann", "look")
    async with restartable.run(agent=ScriptedAgent()) as harness:
        await harness.wait_until_idle()
    assert restartable.platform.shown("ann") == [UNFINISHED, GIVEN_UP]


@pytest.mark.parametrize("worded", [False, True])
async def test_a_command_that_a_kill_cut_off_is_told_in_either_words(
    restartable: RestartableGateway, *, worded: bool
):
    async def takes_long(_: CommandCall) -> str:
        await anyio.sleep_forever()
        return "done"

    commands = [Command("backup", takes_long)]
    async with (
        restartable.run(killed=True, agent=ScriptedAgent(), commands=commands) as harness,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(harness.platform.says, "ann", "/backup")
        await harness.wait_until_idle()
        tasks.cancel_scope.cancel()
    options: dict[str, Any] = {"wording": in_german} if worded else {}
    async with restartable.run(agent=ScriptedAgent(), **options) as harness:
        await harness.wait_until_idle()
    words = (
        "Ob /backup noch ausgeführt wurde, weiß niemand."
        if worded
        else "I was restarted while I carried out /backup: nobody knows whether it was done."
    )
    assert notices(restartable.platform) == [("not_carried_out", words)]


@pytest.mark.parametrize("mark", ["(Vielleicht doppelt.)", "(Vielleicht doppelt.) " * 500])
async def test_the_mark_of_a_repeat_is_worded_where_it_has_room(tmp_path: Path, mark: str):
    def words(notice: Notice, _: ReplyTarget) -> str | None:
        return mark if notice.code == "maybe_repeat" else None

    async with open_harness(tmp_path, agent=ScriptedAgent("hi"), wording=words) as harness:
        harness.platform.fails_ambiguously()
        await harness.platform.says("ann", "hello")
        await harness.clock.advance(minutes=5)
        await harness.wait_until_idle()
        shown = mark if len(mark) < 4096 else REPEATED
        assert harness.platform.shown("ann") == ["hi", f"{shown}\nhi"]


# Words that are too long


@pytest.mark.parametrize("killed", [False, True])
async def test_long_words_take_several_messages_where_the_notice_is_owed_and_are_cut_after_a_start(
    tmp_path: Path, *, killed: bool
):
    words = " ".join(f"Wort{number}" for number in range(40))
    restartable = RestartableGateway(tmp_path, ONCE)
    restartable.platform.capabilities = replace(ABLE, max_length=100)
    agent = ScriptedAgent([hangs()] if killed else [fails(ValueError("no"))])
    options: dict[str, Any] = {"wording": lambda *_: words}
    async with restartable.run(killed=killed, agent=agent, **options) as harness:
        await harness.platform.says("ann", "look")
        await harness.wait_until_idle()
    if killed:
        async with restartable.run(agent=ScriptedAgent(), **options) as harness:
            await harness.wait_until_idle()
    shown = restartable.platform.shown("ann")
    assert all(0 < len(text) <= 100 for text in shown)
    if killed:
        assert len(shown) == 1
        assert words.startswith(shown[0])
    else:
        assert " ".join(shown) == words
        assert {code for code, _ in notices(restartable.platform)} == {"failed"}


# Wordings that fail


def raises(*_: object) -> str:
    raise RuntimeError("the catalogue is gone")


async def forgot_that_it_is_plain(*_: object) -> str:
    return "async"


WRONG: dict[str, Callable[..., object]] = {
    "raises": raises,
    "number": lambda *_: 42,
    "bytes": lambda *_: b"words",
    "blank": lambda *_: " \n",
    "coroutine": forgot_that_it_is_plain,
    "too few places": lambda notice: notice,
}


@pytest.mark.parametrize("wording", WRONG.values(), ids=WRONG)
async def test_a_wording_that_fails_is_logged_and_people_get_our_words(
    tmp_path: Path, wording: Callable[..., object], caplog: pytest.LogCaptureFixture
):
    agent = ScriptedAgent([fails(ValueError("no"))], "hi")
    async with open_harness(tmp_path, agent=agent, wording=wording) as harness:
        await harness.platform.says("ann", "hello")
        await harness.wait_until_idle()
        await harness.platform.says("ann", "and now?")
        await harness.wait_until_idle()
        assert harness.platform.shown("ann") == [FAILED, "hi"]
    logged = [one for one in caplog.records if getattr(one, "action", None) == "wording_failed"]
    assert {one.__dict__["notice_code"] for one in logged} == {"failed"}
    assert {one.levelno for one in logged} == {logging.ERROR}


async def test_an_agent_s_own_words_are_never_asked_about(tmp_path: Path):
    async with open_harness(tmp_path, agent=ScriptedAgent("hi"), wording=raises) as harness:
        await harness.platform.says("ann", "hello")
        await harness.wait_until_idle()
        assert harness.platform.shown("ann") == ["hi"]


async def test_an_adapter_sees_code_and_arguments(tmp_path: Path):
    async with open_harness(tmp_path, agent=ScriptedAgent()) as harness:
        await harness.platform.says("ann", "/title Rome")
        await harness.wait_until_idle()
        (sent,) = harness.platform.sent
        assert sent.message == OutboundMessage(
            text="This conversation is called “Rome”.",
            is_notice=True,
            notice_code="title_set",
            notice_arguments={"title": "Rome"},
        )
