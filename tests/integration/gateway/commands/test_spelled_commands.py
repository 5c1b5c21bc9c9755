"""Commands as platforms can spell them, and those that are for somebody else or for nobody."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import product
from pathlib import Path

import pytest

from gateway_sessions import Command, CommandCall
from gateway_sessions.config.gateway_sections import UnknownCommands
from gateway_sessions.core.delivery.adapter_capabilities import AdapterCapabilities
from gateway_sessions.core.notices.command_replies import GREETING
from gateway_sessions.core.queue.inbound import Accepted, Disposition, Rejected, RejectReason
from gateway_sessions.core.queue.slash_commands import spelled_with_underscores
from gateway_sessions.runtime.gateway.commands.protocol import CommandSet
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.agents import Gate, ScriptedAgent, waits_at
from gateway_sessions.testing.fake_platform import ABLE, FakePlatform
from tests.integration.gateway.gateway_harness import QUICK, open_harness, quote_message

TAPPED = replace(ABLE, hyphens_in_commands=False)
NAMED = replace(ABLE, names=frozenset({"@Our_Bot", "our_other_bot"}))
ANSWERING = replace(QUICK, gateway=replace(QUICK.gateway, unknown_commands=UnknownCommands.ANSWER))


async def nothing(call: CommandCall) -> str:
    return call.name


def test_every_command_is_known_with_hyphens_and_with_underscores_and_the_first_spelling_counts():
    mine = [Command("look-up-it", nothing), Command("a_b", nothing), Command("a-b", nothing)]
    commands = CommandSet(mine)
    assert [commands[name].name for name in ("look-up-it", "look_up_it", "a_b", "a-b")] == [
        "look-up-it",
        "look-up-it",
        "a_b",
        "a-b",
    ]
    assert [one.name for one in commands] == ["look-up-it", "a_b", "a-b"]


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("/undo-reset brings it back", "/undo_reset brings it back"),
        ("Use /undo-reset.", "Use /undo_reset."),
        ("(/undo-reset, /stop)", "(/undo_reset, /stop)"),
        ("/undo-resets, a/undo-reset and /undo-reset-now", "/undo-resets, a/undo-reset and /undo-reset-now"),
        ("well-known", "well-known"),
    ],
)
def test_only_commands_are_spelled_anew(text: str, spelled: str):
    assert spelled_with_underscores(text, ("undo-reset", "stop")) == spelled


async def test_people_are_told_what_they_can_tap_and_both_spellings_do_the_same(tmp_path: Path):
    platform = FakePlatform(clock=(clock := FakeClock()), capabilities=TAPPED)
    async with open_harness(tmp_path, platform=platform, clock=clock, agent=quote_message) as harness:
        for spelling in ("/undo_reset", "/undo-reset", "/UNDO_RESET"):
            await platform.says("ann", "hello")
            await harness.wait_until_idle()
            before = await harness.store.peek_session_id(harness.key("ann"))
            await platform.says("ann", "/new")
            await harness.wait_until_idle()
            assert "/undo_reset brings" in platform.shown("ann")[-1]
            assert await harness.store.peek_session_id(harness.key("ann")) != before
            await platform.says("ann", spelling)
            await harness.wait_until_idle()
            assert await harness.store.peek_session_id(harness.key("ann")) == before
        await platform.says("ann", "/help")
        await harness.wait_until_idle()
        assert not [one for one in platform.shown("ann") if "/undo-reset" in one]
        await platform.says("ann", "what is /undo-reset?")
        await harness.wait_until_idle()
        assert platform.shown("ann")[-1] == "you said: what is /undo-reset?"


@pytest.mark.parametrize(
    ("word", "ours"),
    [
        (word + name, ours)
        for word, (name, ours) in product(
            ("/stop", "/nonsense"),
            (("@another_bot", False), ("@OUR_bot", True), ("@our_other_bot", True), ("", True)),
        )
    ],
)
async def test_a_command_for_another_account_is_nobody_s_business(tmp_path: Path, word: str, ours: bool):
    gate = Gate()
    platform = FakePlatform(clock=(clock := FakeClock()), capabilities=NAMED)
    async with open_harness(
        tmp_path, ANSWERING, platform=platform, clock=clock, agent=ScriptedAgent([waits_at(gate)])
    ) as harness:
        await platform.says("ann", "work")
        await gate.reached()
        receipt = await platform.says("ann", word)
        if ours:
            assert isinstance(receipt, Accepted)
            assert receipt.disposition is Disposition.COMMAND
        else:
            assert isinstance(receipt, Rejected)
            assert receipt.reason is RejectReason.NOT_ADDRESSED
            assert harness.gateway.running_turn(harness.key("ann")) is not None
            assert platform.shown("ann") == []
        gate.open()
        await harness.wait_until_idle()


async def test_an_account_that_does_not_say_what_it_is_called_takes_every_command(tmp_path: Path):
    assert AdapterCapabilities().is_called("whoever")
    async with open_harness(tmp_path, agent=quote_message) as harness:
        assert isinstance(await harness.platform.says("ann", "/status@another_bot"), Accepted)


async def test_whoever_begins_is_greeted(tmp_path: Path):
    async with open_harness(tmp_path, agent=quote_message) as harness:
        await harness.platform.says("ann", "/start")
        await harness.platform.says("bob", "/start ref_42")
        await harness.wait_until_idle()
        assert harness.platform.shown("ann") == harness.platform.shown("bob") == [GREETING]
        assert not await harness.store.has_any_sessions()


@pytest.mark.parametrize("text", ["/nonsense", "/nonsense with words", "/etc/passwd", "no command"])
async def test_people_are_told_that_there_is_no_such_command_where_that_is_wanted(tmp_path: Path, text: str):
    known = text.startswith("/nonsense")
    for number, config in enumerate((QUICK, ANSWERING)):
        async with open_harness(tmp_path / str(number), config, agent=quote_message) as harness:
            await harness.platform.says("ann", text)
            await harness.wait_until_idle()
            (shown,) = harness.platform.shown("ann")
            answered = known and config is ANSWERING
            assert (shown == "There is no command “/nonsense”. /help lists them.") is answered
            assert (shown == f"you said: {text}") is not answered
            await harness.clock.advance(timedelta(seconds=1))
