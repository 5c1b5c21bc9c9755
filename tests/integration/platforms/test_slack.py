"""Apps of Slack with a gateway: Bolt and Slack's own library, a fake Slack, and what may go wrong."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from slack_bolt import App
from slack_bolt.async_app import AsyncAck, AsyncApp, AsyncSay

from gateway_sessions import Gateway, Reply, SessionStore, TurnContext
from gateway_sessions.adapters import (
    Attachment,
    AttachmentKind,
    Button,
    MessageKind,
    OutboundMessage,
    ReplyTarget,
    TextFormat,
)
from gateway_sessions.core.delivery.message_parts import REPEATED
from gateway_sessions.errors import (
    AdapterUnavailableError,
    DeliveryRefusedError,
    InvalidInputError,
    RateLimitedError,
    StorageUnavailableError,
)
from gateway_sessions.integrations import slack_bolt
from gateway_sessions.integrations.slack import ThreadSessions
from gateway_sessions.integrations.slack.adapter import SlackAdapter
from gateway_sessions.integrations.slack_bolt import SlackBoltAdapter
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.contract.adapter import Inbox
from gateway_sessions.testing.fakes.faults import (
    ALWAYS,
    CutConnection,
    Delay,
    RateLimit,
    RefusedCall,
    ServerFault,
)
from gateway_sessions.testing.fakes.slack import FakeSlack, SlackTiming
from tests.integration.gateway.gateway_harness import QUICK
from tests.integration.platforms.slack_doors import (
    DOORS,
    SlackDoor,
    bolt_app,
    bolt_door,
    events_door,
    quiet,
    serving,
    socket_door,
    web_client,
)

PATIENCE = 30
AT_ONCE = replace(QUICK, delivery=replace(QUICK.delivery, retry=timedelta(seconds=0.05)))


@pytest.fixture
async def slack() -> AsyncGenerator[FakeSlack]:
    # It tries again every half second, for longer than a slow machine needs.
    async with FakeSlack(timing=SlackTiming(retries=(0.0, *(30.0,) * 60))) as slack:
        slack.workspace.person("ann")
        yield slack


@pytest.fixture(params=DOORS)
def door(request: pytest.FixtureRequest) -> SlackDoor:
    return DOORS[request.param]


@pytest.fixture
async def adapter(slack: FakeSlack) -> AsyncGenerator[SlackAdapter | SlackBoltAdapter]:
    async with events_door(slack) as adapter:
        yield adapter


def to_ann(slack: FakeSlack, **more: Any) -> ReplyTarget:
    return ReplyTarget(platform="slack", chat_id=slack.people.place("ann").id, **more)


async def echo(turn: TurnContext) -> Reply:
    return Reply(f"You said **{turn.text}**.", format=TextFormat.MARKDOWN)


# With a gateway


async def test_a_conversation_goes_both_ways_in_its_places(slack: FakeSlack, door: SlackDoor, tmp_path: Path):
    async with (
        door(slack) as adapter,
        SessionStore.open(tmp_path, QUICK) as store,
        Gateway(store, agent=echo, adapters=[adapter]),
    ):
        slack.people.says("ann", "a < b & c")
        root = slack.people.says("bob", "@helper hi", channel="team")
        slack.people.says("bob", "not for the bot", channel="team")
        await slack.wait_until(lambda: slack.texts("ann") and slack.texts(channel="team"), seconds=PATIENCE)
        slack.people.says("bob", "and on", channel="team", thread=root)
        await slack.wait_until(lambda: len(slack.texts(channel="team")) == 2, seconds=PATIENCE)
        await slack.wait_until(lambda: slack.pending == 0, seconds=PATIENCE)
        assert slack.texts("ann") == ["You said a < b & c."]
        assert slack.texts(channel="team", thread=root) == ["You said hi.", "You said and on."]
        assert slack.shown("ann")[0]["text"] == "You said *a &lt; b &amp; c*."
        assert slack.methods.unescaped == []
        team = slack.workspace.channel("team").id
        for key in (f"dm:{slack.people.place('ann').id}", f"channel:{team}:{root}"):
            assert await store.peek_session_id(f"agent:main:slack:{key}") is not None


async def test_a_reply_grows_in_one_message(slack: FakeSlack, adapter: SlackAdapter, tmp_path: Path):
    async def agent(turn: TurnContext) -> str:
        stream = turn.stream()
        for word in ("*one* ", "two ", "three"):
            await stream.write(word)
            await asyncio.sleep(0.05)
        return "*one* two three"

    async with SessionStore.open(tmp_path, QUICK) as store, Gateway(store, agent=agent, adapters=[adapter]):
        slack.people.says("ann", "count")
        await slack.wait_until(
            lambda: [one.replace("\u200b", "") for one in slack.texts("ann")] == ["*one* two three"],
            seconds=PATIENCE,
        )


async def test_what_a_store_does_not_take_slack_delivers_again(slack: FakeSlack, door: SlackDoor):
    inbox = Inbox()
    inbox.failure = StorageUnavailableError("sessions.db", "is away")
    async with door(slack) as adapter, adapter.connect(inbox):
        first = slack.people.says("ann", "hello")
        assert not await slack.is_taken(first)
        inbox.failure = None
        await inbox.wait_for_text("hello")
        await slack.wait_until(lambda: slack.pending == 0, seconds=PATIENCE)
    (delivery,) = slack.deliveries.all
    assert delivery.tries == len(delivery.outcomes) > 1


@pytest.mark.parametrize("process_before_response", [False, True])
async def test_bolt_acknowledges_after_the_receipt_in_both_of_its_ways(
    slack: FakeSlack, process_before_response: bool
):
    app, inbox = bolt_app(slack, process_before_response=process_before_response), Inbox()
    inbox.failure = StorageUnavailableError("sessions.db", "is away")
    async with serving(app) as url, SlackBoltAdapter(app).connect(inbox):
        slack.listen_at(url)
        assert not await slack.is_taken(slack.people.says("ann", "hello"))
        assert slack.deliveries.all[0].statuses[0] == 500
        inbox.failure = None
        await inbox.wait_for_text("hello")


async def test_an_answer_whose_fate_is_unknown_is_looked_up_and_not_repeated(
    slack: FakeSlack, door: SlackDoor, tmp_path: Path
):
    async with (
        door(slack) as adapter,
        SessionStore.open(tmp_path, AT_ONCE) as store,
        Gateway(store, agent=echo, adapters=[adapter]),
    ):
        faults = (CutConnection.AFTER, ServerFault(done=True), CutConnection.BEFORE, ServerFault())
        for number, fault in enumerate(faults, start=1):
            slack.faults.plan(fault, method="chat.postMessage")
            ts = slack.people.says("ann", f"number {number}")
            assert await slack.is_taken(ts)
            await slack.wait_until(lambda n=number: len(slack.texts("ann")) == n, seconds=PATIENCE)
        root = slack.people.says("bob", "@helper in a thread", channel="team")
        slack.faults.plan(CutConnection.AFTER, method="chat.postMessage")
        await slack.wait_until(lambda: slack.texts(channel="team"), seconds=PATIENCE)
        slack.people.says("bob", "next", channel="team", thread=root)
        await slack.wait_until(lambda: len(slack.texts(channel="team")) == 2, seconds=PATIENCE)
    assert not [text for text in slack.texts("ann") if REPEATED in text]


# Everything else of the app


async def test_listeners_of_the_app_come_first(slack: FakeSlack):
    app, inbox, seen = bolt_app(slack), Inbox(), list[str]()
    blocks = [{"type": "actions", "elements": [BUTTON]}]
    await web_client(slack).chat_postMessage(channel=slack.people.place("ann").id, text="?", blocks=blocks)

    @app.message("settings")
    async def settings(say: AsyncSay) -> None:
        await say("Your settings")

    @app.command("/echo")
    async def say_again(ack: AsyncAck, command: dict[str, Any]) -> None:
        await ack(command["text"])

    @app.action("mine")
    async def pressed(ack: AsyncAck, action: dict[str, Any]) -> None:
        seen.append(action["value"])
        await ack()

    @app.message("broken")
    async def broken() -> None:
        seen.append("broken")
        raise LookupError

    @app.event("member_joined_channel")
    async def joined() -> None:
        seen.append("joined")

    async with serving(app) as url, SlackBoltAdapter(app).connect(inbox):
        slack.listen_at(url)
        for text in ("settings, please", "broken", "hello"):
            await slack.is_taken(slack.people.says("ann", text))
        command = slack.people.commands("ann", "/echo", "again")
        press = slack.people.presses("ann", "Mine")
        member = {"type": "member_joined_channel", "user": "U1", "channel": "C1"}
        slack.people.owe_event({"type": "event_callback", "event": member}, "joined")
        for one in (command, press, "joined"):
            assert await slack.is_taken(one)
        assert slack.people.answered(command).answer == "again"
        await slack.wait_until(lambda: "Your settings" in slack.texts("ann"), seconds=PATIENCE)
    assert [one.text for one in inbox.messages] == ["hello"]
    assert sorted(seen) == ["broken", "joined", "m"]


BUTTON = {"type": "button", "text": {"type": "plain_text", "text": "Mine"}, "action_id": "mine", "value": "m"}


async def test_bolt_alone_loses_an_event_when_it_cannot_learn_who_it_is(slack: FakeSlack):
    app, heard = bolt_app(slack, process_before_response=True), list[str]()

    @app.event("message")
    async def hear(event: dict[str, Any]) -> None:
        heard.append(event["text"])

    slack.faults.plan(RefusedCall(200, "ratelimited"), method="auth.test")
    async with serving(app) as url:
        slack.listen_at(url)
        assert await slack.is_taken(slack.people.says("ann", "lost"))
    assert heard == []


async def test_with_the_adapter_bolt_knows_who_it_is_before_the_first_event(slack: FakeSlack):
    app, inbox = bolt_app(slack), Inbox()
    async with serving(app) as url:
        adapter = SlackBoltAdapter(app)
        calls = len(slack.calls)
        slack.faults.plan(
            RefusedCall(200, "internal_error"), matches=lambda *_: len(slack.calls) > calls, times=1
        )
        with pytest.raises(AdapterUnavailableError, match="does not tell Bolt who the app is"):
            async with adapter.connect(inbox):
                pass
        async with adapter.connect(inbox):
            slack.listen_at(url)
            slack.faults.plan(RefusedCall(200, "ratelimited"), method="auth.test", times=ALWAYS)
            assert await slack.is_taken(slack.people.says("ann", "hello"))
            await inbox.wait_for_text("hello")


async def test_what_comes_while_no_gateway_listens_is_delivered_again(slack: FakeSlack):
    app, inbox = bolt_app(slack), Inbox()
    adapter = SlackBoltAdapter(app)
    async with serving(app) as url:
        async with adapter.connect(inbox):
            slack.listen_at(url)
        assert not await slack.is_taken(slack.people.says("ann", "early"))
        async with adapter.connect(inbox):
            await inbox.wait_for_text("early")


async def test_bolt_s_own_server_listens_on_a_port_of_its_own(slack: FakeSlack):
    inbox = Inbox()
    adapter = SlackBoltAdapter(bolt_app(slack), port=0)
    for text in ("one", "two"):
        async with adapter.connect(inbox):
            assert adapter.address is not None
            slack.listen_at("http://{}:{}/slack/events".format(*adapter.address))
            assert await slack.is_taken(slack.people.says("ann", text))
            other = SlackBoltAdapter(bolt_app(slack), port=adapter.address[1])
            with pytest.raises(AdapterUnavailableError, match=r"cannot listen at 127\.0\.0\.1"):
                async with other.connect(inbox):
                    pass
        assert adapter.address is None
    assert [one.text for one in inbox.messages] == ["one", "two"]


# Threads of channels


async def test_the_bot_goes_on_in_its_threads_and_leaves_others_alone(slack: FakeSlack, door: SlackDoor):
    mine = slack.people.says("ann", "@helper hi", channel="team")
    theirs = slack.people.says("ann", "hello bob", channel="team")
    joined = slack.people.says("ann", "a question", channel="team")
    place = slack.workspace.channel("team").id
    await web_client(slack).chat_postMessage(channel=place, text="an answer", thread_ts=joined)
    inbox = Inbox()
    async with door(slack) as adapter, adapter.connect(inbox):
        await inbox.wait_for(2)  # the mention, which comes as two events
        for thread in (theirs, mine, joined, theirs):
            ts = slack.people.says("bob", f"in {thread}", channel="team", thread=thread)
            assert await slack.is_taken(ts)
        assert [one.text for one in inbox.messages if one.text.startswith("in ")] == [
            f"in {mine}",
            f"in {joined}",
        ]
        slack.people.says("bob", "@helper help", channel="team", thread=theirs)
        slack.people.says("ann", "please", channel="team", thread=theirs)
        await inbox.wait_for_text("please")
    asked = [one.parameters["ts"] for one in slack.calls if one.method == "conversations.replies"]
    assert asked == [theirs, joined]


async def test_a_thread_that_cannot_be_looked_up_is_delivered_again(slack: FakeSlack, adapter: SlackAdapter):
    root = slack.people.says("ann", "@helper hi", channel="team")
    slack.deliveries.all.clear()
    inbox = Inbox()
    slack.faults.plan(ServerFault(), method="conversations.replies")
    async with adapter.connect(inbox):
        ts = slack.people.says("ann", "and then", channel="team", thread=root)
        assert not await slack.is_taken(ts)
        await inbox.wait_for_text("and then")


async def test_without_the_scope_the_bot_hears_mentions_only(
    slack: FakeSlack, adapter: SlackAdapter, caplog: pytest.LogCaptureFixture
):
    slack.scopes -= {"channels:history", "users:read", "channels:read"}
    inbox = Inbox()
    root = slack.people.says("bob", "nobody is asked", channel="team")
    with caplog.at_level(logging.WARNING):
        async with adapter.connect(inbox):
            assert await slack.is_taken(slack.people.says("bob", "more", channel="team", thread=root))
            slack.people.says("bob", "@helper and @ann", channel="team")
            (message, _) = await inbox.wait_for(2)
            found = adapter.find(ReplyTarget.answering(message), idempotency_key="k")
            with pytest.raises(DeliveryRefusedError, match="lacks the scope channels:history"):
                await found
    ann, bob = slack.workspace.person("ann").id, slack.workspace.person("bob").id
    assert (message.text, message.source.user_name) == (f"and @{ann}", None)
    assert message.source.user_id == bob
    for told in ("threads cannot be read: the app lacks the scope channels:history", "names cannot be read"):
        assert told in caplog.text
    assert caplog.text.count("users:read") == 1


async def test_more_than_can_be_read_again_is_refused(slack: FakeSlack, adapter: SlackAdapter):
    place = slack.people.place("ann")
    for _ in range(2100):
        slack.workspace.add_message(place, {"user": slack.workspace.person("ann").id, "text": "x"})
    async with adapter.connect(Inbox()):
        with pytest.raises(DeliveryRefusedError, match="so much was said since"):
            await adapter.find(to_ann(slack), idempotency_key="k")
        last = list(place.messages)[-1]
        assert await adapter.find(to_ann(slack, reply_to=last), idempotency_key="k") is None


async def test_metadata_that_is_told_in_part_proves_nothing(slack: FakeSlack, adapter: SlackAdapter):
    async with adapter.connect(Inbox()):
        ts = await adapter.send(to_ann(slack), OutboundMessage(text="mine"), idempotency_key="k")
        assert ts is not None
        slack.workspace.direct("ann").messages[ts]["metadata"]["event_payload"] = {}
        with pytest.raises(DeliveryRefusedError, match="is not told in full"):
            await adapter.find(to_ann(slack), idempotency_key="k")


async def test_an_answer_to_a_button_is_looked_for_behind_its_message(
    slack: FakeSlack, adapter: SlackAdapter
):
    async with adapter.connect(Inbox()):
        ts = await adapter.send(to_ann(slack), OutboundMessage(text="?"), idempotency_key="k1")
        sent = await adapter.send(to_ann(slack), OutboundMessage(text="!"), idempotency_key="k2")
        target = to_ann(slack, reply_to=f"press:{ts}:1760000001.000000:U1")
        assert await adapter.find(target, idempotency_key="k2") == sent
        assert slack.calls[-1].parameters["oldest"] == ts
        await adapter.find(to_ann(slack, reply_to="command:7.8"), idempotency_key="k2")
        assert "oldest" not in slack.calls[-1].parameters


async def test_a_channel_may_be_heard_whole_or_as_one_session(slack: FakeSlack):
    inbox = Inbox()
    options = {"groups": "all", "threads": ThreadSessions.NOWHERE}
    async with events_door(slack, **options) as adapter, adapter.connect(inbox):
        root = slack.people.says("ann", "no mention", channel="team")
        await inbox.wait_for(1)  # Slack promises no order
        slack.people.says("bob", "in a thread", channel="team", thread=root)
        first, second = await inbox.wait_for(2)
        assert (first.source.thread_id, second.source.thread_id) == (None, None)
        await adapter.send(ReplyTarget.answering(first), OutboundMessage(text="1"), idempotency_key="1")
        await adapter.send(ReplyTarget.answering(second), OutboundMessage(text="2"), idempotency_key="2")
    assert slack.texts(channel="team", thread=root) == ["2"]
    assert slack.texts(channel="team") == ["1", "2"]


# Names


async def test_people_and_channels_are_called_by_their_names(slack: FakeSlack, door: SlackDoor):
    slack.workspace.person("bob")
    inbox = Inbox()
    async with door(slack) as adapter, adapter.connect(inbox):
        slack.people.says("ann", "@helper tell @bob and @ann", channel="team")
        slack.people.says("ann", "again, @bob")
        direct, message, twin = sorted(await inbox.wait_for(3), key=lambda one: one.text)
    assert message.text == twin.text == "tell @bob and @ann"
    assert (message.source.user_name, message.source.chat_name) == ("ann", "team")
    assert (direct.text, direct.source.chat_name) == ("again, @bob", None)
    asked = [one.parameters["user"] for one in slack.calls if one.method == "users.info"]
    assert len(asked) == len(set(asked)) == 2


async def test_a_message_is_not_held_up_by_a_name(slack: FakeSlack, adapter: SlackAdapter):
    slack.faults.plan(Delay(60), method="users.info")
    inbox = Inbox()
    async with adapter.connect(inbox):
        slack.people.says("ann", "first")
        slack.people.says("ann", "second")
        first, second = await inbox.wait_for(2)
    assert [first.text, second.text] == ["first", "second"]
    assert first.source.user_name is None


# Changes


async def test_edits_and_deletions_are_told_and_what_slack_adds_is_not(slack: FakeSlack, door: SlackDoor):
    inbox = Inbox()
    async with door(slack) as adapter, adapter.connect(inbox):
        ts = slack.people.says("ann", "helo")
        await inbox.wait_for(1)
        slack.people.edits(ts, "hello")
        await inbox.wait_for(2)
        slack.people.unfurls(ts)
        slack.people.deletes(ts)
        said, edited, deleted = await inbox.wait_for(3)
    assert [one.kind for one in (said, edited, deleted)] == [
        MessageKind.NEW,
        MessageKind.EDIT,
        MessageKind.DELETE,
    ]
    assert {one.message_id for one in (said, edited, deleted)} == {ts}
    assert (edited.text, edited.revision > 0) == ("hello", True)


# Buttons and commands


async def test_buttons_and_commands_reach_the_gateway(slack: FakeSlack, door: SlackDoor, tmp_path: Path):
    async def agent(turn: TurnContext) -> Reply:
        if turn.messages[0].action is not None:
            return Reply(f"You chose {turn.messages[0].action}")
        return Reply("**Sure?**", format=TextFormat.MARKDOWN, buttons=(Button("Yes", "y"), Button("No", "n")))

    async with (
        door(slack, command="/helper") as adapter,
        SessionStore.open(tmp_path, QUICK) as store,
        Gateway(store, agent=agent, adapters=[adapter]),
    ):
        slack.people.says("ann", "delete it")
        await slack.wait_until(lambda: slack.texts("ann") == ["Sure?\n[Yes] [No]"], seconds=PATIENCE)
        press = slack.people.presses("ann", "Yes")
        assert await slack.is_taken(press)
        await slack.wait_until(lambda: "You chose y" in slack.texts("ann"), seconds=PATIENCE)
        before = await store.peek_session_id(f"agent:main:slack:dm:{slack.people.place('ann').id}")
        command = slack.people.commands("ann", "/helper", "new Trip")
        assert await slack.is_taken(command)
        await slack.wait_until(lambda: len(slack.texts("ann")) == 3, seconds=PATIENCE)
        after = await store.peek_session_id(f"agent:main:slack:dm:{slack.people.place('ann').id}")
        assert None not in (before, after)
        assert before != after


async def test_an_edit_takes_the_buttons_away(slack: FakeSlack, adapter: SlackAdapter):
    message = OutboundMessage(text="Sure?", buttons=(Button("Yes"), Button("Page", url="https://e.org")))
    async with adapter.connect(Inbox()):
        ts = await adapter.send(to_ann(slack), message, idempotency_key="k")
        assert ts is not None
        assert slack.texts("ann") == ["Sure?\n[Yes] [Page]"]
        await adapter.edit(to_ann(slack), ts, OutboundMessage(text="Done. *Not* bold & <plain>"))
        assert [text.replace("\u200b", "") for text in slack.texts("ann")] == ["Done. *Not* bold & <plain>"]


async def test_blocks_that_slack_refuses_are_told_in_words(
    slack: FakeSlack, adapter: SlackAdapter, caplog: pytest.LogCaptureFixture
):
    photo = Attachment(kind=AttachmentKind.PHOTO, url="https://e.org/p.png", name="p & q")
    message = OutboundMessage(
        text="look", attachments=(photo,), buttons=(Button("Yes"), Button("Page", url="https://e.org"))
    )
    slack.faults.plan(
        RefusedCall(200, "invalid_blocks"),
        matches=lambda _, given: "attachments" in given or "blocks" in given,
    )
    async with adapter.connect(Inbox()):
        await adapter.send(to_ann(slack), message, idempotency_key="k")
    assert slack.texts("ann") == ["look\np & q https://e.org/p.png\n- Yes\n- Page: https://e.org"]
    assert "a text is sent without its markup" in caplog.text


async def test_what_only_slack_understands_is_handed_on(slack: FakeSlack, adapter: SlackAdapter):
    blocks = [{"type": "header", "text": {"type": "plain_text", "text": "Head"}}]
    message = OutboundMessage(text="fallback", extra={"slack": {"blocks": blocks, "unfurl_links": True}})
    long = OutboundMessage(text="x" * 3500, markup="x" * 3500, buttons=(Button("Yes"),))
    async with adapter.connect(Inbox()):
        await adapter.send(to_ann(slack), message, idempotency_key="k1")
        await adapter.send(to_ann(slack), long, idempotency_key="k2")
    assert slack.texts("ann") == ["Head", f"{'x' * 3500}\n[Yes]"]
    assert slack.calls[-2].parameters["unfurl_links"] is True
    assert slack.calls[-1].parameters["unfurl_links"] is False


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        (OutboundMessage(text="x" * 4001), "may have 4000 UTF-16 units, this one has 4001"),
        (OutboundMessage(text="?", buttons=(Button("b"),) * 26), "may have 25 buttons"),
        (OutboundMessage(text="?", buttons=(Button("b", "v" * 2001),)), "may have 2000 characters"),
    ],
)
async def test_what_slack_would_refuse_is_refused(
    slack: FakeSlack, adapter: SlackAdapter, message: OutboundMessage, problem: str
):
    async with adapter.connect(Inbox()):
        with pytest.raises(DeliveryRefusedError, match=problem):
            await adapter.send(to_ann(slack), message, idempotency_key="k")
        with pytest.raises(DeliveryRefusedError, match="too many for an edit"):
            await adapter.edit(to_ann(slack), "1.1", OutboundMessage(text="&" * 1000))
    assert slack.texts("ann") == []


# Files


async def test_files_come_and_go_by_content(slack: FakeSlack, door: SlackDoor):
    inbox, content = Inbox(), bytes(range(256))
    async with door(slack) as adapter, adapter.connect(inbox):
        slack.people.says("ann", "look", files=[("in.bin", content)])
        (message,) = await inbox.wait_for(1)
        (attachment,) = message.attachments
        assert (attachment.name, await adapter.fetch(attachment)) == ("in.bin", content)
        with pytest.raises(InvalidInputError, match="has 256 bytes, at most 100 are fetched"):
            await adapter.fetch(attachment, most=100)
        unsized = Attachment(kind=AttachmentKind.DOCUMENT, url=attachment.url)
        with pytest.raises(InvalidInputError, match="more than 100 bytes"):
            await adapter.fetch(unsized, most=100)
        url = "data:application/x;base64," + base64.b64encode(content).decode()
        sent = tuple(Attachment(kind=AttachmentKind.DOCUMENT, url=url, name=name) for name in ("a", "b"))
        reply = OutboundMessage(text="*here*", attachments=sent)
        target = ReplyTarget.answering(message)
        ts = await adapter.send(target, reply, idempotency_key="k1")
        assert await adapter.find(target, idempotency_key="k1") == ts
        await adapter.send(target, OutboundMessage(attachments=sent[:1]), idempotency_key="k2")
        assert await adapter.find(target, idempotency_key="k2") is not None
        slack.workspace.contents.pop(attachment.url.removeprefix("slack:"))
        with pytest.raises(InvalidInputError, match="404"):
            await adapter.fetch(attachment)
    assert slack.texts("ann") == ["[a]", "[b]", "*here*", "[a]", "a"]
    assert all(
        slack.workspace.contents[file["id"]] == content
        for one in slack.shown("ann")
        for file in one.get("files", [])
    )


async def test_a_picture_of_slack_is_shown_again(slack: FakeSlack, adapter: SlackAdapter):
    inbox = Inbox()
    async with adapter.connect(inbox):
        slack.people.says("ann", "", files=[("p.png", b"png")])
        (message,) = await inbox.wait_for(1)
        (photo,) = message.attachments
        target = to_ann(slack)
        await adapter.send(target, OutboundMessage(text="yours", attachments=(photo,)), idempotency_key="k")
        (shown,) = slack.shown("ann")
        assert shown["attachments"][0]["blocks"][0]["slack_file"] == {"id": photo.url.removeprefix("slack:")}
        document = Attachment(kind=AttachmentKind.DOCUMENT, url=photo.url, name="d")
        with pytest.raises(DeliveryRefusedError, match="only if it is a picture"):
            await adapter.send(target, OutboundMessage(attachments=(document,)), idempotency_key="k2")


async def test_a_login_page_is_no_file(
    slack: FakeSlack, adapter: SlackAdapter, monkeypatch: pytest.MonkeyPatch
):
    inbox = Inbox()
    async with adapter.connect(inbox):
        slack.people.says("ann", "look", files=[("a.bin", b"x")])
        (message,) = await inbox.wait_for(1)
        slack.workspace.contents[message.attachments[0].url.removeprefix("slack:")] = b"<!DOCTYPE html><html>"
        with pytest.raises(InvalidInputError, match=r"Slack shows its login page in place of a\.bin"):
            await adapter.fetch(message.attachments[0])
        with pytest.raises(InvalidInputError, match="is no file of Slack"):
            await adapter.fetch(Attachment(kind=AttachmentKind.PHOTO, url="https://e.org/a.png"))


@pytest.mark.parametrize("url", ["/etc/passwd", "file:///etc/passwd", "", "data:;base64,%%%", "data:,"])
async def test_a_path_or_a_damaged_address_is_refused(slack: FakeSlack, adapter: SlackAdapter, url: str):
    file = Attachment(kind=AttachmentKind.DOCUMENT, url=url, name="secret")
    async with adapter.connect(Inbox()):
        with pytest.raises(DeliveryRefusedError, match=r"has no address|cannot be read|is empty"):
            await adapter.send(to_ann(slack), OutboundMessage(attachments=(file,)), idempotency_key="k")
    assert slack.shown("ann") == []


# Typing


async def test_the_status_is_shown_in_threads(slack: FakeSlack, door: SlackDoor):
    root = slack.people.says("ann", "a thread")
    async with door(slack) as adapter, adapter.connect(Inbox()):
        await adapter.typing(to_ann(slack))
        await adapter.typing(to_ann(slack, metadata={"thread_ts": root}))
        slack.faults.plan(RateLimit(0.01), method="assistant.threads.setStatus")
        with pytest.raises(RateLimitedError):
            await adapter.typing(to_ann(slack, thread_id=root))
    assert slack.methods.statuses == [(slack.people.place("ann").id, root, "is typing…")]


async def test_where_no_status_can_be_shown_it_is_not_tried_again(slack: FakeSlack, adapter: SlackAdapter):
    root = slack.people.says("ann", "a thread")
    slack.scopes.discard("assistant:write")
    async with adapter.connect(Inbox()):
        for _ in range(3):
            await adapter.typing(to_ann(slack, thread_id=root))
    assert sum(one.method == "assistant.threads.setStatus" for one in slack.calls) == 1


# What may go wrong


@pytest.mark.parametrize(
    ("error", "told"),
    [
        ("invalid_auth", "the token is wrong: copy it"),
        ("account_inactive", "the app was removed from the workspace"),
        ("team_access_not_granted", "the app has no access to this workspace"),
        ("fatal_error", "failed in the middle"),
        ("unheard_of", "unheard_of"),
    ],
)
async def test_a_token_that_opens_nothing_is_told_in_one_sentence(
    slack: FakeSlack, door: SlackDoor, error: str, told: str
):
    slack.faults.plan(RefusedCall(200, error), method="auth.test")
    async with door(slack) as adapter:
        with pytest.raises(AdapterUnavailableError, match=told):
            async with adapter.connect(Inbox()):
                pass


async def test_a_slack_that_is_away_is_unavailable(slack: FakeSlack, door: SlackDoor):
    async with door(slack) as adapter, slack.outage():
        with pytest.raises(AdapterUnavailableError, match="slack: cannot be reached"):
            async with adapter.connect(Inbox()):
                pass


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (RefusedCall(200, "not_allowed_token_type"), "Socket Mode: this is the wrong kind of token"),
        (ServerFault(), "Socket Mode: Slack answered with status 502"),
        (CutConnection.BEFORE, "Socket Mode cannot be reached"),
    ],
)
async def test_socket_mode_that_cannot_be_had_is_told(slack: FakeSlack, fault: Any, told: str):
    slack.faults.plan(fault, method="apps.connections.open", times=2)  # the library tries twice
    async with socket_door(slack) as adapter:
        with pytest.raises(AdapterUnavailableError, match=told):
            async with adapter.connect(Inbox()):
                pass


async def test_socket_mode_goes_on_after_a_refresh(slack: FakeSlack):
    inbox = Inbox()
    async with socket_door(slack) as adapter, adapter.connect(inbox):
        slack.deliveries.refresh_sockets()
        await slack.wait_until(lambda: [one.asked_to_go for one in slack.deliveries.sockets] == [False])
        slack.people.says("ann", "hello")
        await inbox.wait_for_text("hello")


def slow_app(slack: FakeSlack, pause: Callable[[], Awaitable[None]]) -> tuple[AsyncApp, asyncio.Event]:
    """Return an app that pauses before each message, and what tells that it has begun with one."""
    app, began = bolt_app(slack), asyncio.Event()

    @app.middleware
    async def wait(body: dict[str, Any], next_: Callable[[], Awaitable[None]]) -> None:
        if body["event"]["type"] == "message":
            began.set()
            await pause()
        await next_()

    @app.message("settings")
    async def settings() -> None:
        """Say nothing: Bolt acknowledges the message."""

    return app, began


async def test_what_a_listener_does_at_the_end_of_socket_mode_is_acknowledged(slack: FakeSlack):
    app, began = slow_app(slack, lambda: asyncio.sleep(0.2))
    async with SlackBoltAdapter(app, app_token=slack.app_token).connect(Inbox()):
        settings = slack.people.says("ann", "settings")
        await began.wait()
    assert await slack.is_taken(settings)


async def test_a_listener_that_hangs_ends_with_socket_mode(slack: FakeSlack, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(slack_bolt, "ACKNOWLEDGE_SECONDS", 0.05)
    ended = asyncio.Event()

    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    app, began = slow_app(slack, hang)
    async with SlackBoltAdapter(app, app_token=slack.app_token).connect(Inbox()):
        slack.people.says("ann", "settings")
        await began.wait()
    assert ended.is_set()


async def stay_away(slack: FakeSlack, adapter: SlackBoltAdapter, clock: FakeClock) -> None:
    async with adapter.connect(Inbox()), slack.outage():
        await slack.wait_until(lambda: not slack.deliveries.sockets)
        with anyio.fail_after(PATIENCE):
            while True:
                await clock.advance(timedelta(seconds=5))
                await asyncio.sleep(0.01)


async def test_socket_mode_that_stays_away_ends_the_connection(slack: FakeSlack):
    clock = FakeClock()
    async with socket_door(slack, clock=clock) as adapter:
        with pytest.raises(AdapterUnavailableError, match="Socket Mode was lost"):
            await stay_away(slack, adapter, clock)


async def test_what_cannot_be_read_is_kept_in_a_file(slack: FakeSlack, door: SlackDoor, tmp_path: Path):
    broken = {"type": "event_callback", "event": {"type": "message", "ts": 7}}
    async with door(slack, unreadable=tmp_path) as adapter, adapter.connect(Inbox()):
        slack.people.owe_event(broken, "broken")
        assert await slack.is_taken("broken")
    (kept,) = tmp_path.iterdir()
    assert "event_callback" in kept.read_text()


def test_a_wrong_app_is_refused_at_once(slack: FakeSlack):
    with pytest.raises(InvalidInputError, match="needs an AsyncApp"):
        SlackBoltAdapter(App(token=slack.token, signing_secret="s", token_verification_enabled=False))  # type: ignore[arg-type]

    async def authorize() -> None:
        """Say nothing: it is not called."""

    with pytest.raises(InvalidInputError, match="serves one workspace"):
        SlackBoltAdapter(AsyncApp(signing_secret="s", authorize=authorize, logger=quiet))


async def test_nothing_is_sent_without_a_connection(slack: FakeSlack):
    async with bolt_door(slack) as adapter:
        with pytest.raises(AdapterUnavailableError, match="is not connected"):
            await adapter.send(to_ann(slack), OutboundMessage(text="x"), idempotency_key="k")


async def test_the_bot_and_other_bots_are_not_heard(slack: FakeSlack, adapter: SlackAdapter):
    inbox = Inbox()
    async with adapter.connect(inbox):
        assert adapter.bot.name == "helper"
        own = await adapter.send(to_ann(slack), OutboundMessage(text="mine"), idempotency_key="k")
        assert own is not None
        other = slack.people.says("robot", "beep", channel="team", bot_id="B9")
        assert await slack.is_taken(own)
        assert await slack.is_taken(other)
    assert inbox.messages == []
