"""The fake homeserver, asked by matrix-nio: it answers as homeservers do."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncGenerator
from typing import Any

import aiohttp
import nio
import pytest

from gateway_sessions.testing.fakes.faults import CutConnection, RateLimit, RefusedCall, ServerFault
from gateway_sessions.testing.fakes.matrix import FakeMatrix
from gateway_sessions.testing.fakes.matrix.custom_html import html_problems

BINARY = bytes(range(256)) + b"\r\n--boundary\r\n"


def client_of(fake: FakeMatrix, **config: Any) -> nio.AsyncClient:
    """Return a client that gives up at once, where matrix-nio would try again for ever."""
    settings = nio.AsyncClientConfig(max_limit_exceeded=0, max_timeouts=0, **config)
    client = nio.AsyncClient(fake.url, fake.bot.user_id, config=settings)
    client.restore_login(fake.bot.user_id, "BOTDEVICE", fake.token)
    return client


@pytest.fixture
async def fake() -> AsyncGenerator[FakeMatrix]:
    async with FakeMatrix() as fake:
        yield fake


@pytest.fixture
async def client(fake: FakeMatrix) -> AsyncGenerator[nio.AsyncClient]:
    client = client_of(fake)
    yield client
    await client.close()


async def say(client: nio.AsyncClient, room: str, text: str, tx_id: str = "t1", **more: Any) -> Any:
    content = {"msgtype": "m.text", "body": text, **more}
    return await client.room_send(room, "m.room.message", content, tx_id=tx_id)


def bodies(answer: Any, room: str) -> list[str]:
    return [event.body for event in answer.rooms.join[room].timeline.events if hasattr(event, "body")]


# Who


async def test_a_bot_logs_in_and_is_known(fake: FakeMatrix):
    client = nio.AsyncClient(fake.url, fake.bot.user_id)
    try:
        assert isinstance(await client.login("wrong"), nio.LoginError)
        assert isinstance(await client.login(fake.password), nio.LoginResponse)
        who = await client.whoami()
        assert isinstance(who, nio.WhoamiResponse)
        assert (who.user_id, who.device_id) == (fake.bot.user_id, client.device_id)
        by_token = nio.AsyncClient(fake.url, fake.bot.user_id)
        assert isinstance(await by_token.login(token=fake.token), nio.LoginResponse)
        assert by_token.device_id != client.device_id
        await by_token.close()
    finally:
        await client.close()


@pytest.mark.parametrize("soft", [False, True])
async def test_a_revoked_token_is_unknown(fake: FakeMatrix, client: nio.AsyncClient, soft: bool):
    fake.revoke(soft=soft)
    answer = await client.sync()
    assert isinstance(answer, nio.SyncError)
    assert (answer.status_code, answer.soft_logout) == ("M_UNKNOWN_TOKEN", soft)


# What happens in rooms


async def test_a_sync_waits_for_news_and_tells_each_once(fake: FakeMatrix, client: nio.AsyncClient):
    fake.says("ann", "before")
    first = await client.sync()
    room = fake.room("ann").id
    assert isinstance(first, nio.SyncResponse)
    assert bodies(first, room) == ["before"]
    assert client.rooms[room].member_count == 2
    waiting = asyncio.create_task(client.sync(timeout=30_000))
    await fake.wait_until(lambda: fake.syncs)
    said = fake.says("ann", "hello")
    assert bodies(await waiting, room) == ["hello"]
    assert not await fake.is_taken(said, seconds=1)
    assert (await client.sync()).rooms.join == {}
    assert await fake.is_taken(said)


async def test_what_a_sync_leaves_out_is_found_by_paging_in_both_directions(
    fake: FakeMatrix, client: nio.AsyncClient
):
    first = await client.sync()
    assert isinstance(first, nio.SyncResponse)
    for number in range(30):
        fake.says("ann", str(number))
    room = fake.room("ann").id
    limited = await client.sync(sync_filter={"room": {"timeline": {"limit": 4}}})
    assert isinstance(limited, nio.SyncResponse)
    timeline = limited.rooms.join[room].timeline
    assert (timeline.limited, bodies(limited, room)) == (True, ["26", "27", "28", "29"])
    assert timeline.prev_batch is not None
    found = {"b": list[str](), "f": list[str]()}
    for way, (start, end) in {
        "b": (timeline.prev_batch, first.next_batch),
        "f": (first.next_batch, timeline.prev_batch),
    }.items():
        token: str | None = start
        while token is not None:
            page = await client.room_messages(room, token, end, way, limit=7)
            assert isinstance(page, nio.RoomMessagesResponse)
            found[way] += [event.body for event in page.chunk if isinstance(event, nio.RoomMessageText)]
            token = page.end
    assert found["f"] == [str(number) for number in range(26)]
    assert found["b"] == found["f"][::-1]


async def test_a_device_sends_a_transaction_once_and_another_device_again(
    fake: FakeMatrix, client: nio.AsyncClient
):
    room = fake.room("ann").id
    first = await say(client, room, "once")
    assert (await say(client, room, "once")).event_id == first.event_id
    await client.login(fake.password, device_name="new")
    assert client.device_id == "BOTDEVICE"
    assert (await say(client, room, "once")).event_id == first.event_id, "the same device, a new token"
    client.device_id = "OTHER"
    await client.login(fake.password)
    assert (await say(client, room, "once")).event_id != first.event_id
    assert fake.texts("ann") == ["once", "once"]


async def test_people_see_edits_threads_replies_and_what_was_taken_back(
    fake: FakeMatrix, client: nio.AsyncClient
):
    room, root = fake.room("ann").id, fake.says("ann", "question")
    thread = {"rel_type": "m.thread", "event_id": root}
    sent = await say(client, room, "draft", "t1", **{"m.relates_to": thread})
    gone = await say(client, room, "nonsense", "t2")
    new = {"msgtype": "m.text", "body": "final"}
    edit = {"m.new_content": new, "m.relates_to": {"rel_type": "m.replace", "event_id": sent.event_id}}
    await say(client, room, "* final", "t3", **edit)
    fake.edits(sent.event_id, "somebody else's edit", by="ann")
    await client.room_redact(room, gone.event_id)
    assert fake.texts("ann") == fake.texts("ann", thread=root) == ["final"]
    seen = await client.sync()
    assert isinstance(seen, nio.SyncResponse)
    kinds = [type(event).__name__ for event in seen.rooms.join[room].timeline.events]
    assert kinds[-2:] == ["RoomMessageText", "RedactionEvent"]
    found = await client.room_get_event(room, root)
    assert isinstance(found, nio.RoomGetEventResponse)
    assert found.event.source["content"]["body"] == "question"


async def test_an_invited_bot_joins_types_reads_and_leaves(fake: FakeMatrix, client: nio.AsyncClient):
    room = fake.invites("bob", room="team", text="hello bot")
    invited = await client.sync()
    assert isinstance(invited, nio.SyncResponse)
    assert [*invited.rooms.invite] == [room]
    assert isinstance(await say(client, room, "too early"), nio.RoomSendError)
    assert isinstance(await client.join(room), nio.JoinResponse)
    joined = await client.sync()
    assert isinstance(joined, nio.SyncResponse)
    assert bodies(joined, room) == ["hello bot"]
    assert client.rooms[room].display_name == "team"
    await client.room_typing(room)
    assert fake.room("bob", "team").typing == {fake.bot.user_id}
    event_id = joined.rooms.join[room].timeline.events[-1].event_id
    await client.update_receipt_marker(room, event_id)
    assert fake.room("bob", "team").read_up_to == {fake.bot.user_id: event_id}
    members = await client.joined_members(room)
    assert isinstance(members, nio.JoinedMembersResponse)
    assert {one.display_name for one in members.members} == {"Bob", "Helper"}
    assert isinstance(await client.room_leave(room), nio.RoomLeaveResponse)
    left = await client.sync()
    assert isinstance(left, nio.SyncResponse)
    assert [*left.rooms.leave] == [room]


async def test_state_names_and_filters_can_be_asked_for(fake: FakeMatrix, client: nio.AsyncClient):
    room = fake.room("ann", "team").id
    state = await client.room_get_state(room)
    assert isinstance(state, nio.RoomGetStateResponse)
    assert "m.room.name" in {event["type"] for event in state.events}
    name = await client.room_get_state_event(room, "m.room.name")
    assert isinstance(name, nio.RoomGetStateEventResponse)
    assert name.content == {"name": "team"}
    missing = await client.room_get_state_event(room, "m.room.topic")
    assert isinstance(missing, nio.RoomGetStateEventError)
    put = await client.room_put_state(room, "m.room.topic", {"topic": "plans"})
    assert isinstance(put, nio.RoomPutStateResponse)
    rooms = await client.joined_rooms()
    assert isinstance(rooms, nio.JoinedRoomsResponse)
    assert rooms.rooms == [room]
    profile = await client.get_displayname("@ann:fake.example")
    assert isinstance(profile, nio.ProfileGetDisplayNameResponse)
    assert profile.displayname == "Ann"
    filtered = await client.upload_filter(room={"timeline": {"limit": 1}})
    assert isinstance(filtered, nio.UploadFilterResponse)
    fake.says("ann", "one", room="team")
    fake.says("ann", "two", room="team")
    assert bodies(await client.sync(sync_filter=filtered.filter_id), room) == ["two"]
    made = await client.room_create(name="new", invite=["@ann:fake.example"], is_direct=True)
    assert isinstance(made, nio.RoomCreateResponse)
    assert fake.rooms.rooms[made.room_id].members("invite") == ["@ann:fake.example"]
    asked = await client.room_invite(made.room_id, "@bob:fake.example")
    assert isinstance(asked, nio.RoomInviteResponse)
    direct = await client.list_direct_rooms()
    assert isinstance(direct, nio.DirectRoomsErrorResponse)


async def test_an_upgraded_room_takes_nothing_more(fake: FakeMatrix, client: nio.AsyncClient):
    old = fake.room("ann", "team").id
    await client.sync()
    new = fake.upgrades("ann", room="team")
    refused = await say(client, old, "hello")
    assert isinstance(refused, nio.RoomSendError)
    assert refused.status_code == "M_FORBIDDEN"
    assert isinstance(await client.join(new), nio.JoinResponse)
    assert isinstance(await say(client, new, "hello", "t2"), nio.RoomSendResponse)
    assert fake.texts(room="team") == ["hello"]


# Files


async def test_files_go_up_and_down_by_content(fake: FakeMatrix, client: nio.AsyncClient):
    sent, _ = await client.upload(io.BytesIO(BINARY), "application/x-test", "it.bin", filesize=len(BINARY))
    assert isinstance(sent, nio.UploadResponse)
    received = await client.download(sent.content_uri)
    assert isinstance(received, nio.MemoryDownloadResponse)
    assert (received.body, received.content_type) == (BINARY, "application/x-test")
    missing = await client.download("mxc://fake.example/nothing")
    assert isinstance(missing, nio.DownloadError)
    photo = fake.sends("ann", "photo", b"png", caption="look", name="a.png", media_type="image/png")
    event = fake.room_of_event(photo).event(photo).json["content"]
    assert (event["body"], event["filename"], event["info"]["size"]) == ("look", "a.png", 3)


# What is refused


async def test_an_event_has_at_most_64_kibibytes(fake: FakeMatrix, client: nio.AsyncClient):
    room = fake.room("ann").id
    refused = await say(client, room, "x" * 65_500)
    assert isinstance(refused, nio.RoomSendError)
    assert refused.status_code == "M_TOO_LARGE"
    assert isinstance(await say(client, room, "x" * 65_000), nio.RoomSendResponse)


async def test_a_message_without_a_body_and_an_unknown_room_are_refused(
    fake: FakeMatrix, client: nio.AsyncClient
):
    room = fake.room("ann")
    answers = [
        await client.room_send(room.id, "m.room.message", {"msgtype": "m.text"}),
        await say(client, "!nowhere:fake.example", "hello"),
        await client.join("!nowhere:fake.example"),
        await client.sync(since="x1"),
    ]
    room.is_read_only = True
    answers.append(await say(client, room.id, "hello"))
    codes = [answer.status_code for answer in answers if isinstance(answer, nio.ErrorResponse)]
    assert codes == ["M_BAD_JSON", "M_FORBIDDEN", "M_NOT_FOUND", "M_INVALID_PARAM", "M_FORBIDDEN"]


async def test_who_does_not_wait_is_asked_to_wait_for_longer(fake: FakeMatrix, client: nio.AsyncClient):
    room = fake.room("ann").id
    fake.faults.plan(RateLimit(0.2), method="send")
    first, second = await say(client, room, "a"), await say(client, room, "a")
    assert (first.status_code, first.retry_after_ms, second.retry_after_ms) == ("M_LIMIT_EXCEEDED", 200, 400)
    ann = client_of(fake)
    ann.restore_login(fake.rooms.person("ann").user_id, "PHONE", fake.logs_in("ann", "PHONE"))
    assert isinstance(await say(ann, room, "b"), nio.RoomSendResponse), "she was not asked to wait"
    await ann.close()
    await asyncio.sleep(0.45)
    assert isinstance(await say(client, room, "a"), nio.RoomSendResponse)


async def test_faults_happen_as_planned(fake: FakeMatrix, client: nio.AsyncClient):
    room = fake.room("ann").id
    # aiohttp itself sends a second time what is cut off on a connection that was kept open.
    fake.faults.plan(CutConnection.AFTER, method="send", times=2)
    with pytest.raises(aiohttp.ClientError):
        await say(client, room, "cut", "t1")
    fake.faults.plan(ServerFault(), method="send")
    fake.faults.plan(RefusedCall(403, "no"), method="send")
    assert isinstance(await say(client, room, "proxy", "t2"), nio.RoomSendError)
    assert isinstance(await say(client, room, "no", "t3"), nio.RoomSendError)
    assert fake.texts("ann") == ["cut"]
    async with fake.outage():
        with pytest.raises(aiohttp.ClientError):
            await say(client, room, "away", "t4")
    assert isinstance(await say(client, room, "back", "t5"), nio.RoomSendResponse)


async def test_without_a_token_nothing_is_told(fake: FakeMatrix):
    client = nio.AsyncClient(fake.url, fake.bot.user_id)
    try:
        versions = await client.send("GET", "/_matrix/client/versions")
        assert "v1.11" in json.loads(await versions.text())["versions"]
        flows = await client.login_info()
        assert isinstance(flows, nio.LoginInfoResponse)
        assert flows.flows == ["m.login.password", "m.login.token"]
        answer = await client.send("GET", "/_matrix/client/v3/account/whoami")
        assert (answer.status, (await answer.json())["errcode"]) == (401, "M_MISSING_TOKEN")
        client.access_token = fake.token
        answer = await client.send(
            "GET", "/_matrix/client/v3/nothing", headers={"Authorization": f"Bearer {fake.token}"}
        )
        assert (answer.status, (await answer.json())["errcode"]) == (404, "M_UNRECOGNIZED")
    finally:
        await client.close()


# Markup


@pytest.mark.parametrize(
    "html",
    [
        '<p>a <strong>b</strong> &amp; <a href="https://e.org">c</a><br>d</p>',
        '<pre><code class="language-python">x &lt; 1</code></pre><hr>',
        '<ol start="3"><li>a</li></ol><table><thead><tr><th>a</th></tr></thead></table>',
        '<img src="mxc://e.org/1" alt="a"><span data-mx-color="#fff">b</span>',
    ],
)
def test_what_the_specification_allows_is_no_problem(html: str):
    assert html_problems(html) == []


@pytest.mark.parametrize(
    ("html", "problem"),
    [
        ("<script>x</script>", "<script> is not allowed"),
        ("<b>a", "<b> is not closed"),
        ("<b><i>a</b></i>", "</b> closes nothing"),
        ("a & b", "'&' is not escaped"),
        ('<a href="javascript:x">a</a>', "an address with 'javascript' is not allowed"),
        ('<p onclick="x">a</p>', "<p onclick> is not allowed"),
        ('<img src="https://e.org/1">', "an image from outside of Matrix is not allowed"),
        ('<code class="big">a</code>', "the class 'big' is not allowed"),
        ("<div>" * 101 + "</div>" * 101, "<div> is nested too deep"),
    ],
)
def test_what_clients_would_not_show_is_a_problem(html: str, problem: str):
    assert problem in html_problems(html)


async def test_the_markup_of_the_bot_is_checked(fake: FakeMatrix, client: nio.AsyncClient):
    await say(client, fake.room("ann").id, "a", formatted_body="<x>a</x>")
    assert fake.endpoints.markup_problems == ["<x> is not allowed", "the format is None"]
