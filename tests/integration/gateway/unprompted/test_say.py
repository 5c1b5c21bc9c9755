"""The gateway speaks first: durably, once for each key, and remembered by the session there."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from gateway_sessions import Attachment, AttachmentKind, InvalidInputError, Reply, SessionSource, TurnContext
from gateway_sessions.adapters import OutboundMessage, ReplyTarget
from gateway_sessions.errors import UnknownTargetError
from gateway_sessions.storage.transactions.queue import outbox, schedules
from gateway_sessions.testing.fake_platform import FakePlatform
from tests.integration.gateway.gateway_harness import GatewayHarness, echo, open_harness
from tests.integration.gateway.restartable_gateway import RestartableGateway
from tests.integration.gateway.unprompted.homes import with_home

LATER = timedelta(hours=3)


async def owed(harness: GatewayHarness) -> list[str]:
    return [one.message.text for one in await harness.store.db.read(partial(outbox.owed_replies, 100))]


async def test_what_is_said_is_sent_and_the_session_there_remembers_it(tmp_path: Path):
    async with open_harness(tmp_path, agent=echo) as harness:
        await harness.platform.says("ann", "hello")
        await harness.wait_until_idle()
        receipt = await harness.gateway.say(harness.platform.source("ann"), "Your train leaves soon.")
        await harness.wait_until_idle()
        assert harness.platform.shown("ann") == ["hello", "Your train leaves soon."]
        assert await harness.transcript("ann") == [
            ("user", "hello"),
            ("assistant", "hello\n\nYour train leaves soon."),
        ]
        assert receipt.session_key == harness.key("ann")
        assert receipt.session_id == await harness.store.peek_session_id(harness.key("ann"))
        assert (receipt.duplicate, receipt.when) == (False, None)


async def test_an_agent_that_is_kept_warm_hears_of_it_by_the_transcript(tmp_path: Path):
    heard: list[list[object]] = []

    async def remembers(turn: TurnContext) -> str:
        heard.append([row["content"] for row in await turn.history()])
        return "noted"

    def make(entry: object, chats: list[dict[str, Any]]) -> Any:
        made.append(len(chats))
        return remembers

    made: list[int] = []
    async with open_harness(tmp_path, agent_factory=make) as harness:
        await harness.platform.says("ann", "one")
        await harness.wait_until_idle()
        await harness.gateway.say(harness.platform.source("ann"), "by the way")
        await harness.platform.says("ann", "two")
        await harness.wait_until_idle()
        assert heard[-1] == ["one", "noted\n\nby the way", "two"]
        assert len(made) == 2, "the warm agent did not know, so it was made anew"


async def test_without_a_session_there_it_is_said_all_the_same(tmp_path: Path):
    async with open_harness(tmp_path, agent=echo) as harness:
        receipt = await harness.gateway.say("fake:stranger", "Good evening")
        await harness.wait_until_idle()
        assert harness.platform.shown("stranger") == ["Good evening"]
        assert receipt.session_id is None


@pytest.mark.parametrize("name", ["fake", "FAKE ", "fake:lobby"])
async def test_a_platform_means_its_home_channel(tmp_path: Path, name: str):
    async with open_harness(tmp_path, with_home("lobby"), agent=echo) as harness:
        await harness.gateway.say(name, "The build is red.")
        await harness.wait_until_idle()
        assert harness.platform.shown("lobby") == ["The build is red."]


async def test_a_chat_and_a_thread_are_named_by_their_ids(tmp_path: Path):
    async with open_harness(tmp_path, agent=echo) as harness:
        await harness.gateway.say("fake:room%3A1:7", "hello")
        await harness.wait_until_idle()
        (sent,) = harness.platform.sent
        assert (sent.target.chat_id, sent.target.thread_id) == ("room:1", "7")


async def test_origin_is_where_the_running_turn_was_asked(tmp_path: Path):
    async def reports(turn: TurnContext) -> str:
        await harness.gateway.say("origin", "I am looking into it.")
        return "done"

    async with open_harness(tmp_path, agent=reports) as harness:
        await harness.platform.says("ann", "please", chat="room")
        await harness.wait_until_idle()
        assert harness.platform.shown("room") == ["I am looking into it.", "done"]
        assert [one.target.reply_to for one in harness.platform.sent] == [None, "m1"]


async def test_what_is_said_while_tools_run_leaves_their_results_in_their_place(tmp_path: Path):
    async def calls_a_tool(turn: TurnContext) -> str:
        if turn.text == "again":
            histories.append(await turn.history())
            return "ok"
        call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        await turn.append({"role": "assistant", "content": "", "tool_calls": [call]})
        await harness.gateway.say("origin", "Still looking.")
        await turn.append({"role": "tool", "tool_call_id": "c1", "content": "found"})
        return "There it is."

    histories: list[list[dict[str, Any]]] = []
    async with open_harness(tmp_path, agent=calls_a_tool) as harness:
        await harness.platform.says("ann", "where is it?")
        await harness.wait_until_idle()
        await harness.platform.says("ann", "again")
        await harness.wait_until_idle()
        assert [(row["role"], row["content"]) for row in histories[0]] == [
            ("user", "where is it?"),
            ("assistant", None),
            ("tool", "found"),
            ("assistant", "Still looking.\n\nThere it is."),
            ("user", "again"),
        ]


async def test_the_target_of_a_reply_is_used_as_it_is(tmp_path: Path):
    async with open_harness(tmp_path, agent=echo) as harness:
        target = ReplyTarget(platform="fake", chat_id="room", thread_id="2", reply_to="m1", metadata={"a": 1})
        await harness.gateway.say(target, Reply("look", attachments=(picture,)))
        await harness.wait_until_idle()
        (sent,) = harness.platform.sent
        assert (sent.target.thread_id, sent.target.reply_to, sent.target.metadata) == ("2", None, {"a": 1})
        assert sent.message.attachments == (picture,)


picture = Attachment(kind=AttachmentKind.PHOTO, url="https://example.org/cat.png")


class TestUnknownTargets:
    async def test_a_platform_without_an_adapter_is_refused_with_what_can_be_addressed(self, tmp_path: Path):
        async with open_harness(tmp_path, with_home(), agent=echo) as harness:
            with pytest.raises(
                UnknownTargetError, match="no adapter of this gateway serves pager"
            ) as refused:
                await harness.gateway.say("pager:1", "hello")
            assert refused.value.known == ("fake", "fake:<chat_id>")
            assert refused.value.target == "pager:1"

    async def test_a_platform_without_a_home_channel_cannot_be_addressed_by_its_name(self, tmp_path: Path):
        async with open_harness(tmp_path, agent=echo) as harness:
            with pytest.raises(UnknownTargetError, match="fake has no home channel"):
                await harness.gateway.say("fake", "hello")

    async def test_origin_needs_a_turn(self, tmp_path: Path):
        async with open_harness(tmp_path, agent=echo) as harness:
            with pytest.raises(UnknownTargetError, match="no turn runs here"):
                await harness.gateway.say("origin", "hello")

    async def test_a_source_of_another_platform_is_refused(self, tmp_path: Path):
        async with open_harness(tmp_path, agent=echo) as harness:
            with pytest.raises(UnknownTargetError, match="serves pager"):
                await harness.gateway.say(SessionSource(platform="pager", chat_id="1"), "hello")

    async def test_a_name_of_several_accounts_is_not_guessed(self, tmp_path: Path):
        sales, support = FakePlatform("fake", "sales"), FakePlatform("fake", "support")
        async with open_harness(tmp_path, agent=echo, platform=sales, others=[support]) as harness:
            with pytest.raises(UnknownTargetError, match=r"several accounts \(sales, support\)"):
                await harness.gateway.say("fake:1", "hello")
            await harness.gateway.say(ReplyTarget(platform="fake", account="support", chat_id="1"), "hello")
            await harness.wait_until_idle()
            assert (sales.shown(), support.shown()) == ([], ["hello"])

    async def test_the_only_account_need_not_be_named(self, tmp_path: Path):
        async with open_harness(tmp_path, agent=echo, platform=FakePlatform("fake", "sales")) as harness:
            await harness.gateway.say("fake:1", "hello")
            await harness.wait_until_idle()
            assert harness.platform.shown() == ["hello"]

    async def test_a_gateway_of_some_lanes_speaks_on_no_other(self, tmp_path: Path):
        async with open_harness(tmp_path, agent=echo, lanes=["agent:main:fake:dm:ann"]) as harness:
            await harness.gateway.say("fake:ann", "hello")
            with pytest.raises(UnknownTargetError, match="does not answer on that lane"):
                await harness.gateway.say("fake:bob", "hello")

    @pytest.mark.parametrize("wrong", [7, None, ["fake"], ""])
    async def test_what_is_no_target_is_refused(self, tmp_path: Path, wrong: Any):
        async with open_harness(tmp_path, agent=echo) as harness:
            with pytest.raises(InvalidInputError):
                await harness.gateway.say(wrong, "hello")

    @pytest.mark.parametrize("wrong", ["", "  ", 7, Reply(), OutboundMessage()])
    async def test_what_says_nothing_is_refused(self, tmp_path: Path, wrong: Any):
        async with open_harness(tmp_path, agent=echo) as harness:
            with pytest.raises(InvalidInputError):
                await harness.gateway.say("fake:1", wrong)


class TestKeys:
    async def test_what_was_said_under_a_key_is_not_said_again(self, restartable: RestartableGateway):
        async with restartable.run(killed=True, agent=echo) as harness:
            first = await harness.gateway.say("fake:ann", "Your order was sent.", idempotency_key="order 7")
            second = await harness.gateway.say("fake:ann", "Your order was sent.", idempotency_key="order 7")
            await harness.wait_until_idle()
            assert (first.duplicate, second.duplicate) == (False, True)
            assert first.id == second.id
        async with restartable.run(agent=echo) as harness:
            third = await harness.gateway.say("fake:ann", "Your order was sent.", idempotency_key="order 7")
            await harness.wait_until_idle()
            assert third.duplicate
            assert harness.platform.shown("ann") == ["Your order was sent."]

    async def test_without_a_key_it_is_said_as_often_as_asked(self, tmp_path: Path):
        async with open_harness(tmp_path, agent=echo) as harness:
            first, second = [await harness.gateway.say("fake:ann", "again") for _ in range(2)]
            await harness.wait_until_idle()
            assert harness.platform.shown("ann") == ["again", "again"]
            assert first.id != second.id

    async def test_a_key_is_forgotten_with_the_window_for_duplicates(self, tmp_path: Path):
        async with open_harness(tmp_path, agent=echo) as harness:
            await harness.gateway.say("fake:ann", "one", idempotency_key="k")
            await harness.clock.advance(harness.gateway.config.gateway.dedup_window + timedelta(hours=2))
            await harness.gateway.say("fake:ann", "two", idempotency_key="k")
            await harness.wait_until_idle()
            assert harness.platform.shown("ann") == ["one", "two"]

    @pytest.mark.parametrize("key", ["", "x" * 201, "a\nb"])
    async def test_a_key_that_cannot_be_stored_is_refused(self, tmp_path: Path, key: str):
        async with open_harness(tmp_path, agent=echo) as harness:
            with pytest.raises(InvalidInputError, match="idempotency_key"):
                await harness.gateway.say("fake:ann", "hello", idempotency_key=key)


class TestLater:
    async def test_it_waits_for_its_time(self, tmp_path: Path):
        async with open_harness(tmp_path, agent=echo) as harness:
            await harness.platform.says("ann", "hello")
            when = harness.clock.now() + LATER
            receipt = await harness.gateway.say(harness.platform.source("ann"), "Now.", when=when)
            await harness.clock.advance(LATER - timedelta(seconds=1))
            assert receipt.when == when
            assert harness.platform.shown("ann") == ["hello"]
            await harness.clock.advance(timedelta(seconds=1))
            assert harness.platform.shown("ann") == ["hello", "Now."]
            assert (await harness.transcript("ann"))[-1] == ("assistant", "hello\n\nNow.")

    async def test_what_waits_delays_no_reply_of_its_lane(self, tmp_path: Path):
        async with open_harness(tmp_path, agent=echo) as harness:
            source = harness.platform.source("ann")
            await harness.gateway.say(source, "Later.", when=harness.clock.now() + LATER)
            await harness.platform.says("ann", "hello")
            await harness.wait_until_idle()
            assert harness.platform.shown("ann") == ["hello"]

    async def test_it_survives_a_kill_and_is_said_when_a_gateway_runs_again(
        self, restartable: RestartableGateway
    ):
        async with restartable.run(killed=True, agent=echo) as harness:
            await harness.gateway.say("fake:ann", "Soon.", when=restartable.clock.now() + LATER)
        await restartable.clock.advance(3 * LATER)
        async with restartable.run(agent=echo) as harness:
            await harness.wait_until_idle()
            assert harness.platform.shown("ann") == ["Soon."]

    async def test_the_past_is_at_once(self, tmp_path: Path):
        async with open_harness(tmp_path, agent=echo) as harness:
            await harness.gateway.say("fake:ann", "Late.", when=harness.clock.now() - LATER)
            await harness.wait_until_idle()
            assert harness.platform.shown("ann") == ["Late."]

    async def test_a_clock_that_steps_back_lets_it_wait_for_its_time(self, tmp_path: Path):
        async with open_harness(tmp_path, agent=echo) as harness:
            await harness.gateway.say("fake:ann", "Now.", when=harness.clock.now() + LATER)
            harness.clock.step(-timedelta(hours=1))
            await harness.clock.advance(LATER)
            assert harness.platform.shown("ann") == []
            await harness.clock.advance(timedelta(hours=1))
            assert harness.platform.shown("ann") == ["Now."]

    async def test_a_naive_time_is_one_of_the_configured_zone(self, tmp_path: Path):
        config = with_home()
        async with open_harness(tmp_path, config, agent=echo) as harness:
            noon = datetime(2030, 6, 1, 12, 0)  # noqa: DTZ001 -- what is tested
            receipt = await harness.gateway.say("fake", "Noon.", when=noon)
            assert receipt.when == noon.replace(tzinfo=ZoneInfo("UTC"))

    async def test_it_can_be_cancelled_while_it_waits(self, tmp_path: Path):
        async with open_harness(tmp_path, agent=echo) as harness:
            receipt = await harness.gateway.say("fake:ann", "No.", when=harness.clock.now() + LATER)
            assert await harness.gateway.cancel_said(receipt.id)
            assert not await harness.gateway.cancel_said(receipt.id)
            await harness.clock.advance(2 * LATER)
            assert harness.platform.shown("ann") == []

    async def test_what_was_said_cannot_be_cancelled(self, tmp_path: Path):
        async with open_harness(tmp_path, agent=echo) as harness:
            now = await harness.gateway.say("fake:ann", "one")
            later = await harness.gateway.say("fake:ann", "two", when=harness.clock.now() + LATER)
            await harness.clock.advance(LATER)
            assert [await harness.gateway.cancel_said(one.id) for one in (now, later)] == [False, False]

    async def test_a_key_that_waits_is_known(self, tmp_path: Path):
        async with open_harness(tmp_path, agent=echo) as harness:
            when = harness.clock.now() + LATER
            for number in range(2):
                receipt = await harness.gateway.say("fake:ann", "x", when=when, idempotency_key="k")
                assert receipt.duplicate == bool(number)
                assert receipt.when == when
            at_once = await harness.gateway.say("fake:ann", "x", idempotency_key="k")
            assert at_once.duplicate
            await harness.clock.advance(LATER)
            again = await harness.gateway.say("fake:ann", "x", when=when, idempotency_key="k")
            assert again.duplicate
            await harness.wait_until_idle()
            assert harness.platform.shown("ann") == ["x"]

    async def test_an_account_that_nobody_serves_keeps_it_until_somebody_does(self, tmp_path: Path):
        other = FakePlatform("pager")
        async with open_harness(tmp_path, agent=echo, others=[other]) as harness:
            clock = harness.clock
            await harness.gateway.say("pager:1", "Wake up.", when=clock.now() + LATER)
        async with open_harness(tmp_path, agent=echo, clock=clock) as harness:
            await clock.advance(2 * LATER)
            (waiting,) = (
                await harness.store.db.read(
                    partial(schedules.due_schedules, schedules.ScheduleKind.SAY, clock.now(), 10)
                )
            ).schedules
            assert waiting.text == "Wake up."
            assert await owed(harness) == []
        async with open_harness(tmp_path, agent=echo, clock=clock, others=[other]) as harness:
            await harness.wait_until_idle()
            assert other.shown() == ["Wake up."]


async def test_what_is_said_during_an_outage_is_sent_when_the_platform_is_back(tmp_path: Path):
    async with open_harness(tmp_path, agent=echo) as harness:
        with harness.platform.outage():
            await harness.gateway.say("fake:ann", "Are you there?")
            await harness.clock.advance(timedelta(minutes=1))
        await harness.clock.advance(timedelta(minutes=10))
        assert harness.platform.shown("ann") == ["Are you there?"]


async def test_a_long_text_is_said_in_parts(tmp_path: Path):
    async with open_harness(tmp_path, agent=echo) as harness:
        await harness.gateway.say("fake:ann", "word " * 1500)
        await harness.gateway.say("fake:ann", "word " * 1500, when=harness.clock.now() + LATER)
        await harness.clock.advance(LATER)
        assert len(harness.platform.shown("ann")) == 4
