"""People remove or block a bot while it works: its reply is given up with a reason, and other chats go on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gateway_sessions import Reply, SessionStore, TurnContext
from gateway_sessions.storage.transactions.queue.outbox import OwedReply
from gateway_sessions.testing.fakes.discord import FakeDiscord
from gateway_sessions.testing.fakes.google_chat import FakeGoogleChat
from gateway_sessions.testing.fakes.line import FakeLine
from gateway_sessions.testing.fakes.matrix import FakeMatrix
from gateway_sessions.testing.fakes.mattermost import FakeMattermost
from gateway_sessions.testing.fakes.platform_server import FakePlatformServer
from gateway_sessions.testing.fakes.slack import FakeSlack
from gateway_sessions.testing.fakes.teams import FakeTeams
from gateway_sessions.testing.fakes.telegram import FakeTelegram
from gateway_sessions.testing.fakes.whatsapp import FakeWhatsApp
from tests.integration.platforms.all_platforms.configured_bots import bot_on


@dataclass(frozen=True)
class Removal:
    """People of a platform: Ann asks where the bot is removed, and Bob in private."""

    platform: str
    fake: Callable[[], FakePlatformServer]
    asks: Callable[[Any], object]
    removes: Callable[[Any], object]
    problem: str
    sends: frozenset[str]
    bob_asks: Callable[[Any], object] = lambda fake: fake.says("bob", "hello")
    is_ready: Callable[[Any], object] = lambda _: True


REMOVALS = {
    "slack, out of a channel": Removal(
        "slack",
        FakeSlack,
        lambda fake: fake.people.says("ann", "@helper wait", channel="team"),
        lambda fake: fake.people.removes_bot(channel="team"),
        "the app is not in the channel",
        frozenset({"chat.postMessage"}),
        lambda fake: fake.people.says("bob", "hello"),
    ),
    "slack, channel archived": Removal(
        "slack",
        FakeSlack,
        lambda fake: fake.people.says("ann", "@helper wait", channel="team"),
        lambda fake: fake.people.archives(channel="team"),
        "the channel is archived",
        frozenset({"chat.postMessage"}),
        lambda fake: fake.people.says("bob", "hello"),
    ),
    "matrix, kicked": Removal(
        "matrix",
        FakeMatrix,
        lambda fake: fake.says("ann", "wait", room="team", mentions=True),
        lambda fake: fake.removes_bot("ann", room="team"),
        "not in room",
        frozenset({"state_event", "send"}),
        is_ready=lambda fake: fake.syncs,
    ),
    "matrix, banned in private": Removal(
        "matrix",
        FakeMatrix,
        lambda fake: fake.says("ann", "wait"),
        lambda fake: fake.removes_bot("ann", bans=True),
        "not in room",
        frozenset({"state_event", "send"}),
        is_ready=lambda fake: fake.syncs,
    ),
    "mattermost": Removal(
        "mattermost",
        FakeMattermost,
        lambda fake: fake.says("ann", "@helper wait", channel="team"),
        lambda fake: fake.removes_bot("ann", "team"),
        "permission",
        frozenset({"create_post"}),
        is_ready=lambda fake: fake.looks >= 2,
    ),
    "whatsapp, left": Removal(
        "whatsapp",
        FakeWhatsApp,
        lambda fake: fake.says("ann", "wait"),
        lambda fake: fake.leaves("ann"),
        "cannot deliver to this person",
        frozenset({"messages"}),
    ),
    "line, out of a group": Removal(
        "line",
        FakeLine,
        lambda fake: fake.says("ann", "wait", group="team", mentions=True),
        lambda fake: fake.removes_bot("ann", group="team"),
        "Failed to send messages",
        frozenset({"push"}),
    ),
    "google chat, out of a space": Removal(
        "google_chat",
        FakeGoogleChat,
        lambda fake: fake.says("ann", "wait", room="team"),
        lambda fake: fake.removes_bot("ann", room="team"),
        "not a member of the space",
        frozenset({"create"}),
    ),
    "google chat, in private": Removal(
        "google_chat",
        FakeGoogleChat,
        lambda fake: fake.says("ann", "wait"),
        lambda fake: fake.removes_bot("ann"),
        "not a member of the space",
        frozenset({"create"}),
    ),
    "telegram, blocked": Removal(
        "telegram",
        FakeTelegram,
        lambda fake: fake.says("ann", "wait"),
        lambda fake: fake.blocks("ann"),
        "blocked",
        frozenset({"sendMessage"}),
    ),
    "discord, blocked": Removal(
        "discord",
        FakeDiscord,
        lambda fake: fake.says("ann", "wait"),
        lambda fake: fake.blocks("ann"),
        "no private messages",
        frozenset({"create_message"}),
        is_ready=lambda fake: fake.gateway.sessions,
    ),
    "teams, blocked": Removal(
        "teams",
        FakeTeams,
        lambda fake: fake.says("ann", "wait"),
        lambda fake: fake.blocks("ann"),
        "has blocked the bot",
        frozenset({"sendActivity"}),
    ),
}


class WaitingAgent:
    """Answers at once, or after a test lets it, if it is told to wait."""

    def __init__(self) -> None:
        self.waits = asyncio.Event()
        self.goes_on = asyncio.Event()

    async def __call__(self, turn: TurnContext) -> Reply:
        if "wait" in turn.text:
            self.waits.set()
            await self.goes_on.wait()
        return Reply(f"You said: {turn.text}")


async def given_up(store: SessionStore) -> list[OwedReply]:
    """Return the replies that were given up, as soon as there is one."""
    for _ in range(1000):
        if dead := await store.dead_replies():
            return dead
        await asyncio.sleep(0.01)
    raise AssertionError


def said(fake: FakePlatformServer) -> list[str]:
    return [one.text for one in fake.bot_messages()]


@pytest.mark.parametrize("removal", REMOVALS.values(), ids=REMOVALS)
async def test_a_reply_to_where_the_bot_was_removed_is_given_up_and_others_go_on(
    removal: Removal, tmp_path: Path
):
    agent = WaitingAgent()
    async with removal.fake() as fake, bot_on(fake, removal.platform, tmp_path, agent) as store:
        await fake.wait_until(lambda: removal.is_ready(fake))
        removal.asks(fake)
        await asyncio.wait_for(agent.waits.wait(), 10)
        removal.removes(fake)
        before = len(fake.calls)
        agent.goes_on.set()
        dead = await given_up(store)
        refused = [one for one in fake.calls[before:] if one.method in removal.sends and one.refusal]
        removal.bob_asks(fake)
        await fake.wait_until(lambda: said(fake))
    assert [(one.message.text, removal.problem in (one.problem or "")) for one in dead] == [
        ("You said: wait", True)
    ], dead
    assert [one.attempts for one in dead] == [1]
    assert len(refused) == 1
    assert said(fake) == ["You said: hello"]


@pytest.mark.parametrize(("platform", "fake"), [("line", FakeLine), ("whatsapp", FakeWhatsApp)])
async def test_what_is_said_to_who_has_blocked_the_bot_is_taken_and_shown_to_nobody(
    platform: str, fake: Callable[[], FakeLine | FakeWhatsApp], tmp_path: Path
):
    """These platforms tell no bot who has blocked it."""
    agent = WaitingAgent()
    async with fake() as blocked, bot_on(blocked, platform, tmp_path, agent) as store:
        blocked.says("ann", "wait")
        await asyncio.wait_for(agent.waits.wait(), 10)
        blocked.blocks("ann")
        before = len(blocked.calls)
        agent.goes_on.set()
        sends = {"messages", "reply"}
        await blocked.wait_until(lambda: any(one.method in sends for one in blocked.calls[before:]))
        blocked.says("bob", "hello")
        await blocked.wait_until(lambda: said(blocked))
        blocked.unblocks("ann")
        blocked.says("ann", "again")
        await blocked.wait_until(lambda: said(blocked)[1:])
        assert await store.dead_replies() == []
    assert sorted(said(blocked)) == ["You said: again", "You said: hello"]
