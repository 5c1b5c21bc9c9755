"""What Slack has given up on is read from its channels and threads: after an absence, and after a failure."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from gateway_sessions import Gateway, Reply, SessionStore, TurnContext
from gateway_sessions.adapters import ProcessMemory, ReceiveClass
from gateway_sessions.core.sessions.busy_mode import BusyMode
from gateway_sessions.errors import StorageUnavailableError
from gateway_sessions.testing.contract.adapter import Inbox
from gateway_sessions.testing.fakes.faults import ALWAYS, RateLimit, ServerFault
from gateway_sessions.testing.fakes.slack import FakeSlack, SlackTiming
from tests.integration.gateway.gateway_harness import busy_config
from tests.integration.platforms.slack_doors import (
    DOORS,
    SlackDoor,
    bolt_app,
    events_door,
    serving,
    socket_door,
)

PATIENCE = 30
DAY = 24 * 60 * 60
NOWHERE = "http://127.0.0.1:9/slack"
"""An address at which nobody listens."""
ONE_BY_ONE = busy_config(BusyMode.QUEUE, debounce=timedelta())


@pytest.fixture
async def slack() -> AsyncGenerator[FakeSlack]:
    # As Slack: three retries, and then it is over. The pauses are those of Slack, a thousand times shorter.
    async with FakeSlack(timing=SlackTiming(speed=1000)) as slack:
        slack.workspace.person("ann")
        yield slack


@pytest.fixture(params=DOORS)
def door(request: pytest.FixtureRequest) -> SlackDoor:
    return DOORS[request.param]


async def given_up(slack: FakeSlack) -> None:
    """Wait until Slack has given up all that it owes."""
    await slack.wait_until(lambda: slack.pending == 0, seconds=PATIENCE)


def texts(inbox: Inbox) -> list[str]:
    return [one.text for one in inbox.messages]


def reads(slack: FakeSlack) -> int:
    return len([one for one in slack.calls if one.method == "conversations.history"])


async def echo(turn: TurnContext) -> Reply:
    return Reply(f"You said {turn.text}.")


def answers(slack: FakeSlack, person: str = "", **place: Any) -> list[str]:
    """Return what somebody was answered, without the notices of the gateway."""
    return [text for text in slack.texts(person, **place) if text.startswith("You said")]


async def test_after_an_absence_everything_is_answered_once_and_in_its_order(
    slack: FakeSlack, door: SlackDoor, tmp_path: Path
):
    async with door(slack) as adapter:
        async with (
            SessionStore.open(tmp_path, ONE_BY_ONE) as store,
            Gateway(store, agent=echo, adapters=[adapter]),
        ):
            slack.people.says("ann", "one")
            root = slack.people.says("bob", "@helper hi", channel="team")
            await slack.wait_until(
                lambda: answers(slack, "ann") and answers(slack, channel="team"), seconds=PATIENCE
            )
            await given_up(slack)
        for text in ("two", "three"):
            slack.people.says("ann", text)
        slack.people.says("bob", "not for the bot", channel="team")
        new_root = slack.people.says("eve", "@helper good day", channel="team")
        slack.people.says("eve", "and night", channel="team", thread=new_root)
        slack.people.says("bob", "and on", channel="team", thread=root)
        await given_up(slack)
        async with (
            SessionStore.open(tmp_path, ONE_BY_ONE) as store,
            Gateway(store, agent=echo, adapters=[adapter]),
        ):
            await slack.wait_until(lambda: len(answers(slack, channel="team")) == 4, seconds=PATIENCE)
            await slack.wait_until(lambda: len(answers(slack, "ann")) == 3, seconds=PATIENCE)
            slack.people.says("ann", "four")
            await slack.wait_until(lambda: len(answers(slack, "ann")) == 4, seconds=PATIENCE)
    assert answers(slack, "ann") == [f"You said {text}." for text in ("one", "two", "three", "four")]
    assert answers(slack, channel="team", thread=root) == ["You said hi.", "You said and on."]
    assert answers(slack, channel="team", thread=new_root) == ["You said good day.", "You said and night."]


async def test_what_a_store_did_not_take_until_slack_gave_up_is_taken_later(
    slack: FakeSlack, door: SlackDoor
):
    inbox = Inbox()
    async with door(slack) as adapter, adapter.connect(inbox):
        assert await slack.is_taken(slack.people.says("ann", "one"))
        inbox.failure = StorageUnavailableError("sessions.db", "is away")
        slack.people.says("ann", "two")
        await given_up(slack)
        assert [one.given_up for one in slack.deliveries.all] == [False, True]
        assert slack.deliveries.all[-1].tries == 4
        inbox.failure = None
        await inbox.wait_for(2)
        assert await slack.is_taken(slack.people.says("ann", "three"))
    async with door(slack) as adapter, adapter.connect(inbox):
        assert await slack.is_taken(slack.people.says("ann", "four"))
    assert texts(inbox) == ["one", "two", "three", "four"]


async def test_what_is_written_while_socket_mode_is_cut_is_read_with_the_next_greeting(slack: FakeSlack):
    inbox = Inbox()
    async with socket_door(slack) as adapter, adapter.connect(inbox):
        assert await slack.is_taken(slack.people.says("ann", "one"))
        await slack.cut_sockets()
        await slack.wait_until(lambda: not slack.deliveries.sockets, seconds=PATIENCE)
        slack.people.says("ann", "two")
        await given_up(slack)
        assert slack.deliveries.all[-1].given_up
        await inbox.wait_for(2)
    assert texts(inbox) == ["one", "two"]


@pytest.mark.parametrize("name", ["bolt", "without bolt"])
async def test_what_was_given_up_while_nothing_came_through_is_read_with_the_first_retry(
    slack: FakeSlack, name: str
):
    inbox = Inbox()
    async with DOORS[name](slack) as adapter, adapter.connect(inbox):
        assert await slack.is_taken(slack.people.says("ann", "one"))
        assert await slack.is_taken(slack.people.says("bob", "hello"))
        url = slack.deliveries.request_url
        slack.listen_at(NOWHERE)  # the app runs on, and hears of no failure
        slack.people.says("ann", "two")
        slack.people.says("bob", "and this")
        await given_up(slack)
        assert all(one.given_up for one in slack.deliveries.all[-2:])
        slack.deliveries.timing = SlackTiming(speed=20)
        slack.people.says("ann", "three")
        slack.people.says("bob", "and that")
        last, before = slack.deliveries.all[-2:], reads(slack)
        await slack.wait_until(lambda: all(one.tries == 2 for one in last), seconds=PATIENCE)
        slack.listen_at(url)
        await inbox.wait_for(6)
        await given_up(slack)
    assert [one.text for one in inbox.messages if one.source.user_name == "ann"] == ["one", "two", "three"]
    assert [one.text for one in inbox.messages if one.source.user_name == "bob"] == [
        "hello",
        "and this",
        "and that",
    ]
    assert reads(slack) == before + 2  # one for each channel, and not for each retry


async def test_a_retry_of_what_has_come_before_reads_nothing(slack: FakeSlack, door: SlackDoor):
    inbox = Inbox()
    async with door(slack) as adapter, adapter.connect(inbox):
        ts = slack.people.says("ann", "one")
        assert await slack.is_taken(ts)
        before = reads(slack)
        slack.deliveries.again(ts)
        await given_up(slack)
        assert await slack.is_taken(slack.people.says("ann", "two"))
    assert reads(slack) == before
    assert {one.idempotency_key for one in inbox.messages if one.text == "one"} == {
        inbox.messages[0].idempotency_key
    }


async def test_the_first_message_of_a_person_comes_with_the_next_one(slack: FakeSlack, door: SlackDoor):
    inbox = Inbox()
    async with door(slack) as adapter:
        async with adapter.connect(inbox):
            assert await slack.is_taken(slack.people.says("ann", "hello"))
        slack.people.says("bob", "is anybody there?")
        await given_up(slack)
        async with adapter.connect(inbox):
            assert await slack.is_taken(slack.people.says("bob", "I said: is anybody there?"))
    assert texts(inbox) == ["hello", "is anybody there?", "I said: is anybody there?"]


async def test_listeners_of_the_app_come_first_for_what_is_read_as_well(slack: FakeSlack):
    app, inbox, heard = bolt_app(slack), Inbox(), list[str]()

    @app.message("weather")
    async def weather(message: dict[str, Any]) -> None:
        heard.append(message["text"])

    async with socket_door(slack) as adapter:
        adapter._app = app  # noqa: SLF001 -- the same door, for an app with a listener
        async with adapter.connect(inbox):
            assert await slack.is_taken(slack.people.says("ann", "one"))
            assert await slack.is_taken(slack.people.says("ann", "weather now"))
        slack.people.says("ann", "weather tomorrow")
        slack.people.says("ann", "two")
        await given_up(slack)
        async with adapter.connect(inbox):
            await inbox.wait_for(2)
            await slack.wait_until(lambda: len(heard) > 1, seconds=PATIENCE)
    assert (texts(inbox), heard) == (["one", "two"], ["weather now", "weather tomorrow"])


async def test_what_was_said_before_the_bot_came_in_is_not_for_it(slack: FakeSlack):
    inbox = Inbox()
    async with events_door(slack, groups="all") as adapter:
        async with adapter.connect(inbox):
            assert await slack.is_taken(slack.people.says("ann", "hello"))
        team = slack.workspace.channel("team")
        team.members.clear()
        slack.people.says("bob", "shall we invite @helper?", channel="team")
        bot = slack.workspace.bot.id
        slack.workspace.add_message(team, {"subtype": "channel_join", "user": bot, "text": "has joined"})
        team.members.add(bot)
        slack.people.says("bob", "there you are", channel="team")
        await given_up(slack)
        async with adapter.connect(inbox):
            assert await slack.is_taken(slack.people.says("bob", "are you?", channel="team"))
    assert texts(inbox)[:2] == ["hello", "there you are"]
    assert set(texts(inbox)[2:]) == {"are you?"}


# Bounds


async def at_a_time(slack: FakeSlack, person: str, text: str, *, seconds_ago: float) -> None:
    """Put a message into the past, of which nobody told the app."""
    place, ts = slack.people.place(person), f"{float(slack.workspace.new_ts()) - seconds_ago:.6f}"
    said = {"type": "message", "ts": ts, "user": slack.workspace.person(person).id, "text": text}
    place.messages = dict(sorted({**place.messages, ts: said}.items()))


async def memory_of(slack: FakeSlack, *people: str) -> ProcessMemory:
    """Return the memory of an adapter that was away since the beginning of time."""
    memory = ProcessMemory()
    await memory.put("began", "1.000000")
    ids = [slack.people.place(one).id for one in people]
    await memory.put("channels", str(ids).replace("'", '"'))
    for one in ids:
        await memory.put(f"channel:{one}", '{"last": "1.000000"}')
    return memory


async def test_what_is_older_than_wanted_is_left(slack: FakeSlack, door: SlackDoor):
    inbox = Inbox()
    await at_a_time(slack, "ann", "long ago", seconds_ago=2 * DAY)
    await at_a_time(slack, "ann", "yesterday", seconds_ago=DAY / 2)
    async with door(slack) as adapter:
        adapter.remember_in(await memory_of(slack, "ann"))
        async with adapter.connect(inbox):
            await inbox.wait_for(1)
    assert texts(inbox) == ["yesterday"]


async def test_of_more_than_can_be_read_the_newest_is_read_and_the_rest_is_told(
    slack: FakeSlack, caplog: pytest.LogCaptureFixture
):
    inbox = Inbox()
    place, ann = slack.people.place("ann"), slack.workspace.person("ann").id
    for number in range(2100):
        slack.workspace.add_message(place, {"user": ann, "text": f"{number}"})
    async with events_door(slack) as adapter:
        adapter.remember_in(await memory_of(slack, "ann"))
        async with adapter.connect(inbox):
            await slack.wait_until(lambda: len(inbox.messages) == 2000, seconds=PATIENCE)
    assert texts(inbox) == [f"{number}" for number in range(100, 2100)]
    (told,) = [one for one in caplog.records if getattr(one, "action", "") == "history_too_long"]
    assert "2000 messages are read, others are passed over" in told.getMessage()


async def test_without_the_scope_it_is_told_once_and_new_messages_are_taken(
    slack: FakeSlack, door: SlackDoor, caplog: pytest.LogCaptureFixture
):
    inbox = Inbox()
    slack.scopes.remove("channels:history")
    async with door(slack) as adapter:
        adapter.remember_in(await memory_of(slack, "ann", "bob"))
        async with adapter.connect(inbox):
            assert await slack.is_taken(slack.people.says("ann", "hello"))
            assert await slack.is_taken(slack.people.says("bob", "hello"))
    told = [one.getMessage() for one in caplog.records if getattr(one, "action", "") == "history_refused"]
    assert told == [
        "what did not come cannot be read again: the app lacks the scope channels:history: "
        "add it under OAuth & Permissions, and install the app again"
    ]
    assert texts(inbox) == ["hello", "hello"]


async def test_a_pause_that_slack_asks_for_is_kept_and_holds_up_nothing_new(
    slack: FakeSlack, door: SlackDoor
):
    inbox = Inbox()
    await at_a_time(slack, "ann", "missed", seconds_ago=60)
    slack.faults.plan(RateLimit(2), method="conversations.history")
    async with door(slack) as adapter:
        adapter.remember_in(await memory_of(slack, "ann"))
        async with adapter.connect(inbox):
            assert await slack.is_taken(slack.people.says("ann", "new"))
            await inbox.wait_for(2)
    assert texts(inbox) == ["new", "missed"]
    # One call was refused, and the one after the pause was not.
    statuses = [one.status for one in slack.calls if one.method == "conversations.history"]
    assert statuses == [429, 200]


async def test_a_history_that_cannot_be_read_is_tried_again(slack: FakeSlack, door: SlackDoor):
    inbox = Inbox()
    await at_a_time(slack, "ann", "missed", seconds_ago=60)
    slack.faults.plan(ServerFault(), method="conversations.history")
    async with door(slack) as adapter:
        adapter.remember_in(await memory_of(slack, "ann"))
        async with adapter.connect(inbox):
            await inbox.wait_for(1)
    assert texts(inbox) == ["missed"]


async def test_a_message_that_cannot_be_read_is_set_aside_and_the_next_one_is_taken(
    slack: FakeSlack, door: SlackDoor, tmp_path: Path
):
    inbox = Inbox()
    await at_a_time(slack, "ann", "spoiled", seconds_ago=60)
    await at_a_time(slack, "ann", "sound", seconds_ago=30)
    place = slack.people.place("ann")
    place.messages[min(place.messages)]["files"] = "none"
    async with door(slack, unreadable=tmp_path) as adapter:
        adapter.remember_in(await memory_of(slack, "ann"))
        async with adapter.connect(inbox):
            await inbox.wait_for(1)
    assert texts(inbox) == ["sound"]
    assert len(list(tmp_path.iterdir())) == 1


async def test_a_thread_that_is_gone_is_forgotten(slack: FakeSlack):
    inbox, memory = Inbox(), await memory_of(slack, "ann")
    await at_a_time(slack, "ann", "missed", seconds_ago=60)
    place = slack.people.place("ann").id
    await memory.put(f"channel:{place}", '{"last": "1.000000", "threads": ["1.500000"]}')
    async with events_door(slack) as adapter:
        adapter.remember_in(memory)
        async with adapter.connect(inbox):
            await inbox.wait_for(1)
    assert '"threads":[]' in str(await memory.get(f"channel:{place}"))


async def test_whoever_wants_no_history_gets_none(slack: FakeSlack, door: SlackDoor):
    inbox = Inbox()
    slack.faults.plan(ServerFault(), method="conversations.history", times=ALWAYS)
    async with door(slack, catch_up=timedelta()) as adapter:
        assert adapter.capabilities.receives is ReceiveClass.ACKNOWLEDGED
        for text in ("one", "two"):
            async with adapter.connect(inbox):
                assert await slack.is_taken(slack.people.says("ann", text))
    assert (texts(inbox), reads(slack)) == (["one", "two"], 0)
    async with door(slack) as adapter:
        assert adapter.capabilities.receives is ReceiveClass.BACKFILLED


async def test_an_app_that_is_not_connected_hears_nothing(slack: FakeSlack):
    app = bolt_app(slack)
    async with serving(app) as url, socket_door(slack) as adapter:
        adapter._app = app  # noqa: SLF001 -- the same door, for an app that a server serves as well
        async with adapter.connect(Inbox()):
            pass
        slack.listen_at(url)
        assert not await slack.is_taken(slack.people.says("ann", "hello"))
    assert reads(slack) == 0
