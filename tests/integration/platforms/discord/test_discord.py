"""Bots on Discord with a gateway: the real discord.py, a fake Discord, and what may go wrong."""

from __future__ import annotations

import asyncio
import base64
import importlib
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import discord
import pytest
from discord import app_commands
from discord.ext import commands

from gateway_sessions import Gateway, Reply, SessionStore, TurnContext
from gateway_sessions.adapters import (
    Attachment,
    AttachmentKind,
    Button,
    InboundMessage,
    MessageKind,
    OutboundMessage,
    ProcessMemory,
    ReplyTarget,
    TextFormat,
)
from gateway_sessions.core.notices.command_replies import CommandHelp
from gateway_sessions.errors import (
    AdapterUnavailableError,
    DeliveryRefusedError,
    InvalidInputError,
    RateLimitedError,
    StorageUnavailableError,
)
from gateway_sessions.integrations.discord import DiscordMessage
from gateway_sessions.integrations.discord.objects import read_as
from gateway_sessions.integrations.discord_py import DiscordAdapter
from gateway_sessions.integrations.discord_py.conversion import message_of
from gateway_sessions.testing.contract.adapter import Inbox
from gateway_sessions.testing.fakes.discord import FakeDiscord, discord_py_on
from gateway_sessions.testing.fakes.discord.discord_py import discord_py_pointed_at
from gateway_sessions.testing.fakes.faults import RateLimit, RefusedCall, ServerFault
from tests.integration.gateway.gateway_harness import QUICK

PATIENCE = 30


@pytest.fixture
async def fake() -> AsyncGenerator[FakeDiscord]:
    async with FakeDiscord() as fake:
        with discord_py_on(fake):
            yield fake


def all_intents() -> discord.Intents:
    intents = discord.Intents.default()
    intents.message_content = True
    return intents


class QuickClient(discord.Client):
    """Begins sessions without the pauses that spare the real Discord."""

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        """Wait for nothing."""


def client_of(kind: type[discord.Client] = QuickClient, **options: Any) -> discord.Client:
    return kind(intents=options.pop("intents", all_intents()), guild_ready_timeout=0.01, **options)


def adapter_of(fake: FakeDiscord, **options: Any) -> DiscordAdapter:
    return DiscordAdapter(options.pop("client", None) or client_of(), fake.token, **options)


@asynccontextmanager
async def gateway_with(
    adapter: DiscordAdapter, home: Path, agent: Callable[[TurnContext], Any] | None = None
) -> AsyncGenerator[Gateway]:
    async with (
        SessionStore.open(home, QUICK) as store,
        Gateway(store, agent=agent or echo, adapters=[adapter]) as gateway,
    ):
        yield gateway


async def echo(turn: TurnContext) -> Reply:
    return Reply(f"You said **{turn.text}**.", format=TextFormat.MARKDOWN)


def texts(inbox: Inbox) -> list[str]:
    return [one.text for one in inbox.messages]


def different(inbox: Inbox) -> dict[str | None, InboundMessage]:
    """Return what was handed over, each message once."""
    return {one.idempotency_key: one for one in inbox.messages}


# With a gateway


async def test_a_conversation_goes_both_ways_in_its_places(fake: FakeDiscord, tmp_path: Path):
    async with gateway_with(adapter_of(fake), tmp_path) as gateway:
        fake.says("ann", "hello")
        fake.says("bob", f"{fake.mention} hi", channel="general", thread="plans")
        fake.says("bob", "not for the bot", channel="general")
        await fake.wait_until(
            lambda: fake.texts("ann") and fake.texts(channel="general", thread="plans"), seconds=PATIENCE
        )
        assert fake.texts("ann") == ["You said **hello**."]
        assert fake.texts(channel="general", thread="plans") == ["You said **hi**."]
        assert fake.texts(channel="general") == []
        assert fake.shown("ann")[0]["referenced_message"]["content"] == "hello"
        room, thread = fake.guilds.channel("general"), fake.place(channel="general", thread="plans")
        for key in (f"dm:{fake.place('ann').id}", f"group:{room.id}:{thread.id}"):
            assert await gateway.store.peek_session_id(f"agent:main:discord:{key}") is not None


async def test_a_reply_grows_in_one_message(fake: FakeDiscord, tmp_path: Path):
    async def agent(turn: TurnContext) -> str:
        stream = turn.stream()
        for word in ("one ", "two ", "three"):
            await stream.write(word)
            await asyncio.sleep(0.05)
        return "one two three"

    async with gateway_with(adapter_of(fake), tmp_path, agent):
        fake.says("ann", "count")
        await fake.wait_until(lambda: fake.texts("ann") == ["one two three"], seconds=PATIENCE)
        assert fake.rest.typing == [fake.place("ann").id] * len(fake.rest.typing)


async def test_a_long_answer_in_markdown_comes_in_parts_that_fit(fake: FakeDiscord, tmp_path: Path):
    words = [f"word{number}" for number in range(900)]

    async def agent(_: TurnContext) -> Reply:
        return Reply("```py\n" + "\n".join(words) + "\n```", format=TextFormat.MARKDOWN)

    async with gateway_with(adapter_of(fake), tmp_path, agent):
        fake.says("ann", "go")
        await fake.wait_until(lambda: "word899" in "".join(fake.texts("ann")), seconds=PATIENCE)
    parts = fake.texts("ann")
    assert len(parts) > 2
    assert all(len(part) <= 2000 and part.startswith("```py\n") and part.endswith("```") for part in parts)


# What nobody brings


async def test_what_a_lost_session_missed_is_fetched_in_its_order(fake: FakeDiscord):
    inbox = Inbox()
    fake.guilds.channel("quiet")
    async with adapter_of(fake, groups="all").connect(inbox):
        fake.says("ann", "one")
        fake.says("bob", "uno", channel="general")
        await inbox.wait_for(2)
        await fake.on_gateway(fake.gateway.invalidate)
        for number in range(2, 130):
            fake.says("ann", f"{number}")
        fake.says("bob", "dos", channel="general")
        fake.says("bob", "first here", channel="quiet")
        await fake.wait_until(lambda: fake.gateway.identified == 2, seconds=PATIENCE)
        fake.says("ann", "last")
        await inbox.wait_for(132)
        for text in ("dos", "first here", "last"):
            await inbox.wait_for_text(text)
    private = [one.text for one in inbox.messages if one.source.chat_type == "dm"]
    assert private == ["one", *map(str, range(2, 130)), "last"]
    assert [one.text for one in inbox.messages if one.source.chat_name == "general"] == ["uno", "dos"]


async def test_a_cut_connection_is_resumed_and_nothing_is_fetched(fake: FakeDiscord):
    inbox = Inbox()
    async with adapter_of(fake).connect(inbox):
        fake.says("ann", "one")
        await inbox.wait_for(1)
        reads = sum(call.method == "get_messages" for call in fake.calls)
        await fake.on_gateway(fake.gateway.ask_to_reconnect)
        fake.says("ann", "two")
        await inbox.wait_for(2)
        assert sum(call.method == "get_messages" for call in fake.calls) == reads
    assert (texts(inbox), fake.gateway.resumed) == (["one", "two"], 1)


async def test_what_was_written_while_the_bot_was_away_is_fetched_from_a_memory(fake: FakeDiscord):
    inbox, memory = Inbox(), ProcessMemory()
    first = adapter_of(fake)
    first.remember_in(memory)
    async with first.connect(inbox):
        fake.says("ann", "before")
        fake.says("bob", f"{fake.mention} before", channel="general", thread="plans")
        await inbox.wait_for(2)
    fake.says("ann", "meanwhile")
    fake.says("bob", f"{fake.mention} meanwhile", channel="general", thread="plans")
    fake.says("bob", f"{fake.mention} elsewhere", channel="never seen")
    fake.says("bob", f"{fake.mention} deeper", channel="never seen", thread="new")
    second = adapter_of(fake)
    second.remember_in(memory)
    async with second.connect(inbox):
        await fake.wait_until(lambda: len(different(inbox)) == 6, seconds=PATIENCE)
    # What was taken at the last moment comes again; a store knows it by its key.
    found = different(inbox).values()
    assert sorted(one.text for one in found) == [
        "before",
        "before",
        "deeper",
        "elsewhere",
        "meanwhile",
        "meanwhile",
    ]
    assert {one.source.thread_id for one in found if one.text == "deeper"} != {None}


async def test_the_first_message_of_a_private_channel_is_fetched_after_a_crash(fake: FakeDiscord):
    inbox, memory, being_taken = Inbox(), ProcessMemory(), anyio.Event()

    async def never_taken(message: InboundMessage) -> None:
        being_taken.set()
        await anyio.sleep_forever()

    first = adapter_of(fake)
    first.remember_in(memory)
    async with first.connect(never_taken):
        fake.says("ann", "hello")
        await being_taken.wait()
    second = adapter_of(fake)
    second.remember_in(memory)
    async with second.connect(inbox):
        await inbox.wait_for(1)
    assert texts(inbox) == ["hello"]


async def test_what_is_too_old_is_not_fetched(fake: FakeDiscord):
    inbox, memory = Inbox(), ProcessMemory()
    for number, text in enumerate(("one", "two")):
        adapter = adapter_of(fake, catch_up=timedelta(0))
        adapter.remember_in(memory)
        async with adapter.connect(inbox):
            fake.says("ann", text)
            await inbox.wait_for(number + 1)
        fake.says("ann", "while it was away")
    assert texts(inbox) == ["one", "two"]


async def test_what_a_store_does_not_take_is_taken_later_in_its_order(fake: FakeDiscord):
    inbox = Inbox()
    async with adapter_of(fake).connect(inbox):
        fake.says("ann", "one")
        await inbox.wait_for(1)
        inbox.failure = StorageUnavailableError("sessions.db", "is away")
        fake.says("ann", "two")
        fake.says("ann", "three")
        await fake.wait_until(lambda: inbox.calls > 1, seconds=PATIENCE)
        inbox.failure = None
        await inbox.wait_for(3)
    assert texts(inbox) == ["one", "two", "three"]


async def test_more_than_waits_in_memory_is_fetched(fake: FakeDiscord, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("gateway_sessions.integrations.discord.receiving.MOST_WAITING", 3)
    inbox = Inbox()
    async with adapter_of(fake).connect(inbox):
        fake.says("ann", "0")
        await inbox.wait_for(1)
        inbox.open.clear()
        for number in range(1, 40):
            fake.says("ann", f"{number}")
        fake.says("bob", "other")
        await fake.wait_until(lambda: inbox.under_way == 2, seconds=PATIENCE)
        inbox.open.set()
        await inbox.wait_for(41)
    assert [one for one in texts(inbox) if one != "other"] == [str(number) for number in range(40)]


async def test_a_channel_that_is_closed_to_the_bot_is_forgotten(fake: FakeDiscord):
    inbox, memory = Inbox(), ProcessMemory()
    place = fake.guilds.channel("general")
    first = adapter_of(fake, groups="all")
    first.remember_in(memory)
    async with first.connect(inbox):
        fake.says("ann", "hello", channel="general")
        await inbox.wait_for(1)
        await fake.wait_until(lambda: first is not None, seconds=PATIENCE)
    assert await memory.get("channels") == f'["{place.id}"]'
    place.may_read = False
    second = adapter_of(fake)
    second.remember_in(memory)
    async with second.connect(inbox):
        await fake.wait_until(lambda: fake.calls[-1].status == 403, seconds=PATIENCE)
        fake.says("ann", "still there?")
        await inbox.wait_for(2)
    assert str(place.id) not in (await memory.get("channels") or "")


async def test_talk_for_others_is_noted_now_and_then(fake: FakeDiscord):
    inbox, memory = Inbox(), ProcessMemory()
    adapter = adapter_of(fake)
    adapter.remember_in(memory)
    place = fake.guilds.channel("general")
    async with adapter.connect(inbox):
        ids = [fake.says("bob", f"{number}", channel="general") for number in range(60)]
        fake.says("bob", f"{fake.mention} hi", channel="never mind")
        await inbox.wait_for(1)

        def is_noted() -> bool:
            return any(name == f"channel:{place.id}" for name in memory._kept)  # noqa: SLF001

        await fake.wait_until(is_noted, seconds=PATIENCE)
    assert str(ids[49]) in (await memory.get(f"channel:{place.id}") or "")


# Edits and deletions


async def test_edits_and_deletions_are_told(fake: FakeDiscord):
    inbox = Inbox()
    async with adapter_of(fake).connect(inbox):
        number = fake.says("ann", "hllo")
        await inbox.wait_for(1)
        fake.edits(number, "hello")
        await inbox.wait_for(2)
        fake.guilds.unfurl(number)  # tells of the last edit again
        fake.edits(number, "hello!")
        fake.deletes(number)
        await inbox.wait_for(5)
    kinds = [one.kind for one in different(inbox).values()]
    assert kinds == [MessageKind.NEW, MessageKind.EDIT, MessageKind.EDIT, MessageKind.DELETE]
    _, first, second, deleted = different(inbox).values()
    assert 0 < first.revision < second.revision
    assert {one.original_key for one in (first, second, deleted)} == {inbox.messages[0].idempotency_key}
    assert deleted.source.user_id == str(fake.guilds.person("ann").id)


async def test_several_deletions_at_once_and_those_of_unknown_authors(fake: FakeDiscord):
    inbox = Inbox()
    async with adapter_of(fake).connect(inbox):
        place = fake.guilds.channel("general")
        facts = {"channel_id": str(place.id), "guild_id": str(fake.guilds.guild_id)}
        fake.guilds.dispatch("MESSAGE_DELETE_BULK", {"ids": ["12", "11"], **facts})
        fake.guilds.dispatch(
            "MESSAGE_DELETE", {"id": "13", "channel_id": "99", "guild_id": facts["guild_id"]}
        )
        await inbox.wait_for(3)
    deleted = [one for one in inbox.messages if one.source.chat_id == str(place.id)]
    assert [(one.message_id, one.source.user_id) for one in deleted] == [("11", None), ("12", None)]


async def test_what_the_bot_says_and_deletes_itself_is_nobody_s_message(fake: FakeDiscord):
    inbox, adapter = Inbox(), adapter_of(fake)
    async with adapter.connect(inbox):
        fake.says("ann", "hello")
        (message,) = await inbox.wait_for(1)
        sent = await adapter.send(
            ReplyTarget.answering(message), OutboundMessage(text="x"), idempotency_key="k"
        )
        assert sent is not None
        fake.deletes(int(sent))
        fake.says("ann", "bye")
        await inbox.wait_for(2)
    assert texts(inbox) == ["hello", "bye"]


# The rest of the bot


async def test_handlers_of_a_client_live_on(fake: FakeDiscord):
    inbox, seen = Inbox(), list[str]()

    class Bot(QuickClient):
        async def on_message(self, message: discord.Message) -> None:
            seen.append(message.content)

    client = client_of(Bot)

    @client.event
    async def on_raw_message_delete(deletion: discord.RawMessageDeleteEvent) -> None:
        seen.append(f"deleted {deletion.message_id}")

    async with adapter_of(fake, client=client).connect(inbox):
        number = fake.says("ann", "hello")
        await inbox.wait_for(1)
        fake.deletes(number)
        await inbox.wait_for(2)
        await fake.wait_until(lambda: len(seen) == 2, seconds=PATIENCE)
    assert seen == ["hello", f"deleted {number}"]
    assert client.on_raw_message_delete is on_raw_message_delete
    assert "on_message" not in vars(client)


async def test_commands_of_a_bot_are_its_own(fake: FakeDiscord):
    class Bot(commands.Bot):
        pass

    inbox, bot = Inbox(), Bot("!", intents=all_intents(), guild_ready_timeout=0.01)

    @bot.command()
    async def ping(context: commands.Context[Any]) -> None:
        await context.send("pong")

    @bot.listen("on_message")
    async def count(message: discord.Message) -> None:
        heard.append(message.content)

    heard: list[str] = []
    async with adapter_of(fake, client=bot).connect(inbox):
        fake.says("ann", "!ping")
        fake.says("ann", "hello")
        await inbox.wait_for(1)
        await fake.wait_until(lambda: fake.texts("ann") == ["pong"], seconds=PATIENCE)
    assert texts(inbox) == ["hello"]
    assert heard[:2] == ["!ping", "hello"]


async def test_a_handler_takes_what_it_wants_well_or_badly(
    fake: FakeDiscord, caplog: pytest.LogCaptureFixture
):
    async def handle(message: discord.Message) -> bool:
        if message.content == "broken":
            raise LookupError(message.content)
        return message.content == "mine"

    inbox = Inbox()
    async with adapter_of(fake, handle=handle).connect(inbox):
        for text in ("mine", "broken", "yours"):
            fake.says("ann", text)
        await inbox.wait_for(1)
    assert texts(inbox) == ["yours"]
    assert "a handler of a message failed" in caplog.text


async def test_a_client_that_the_program_runs_is_listened_to(fake: FakeDiscord):
    inbox, client = Inbox(), client_of()
    adapter = DiscordAdapter(client)
    async with client:
        running = asyncio.create_task(client.start(fake.token))
        async with adapter.connect(inbox):
            await fake.wait_until(client.is_ready, seconds=PATIENCE)
            fake.says("ann", "hello")
            await inbox.wait_for(1)
        fake.says("ann", "between")
        async with adapter.connect(inbox):
            await inbox.wait_for_text("between")
            fake.says("ann", "again")
            await inbox.wait_for_text("again")
        assert [one.text for one in different(inbox).values()] == ["hello", "between", "again"]
        await client.close()
        await running


# For whom


async def test_the_role_of_the_bot_addresses_it_as_well(fake: FakeDiscord):
    inbox = Inbox()
    async with adapter_of(fake).connect(inbox):
        fake.says("ann", f"<@&{fake.guilds.bot_role}> hello", channel="general")
        await inbox.wait_for(1)
    assert texts(inbox) == ["hello"]


async def test_a_bot_that_cannot_read_says_so(fake: FakeDiscord, caplog: pytest.LogCaptureFixture):
    fake.gateway.allowed_intents = 0
    client = client_of(intents=discord.Intents.default())
    async with adapter_of(fake, client=client, groups="all").connect(Inbox()):
        await fake.wait_until(lambda: "intents.message_content = True" in caplog.text, seconds=PATIENCE)


async def test_a_thread_that_discord_py_does_not_know_is_looked_up(fake: FakeDiscord):
    inbox = Inbox()
    async with adapter_of(fake).connect(inbox):
        room = fake.guilds.channel("general")
        dispatch, fake.guilds.dispatch = fake.guilds.dispatch, lambda _name, _data: None
        fake.place(channel="general", thread="silent")
        fake.guilds.dispatch = dispatch
        fake.says("ann", f"{fake.mention} hello", channel="general", thread="silent")
        (message,) = await inbox.wait_for(1)
    assert (message.source.chat_id, message.source.thread_id is not None) == (str(room.id), True)


# Buttons and commands of the menu


async def test_buttons_come_back_as_what_they_mean(fake: FakeDiscord, tmp_path: Path):
    heard: list[tuple[str | None, str]] = []

    async def agent(turn: TurnContext) -> Reply:
        heard.append((turn.messages[0].action, turn.text))
        return Reply("Sure?" if len(heard) == 1 else "Done.")

    inbox, adapter = Inbox(), adapter_of(fake)
    async with adapter.connect(inbox):
        fake.says("ann", "hello", channel="general")
        target = ReplyTarget(platform="discord", chat_id=str(fake.guilds.channel("general").id))
        buttons = (Button("Yes", "y" * 300), Button("No", "n"), Button("Page", url="https://e.org"))
        message = OutboundMessage(text="Sure?", buttons=buttons)
        await adapter.send(target, message, idempotency_key="k")
        for label, action in (("Yes", "y" * 300), ("No", "n")):
            press = fake.presses("ann", label, channel="general")
            await inbox.wait_for_text(label)
            assert inbox.messages[-1].action == action
            await fake.wait_until(lambda press=press: press.response == 6, seconds=PATIENCE)
            answer = ReplyTarget.answering(inbox.messages[-1])
            await adapter.send(answer, OutboundMessage(text=f"{label}!"), idempotency_key=label)
        assert fake.texts(channel="general") == ["Sure?", "Yes!", "No!"]
        assert fake.shown(channel="general")[-1]["referenced_message"]["content"] == "Sure?"


async def test_a_press_that_nobody_stored_is_not_acknowledged(
    fake: FakeDiscord, caplog: pytest.LogCaptureFixture
):
    inbox, adapter = Inbox(), adapter_of(fake)
    target = ReplyTarget(platform="discord", user_id=str(fake.guilds.person("ann").id))
    async with adapter.connect(inbox):
        await adapter.send(target, OutboundMessage(text="?", buttons=(Button("Go"),)), idempotency_key="k")
        inbox.failure = StorageUnavailableError("sessions.db", "is away")
        lost = fake.presses("ann", "Go")
        await fake.wait_until(lambda: "could not be stored" in caplog.text, seconds=PATIENCE)
        inbox.failure = None
        pressed = fake.presses("ann", "Go")
        await fake.wait_until(lambda: pressed.is_answered, seconds=PATIENCE)
        assert not lost.is_answered
        # Somebody else's buttons and broken ones are left alone.
        place = fake.place("ann")
        fake._interacts("ann", place, 3, {"custom_id": "theirs", "component_type": 2})  # noqa: SLF001
        fake._interacts("ann", place, 3, {"custom_id": "gs#gone", "component_type": 2})  # noqa: SLF001
        fake.says("ann", "still there?")
        await inbox.wait_for_text("still there?")
    assert len(inbox.messages) == 2


async def test_a_slow_store_is_waited_for_behind_the_acknowledgement(
    fake: FakeDiscord, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("gateway_sessions.integrations.discord_py.listening.ANSWER_SECONDS", 0.05)
    inbox, adapter = Inbox(), adapter_of(fake)
    target = ReplyTarget(platform="discord", user_id=str(fake.guilds.person("ann").id))
    async with adapter.connect(inbox):
        await adapter.send(target, OutboundMessage(text="?", buttons=(Button("Go"),)), idempotency_key="k")
        inbox.open.clear()
        pressed = fake.presses("ann", "Go")
        await fake.wait_until(lambda: pressed.is_answered, seconds=PATIENCE)
        assert inbox.messages == []
        inbox.open.set()
        await inbox.wait_for(1)
        fake.faults.plan(RefusedCall(404, "10062: Unknown interaction"), method="respond")
        fake.presses("ann", "Go")
        await inbox.wait_for(2)


@pytest.mark.parametrize("kind", ["client", "bot"])
async def test_commands_of_the_gateway_stand_in_the_menu(fake: FakeDiscord, tmp_path: Path, kind: str):
    client: discord.Client = client_of()
    if kind == "bot":
        client = commands.Bot("!", intents=all_intents(), guild_ready_timeout=0.01)

        @client.tree.command(name="status")
        async def status(interaction: discord.Interaction) -> None:
            """Answer for the bot."""
            await interaction.response.send_message("mine")

    adapter = adapter_of(fake, client=client)
    async with gateway_with(adapter, tmp_path) as gateway:
        await fake.wait_until(lambda: "new" in fake.rest.commands, seconds=PATIENCE)
        assert {one.name for one in gateway.commands if one.name != "status"} <= set(fake.rest.commands)
        fake.says("ann", "hello")
        await fake.wait_until(lambda: fake.texts("ann"), seconds=PATIENCE)
        used = fake.commands("ann", "title", arguments="Trip to Rome")
        await fake.wait_until(lambda: used.original is not None, seconds=PATIENCE)
        assert used.response == 5
        assert "Trip to Rome" in fake.texts("ann")[-1]
        if isinstance(client, commands.Bot):
            await client.tree.sync()
            assert {"new", "status"} <= set(fake.rest.commands)
            fake.commands("ann", "status", channel="general")
            await fake.wait_until(lambda: fake.texts(channel="general") == ["mine"], seconds=PATIENCE)


async def test_a_menu_keeps_what_others_have_put_there(fake: FakeDiscord):
    client = client_of()
    tree = app_commands.CommandTree(client)

    @tree.command(name="own", description="Mine.")
    async def own(interaction: discord.Interaction) -> None:
        await interaction.response.send_message("mine")

    adapter, inbox = adapter_of(fake, client=client, tree=tree), Inbox()
    async with adapter.connect(inbox):
        await tree.sync()
        new = CommandHelp(name="new", summary="Begin anew.", usage="[TITLE]")
        for summary in ("Begin.", "Begin anew.", "Begin anew."):
            await adapter.show_commands(
                [
                    replace(new, summary=summary),
                    CommandHelp(name="own", summary=""),
                    CommandHelp(name="a b", summary=""),
                ]
            )
        assert [call.method for call in fake.calls].count("replace_commands") == 3
        assert {name: one["description"] for name, one in fake.rest.commands.items()} == {
            "own": "Mine.",
            "new": "Begin anew.",
        }
        await tree.sync()
        assert sorted(fake.rest.commands) == ["new", "own"]
        fake.commands("ann", "new", channel="general", arguments="Trip")
        fake.commands("ann", "own", channel="general")
        (message,) = await inbox.wait_for(1)
        await fake.wait_until(lambda: fake.texts(channel="general") == ["mine"], seconds=PATIENCE)
    assert (message.text, message.source.chat_type) == ("/new Trip", "group")


async def test_only_the_first_message_stands_where_a_command_waits(fake: FakeDiscord):
    inbox, adapter = Inbox(), adapter_of(fake)
    async with adapter.connect(inbox):
        await adapter.show_commands([CommandHelp(name="go", summary="Go.")])
        used = fake.commands("ann", "go", channel="general")
        (message,) = await inbox.wait_for(1)
        await fake.wait_until(lambda: used.is_answered, seconds=PATIENCE)
        target = ReplyTarget.answering(message)
        for key in ("one", "one", "two"):
            await adapter.send(target, OutboundMessage(text=key), idempotency_key=key)
        assert fake.texts(channel="general") == ["one", "two"]
        assert used.original == int(fake.shown(channel="general")[0]["id"])
        late = fake.commands("ann", "go", channel="general")
        await inbox.wait_for(2)
        await fake.wait_until(lambda: late.is_answered, seconds=PATIENCE)
        late.began -= 3600
        gone = ReplyTarget.answering(inbox.messages[-1])
        await adapter.send(gone, OutboundMessage(text="late"), idempotency_key="late")
        assert fake.texts(channel="general")[-1] == "late"
        third = fake.commands("ann", "go", channel="general")
        await inbox.wait_for(3)
        await fake.wait_until(lambda: third.is_answered, seconds=PATIENCE)
        fake.faults.plan(RefusedCall(400, "50035: Invalid Form Body"), method="edit_original")
        target = ReplyTarget.answering(inbox.messages[-1])
        with pytest.raises(DeliveryRefusedError, match="Invalid Form Body"):
            await adapter.send(target, OutboundMessage(text="x"), idempotency_key="x")


# Out


async def test_files_go_both_ways(fake: FakeDiscord):
    inbox, adapter = Inbox(), adapter_of(fake)
    async with adapter.connect(inbox):
        fake.sends("ann", b"abc", name="a.png", media_type="image/png")
        (message,) = await inbox.wait_for(1)
        (attachment,) = message.attachments
        assert (attachment.kind, attachment.size) == (AttachmentKind.PHOTO, 3)
        assert await adapter.fetch(attachment) == b"abc"
        with pytest.raises(InvalidInputError, match=r"a\.png has 3 bytes, at most 2 are fetched"):
            await adapter.fetch(attachment, most=2)
        for elsewhere in ("/etc/passwd", "file:///etc/passwd", "https://evil.example/a.png"):
            with pytest.raises(InvalidInputError, match="is no file of Discord"):
                await adapter.fetch(Attachment(kind=AttachmentKind.PHOTO, url=elsewhere))
        with pytest.raises(InvalidInputError, match="does not have the file any more"):
            await adapter.fetch(Attachment(kind=AttachmentKind.PHOTO, url=f"{attachment.url}x"))
        data = "data:text/plain;base64," + base64.b64encode(b"def").decode()
        file = Attachment(kind=AttachmentKind.DOCUMENT, url=data, name="b.txt")
        await adapter.send(
            ReplyTarget.answering(message),
            OutboundMessage(text="back", attachments=(file,)),
            idempotency_key="k",
        )
    (shown,) = fake.shown("ann")
    assert shown["attachments"][0]["filename"] == "b.txt"
    assert b"def" in fake.files.values()


async def test_a_person_without_a_channel_gets_one(fake: FakeDiscord):
    adapter = adapter_of(fake)
    ann = fake.guilds.person("ann")
    async with adapter.connect(Inbox()):
        for number in range(2):
            target = ReplyTarget(platform="discord", user_id=str(ann.id))
            await adapter.send(target, OutboundMessage(text=f"{number}"), idempotency_key=f"{number}")
        assert fake.texts("ann") == ["0", "1"]
        assert sum(call.method == "open_dm" for call in fake.calls) == 1
        with pytest.raises(DeliveryRefusedError, match="a channel or a person"):
            await adapter.send(
                ReplyTarget(platform="discord"), OutboundMessage(text="x"), idempotency_key="k"
            )


async def test_refusals_say_what_to_do(fake: FakeDiscord):
    adapter, place = adapter_of(fake), fake.guilds.channel("general")
    target = ReplyTarget(platform="discord", chat_id=str(place.id))
    async with adapter.connect(Inbox()):

        async def refusal(target: ReplyTarget) -> str:
            with pytest.raises(DeliveryRefusedError) as refused:
                await adapter.send(target, OutboundMessage(text="x"), idempotency_key="k")
            return str(refused.value)

        place.may_write = False
        assert "Send Messages" in await refusal(target)
        place.may_read = False
        assert "View Channel" in await refusal(target)
        assert "does not exist" in await refusal(ReplyTarget(platform="discord", chat_id="1"))
        fake.blocks("ann")
        person = ReplyTarget(platform="discord", user_id=str(fake.guilds.person("ann").id))
        assert "no private messages" in await refusal(person)


async def test_a_pause_that_is_too_long_to_wait_for_is_told(fake: FakeDiscord):
    client = client_of(max_ratelimit_timeout=30)
    adapter, place = adapter_of(fake, client=client), fake.guilds.channel("general")
    target = ReplyTarget(platform="discord", chat_id=str(place.id))
    async with adapter.connect(Inbox()):
        fake.faults.plan(RateLimit(40), method="create_message")
        with pytest.raises(RateLimitedError) as limited:
            await adapter.send(target, OutboundMessage(text="x"), idempotency_key="k")
        assert limited.value.retry_after == 40
        fake.faults.plan(ServerFault(503), method="type")
        with pytest.raises(ConnectionError):
            await adapter.typing(target)


# Coming and going


async def test_what_keeps_the_bot_out_is_told_in_a_sentence(fake: FakeDiscord):
    with pytest.raises(AdapterUnavailableError, match="does not know this token: copy it anew"):
        async with DiscordAdapter(client_of(), "not.the.token").connect(Inbox()):
            pass
    fake.gateway.allowed_intents = 0
    with pytest.raises(AdapterUnavailableError, match="switch Message Content Intent on"):
        async with adapter_of(fake).connect(Inbox()):
            pass
    fake.faults.plan(RefusedCall(400, "0: Bad"), method="get_application")
    with pytest.raises(AdapterUnavailableError, match="cannot be reached"):
        async with adapter_of(fake).connect(Inbox()):
            pass


async def test_a_gateway_that_is_away_at_first_is_told_in_one_sentence(fake: FakeDiscord):
    """It was an `AttributeError` in discord.py, which wants to resume a session that never began."""
    with (
        discord_py_pointed_at(fake.api_url, "ws://127.0.0.1:9/gateway"),
        pytest.raises(AdapterUnavailableError, match=r"discord: cannot be reached \(Cannot connect"),
    ):
        async with DiscordAdapter(client_of(), fake.token).connect(Inbox()):
            pass


@pytest.mark.parametrize(("code", "told"), [(4004, "does not know this token"), (4012, "cannot be reached")])
async def test_a_session_that_ends_for_good_ends_the_block(fake: FakeDiscord, code: int, told: str):
    with pytest.raises(AdapterUnavailableError, match=told):
        await stay_connected(adapter_of(fake), lambda: fake.on_gateway(lambda: fake.gateway.close(code)))


async def test_a_client_that_the_program_closes_ends_the_block(fake: FakeDiscord):
    client, closing = client_of(), list[asyncio.Task[None]]()

    async def close() -> None:
        closing.append(asyncio.create_task(client.close()))

    with pytest.raises(AdapterUnavailableError, match="has ended the connection"):
        await stay_connected(adapter_of(fake, client=client), close)
    await closing[0]


async def stay_connected(adapter: DiscordAdapter, happens: Callable[[], Awaitable[None]]) -> None:
    async with adapter.connect(Inbox()):
        await happens()
        await asyncio.sleep(PATIENCE)


async def test_a_gateway_that_is_silent_is_not_waited_for_for_ever(
    fake: FakeDiscord, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("gateway_sessions.integrations.discord_py.adapter.CONNECT_SECONDS", 0.1)
    monkeypatch.setattr(fake.gateway, "_begin_session", lambda _line, _intents: None)
    with pytest.raises(AdapterUnavailableError, match="does not begin a session"):
        async with adapter_of(fake).connect(Inbox()):
            pass


async def test_what_cannot_be_read_is_kept(
    fake: FakeDiscord, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    class Strange:
        """Raises what a message raises that nobody can read."""

        def __call__(self, message: DiscordMessage) -> bool:
            if "strange" in message.content:
                raise ValueError(message.content)
            return True

    inbox, room = Inbox(), "general"
    async with adapter_of(fake, unreadable=tmp_path, groups=Strange()).connect(inbox):
        fake.says("ann", "first", channel=room)
        await inbox.wait_for(1)
        fake.says("ann", "strange", channel=room)
        fake.says("ann", "strange as well", channel=room)
        fake.says("ann", "last", channel=room)
        await inbox.wait_for(2)
        await fake.wait_until(lambda: caplog.text.count("was put aside") == 2, seconds=PATIENCE)
    assert texts(inbox) == ["first", "last"]
    assert len(list(tmp_path.glob("update-*.json"))) == 2
    async with adapter_of(fake, groups=Strange()).connect(inbox):
        fake.says("ann", "strange", channel=room)
        fake.says("ann", "really", channel=room)
        await inbox.wait_for_text("really")
    assert "could not be read and is passed over" in caplog.text


# The objects of discord.py


async def test_discord_py_tells_what_discord_tells(fake: FakeDiscord):
    """The same messages, as discord.py makes them of the API's JSON, and read from that JSON."""
    client, room = client_of(), "general"
    answered = fake.says("bob", "question", channel=room)
    poll = {
        "question": {"text": "When?"},
        "answers": [
            {"answer_id": 1, "poll_media": {"text": "now"}},
            {"answer_id": 2, "poll_media": {"text": "x"}},
        ],
        "expiry": "2026-12-20T10:00:00+00:00",
        "allow_multiselect": False,
        "layout_type": 1,
    }
    snapshot = {
        "type": 0,
        "content": "news",
        "timestamp": "2026-11-20T10:00:00+00:00",
        "edited_timestamp": None,
    }
    snapshot |= {"embeds": [], "attachments": [], "flags": 0, "mentions": [], "mention_roles": []}
    forwarded = {"channel_id": "1", "message_id": "2", "type": 1}
    buttons = [{"type": 1, "components": [{"type": 2, "style": 1, "label": "Go", "custom_id": "gs:go"}]}]
    fake.says("ann", f"{fake.mention} hi <@&{fake.guilds.bot_role}>", channel=room)
    fake.says("ann", "an answer", channel=room, reply_to=answered)
    fake.says("ann", "", channel=room, poll=poll)
    fake.says("ann", "", channel=room, message_reference=forwarded, message_snapshots=[{"message": snapshot}])
    fake.says("ann", "go", channel=room, components=buttons, flags=1 << 13)
    stickers = [{"id": "5", "name": "wave", "format_type": 1}]
    fake.says("ann", "", channel=room, sticker_items=stickers, webhook_id="77")
    fake.sends("ann", b"abc", name="a.png", media_type="image/png", channel=room)
    fake.edits(answered, "question?")
    place = fake.guilds.channel(room)
    async with adapter_of(fake, client=client).connect(Inbox()):
        raw = await client.http.logs_from(place.id, 100)
        known = {str(one.id): one async for one in client.get_partial_messageable(place.id).history()}
    for one in raw:
        assert message_of(known[one["id"]]) == read_as(DiscordMessage, one)


async def test_marks_that_cannot_be_kept_do_not_stop_messages(
    fake: FakeDiscord, caplog: pytest.LogCaptureFixture
):
    class Failing(ProcessMemory):
        async def put(self, name: str, value: str | None) -> None:
            if name.startswith("channel:"):
                raise StorageUnavailableError("sessions.db", "is away")
            await super().put(name, value)

    inbox, adapter = Inbox(), adapter_of(fake)
    adapter.remember_in(Failing())
    async with adapter.connect(inbox):
        for text in ("one", "two"):
            fake.says("ann", text)
        await inbox.wait_for(2)
        await fake.wait_until(lambda: "could not be written down" in caplog.text, seconds=PATIENCE)


async def test_interactions_that_nobody_can_read_are_passed_over(
    fake: FakeDiscord, caplog: pytest.LogCaptureFixture
):
    async with adapter_of(fake).connect(Inbox()):
        place = fake.place("ann")
        _, event = fake.make_interaction(
            "ann", place, 3, {"custom_id": "gs:" + "x" * 600, "component_type": 2}
        )
        fake.guilds.dispatch("INTERACTION_CREATE", {**event, "id": str(10**30)})
        fake._interacts("ann", place, 4, {"name": "x", "id": "1", "type": 1})  # noqa: SLF001
        await fake.wait_until(lambda: "could not be read" in caplog.text, seconds=PATIENCE)


def test_without_discord_py_one_sentence_tells_what_to_install(monkeypatch: pytest.MonkeyPatch):
    for name in [one for one in sys.modules if one.startswith("gateway_sessions.integrations.discord_py")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "discord", None)
    with pytest.raises(InvalidInputError, match=r"pip install 'gateway-sessions\[discord\]'"):
        importlib.import_module("gateway_sessions.integrations.discord_py")
