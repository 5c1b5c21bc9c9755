"""Replies on their way out: in order, again when that makes sense, and none silently lost."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest

from gateway_sessions.adapters import AdapterMemory, Button, ProcessMemory, ReplyTarget, Submit, TextFormat
from gateway_sessions.core.delivery.adapter_capabilities import AdapterCapabilities
from gateway_sessions.core.delivery.message_parts import REPEATED
from gateway_sessions.core.delivery.outbound_messages import Reply
from gateway_sessions.core.markdown.dialects import TELEGRAM
from gateway_sessions.core.queue.inbound import Attachment, AttachmentKind
from gateway_sessions.core.sessions.busy_mode import BusyMode
from gateway_sessions.errors import DeliveryRefusedError, InvalidInputError
from gateway_sessions.ports import Transaction
from gateway_sessions.runtime.agents.turn_context import TurnContext
from gateway_sessions.runtime.gateway.gateway import Gateway
from gateway_sessions.storage.database import SessionDB
from gateway_sessions.storage.transactions.queue import outbox
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.agents import Gate
from gateway_sessions.testing.fake_platform import FakePlatform
from tests.integration.gateway.gateway_harness import (
    GatewayHarness,
    busy_config,
    echo,
    open_harness,
    wait_until,
)
from tests.raw_sql import execute_sql

T = TypeVar("T")


async def owed(harness: GatewayHarness) -> int:
    return sum((await harness.store.db.read(outbox.count_owed_by_account)).values())


async def test_an_outage_delays_replies_and_keeps_their_order(tmp_path: Path):
    async with open_harness(tmp_path, agent=echo) as harness:
        with harness.platform.outage():
            for text in ("one", "two", "three"):
                await harness.platform.says("ann", text)
                await harness.clock.advance(seconds=2)
            await harness.wait_until_idle()
            assert harness.platform.shown("ann") == []
            assert await owed(harness) == 3
        await harness.clock.advance(minutes=6)
        await harness.wait_until_idle()
        assert harness.platform.shown("ann") == ["one", "two", "three"]
        assert await owed(harness) == 0


async def test_replies_to_turns_that_follow_each_other_need_neither_a_look_nor_a_mark_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The note that one was sent goes with the commit that owes the next one, or before it."""
    asked: list[str] = []
    gate = Gate()

    async def agent(turn: TurnContext) -> str:
        await gate.passage()
        return turn.text

    texts = [f"{number}" for number in range(5)]
    config = busy_config(BusyMode.QUEUE, debounce=timedelta(0), acknowledge=False)
    async with open_harness(tmp_path, config, agent=agent) as harness:
        for text in texts:
            await harness.platform.says("ann", text)
        for name in ("due_replies", "mark_sending"):
            real = getattr(outbox, name)

            def counted(*given: Any, real: Any = real, name: str = name, **more: Any) -> Any:
                asked.append(name)
                return real(*given, **more)

            monkeypatch.setattr(outbox, name, counted)
        gate.open()
        await harness.wait_until_idle()
        assert harness.platform.shown("ann") == texts
        assert await owed(harness) == 0
    assert asked == []


async def test_a_lane_whose_replies_fail_holds_no_other_lane_up(tmp_path: Path):
    async with open_harness(tmp_path, agent=echo) as harness:
        harness.platform.rate_limit(60)
        await harness.platform.says("ann", "one")
        await harness.wait_until_idle()
        await harness.platform.says("bob", "two")
        await harness.wait_until_idle()
        assert harness.platform.shown() == ["two"]
        await harness.clock.advance(seconds=61)
        await harness.wait_until_idle()
        assert harness.platform.shown("ann") == ["one"]


async def test_a_reply_that_may_have_been_sent_is_sent_again_with_a_mark(tmp_path: Path):
    async with open_harness(tmp_path, agent=echo) as harness:
        harness.platform.fails_ambiguously(shown=True)
        await harness.platform.says("ann", "one")
        await harness.wait_until_idle()
        await harness.clock.advance(minutes=1)
        await harness.wait_until_idle()
        first, second = harness.platform.shown("ann")
        assert first == "one"
        assert second.endswith("one")
        assert second != "one"


async def test_a_platform_that_knows_repeats_shows_the_reply_once(tmp_path: Path):
    clock = FakeClock()
    able = AdapterCapabilities(idempotent_for=timedelta.max)
    platform = FakePlatform(clock=clock, capabilities=able)
    async with open_harness(tmp_path, platform=platform, clock=clock, agent=echo) as harness:
        platform.fails_ambiguously(shown=True)
        await platform.says("ann", "one")
        await harness.wait_until_idle()
        await clock.advance(minutes=1)
        await harness.wait_until_idle()
        assert platform.shown("ann") == ["one"]
        assert await owed(harness) == 0


async def test_a_reply_is_marked_once_the_platform_has_forgotten_its_key(tmp_path: Path):
    clock = FakeClock()
    platform = FakePlatform(
        clock=clock, capabilities=AdapterCapabilities(idempotent_for=timedelta(minutes=5))
    )
    async with open_harness(tmp_path, platform=platform, clock=clock, agent=echo) as harness:
        platform.fails_ambiguously(shown=False)
        await platform.says("ann", "soon")
        await harness.wait_until_idle()
        await clock.advance(minutes=1)
        await harness.wait_until_idle()
        assert platform.shown("ann") == ["soon"]
        platform.fails_ambiguously(shown=False)
        await platform.says("ann", "late")
        await harness.wait_until_idle()
        with platform.outage():
            await clock.advance(minutes=6)
            await harness.wait_until_idle()
        await clock.advance(minutes=6)
        await harness.wait_until_idle()
        assert platform.shown("ann") == ["soon", f"{REPEATED}\nlate"]


def finding(clock: FakeClock, kind: type[FakePlatform] = FakePlatform) -> FakePlatform:
    return kind(clock=clock, capabilities=AdapterCapabilities(finds=True))


@pytest.mark.parametrize("was_shown", [False, True])
async def test_a_reply_that_can_be_looked_up_is_sent_again_only_if_it_was_not_sent(
    tmp_path: Path, was_shown: bool
):
    clock = FakeClock()
    platform = finding(clock)
    async with open_harness(tmp_path, platform=platform, clock=clock, agent=echo) as harness:
        platform.fails_ambiguously(shown=was_shown, times=5)
        await platform.says("ann", "one")
        await harness.wait_until_idle()
        for _ in range(9):
            await clock.advance(minutes=1)
            await harness.wait_until_idle()
        assert platform.shown("ann") == ["one"]
        assert len(platform.attempts) == (1 if was_shown else 6)
        assert await owed(harness) == 0


class Unsearchable(FakePlatform):
    """Cannot look up what was sent."""

    problem: Exception = DeliveryRefusedError("fake", "the scope to read is missing")

    async def find(self, target: ReplyTarget, *, idempotency_key: str) -> str | None:
        raise self.problem


class Unreachable(Unsearchable):
    problem = ConnectionResetError("the answer was cut off")


async def test_where_a_reply_can_never_be_looked_up_it_is_marked(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    clock = FakeClock()
    platform = finding(clock, Unsearchable)
    async with open_harness(tmp_path, platform=platform, clock=clock, agent=echo) as harness:
        platform.fails_ambiguously(shown=True)
        await platform.says("ann", "one")
        await harness.wait_until_idle()
        await clock.advance(minutes=1)
        await harness.wait_until_idle()
        assert platform.shown("ann") == ["one", f"{REPEATED}\none"]
    assert "the scope to read is missing" in caplog.text


async def test_a_question_without_an_answer_is_asked_again_and_nothing_is_sent(tmp_path: Path):
    clock = FakeClock()
    platform = finding(clock, Unreachable)
    async with open_harness(tmp_path, platform=platform, clock=clock, agent=echo) as harness:
        platform.fails_ambiguously(shown=True)
        await platform.says("ann", "one")
        await harness.wait_until_idle()
        for _ in range(9):
            await clock.advance(minutes=5)
            await harness.wait_until_idle()
        assert platform.shown("ann") == ["one"]
        assert await owed(harness) == 1


async def test_an_adapter_must_have_what_it_promises(tmp_path: Path):
    class Promising(FakePlatform):
        find = None  # type: ignore[assignment]

    with pytest.raises(InvalidInputError, match="the capabilities of Promising say `finds`"):
        async with open_harness(tmp_path, platform=finding(FakeClock(), Promising), agent=echo):
            pass


class Remembering(FakePlatform):
    """Remembers the number of its connections."""

    memory: AdapterMemory = ProcessMemory()

    def remember_in(self, memory: AdapterMemory) -> None:
        self.memory = memory

    @asynccontextmanager
    async def connect(self, submit: Submit) -> AsyncIterator[None]:
        before = int(await self.memory.get("connections") or 0)
        await self.memory.put("connections", str(before + 1))
        async with super().connect(submit):
            yield


async def test_an_adapter_remembers_in_the_store_and_apart_from_others(tmp_path: Path):
    for _ in range(3):
        async with open_harness(tmp_path, platform=Remembering("one", "a"), agent=echo) as harness:
            assert await harness.store.db.get_meta("connections") is None
    async with open_harness(tmp_path, platform=Remembering("one", "b"), agent=echo) as harness:
        assert await harness.store.db.get_meta("adapter:one:a:connections") == "3"
        assert await harness.platform.memory.get("connections") == "1"
        await harness.platform.memory.put("connections", None)
        assert await harness.platform.memory.get("connections") is None


async def test_without_a_gateway_an_adapter_remembers_until_its_process_ends():
    memory = ProcessMemory()
    await memory.put("place", "7")
    assert await memory.get("place") == "7"
    await memory.put("place", None)
    await memory.put("place", None)
    assert await memory.get("place") is None


async def test_markdown_reaches_a_platform_in_its_markup_and_in_parts(tmp_path: Path):
    clock = FakeClock()
    able = AdapterCapabilities(dialect=TELEGRAM, max_length=256)
    platform = FakePlatform(clock=clock, capabilities=able)

    async def formatted(turn: TurnContext) -> Reply:
        return Reply("**bold**\n\n" + "word " * 100, format=TextFormat.MARKDOWN, buttons=(Button("Yes"),))

    async with open_harness(tmp_path, platform=platform, clock=clock, agent=formatted) as harness:
        await platform.says("ann", "go")
        await harness.wait_until_idle()
        first, *_, last = platform.sent
        assert (first.message.markup or "").startswith("<b>bold</b>\n\nword")
        assert first.text.startswith("bold\n\nword")
        assert last.text.endswith("\n• Yes"), "what cannot be shown as a button is listed"


async def test_a_pressed_button_reaches_the_agent_and_the_transcript(tmp_path: Path):
    seen: list[str | None] = []

    async def asking(turn: TurnContext) -> Reply:
        seen.append(turn.messages[0].action)
        return Reply("Sure?", buttons=(Button("Yes", "confirm:7"), Button("More", url="https://example.org")))

    async with open_harness(tmp_path, agent=asking) as harness:
        await harness.platform.says("ann", "delete it")
        await harness.wait_until_idle()
        await harness.platform.presses("ann", "Yes")
        await harness.wait_until_idle()
        assert seen == [None, "confirm:7"]
        with pytest.raises(InvalidInputError, match="ann sees no button 'More'"):
            await harness.platform.presses("ann", "More")
        entry = await harness.store.get_or_create_session(harness.platform.source("ann"))
        rows = await harness.store.load_transcript(entry.session_id)
        assert [(row["content"], row.get("action")) for row in rows if row["role"] == "user"] == [
            ("delete it", None),
            ("Yes", "confirm:7"),
        ]


async def test_an_album_whose_parts_come_slowly_is_one_turn(tmp_path: Path):
    seen: list[int] = []

    async def counting(turn: TurnContext) -> str:
        seen.append(len(turn.messages))
        return "seen"

    photo = Attachment(kind=AttachmentKind.PHOTO, url="https://example.org/p.png")
    async with open_harness(tmp_path, agent=counting) as harness:
        for _ in range(3):
            await harness.platform.says("ann", "", attachments=[photo], group_id="a1")
            await harness.clock.advance(seconds=0.6)
        await harness.clock.advance(seconds=2)
        await harness.wait_until_idle()
        assert seen == [3]


async def test_a_reply_that_is_refused_is_kept_and_the_next_one_comes(tmp_path: Path):
    async with open_harness(tmp_path, agent=echo) as harness:
        harness.platform.refuses()
        await harness.platform.says("ann", "one")
        await harness.wait_until_idle()
        await harness.platform.says("ann", "two")
        await harness.wait_until_idle()
        assert harness.platform.shown("ann") == ["two"]
        (dead,) = await harness.store.dead_replies()
        assert dead.message.text == "one"
        assert "refused" in (dead.problem or "")
        await harness.store.retry_reply(dead.reply_id)
        harness.gateway.look_again()
        await harness.wait_until_idle()
        assert harness.platform.shown("ann") == ["two", "one"]
        assert await harness.store.dead_replies() == []
        with pytest.raises(InvalidInputError, match="was not given up"):
            await harness.store.retry_reply(dead.reply_id)


async def test_whoever_has_no_more_input_can_wait_for_the_last_answer(tmp_path: Path):
    async def slow(turn: TurnContext) -> str:
        await turn.clock.sleep(5)
        return turn.text

    async with open_harness(tmp_path, agent=slow) as harness:
        for text in ("one", "two"):
            await harness.platform.says("ann", text)
        ended = asyncio.create_task(harness.gateway.settled())
        await harness.clock.advance(seconds=6)
        assert not ended.done()
        await harness.clock.advance(seconds=20)
        await ended
        assert harness.platform.shown("ann")[-1] == "two"
        await harness.gateway.settled()


async def test_a_reply_nobody_waits_for_any_more_is_given_up(tmp_path: Path):
    async with open_harness(tmp_path, agent=echo) as harness:
        with harness.platform.outage():
            await harness.platform.says("ann", "one")
            await harness.wait_until_idle()
            await harness.clock.advance(hours=25)
            await harness.wait_until_idle()
            (dead,) = await harness.store.db.read(partial(outbox.dead_replies, 10))
            assert "too_old" in (dead.problem or "")
        assert await owed(harness) == 0


async def test_behind_replies_that_are_too_old_the_next_one_is_sent_at_once(tmp_path: Path):
    async with open_harness(tmp_path, agent=echo) as harness:
        with harness.platform.outage():
            for text in ("one", "two", "three"):
                await harness.platform.says("ann", text)
                await harness.wait_until_idle()
            harness.clock.step(timedelta(hours=30))  # nothing was tried meanwhile
            await harness.platform.says("ann", "four")
        await harness.clock.advance(minutes=6)
        assert [one.message.text for one in await harness.store.dead_replies()] == ["three", "two", "one"]
        assert harness.platform.shown("ann")[1:] == ["four"], "behind the notice of a new session"


@pytest.mark.parametrize("column", ["target", "content"])
async def test_a_reply_that_is_damaged_is_given_up_and_nobody_waits_for_it(tmp_path: Path, column: str):
    """It stood before all others of its account, and each look for what was owed failed at it."""
    async with open_harness(tmp_path, agent=echo) as harness:
        with harness.platform.outage():
            await harness.platform.says("ann", "one")
            await harness.platform.says("ann", "two")
            await harness.platform.says("bob", "three")
            await harness.wait_until_idle()
            execute_sql(
                tmp_path / "sessions.db",
                f"UPDATE outbox SET {column} = '{{' WHERE reply_id = (SELECT min(reply_id) FROM outbox)",  # noqa: S608
            )
        await harness.clock.advance(minutes=6)
        await harness.wait_until_idle()
        assert harness.platform.shown("ann") == ["two"]
        assert harness.platform.shown("bob") == ["three"]
        (dead,) = await harness.store.dead_replies()
        assert "damaged" in str(dead.problem)
        await harness.store.retry_reply(dead.reply_id)
        harness.gateway.look_again()
        await harness.wait_until_idle()
        assert [one.reply_id for one in await harness.store.dead_replies()] == [dead.reply_id], "as before"


async def test_a_long_reply_is_sent_in_parts_in_order(tmp_path: Path):
    text = "\n\n".join(f"paragraph {number} " + "word " * 30 for number in range(60))

    async def long(_: TurnContext) -> str:
        return text

    async with open_harness(tmp_path, agent=long) as harness:
        await harness.platform.says("ann", "tell me")
        await harness.wait_until_idle()
        parts = harness.platform.shown("ann")
        assert len(parts) > 1
        assert all(len(part) <= 4096 for part in parts)
        assert "".join("".join(parts).split()) == "".join(text.split())


async def test_half_a_character_in_an_answer_is_sent_as_it_is_kept(tmp_path: Path):
    """As `json.loads` gives it: no platform took it, and its repeat said that it may be one."""
    half = json.loads('"fine \\ud83d cut"')

    async def cut(turn: TurnContext) -> Reply:
        await turn.show(half)
        await turn.say(half)
        photo = Attachment(kind=AttachmentKind.PHOTO, url="file:a.jpg", name=half)
        return Reply(half, attachments=(photo,))

    async with open_harness(tmp_path, agent=cut) as harness:
        await harness.platform.says("ann", "tell me")
        await harness.wait_until_idle()
        assert harness.platform.shown("ann") == ["fine \ufffd cut", "fine \ufffd cut"]
        assert harness.platform.sent[-1].message.attachments[0].name == "fine \ufffd cut"
        assert harness.platform.sent[0].before[0].text == "fine \ufffd cut"
        assert await owed(harness) == 0


async def owing_one_reply(tmp_path: Path) -> tuple[FakePlatform, FakeClock]:
    """What a process leaves behind that ends while the platform is down."""
    clock = FakeClock()
    platform = FakePlatform(clock=clock)
    async with open_harness(tmp_path, platform=platform, clock=clock, agent=echo) as harness:
        with platform.outage():
            await platform.says("ann", "one")
            await harness.wait_until_idle()
    return platform, clock


async def test_replies_that_an_earlier_process_owed_are_sent_after_a_start(tmp_path: Path):
    platform, clock = await owing_one_reply(tmp_path)
    assert platform.shown("ann") == []
    async with open_harness(tmp_path, platform=platform, clock=clock, agent=echo) as harness:
        await clock.advance(minutes=1)
        await wait_until(lambda: platform.shown("ann"))
        await harness.wait_until_idle()
        assert platform.shown("ann") == ["one"]


async def test_nothing_overtakes_a_reply_owed_while_a_start_finds_out_what_else_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    platform, clock = await owing_one_reply(tmp_path)
    asked, answer = asyncio.Event(), asyncio.Event()
    read = SessionDB.read

    async def late(db: SessionDB, transaction: Callable[[], Transaction[T]]) -> T:
        found = await read(db, transaction)
        if isinstance(transaction, partial) and transaction.func is outbox.lane_is_owed:
            asked.set()
            await answer.wait()
        return found

    monkeypatch.setattr(SessionDB, "read", late)
    async with open_harness(tmp_path, platform=platform, clock=clock, agent=echo) as harness:
        await clock.advance(minutes=1)
        await asked.wait()
        caplog.clear()
        platform.rate_limit(60)
        await platform.says("ann", "two")
        await wait_until(lambda: "a reply could not be sent" in caplog.text)
        answer.set()
        await platform.says("ann", "three")
        await harness.wait_until_idle()
        await clock.advance(minutes=2)
        await harness.wait_until_idle()
        assert platform.shown("ann") == ["one", "two", "three"]


@pytest.mark.parametrize("until_calm", [Gateway.settled, Gateway.drain])
async def test_a_gateway_is_calm_only_when_what_waited_behind_a_reply_is_sent_too(
    tmp_path: Path, until_calm: Callable[[Gateway], Awaitable[object]]
):
    async with open_harness(tmp_path, agent=echo) as harness:
        with harness.platform.late_ack():
            await harness.platform.says("ann", "one")
            await wait_until(lambda: harness.platform.shown("ann") == ["one"])
            await harness.platform.says("ann", "two")
            while await harness.outcomes("ann") != {"turned": 2}:  # noqa: ASYNC110 -- it may have to wait
                await anyio.sleep(0.002)
        await until_calm(harness.gateway)
        assert harness.platform.shown("ann") == ["one", "two"]
