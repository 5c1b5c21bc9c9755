"""What a message does to a turn that runs: each busy mode, on a whole gateway."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway_sessions.core.queue.busy_modes import BusyRules, DropPolicy
from gateway_sessions.core.queue.inbound import (
    Accepted,
    Attachment,
    AttachmentKind,
    Disposition,
    InboundMessage,
    Receipt,
    Rejected,
    RejectReason,
)
from gateway_sessions.core.sessions.busy_mode import BusyMode
from gateway_sessions.testing.agents import (
    Gate,
    ScriptedAgent,
    SteerableScriptedAgent,
    answers,
    calls_tool,
    hangs,
    streams,
    waits_at,
)
from tests.integration.gateway.gateway_harness import busy_config, open_harness

PHOTO = Attachment(kind=AttachmentKind.PHOTO, url="file:a.jpg", media_type="image/jpeg")


def what(receipt: Receipt) -> Disposition:
    assert isinstance(receipt, Accepted)
    return receipt.disposition


async def test_queue_gives_each_message_a_turn_of_its_own_in_order(tmp_path: Path):
    gate = Gate()
    agent = ScriptedAgent([waits_at(gate), answers("1")], "2", "3")
    async with open_harness(tmp_path, agent=agent) as harness:
        await harness.platform.says("ann", "one")
        await gate.reached()
        assert what(await harness.platform.says("ann", "two")) is Disposition.QUEUED
        await harness.clock.advance(seconds=5)
        assert what(await harness.platform.says("ann", "three")) is Disposition.QUEUED
        gate.open()
        await harness.wait_until_idle()
        assert [turn.text for turn in agent.turns] == ["one", "two", "three"]
        replies = [one.text for one in harness.platform.sent if not one.message.is_notice]
        assert replies == ["1", "2", "3"]


async def test_a_burst_of_one_person_is_one_turn_and_another_person_keeps_their_own(tmp_path: Path):
    gate = Gate()
    agent = ScriptedAgent([waits_at(gate), answers("1")])
    config = busy_config(BusyMode.QUEUE)
    async with open_harness(tmp_path, config, agent=agent) as harness:
        await harness.platform.says("ann", "one")
        await gate.reached()
        for text in ("two", "three", "four"):
            await harness.platform.says("ann", text)
            await harness.clock.advance(seconds=0.2)
        gate.open()
        await harness.clock.advance(seconds=2)
        await harness.wait_until_idle()
        assert [turn.text for turn in agent.turns] == ["one", "two\nthree\nfour"]
        assert await harness.outcomes("ann") == {"turned": 4}
        users = [content for role, content in await harness.transcript("ann") if role == "user"]
        assert users == ["one", "two\nthree\nfour"]


async def test_collect_makes_one_turn_of_all_that_is_said_meanwhile(tmp_path: Path):
    gate = Gate()
    agent = ScriptedAgent([waits_at(gate), answers("1")])
    async with open_harness(tmp_path, busy_config(BusyMode.COLLECT), agent=agent) as harness:
        await harness.platform.says("ann", "one")
        await harness.clock.advance(seconds=1)
        await gate.reached()
        for text in ("two", "three"):
            await harness.platform.says("ann", text)
            await harness.clock.advance(seconds=60)
        gate.open()
        await harness.wait_until_idle()
        assert [turn.text for turn in agent.turns] == ["one", "two\nthree"]


async def test_an_album_and_its_caption_are_one_turn_even_on_an_idle_lane(tmp_path: Path):
    agent = ScriptedAgent("nice")
    async with open_harness(tmp_path, agent=agent) as harness:
        await harness.platform.says("ann", "our garden", attachments=[PHOTO])
        await harness.platform.says("ann", attachments=[PHOTO])
        await harness.platform.says("ann", attachments=[PHOTO])
        await harness.clock.advance(seconds=2)
        await harness.wait_until_idle()
        (turn,) = agent.turns
        assert turn.text == "our garden"
        assert sum(len(message.attachments) for message in turn.messages) == 3


async def test_interrupt_ends_the_turn_and_keeps_what_it_did(tmp_path: Path):
    agent = ScriptedAgent([calls_tool("search", "found"), hangs()], "second")
    async with open_harness(tmp_path, busy_config(BusyMode.INTERRUPT), agent=agent) as harness:
        await harness.platform.says("ann", "one")
        await harness.wait_until_idle()
        assert what(await harness.platform.says("ann", "stop that")) is Disposition.INTERRUPTS
        await harness.clock.advance(seconds=6)
        await harness.wait_until_idle()
        assert [turn.text for turn in agent.turns] == ["one", "stop that"]
        assert await harness.outcomes("ann") == {"interrupted": 1, "turned": 1}
        assert [role for role, _ in await harness.transcript("ann")] == [
            "user", "assistant", "tool", "assistant", "user", "assistant",
        ]  # fmt: skip


async def test_what_was_shown_of_an_interrupted_reply_stays_in_the_transcript(tmp_path: Path):
    agent = ScriptedAgent([streams("half a"), hangs()], "second")

    async def half(turn):  # type: ignore[no-untyped-def]
        await turn.show("half an answer")
        await Gate().passage()

    agent = ScriptedAgent([half], "second")
    async with open_harness(tmp_path, busy_config(BusyMode.INTERRUPT), agent=agent) as harness:
        await harness.platform.says("ann", "one")
        await harness.wait_until_idle()
        await harness.platform.says("ann", "two")
        await harness.clock.advance(seconds=6)
        await harness.wait_until_idle()
        assert ("assistant", "half an answer") in await harness.transcript("ann")


async def test_an_interruption_waits_while_other_work_runs(tmp_path: Path):
    gate = Gate()
    agent = ScriptedAgent([waits_at(gate, sub_work=True), answers("1")], "2")
    async with open_harness(tmp_path, busy_config(BusyMode.INTERRUPT), agent=agent) as harness:
        await harness.platform.says("ann", "one")
        await gate.reached()
        receipt = await harness.platform.says("ann", "two")
        assert what(receipt) is Disposition.QUEUED
        assert isinstance(receipt, Accepted)
        assert receipt.demoted is not None
        gate.open()
        await harness.clock.advance(seconds=1)
        await harness.wait_until_idle()
        assert await harness.outcomes("ann") == {"turned": 2}


async def test_rollback_takes_the_turn_back_with_all_it_wrote(tmp_path: Path):
    agent = ScriptedAgent([calls_tool("search", "found"), hangs()], "second")
    async with open_harness(tmp_path, busy_config(BusyMode.ROLLBACK), agent=agent) as harness:
        await harness.platform.says("ann", "one")
        await harness.wait_until_idle()
        assert what(await harness.platform.says("ann", "instead")) is Disposition.ROLLS_BACK
        await harness.clock.advance(seconds=6)
        await harness.wait_until_idle()
        assert await harness.transcript("ann") == [("user", "instead"), ("assistant", "second")]
        assert await harness.outcomes("ann") == {"rolled_back": 1, "turned": 1}


async def test_steer_gives_the_message_to_the_running_turn(tmp_path: Path):
    gate = Gate()
    agent = SteerableScriptedAgent([waits_at(gate), answers("1")])
    async with open_harness(tmp_path, busy_config(BusyMode.STEER), agent=agent) as harness:
        await harness.platform.says("ann", "one")
        await gate.reached()
        assert what(await harness.platform.says("ann", "also that")) is Disposition.STEERS
        gate.open()
        await harness.wait_until_idle()
        assert [message.text for message in agent.steered] == ["also that"]
        assert len(agent.turns) == 1
        assert await harness.outcomes("ann") == {"turned": 2}
        assert await harness.transcript("ann") == [("user", "one\n\nalso that"), ("assistant", "1")]


async def test_what_the_agent_does_not_take_gets_its_own_turn(tmp_path: Path):
    gate = Gate()
    agent = SteerableScriptedAgent([waits_at(gate), answers("1")], "2", takes_it=False)
    async with open_harness(tmp_path, busy_config(BusyMode.STEER), agent=agent) as harness:
        await harness.platform.says("ann", "one")
        await gate.reached()
        await harness.platform.says("ann", "also that")
        gate.open()
        await harness.wait_until_idle()
        assert [turn.text for turn in agent.turns] == ["one", "also that"]


async def test_reject_refuses_while_a_turn_runs_and_says_so_once(tmp_path: Path):
    gate = Gate()
    agent = ScriptedAgent([waits_at(gate), answers("1")])
    async with open_harness(tmp_path, busy_config(BusyMode.REJECT), agent=agent) as harness:
        await harness.platform.says("ann", "one")
        await gate.reached()
        refused = [await harness.platform.says("ann", f"no {number}") for number in range(3)]
        for one in refused:
            assert isinstance(one, Rejected)
            assert one.reason is RejectReason.BUSY
            assert one.retry_after
        gate.open()
        await harness.wait_until_idle()
        assert [one.text for one in harness.platform.sent if one.message.is_notice] == [refused[0].text]  # type: ignore[union-attr]
        assert await harness.outcomes("ann") == {"turned": 1}


@pytest.mark.parametrize("mode", BusyMode)
async def test_a_message_that_is_to_wait_in_line_waits_in_any_mode(tmp_path: Path, mode: BusyMode):
    gate = Gate()
    agent = ScriptedAgent([waits_at(gate), answers("1")], "2")
    async with open_harness(tmp_path, busy_config(mode, max_queued=1), agent=agent) as harness:
        await harness.platform.says("ann", "one")
        await harness.clock.advance(seconds=5)
        await gate.reached()
        assert what(await harness.platform.says("ann", "/queue and a hotel")) is Disposition.QUEUED
        refused = await harness.platform.says("ann", "/queue and a flight")
        assert isinstance(refused, Rejected)
        assert refused.reason is RejectReason.QUEUE_FULL
        gate.open()
        await harness.wait_until_idle()
        assert [turn.text for turn in agent.turns] == ["one", "and a hotel"]


@pytest.mark.parametrize("drop", DropPolicy)
async def test_a_full_queue_never_drops_a_message_silently(tmp_path: Path, drop: DropPolicy):
    gate = Gate()
    agent = ScriptedAgent([waits_at(gate), answers("1")])
    config = busy_config(BusyMode.QUEUE, max_queued=2, drop=drop)
    async with open_harness(tmp_path, config, agent=agent) as harness:
        await harness.platform.says("ann", "one")
        await gate.reached()
        receipts: list[Receipt] = []
        for number in range(5):
            receipts.append(await harness.platform.says("ann", f"more {number}"))
            await harness.clock.advance(seconds=2)
        gate.open()
        await harness.wait_until_idle()
        outcomes = await harness.outcomes("ann")
        if drop is DropPolicy.REJECT_NEW:
            assert [isinstance(one, Rejected) for one in receipts] == [False, False, True, True, True]
            assert outcomes == {"turned": 3}
        else:
            assert [one.dropped for one in receipts if isinstance(one, Accepted)] == [
                (),
                (),
                (2,),
                (3,),
                (4,),
            ]
            assert outcomes == {"turned": 3, "dropped": 3}
        assert len(agent.turns) == 3


async def test_a_person_is_told_what_becomes_of_a_message_but_not_again_and_again(tmp_path: Path):
    gate = Gate()
    async with open_harness(tmp_path, agent=ScriptedAgent([waits_at(gate), answers("1")])) as harness:
        await harness.platform.says("ann", "one")
        await gate.reached()
        for number in range(4):
            await harness.platform.says("ann", f"more {number}")
            await harness.clock.advance(seconds=3)
        await harness.wait_until_idle()
        assert [one.text for one in harness.platform.sent] == ["Queued: I will answer this when I am done."]
        gate.open()
        await harness.wait_until_idle()


@pytest.mark.parametrize("mode", [BusyMode.INTERRUPT, BusyMode.ROLLBACK])
async def test_whoever_ends_a_turn_is_told_truly_what_comes_before_them(tmp_path: Path, mode: BusyMode):
    agent = ScriptedAgent([hangs()], "a hotel", "a flight", "cancelled")
    async with open_harness(tmp_path, busy_config(mode), agent=agent) as harness:
        await harness.platform.says("ann", "one")
        await harness.wait_until_idle()
        await harness.platform.says("ann", "/queue book a hotel")
        await harness.platform.says("ann", "/queue book a flight")
        await harness.platform.says("ann", "cancel my card")
        await harness.clock.advance(seconds=10)
        told = [one.text for one in harness.platform.sent if one.message.is_notice]
        assert told[-1].endswith("what I was doing. I will answer this after 2 others.")
        assert [turn.text for turn in agent.turns] == [
            "one",
            "book a hotel",
            "book a flight",
            "cancel my card",
        ]


async def test_a_mode_of_the_session_counts_at_once_and_for_it_alone(tmp_path: Path):
    ann, bob = Gate(), Gate()
    agent = ScriptedAgent([waits_at(ann), answers("1")], [waits_at(bob), answers("1")])
    async with open_harness(tmp_path, busy_config(BusyMode.QUEUE), agent=agent) as harness:
        await harness.platform.says("ann", "one")
        await ann.reached()
        await harness.platform.says("bob", "one")
        await bob.reached()
        key = harness.key("ann")
        await harness.store.set_busy_mode(key, BusyMode.REJECT)
        refused = await harness.platform.says("ann", "two")
        assert isinstance(refused, Rejected)
        assert refused.reason is RejectReason.BUSY
        assert what(await harness.platform.says("bob", "two")) is Disposition.QUEUED
        await harness.store.set_busy_mode(key, BusyMode.INTERRUPT)
        assert what(await harness.platform.says("ann", "three")) is Disposition.INTERRUPTS
        await harness.store.set_busy_mode(key, None)
        await harness.clock.advance(seconds=5)
        bob.open()
        await harness.wait_until_idle()
        assert await harness.outcomes("ann") == {"interrupted": 1, "turned": 1}


async def test_a_mode_of_the_session_outlives_a_restart_and_ends_with_the_session(tmp_path: Path):
    async with open_harness(tmp_path, agent=ScriptedAgent("1")) as harness:
        await harness.platform.says("ann", "one")
        await harness.wait_until_idle()
        await harness.store.set_busy_mode(harness.key("ann"), BusyMode.REJECT)
        platform, clock = harness.platform, harness.clock
    gates = [Gate(), Gate()]
    agent = ScriptedAgent(*([waits_at(gate), answers("2")] for gate in gates))
    async with open_harness(tmp_path, agent=agent, platform=platform, clock=clock) as harness:
        await harness.platform.says("ann", "two")
        await gates[0].reached()
        assert isinstance(await harness.platform.says("ann", "refused"), Rejected)
        gates[0].open()
        await harness.wait_until_idle()
        await harness.platform.says("ann", "/new")
        await harness.platform.says("ann", "three")
        await gates[1].reached()
        assert what(await harness.platform.says("ann", "four")) is Disposition.QUEUED
        gates[1].open()
        await harness.wait_until_idle()


async def test_rules_that_come_with_a_message_count_more_than_the_mode_of_its_session(tmp_path: Path):
    gate = Gate()
    async with open_harness(tmp_path, agent=ScriptedAgent([waits_at(gate), answers("1")])) as harness:
        await harness.platform.says("ann", "one")
        await gate.reached()
        await harness.store.set_busy_mode(harness.key("ann"), BusyMode.REJECT)
        message = InboundMessage(source=harness.platform.source("ann"), text="two")
        assert isinstance(await harness.store.enqueue(message), Rejected)
        assert what(await harness.store.enqueue(message, rules=BusyRules())) is Disposition.QUEUED
        gate.open()
        await harness.clock.advance(seconds=5)
        await harness.wait_until_idle()
