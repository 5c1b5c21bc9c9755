"""The fake Discord, asked by the client library that people use: it answers as Discord does."""

from __future__ import annotations

import asyncio
import io
import sys
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import aiohttp
import discord
import pytest
from discord import app_commands
from discord.http import Route

from gateway_sessions.errors import InvalidInputError
from gateway_sessions.testing.fakes.discord import DiscordLimits, FakeDiscord, discord_py_on
from gateway_sessions.testing.fakes.discord.discord_py import discord_py_pointed_at
from gateway_sessions.testing.fakes.faults import CutConnection, Delay, RateLimit, RefusedCall, ServerFault

PATIENCE = 30
BINARY = bytes(range(256)) + b"\r\n--boundary\r\n"


@pytest.fixture
async def fake() -> AsyncGenerator[FakeDiscord]:
    async with FakeDiscord() as fake:
        fake.guilds.channel("general")
        with discord_py_on(fake):
            yield fake


def client_with(*, content: bool = True) -> discord.Client:
    intents = discord.Intents.default()
    intents.message_content = content
    return discord.Client(intents=intents, guild_ready_timeout=0.05)


class Seen:
    """What a bot was told, by event."""

    def __init__(self, client: discord.Client, *events: str) -> None:
        self.events: list[tuple[str, Any]] = []
        for name in events:
            client.event(self.listener(f"on_{name}"))

    def listener(self, name: str) -> Callable[..., Any]:
        async def listen(*facts: Any) -> None:
            self.events.append((name.removeprefix("on_"), facts[0] if facts else None))

        listen.__name__ = name
        return listen

    def of(self, name: str) -> list[Any]:
        return [fact for event, fact in self.events if event == name]


@asynccontextmanager
async def running(client: discord.Client, fake: FakeDiscord) -> AsyncGenerator[None]:
    """Run a bot, from the moment at which it is ready."""
    task = asyncio.create_task(client.start(fake.token))
    try:
        await fake.wait_until(lambda: client.is_ready() or task.done(), seconds=PATIENCE)
        if task.done():
            task.result()
        yield
    finally:
        await client.close()
        task.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await task


@pytest.fixture
async def client(fake: FakeDiscord) -> AsyncGenerator[discord.Client]:
    client = client_with()
    async with running(client, fake):
        yield client


def general(fake: FakeDiscord, client: discord.Client) -> discord.TextChannel:
    channel = client.get_channel(fake.guilds.channel("general").id)
    assert isinstance(channel, discord.TextChannel)
    return channel


# The gateway


async def test_what_people_do_is_told_in_order(fake: FakeDiscord):
    client = client_with()
    seen = Seen(client, "message", "raw_message_edit", "raw_message_delete", "thread_create")
    async with running(client, fake):
        fake.says("ann", "in private")
        first = fake.says("bob", f"{fake.mention} look", channel="general")
        fake.says("bob", "in a thread", channel="general", thread="plans")
        fake.says("ann", "an answer", channel="general", reply_to=first)
        await fake.wait_until(lambda: len(seen.of("message")) == 4, seconds=PATIENCE)
        private, public, threaded, answer = seen.of("message")
        assert isinstance(private.channel, discord.DMChannel)
        assert (public.content, public.mentions) == (f"{fake.mention} look", [client.user])
        assert isinstance(threaded.channel, discord.Thread)
        assert threaded.channel.parent == public.channel
        assert answer.reference.message_id == public.id
        fake.edits(first, "changed")
        fake.guilds.unfurl(first)
        fake.deletes(first)
        await fake.wait_until(lambda: seen.of("raw_message_delete"), seconds=PATIENCE)
        edit, preview = seen.of("raw_message_edit")
        assert (edit.data["content"], preview.data["content"]) == ("changed", "changed")
        assert edit.data["edited_timestamp"] == preview.data["edited_timestamp"] is not None
        assert [one.name for one in seen.of("thread_create")] == ["plans"]


async def test_a_broken_connection_is_resumed_with_what_was_missed(fake: FakeDiscord):
    client = client_with()
    seen = Seen(client, "message", "resumed", "connect")
    async with running(client, fake):
        await fake.on_gateway(fake.gateway.ask_to_reconnect)
        fake.says("ann", "meanwhile")
        await fake.wait_until(lambda: seen.of("message"), seconds=PATIENCE)
        assert (fake.gateway.identified, fake.gateway.resumed) == (1, 1)
        await fake.on_gateway(lambda: fake.gateway.close(4000))
        await fake.wait_until(lambda: fake.gateway.resumed == 2, seconds=PATIENCE)


async def test_what_a_forgotten_session_missed_is_in_the_history_only(
    fake: FakeDiscord, monkeypatch: pytest.MonkeyPatch
):
    client = client_with()

    async def at_once(*_: Any, **__: Any) -> None:
        """Wait no five seconds before a session is begun."""

    monkeypatch.setattr(client, "before_identify_hook", at_once)
    seen = Seen(client, "message")
    async with running(client, fake):
        fake.says("ann", "first")
        await fake.wait_until(lambda: seen.of("message"), seconds=PATIENCE)
        await fake.on_gateway(fake.gateway.invalidate)
        fake.says("ann", "missed")
        await fake.wait_until(lambda: fake.gateway.identified == 2, seconds=PATIENCE)
        fake.says("ann", "last")
        await fake.wait_until(lambda: len(seen.of("message")) == 2, seconds=PATIENCE)
        assert [one.content for one in seen.of("message")] == ["first", "last"]
        channel = seen.of("message")[0].channel
        history = [one.content async for one in channel.history(after=seen.of("message")[0])]
        assert history == ["missed", "last"]


async def test_a_bad_token_and_a_missing_intent_are_refused(fake: FakeDiscord):
    client = client_with()
    with pytest.raises(discord.LoginFailure):
        await client.start("not.the.token")
    await client.close()
    fake.gateway.allowed_intents = 0
    with pytest.raises(discord.PrivilegedIntentsRequired):
        async with running(client_with(), fake):
            pass


async def test_without_the_intent_content_is_only_what_is_for_the_bot(fake: FakeDiscord):
    fake.gateway.allowed_intents = 0
    client = client_with(content=False)
    seen = Seen(client, "message")
    async with running(client, fake):
        fake.says("ann", "private")
        fake.says("ann", "among people", channel="general")
        fake.says("ann", f"{fake.mention} hi", channel="general")
        await fake.wait_until(lambda: len(seen.of("message")) == 3, seconds=PATIENCE)
        assert [one.content for one in seen.of("message")] == ["private", "", f"{fake.mention} hi"]
        history = [one.content async for one in general(fake, client).history(limit=1000)]
        assert history == [f"{fake.mention} hi", ""]


async def test_the_gateway_speaks_plain_text_as_well(fake: FakeDiscord):
    async with aiohttp.ClientSession() as session, session.ws_connect(fake.gateway_url) as socket:
        assert (await socket.receive_json(timeout=PATIENCE))["op"] == 10
        await socket.send_json({"op": 1, "d": None})
        assert (await socket.receive_json(timeout=PATIENCE))["op"] == 11
        await socket.send_json({"op": 3, "d": {}})  # a presence
        await socket.send_json({"op": 6, "d": {"token": fake.token, "session_id": "gone", "seq": 7}})
        assert await socket.receive_json(timeout=PATIENCE) == {"op": 9, "d": False, "s": None, "t": None}


# Messages


async def test_a_bot_writes_edits_and_deletes(fake: FakeDiscord, client: discord.Client):
    channel = general(fake, client)
    message = await channel.send("one", nonce="n1")
    assert (message.nonce, message.id) == ("n1", message.id)
    await message.edit(content="two")
    assert fake.texts(channel="general") == ["two"]
    async with channel.typing():
        assert fake.rest.typing == [channel.id]
    thread = await message.create_thread(name="plans")
    await thread.send("inside")
    assert fake.texts(channel="general", thread="plans") == ["inside"]
    await message.delete()
    with pytest.raises(discord.NotFound) as gone:
        await message.edit(content="three")
    assert gone.value.code == 10008
    person = await client.http.start_private_message(fake.guilds.person("ann").id)
    await client.get_partial_messageable(int(person["id"])).send("hello ann")
    assert fake.texts("ann") == ["hello ann"]


async def test_a_nonce_is_unique_for_a_while(fake: FakeDiscord, client: discord.Client):
    channel = general(fake, client)
    first, again = await channel.send("once", nonce="k"), await channel.send("once", nonce="k")
    assert first.id == again.id
    assert fake.texts(channel="general") == ["once"]
    assert [one.nonce async for one in channel.history()] == [None]
    fake.rest.nonce_seconds = 0
    await channel.send("once", nonce="k")
    assert fake.texts(channel="general") == ["once", "once"]
    with pytest.raises(discord.HTTPException, match=r"nonce: Must be 25 or fewer in length"):
        await channel.send("x", nonce="k" * 26)
    fake.rest.nonce_seconds = 60
    await (await channel.send("gone", nonce="d")).delete()
    with pytest.raises(discord.NotFound):
        await channel.send("gone", nonce="d")


async def test_messages_have_discord_s_limits(fake: FakeDiscord, client: discord.Client):
    channel = general(fake, client)
    await channel.send("\U0001f600" * 2000)
    with pytest.raises(discord.HTTPException, match="2000 or fewer"):
        await channel.send("x" * 2001)
    with pytest.raises(discord.HTTPException, match="empty message"):
        await channel.send(" ")
    with pytest.raises(discord.HTTPException, match="exceeds 6000"):
        await channel.send(embeds=[discord.Embed(description="x" * 4000)] * 2)
    route = Route("POST", "/channels/{channel_id}/messages", channel_id=channel.id)
    button = {"type": 2, "style": 1, "label": "x", "custom_id": "a"}
    wrong: list[list[dict[str, Any]]] = [
        [{"type": 1, "components": [button, button]}],
        [{"type": 1, "components": [{**button, "custom_id": "a" * 101}]}],
        [{"type": 1, "components": [{**button, "label": "x" * 81}]}],
        [{"type": 1, "components": [{**button, "custom_id": f"{n}"} for n in range(6)]}],
    ]
    for rows in wrong:
        with pytest.raises(discord.HTTPException, match="Invalid Form Body"):
            await client.http.request(route, json={"content": "x", "components": rows})
    with pytest.raises(discord.HTTPException, match="Invalid Form Body"):
        await client.http.request(route, json={"content": "x", "embeds": [{"title": "x"}] * 11})


async def test_history_is_read_forwards_and_backwards(fake: FakeDiscord, client: discord.Client):
    ids = [fake.says("ann", str(number), channel="general") for number in range(250)]
    channel = general(fake, client)
    after = [one.id async for one in channel.history(after=discord.Object(ids[9]), limit=None)]
    assert after == ids[10:]
    before = [one.id async for one in channel.history(before=discord.Object(ids[240]), limit=150)]
    assert before == ids[239:89:-1]
    with pytest.raises(discord.HTTPException, match="between 1 and 100"):
        await client.http.logs_from(channel.id, 101)


async def test_answers_name_what_they_answer_while_it_is_there(fake: FakeDiscord, client: discord.Client):
    channel = general(fake, client)
    question = channel.get_partial_message(fake.says("ann", "question", channel="general"))
    answer = await channel.send("answer", reference=question)
    assert answer.reference is not None
    assert answer.reference.message_id == question.id
    fake.deletes(question.id)
    with pytest.raises(discord.HTTPException, match="Unknown message"):
        await channel.send("answer", reference=question)
    reference = discord.MessageReference(
        message_id=question.id, channel_id=channel.id, fail_if_not_exists=False
    )
    assert (await channel.send("answer", reference=reference)).reference is None


async def test_places_that_are_closed_to_the_bot_say_so(fake: FakeDiscord, client: discord.Client):
    place = fake.guilds.channel("general")
    channel = general(fake, client)
    place.may_write = False
    await refused(channel.send("x"), 403, 50013)
    place.may_read = False
    await refused(channel.send("x"), 403, 50001)
    await refused(client.fetch_channel(1), 404, 10003)
    await refused(client.http.start_private_message(1), 404, 10013)
    fake.blocks("ann")
    private = fake.guilds.private_channel(fake.guilds.person("ann"))
    await refused(client.get_partial_messageable(private.id).send("x"), 403, 50007)
    theirs = fake.says("ann", "mine")
    await refused(client.http.edit_message(private.id, theirs, params=edited("x")), 403, 50005)


def edited(content: str) -> Any:
    return discord.http.handle_message_parameters(content)


async def refused(call: Any, status: int, code: int) -> None:
    with pytest.raises(discord.HTTPException) as refusal:
        await call
    assert (refusal.value.status, refusal.value.code) == (status, code)


async def test_files_go_both_ways_unchanged(fake: FakeDiscord, client: discord.Client):
    fake.sends("ann", BINARY, name="a.bin", text="look", channel="general")
    channel = general(fake, client)
    (message,) = [one async for one in channel.history()]
    assert await message.attachments[0].read() == BINARY
    sent = await channel.send("back", file=discord.File(io.BytesIO(BINARY), "b.bin"))
    assert await sent.attachments[0].read() == BINARY
    with pytest.raises(discord.NotFound):
        await client.http.get_from_cdn(f"{fake.url}/attachments/1/no")


# Interactions


async def test_people_press_buttons(fake: FakeDiscord):
    client = client_with()
    seen = Seen(client, "interaction")
    async with running(client, fake):
        view = discord.ui.View()
        view.add_item(discord.ui.Button(label="Yes", custom_id="yes"))
        await general(fake, client).send("Sure?", view=view)
        with pytest.raises(AssertionError, match="no button 'No'"):
            fake.presses("ann", "No", channel="general")
        pressed = fake.presses("ann", "Yes", channel="general")
        await fake.wait_until(lambda: seen.of("interaction"), seconds=PATIENCE)
        (interaction,) = seen.of("interaction")
        assert (interaction.data["custom_id"], interaction.message.content) == ("yes", "Sure?")
        assert not pressed.is_answered
        await interaction.response.defer()
        await interaction.edit_original_response(content="Done.", view=None)
        assert (pressed.response, fake.texts(channel="general")) == (6, ["Done."])
        await interaction.followup.send("Only for you.", ephemeral=True)
        assert [one["content"] for one in pressed.ephemeral] == ["Only for you."]
        await interaction.followup.send("For all.")
        assert fake.texts(channel="general") == ["Done.", "For all."]
        route = Route(
            "POST",
            "/interactions/{i}/{webhook_token}/callback",
            i=interaction.id,
            webhook_token=pressed.token,
        )
        await refused(client.http.request(route, json={"type": 6}), 400, 40060)


async def test_people_use_commands(fake: FakeDiscord):
    client = client_with()
    tree = app_commands.CommandTree(client)

    @tree.command(name="greet")
    async def greet(interaction: discord.Interaction, who: str) -> None:
        """Say hello."""
        await interaction.response.defer(thinking=True)
        await interaction.followup.send(f"Hello {who}.")
        await interaction.edit_original_response(content=f"Hello again, {who}.")

    @tree.command(name="ping")
    async def ping(interaction: discord.Interaction) -> None:
        """Answer at once."""
        await interaction.response.send_message("pong")
        assert (await interaction.original_response()).content == "pong"

    async with running(client, fake):
        assert [one.name for one in await tree.sync()] == ["greet", "ping"]
        assert sorted(one.name for one in await tree.fetch_commands()) == ["greet", "ping"]
        await client.http.upsert_global_command(client.application_id or 0, {"name": "new", "type": 1})
        assert sorted(fake.rest.commands) == ["greet", "new", "ping"]
        with pytest.raises(discord.HTTPException, match="Command name is invalid"):
            await client.http.upsert_global_command(client.application_id or 0, {"name": "New", "type": 1})
        fake.commands("ann", "greet", who="ann")
        fake.commands("ann", "ping", channel="general")
        await fake.wait_until(lambda: fake.texts("ann") == ["Hello again, ann."], seconds=PATIENCE)
        await fake.wait_until(lambda: fake.texts(channel="general") == ["pong"], seconds=PATIENCE)


async def test_an_interaction_that_waits_too_long_is_gone(fake: FakeDiscord):
    client = client_with()
    seen = Seen(client, "interaction")
    fake.rest.commands["old"] = {"id": "1"}
    async with running(client, fake):
        late = fake.commands("ann", "old")
        late.began -= 5
        await fake.wait_until(lambda: seen.of("interaction"), seconds=PATIENCE)
        (interaction,) = seen.of("interaction")
        await refused(interaction.response.defer(), 404, 10062)
        await refused(interaction.edit_original_response(content="x"), 404, 10015)
        late.response = 5
        late.began -= 15 * 60
        await refused(interaction.edit_original_response(content="x"), 401, 50027)


# Pace and faults


async def test_who_sends_too_much_is_told_to_wait():
    async with FakeDiscord(limits=DiscordLimits(messages=2, seconds=0.4)) as fake:
        with discord_py_on(fake):
            client = client_with()
            fake.guilds.channel("general")
            async with running(client, fake):
                began = time.monotonic()
                for number in range(5):  # discord.py reads the headers, and waits by itself
                    await general(fake, client).send(str(number))
                assert time.monotonic() - began > 0.75
                assert 429 not in [one.status for one in fake.calls]
                route = f"{fake.api_url}/channels/{fake.guilds.channel('general').id}/messages"
                headers = {"authorization": f"Bot {fake.token}"}
                async with aiohttp.ClientSession(headers=headers) as session:
                    waits = [await told_to_wait(session, route) for _ in range(5)]
                asked = [one for one in waits if one]
                assert len(asked) >= 3
                assert asked == sorted(asked), "who calls within the pause waits longer"


async def told_to_wait(session: aiohttp.ClientSession, route: str) -> float:
    async with session.post(route, json={"content": "x"}) as response:
        if response.status != 429:
            return 0.0
        assert response.headers["x-ratelimit-scope"] == "user"
        return float((await response.json())["retry_after"])


async def test_all_calls_together_have_a_pace():
    async with FakeDiscord(limits=DiscordLimits(a_second=3)) as fake:
        headers = {"authorization": f"Bot {fake.token}"}
        async with aiohttp.ClientSession(headers=headers) as session:
            statuses = []
            for _ in range(5):
                async with session.get(f"{fake.api_url}/users/@me") as response:
                    statuses.append((response.status, response.headers.get("x-ratelimit-global")))
        assert statuses[:4] == [(200, None)] * 3 + [(429, "true")]


async def test_faults_look_as_on_a_bad_day(fake: FakeDiscord, client: discord.Client):
    channel = general(fake, client)
    fake.faults.plan(RefusedCall(403, "50013: Missing Permissions"), method="create_message")
    await refused(channel.send("x"), 403, 50013)
    fake.faults.plan(CutConnection.BEFORE, method="create_message")
    with pytest.raises(aiohttp.ServerDisconnectedError):
        await channel.send("never")
    fake.faults.plan(CutConnection.AFTER, method="create_message")
    with pytest.raises(aiohttp.ServerDisconnectedError):
        await channel.send("shown")
    fake.faults.plan(ServerFault(done=True), method="create_message")
    await channel.send("twice", nonce="t")  # discord.py tries again; the nonce saves it
    fake.faults.plan(RateLimit(0.05), method="create_message")
    await channel.send("later")
    assert fake.texts(channel="general") == ["shown", "twice", "later"]
    assert [one.status for one in fake.calls if one.method == "create_message"] == [
        403,
        0,
        0,
        502,
        200,
        429,
        200,
    ]


async def test_addresses_that_nobody_knows_are_refused(fake: FakeDiscord):
    async with aiohttp.ClientSession() as session:
        for path, status in (("/nothing", 404), ("/users/@me", 401), ("/gateway/bot", 200)):
            async with session.get(f"{fake.api_url}{path}") as response:
                assert response.status == status
    with pytest.raises(AssertionError, match="no message 1"):
        fake.edits(1, "x")


def test_without_discord_py_one_sentence_tells_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(
        sys.modules,
        "gateway_sessions.integrations.discord_py.server_address",
        None,  # as if it needs what is not there
    )
    with (
        pytest.raises(InvalidInputError, match=r"pip install 'gateway-sessions\[discord\]'"),
        discord_py_pointed_at("http://x", "ws://x"),
    ):
        pass


async def test_events_that_a_session_did_not_ask_for_do_not_come(fake: FakeDiscord):
    client = discord.Client(intents=discord.Intents(guilds=True, dm_messages=True), guild_ready_timeout=0.05)
    seen = Seen(client, "message")
    async with running(client, fake):
        fake.says("ann", "among people", channel="general")
        fake.says("ann", "in private")
        await fake.wait_until(lambda: seen.of("message"), seconds=PATIENCE)
        await fake.on_gateway(fake.gateway.forget_sessions)
        assert fake.gateway.sessions == {}
    assert [one.content for one in seen.of("message")] == ["in private"]
    assert fake.gateway.heartbeats > 0


async def test_the_address_of_the_gateway_and_of_people_can_be_asked_for(
    fake: FakeDiscord, client: discord.Client
):
    _, address, _ = await client.http.get_bot_gateway()
    assert str(address).startswith(fake.gateway_url.removesuffix("/gateway"))
    channel = general(fake, client)
    message = await channel.fetch_message(fake.says("ann", "x", channel="general"))
    fake.starts_thread(message.id, "at a message")
    assert fake.place(channel="general", thread="at a message").id == message.id
    fake.faults.plan(Delay(0.01), method="get_channel")
    assert (await client.fetch_channel(channel.id)).id == channel.id
    with pytest.raises(discord.NotFound):
        await channel.fetch_message(1)
