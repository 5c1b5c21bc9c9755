"""The fake Slack, asked by the client libraries that people use: it answers as Slack does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import aiohttp
import pytest
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncAck, AsyncApp, AsyncSay
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from gateway_sessions.testing.fakes.faults import CutConnection, RateLimit, RefusedCall, ServerFault
from gateway_sessions.testing.fakes.slack import FakeSlack, SlackLimits, SlackTiming
from tests.integration.platforms.slack_doors import bolt_app, serving, web_client

BINARY = bytes(range(256)) + b"\r\n--boundary\r\n"
BUTTON = {"type": "button", "text": {"type": "plain_text", "text": "Yes"}, "action_id": "yes", "value": "y"}


@pytest.fixture
async def slack() -> AsyncGenerator[FakeSlack]:
    async with FakeSlack() as slack:
        yield slack


@pytest.fixture
def client(slack: FakeSlack) -> AsyncWebClient:
    return web_client(slack)


def refused(error: str) -> Any:
    return pytest.raises(SlackApiError, match=f"'error': '{error}'")


# The Web API


async def test_the_bot_is_introduced_with_its_rights(slack: FakeSlack, client: AsyncWebClient):
    me = await client.auth_test()
    assert (me["user"], me["bot_id"]) == ("helper", "B0000001")
    assert "chat:write" in me.headers["x-oauth-scopes"]


@pytest.mark.parametrize(("token", "error"), [("xoxb-other", "invalid_auth"), ("", "not_authed")])
async def test_strangers_are_refused(slack: FakeSlack, token: str, error: str):
    with refused(error):
        await AsyncWebClient(token, base_url=slack.api_url).auth_test()


async def test_a_missing_right_is_named(slack: FakeSlack, client: AsyncWebClient):
    slack.scopes.discard("chat:write")
    with refused("missing_scope") as told:
        await client.chat_postMessage(channel=slack.people.place("ann").id, text="x")
    assert told.value.response["needed"] == "chat:write"


async def test_the_bot_posts_edits_and_deletes(slack: FakeSlack, client: AsyncWebClient):
    place = slack.people.place("ann").id
    posted = await client.chat_postMessage(channel=place, text="*one* &lt;b&gt; <https://e.org|here> `a*b*`")
    assert slack.texts("ann") == ["one <b> here a*b*"]
    await client.chat_update(channel=place, ts=posted["ts"], text="two")
    assert slack.texts("ann") == ["two"]
    with refused("msg_too_long"):
        await client.chat_update(channel=place, ts=posted["ts"], text="x" * 4001)
    await client.chat_delete(channel=place, ts=posted["ts"])
    assert slack.texts("ann") == []
    with refused("message_not_found"):
        await client.chat_update(channel=place, ts=posted["ts"], text="three")
    theirs = slack.people.says("ann", "mine")
    with refused("cant_update_message"):
        await client.chat_update(channel=place, ts=theirs, text="yours")


async def test_an_edit_leaves_the_blocks_that_it_does_not_name(slack: FakeSlack, client: AsyncWebClient):
    place = slack.people.place("ann").id
    blocks = [{"type": "section", "text": {"type": "mrkdwn", "text": "*old*"}}]
    posted = await client.chat_postMessage(channel=place, text="old", blocks=blocks)
    await client.chat_update(channel=place, ts=posted["ts"], text="new")
    assert slack.texts("ann") == ["old"]
    await client.chat_update(channel=place, ts=posted["ts"], text="new", blocks=[])
    assert slack.texts("ann") == ["new"]


@pytest.mark.parametrize(
    ("blocks", "problem"),
    [
        ([{"type": "divider"}] * 51, "no more than 50 items"),
        ([{"type": "section", "text": {"type": "mrkdwn", "text": "x" * 3001}}], "less than 3001 characters"),
        ([{"type": "section", "text": {"type": "html", "text": "x"}}], "missing required field"),
        ([{"type": "section", "text": {"type": "mrkdwn", "text": ""}}], "more than 0 characters"),
        ([{"type": "carousel"}], "unsupported type: carousel"),
        ([{"type": "actions", "elements": []}], "no more than 25 items"),
        ([{"type": "actions", "elements": [BUTTON, BUTTON]}], "already exists"),
        ([{"type": "actions", "elements": [{**BUTTON, "value": "v" * 2001}]}], "less than 2001"),
        ([{"type": "image", "image_url": "https://e.org/a.png"}], "alt_text"),
        ([{"type": "markdown", "text": "x" * 12_001}], "less than 12001"),
        ([{"type": "header", "text": {"type": "mrkdwn", "text": "x"}}], "missing required field"),
        (["text"], "must be an array of objects"),
    ],
)
async def test_blocks_are_checked(slack: FakeSlack, client: AsyncWebClient, blocks: Any, problem: str):
    with pytest.raises(SlackApiError) as told:
        await client.chat_postMessage(channel=slack.people.place("ann").id, text="x", blocks=blocks)
    assert told.value.response["error"] == "invalid_blocks"
    assert problem in told.value.response["errors"][0]


async def test_texts_and_places_have_slack_s_limits(slack: FakeSlack, client: AsyncWebClient):
    place = slack.people.place("ann").id
    with refused("no_text"):
        await client.api_call("chat.postMessage", json={"channel": place, "text": " "})
    with refused("msg_too_long"):
        await client.chat_postMessage(channel=place, text="x" * 40_001)
    await client.chat_postMessage(channel=place, text="x" * 40_000)
    with refused("channel_not_found"):
        await client.chat_postMessage(channel="C404", text="x")
    team = slack.workspace.channel("team")
    await client.chat_postMessage(channel="#team", text="x")
    team.is_archived = True
    with refused("is_archived"):
        await client.chat_postMessage(channel=team.id, text="x")
    team.members.clear()
    with refused("not_in_channel"):
        await client.chat_postMessage(channel=team.id, text="x")
    slack.workspace.channel("secret", kind="group").members.clear()
    with refused("channel_not_found"):
        await client.chat_postMessage(channel="#secret", text="x")
    await client.chat_postMessage(channel=slack.workspace.person("ann").id, text="to a person")
    assert slack.texts("ann")[-1] == "to a person"
    with refused("unknown_method"):
        await client.api_call("chat.sing")


async def test_what_is_not_escaped_is_noticed(slack: FakeSlack, client: AsyncWebClient):
    place = slack.people.place("ann").id
    for text in ("a &amp; b <https://e.org|e> <@U1>", "a & b", "if a < b"):
        await client.chat_postMessage(channel=place, text=text)
    assert slack.methods.unescaped == ["a & b", "if a < b"]


async def test_metadata_is_read_back_only_if_it_is_asked_for(slack: FakeSlack, client: AsyncWebClient):
    place = slack.people.place("ann").id
    metadata = {"event_type": "mine", "event_payload": {"key": "k1"}}
    root = slack.people.says("ann", "question")
    await client.chat_postMessage(channel=place, text="answer", metadata=metadata)
    await client.chat_postMessage(channel=place, text="in the thread", thread_ts=root, metadata=metadata)
    found = await client.conversations_history(channel=place, include_all_metadata=True, limit=1)
    assert (found["messages"][0]["metadata"], found["has_more"]) == (metadata, True)
    cursor = found["response_metadata"]["next_cursor"]
    more = await client.conversations_history(channel=place, cursor=cursor, limit=1)
    assert [one["text"] for one in more["messages"]] == ["question"]
    thread = await client.conversations_replies(channel=place, ts=root, oldest=root)
    assert [one["text"] for one in thread["messages"]] == ["question", "in the thread"]
    assert all("metadata" not in one for one in thread["messages"])
    with refused("thread_not_found"):
        await client.conversations_replies(channel=place, ts="1.0")
    with refused("invalid_metadata_format"):
        await client.chat_postMessage(channel=place, text="x", metadata={"event_type": "mine"})
    large = {"event_type": "mine", "event_payload": {"key": "k" * 20_000}}
    with refused("metadata_too_large"):
        await client.chat_postMessage(channel=place, text="x", metadata=large)


async def test_who_calls_within_a_pause_waits_longer(slack: FakeSlack, client: AsyncWebClient):
    place = slack.people.place("ann").id
    slack.faults.plan(RateLimit(0.3), method="chat.postMessage")
    for wait in ("1", "1", "2"):
        with refused("ratelimited") as told:
            await client.chat_postMessage(channel=place, text="x")
        assert told.value.response.headers["retry-after"] == wait
    await client.chat_postMessage(channel=slack.people.place("bob").id, text="others are not held up")


async def test_one_message_a_second_fits_in_a_channel():
    async with FakeSlack(limits=SlackLimits()) as slack:
        client, place = web_client(slack), slack.people.place("ann").id
        await client.chat_postMessage(channel=place, text="one")
        with refused("ratelimited"):
            await client.chat_postMessage(channel=place, text="two")


async def test_faults_come_as_they_were_planned(slack: FakeSlack):
    client = AsyncWebClient(slack.token, base_url=slack.api_url, retry_handlers=[])
    place = slack.people.place("ann").id
    slack.faults.plan(ServerFault(done=True))
    with pytest.raises(SlackApiError):
        await client.chat_postMessage(channel=place, text="shown all the same")
    for fault in (CutConnection.BEFORE, CutConnection.AFTER):
        slack.faults.plan(fault)
        with pytest.raises(aiohttp.ServerDisconnectedError):
            await client.chat_postMessage(channel=place, text=fault)
    slack.faults.plan(RefusedCall(200, "fatal_error"))
    with refused("fatal_error"):
        await client.chat_postMessage(channel=place, text="never")
    assert slack.texts("ann") == ["shown all the same", "after"]


async def test_the_library_itself_repeats_a_call_that_was_cut_unless_it_is_told_not_to(
    slack: FakeSlack, client: AsyncWebClient
):
    slack.faults.plan(CutConnection.AFTER)
    await client.chat_postMessage(channel=slack.people.place("ann").id, text="twice")
    assert slack.texts("ann") == ["twice", "twice"]


async def test_files_go_both_ways_unchanged(slack: FakeSlack, client: AsyncWebClient):
    ts = slack.people.says("ann", "look", files=[("a.bin", BINARY)])
    (file,) = slack.workspace.direct("ann").messages[ts]["files"]
    async with aiohttp.ClientSession() as session:
        headers = {"authorization": f"Bearer {slack.token}"}
        async with session.get(file["url_private_download"], headers=headers) as answer:
            assert await answer.read() == BINARY
        async with session.get(file["url_private"]) as answer:
            assert (answer.status, answer.content_type) == (200, "text/html")
    place = slack.people.place("ann").id
    await client.files_upload_v2(channel=place, content=BINARY, filename="b.bin", initial_comment="here")
    assert slack.texts("ann") == ["here\n[b.bin]"]
    (shown,) = slack.shown("ann")
    assert slack.workspace.contents[shown["files"][0]["id"]] == BINARY
    with refused("file_not_found"):
        await client.files_completeUploadExternal(files=[{"id": "F404", "title": "x"}], channel_id=place)


async def test_a_status_needs_a_thread(slack: FakeSlack, client: AsyncWebClient):
    place, ts = slack.people.place("ann").id, slack.people.says("ann", "hi")
    await client.assistant_threads_setStatus(channel_id=place, thread_ts=ts, status="is thinking")
    assert slack.methods.statuses == [(place, ts, "is thinking")]
    with refused("invalid_thread_ts"):
        await client.assistant_threads_setStatus(channel_id=place, thread_ts="1.0", status="x")


async def test_people_and_channels_are_described(slack: FakeSlack, client: AsyncWebClient):
    ann = slack.workspace.person("ann")
    user = (await client.users_info(user=ann.id))["user"]
    assert (user["profile"]["display_name"], user["is_bot"]) == ("ann", False)
    opened = await client.conversations_open(users=ann.id)
    described = await client.conversations_info(channel=opened["channel"]["id"])
    assert described["channel"]["is_im"] is True
    with refused("user_not_found"):
        await client.users_info(user="U404")


async def test_some_things_only_one_person_sees(slack: FakeSlack, client: AsyncWebClient):
    place, ann = slack.people.place("ann").id, slack.workspace.person("ann").id
    await client.chat_postEphemeral(channel=place, user=ann, text="psst")
    assert [one["text"] for one in slack.methods.ephemerals] == ["psst"]
    assert slack.texts("ann") == []
    assert (await client.api_test(foo="bar"))["args"] == {"foo": "bar"}


async def test_a_file_may_be_uploaded_as_a_form(slack: FakeSlack, client: AsyncWebClient):
    begun = await client.files_getUploadURLExternal(filename="a.txt", length=3)
    async with aiohttp.ClientSession() as session:
        short = aiohttp.FormData()
        short.add_field("file", b"ab", filename="a.txt")
        async with session.post(begun["upload_url"], data=short) as answer:
            assert answer.status == 400
        form = aiohttp.FormData()
        form.add_field("file", b"abc", filename="a.txt")
        async with session.post(begun["upload_url"], data=form) as answer:
            assert (answer.status, await answer.text()) == (200, "OK - 3")
        async with session.get(f"{slack.url}/nowhere") as answer:
            assert answer.status == 404
        async with session.post(f"{slack.url}/response/1", json={"text": "later"}) as answer:
            assert await answer.text() == "ok"
    done = await client.files_completeUploadExternal(files=[{"id": begun["file_id"], "title": "a"}])
    described = await client.files_info(file=done["files"][0]["id"])
    assert (described["file"]["mimetype"], described["file"]["size"]) == ("text/plain", 3)
    with refused("file_not_found"):
        await client.files_info(file="F404")
    with refused("invalid_arguments"):
        await client.files_getUploadURLExternal(filename="a", length=0)


async def test_methods_that_only_read_pass_over_json(slack: FakeSlack, client: AsyncWebClient):
    ann = slack.workspace.person("ann").id
    with refused("user_not_found"):
        await client.api_call("users.info", json={"user": ann})
    assert (await client.api_call("users.info", data={"user": ann}))["ok"]


async def test_an_app_hears_only_what_it_has_asked_for():
    async with FakeSlack(events=["app_mention"]) as slack:
        slack.people.says("ann", "hello")
        slack.people.says("ann", "@helper hello", channel="team")
        slack.workspace.channel("secret", kind="group").members.clear()
        slack.people.says("ann", "@helper hello", channel="secret")
        (only,) = slack.deliveries.all
        assert (only.payload["event"]["type"], "channel_type" in only.payload["event"]) == (
            "app_mention",
            False,
        )
        with pytest.raises(AssertionError, match="there is no message"):
            slack.people.edits("1.1", "x")


# Events by HTTP


class Heard:
    """What an app heard, and how it behaves."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.retries: list[str | None] = []
        self.fails = False
        self.hangs = False

    async def hear(self, body: dict[str, Any], request: Any) -> None:
        self.events.append(body["event"])
        self.retries.append(request.headers.get("x-slack-retry-num", [None])[0])
        if self.hangs:
            await asyncio.sleep(1)
        if self.fails:
            raise LookupError("broken")


def hearing(slack: FakeSlack) -> tuple[AsyncApp, Heard]:
    app, heard = bolt_app(slack, process_before_response=True), Heard()
    app.event("message")(heard.hear)
    app.event("app_mention")(heard.hear)
    return app, heard


async def test_an_app_proves_that_it_listens(slack: FakeSlack):
    app, _ = hearing(slack)
    async with serving(app) as url:
        assert await slack.deliveries.challenge(url)


async def test_what_people_do_is_told_to_the_app(slack: FakeSlack):
    app, heard = hearing(slack)
    async with serving(app) as url:
        slack.listen_at(url)
        first = slack.people.says("ann", "hello <b> & https://e.org")
        assert await slack.is_taken(first)
        mention = slack.people.says("bob", "@helper hi", channel="team")
        assert await slack.is_taken(mention)
        slack.people.edits(first, "hello again")
        slack.people.unfurls(first)
        slack.people.deletes(first)
        slack.people.says("bob", "an answer", channel="team", thread=mention)
        slack.people.deletes(mention)
        await slack.wait_until(lambda: slack.pending == 0)
    said, *others = heard.events
    assert (said["text"], said["channel_type"]) == ("hello &lt;b&gt; &amp; <https://e.org>", "im")
    assert sorted(one["type"] for one in others[:2]) == ["app_mention", "message"]
    assert {one["ts"] for one in others[:2]} == {mention}
    subtypes = [one["subtype"] for one in others if "subtype" in one]
    assert sorted(subtypes) == ["message_changed"] * 3 + ["message_deleted"]
    tombstones = [one for one in others if one.get("message", {}).get("subtype") == "tombstone"]
    assert [one["message"]["ts"] for one in tombstones] == [mention]
    (answer,) = [one for one in others if one.get("text") == "an answer"]
    assert answer["parent_user_id"] == slack.workspace.person("bob").id


async def test_what_is_not_taken_comes_three_times_more_and_then_never():
    async with FakeSlack(timing=SlackTiming(speed=6000)) as slack:
        app, heard = hearing(slack)
        heard.fails = True
        async with serving(app) as url:
            slack.listen_at(url)
            ts = slack.people.says("ann", "hello")
            assert not await slack.is_taken(ts)
            await slack.wait_until(lambda: slack.pending == 0)
            assert heard.retries == [None, "1", "2", "3"]
            assert slack.deliveries.all[0].outcomes == ["http_error"] * 4


async def test_delayed_events_come_for_a_day():
    async with FakeSlack(timing=SlackTiming(speed=1_000_000, delayed_events=True)) as slack:
        slack.listen_at("http://127.0.0.1:9/")
        slack.people.says("ann", "hello")
        await slack.wait_until(lambda: slack.pending == 0, seconds=30)
        assert slack.deliveries.all[0].outcomes == ["connection_failed"] * 28


async def test_who_does_not_answer_in_time_hears_it_again():
    async with FakeSlack(timing=SlackTiming(answer_seconds=0.2)) as slack:
        app, heard = hearing(slack)
        heard.hangs = True
        async with serving(app) as url:
            slack.listen_at(url)
            ts = slack.people.says("ann", "hello")
            assert not await slack.is_taken(ts)
            assert slack.deliveries.all[0].outcomes[0] == "http_timeout"
            heard.hangs = False
            await slack.wait_until(lambda: slack.pending == 0)


async def test_a_forged_request_is_refused(slack: FakeSlack):
    app, heard = hearing(slack)
    async with serving(app) as url, aiohttp.ClientSession() as session:
        old = slack.deliveries.signed(b"{}", at=1_000_000_000)
        for headers in ({"x-slack-signature": "v0=0", "x-slack-request-timestamp": "1"}, old):
            async with session.post(url, data=b"{}", headers=headers) as answer:
                assert answer.status == 401
    assert heard.events == []


async def test_buttons_and_commands_are_answered(slack: FakeSlack, client: AsyncWebClient):
    app, pressed = bolt_app(slack), list[Any]()

    @app.action("yes")
    async def yes(ack: AsyncAck, action: dict[str, Any]) -> None:
        pressed.append(action["value"])
        await ack()

    @app.command("/echo")
    async def echo(ack: AsyncAck, command: dict[str, Any], say: AsyncSay) -> None:
        await ack(f"You said {command['text']}")
        await say("to all")

    place = slack.people.place("ann").id
    blocks = [{"type": "actions", "elements": [BUTTON]}]
    await client.chat_postMessage(channel=place, text="sure?", blocks=blocks)
    async with serving(app) as url:
        slack.listen_at(url)
        press = slack.people.presses("ann", "Yes")
        command = slack.people.commands("ann", "/echo", "a & b")
        assert await slack.is_taken(press)
        assert await slack.is_taken(command)
        await slack.wait_until(lambda: "to all" in slack.texts("ann"))
    assert pressed == ["y"]
    assert slack.people.answered(command).answer == "You said a & b"
    with pytest.raises(AssertionError, match="sees no button 'No'"):
        slack.people.presses("ann", "No")


# Socket Mode


async def test_socket_mode_delivers_until_it_is_acknowledged():
    # The library takes a second or two until it has connected again, which Slack must outlast.
    async with FakeSlack(timing=SlackTiming(retries=(0.0, *(60.0,) * 30))) as slack:
        app, heard = hearing(slack)
        heard.fails = True
        handler = AsyncSocketModeHandler(app, slack.app_token, ping_interval=1)
        await handler.connect_async()
        try:
            ts = slack.people.says("ann", "hello")
            await slack.wait_until(lambda: heard.events)
            heard.fails = False
            await slack.wait_until(lambda: slack.pending == 0)
            assert not await slack.is_taken(ts)
            slack.deliveries.refresh_sockets()
            await slack.wait_until(lambda: [one.asked_to_go for one in slack.deliveries.sockets] == [False])
            assert await slack.is_taken(slack.people.says("ann", "after a refresh"))
            await slack.cut_sockets()
            slack.people.says("ann", "after a cut")
            await slack.wait_until(lambda: heard.events[-1]["text"] == "after a cut", seconds=30)
        finally:
            await handler.close_async()


async def test_socket_mode_needs_the_token_of_the_app(slack: FakeSlack, client: AsyncWebClient):
    with refused("not_allowed_token_type"):
        await client.apps_connections_open(app_token=slack.token)
