"""A bot on Teams with a gateway: a fake Teams over real bytes, and what may go wrong."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path

import httpx2
import pytest

from gateway_sessions import Gateway, Reply, SessionStore, TurnContext
from gateway_sessions.adapters import (
    Attachment,
    AttachmentKind,
    MessageKind,
    OutboundMessage,
    ReplyTarget,
    TextFormat,
)
from gateway_sessions.adapters.webhooks import WebhookApp
from gateway_sessions.core.delivery.outbound_messages import Button
from gateway_sessions.errors import (
    AdapterUnavailableError,
    DeliveryRefusedError,
    InvalidInputError,
    StorageUnavailableError,
)
from gateway_sessions.integrations.teams import TeamsAdapter
from gateway_sessions.testing.clock import FakeClock
from gateway_sessions.testing.contract.adapter import Inbox
from gateway_sessions.testing.fakes.faults import ALWAYS, CutConnection, RefusedCall, ServerFault
from gateway_sessions.testing.fakes.teams import FakeTeams
from tests.integration.gateway.gateway_harness import QUICK
from tests.integration.platforms.teams.teams_world import adapter_of, connected, settings_of
from tests.integration.webhooks.example_world import serving

AWAY = StorageUnavailableError("sessions.db", "is away")


@pytest.fixture
async def fake() -> AsyncGenerator[FakeTeams]:
    async with FakeTeams() as fake:
        yield fake


@pytest.fixture
def inbox() -> Inbox:
    return Inbox()


async def echo(turn: TurnContext) -> Reply:
    return Reply(f"You said **{turn.text}**.", format=TextFormat.MARKDOWN)


# With a gateway


async def test_a_conversation_goes_both_ways_in_its_places(fake: FakeTeams, tmp_path: Path):
    adapter = adapter_of(fake)
    async with SessionStore.open(tmp_path, QUICK) as store, Gateway(store, agent=echo, adapters=[adapter]):
        await fake.wait_until(lambda: adapter.address)
        fake.webhook_url = adapter.url
        fake.says("ann", "hello")
        root = json.loads(fake.says("bob", "plans", channel="general").body)["id"]
        await fake.wait_until(lambda: fake.texts(channel="general", thread=root))
        fake.says("cid", "in the thread", channel="general", thread=root)
        other = json.loads(fake.says("bob", "other", channel="general").body)["id"]
        fake.says("bob", "in a group", group="team")
        fake.says("bob", "not for the bot", group="team", mentions=False)
        await fake.wait_until(lambda: len(fake.texts(channel="general")) == 3 and fake.texts(group="team"))
        await fake.wait_until(lambda: fake.texts("ann"))
        assert fake.texts("ann") == ["You said **hello**."]
        assert fake.texts(channel="general", thread=root) == [
            "You said **plans**.",
            "You said **in the thread**.",
        ]
        assert fake.texts(channel="general", thread=other) == ["You said **other**."]
        assert fake.texts(group="team") == ["You said **in a group**."]
        (shown,) = fake.shown("ann")
        assert shown["textFormat"] == "markdown"


async def test_a_reply_grows_in_one_message(fake: FakeTeams, tmp_path: Path):
    async def agent(turn: TurnContext) -> str:
        stream = turn.stream()
        for word in ("one ", "two ", "three"):
            await stream.write(word)
            await asyncio.sleep(0.05)
        return "one two three"

    adapter = adapter_of(fake)
    async with SessionStore.open(tmp_path, QUICK) as store, Gateway(store, agent=agent, adapters=[adapter]):
        await fake.wait_until(lambda: adapter.address)
        fake.webhook_url = adapter.url
        fake.says("ann", "count")
        await fake.wait_until(lambda: fake.texts("ann") == ["one two three"])


async def test_a_button_is_pressed(fake: FakeTeams, tmp_path: Path):
    async def agent(turn: TurnContext) -> Reply:
        if turn.text == "Yes":
            return Reply("It is done.")
        return Reply("Sure?", buttons=(Button("Yes", "confirm:1"), Button("No", "deny:1")))

    adapter = adapter_of(fake)
    async with SessionStore.open(tmp_path, QUICK) as store, Gateway(store, agent=agent, adapters=[adapter]):
        await fake.wait_until(lambda: adapter.address)
        fake.webhook_url = adapter.url
        fake.says("ann", "delete it")
        await fake.wait_until(lambda: fake.texts("ann"))
        assert fake.texts("ann") == ["Sure?\n[Yes]\n[No]"]
        assert await fake.is_taken(fake.presses("ann", "Yes"))
        await fake.wait_until(lambda: fake.texts("ann")[1:])
        assert fake.texts("ann")[1:] == ["It is done."]


async def test_one_application_serves_several_bots(fake: FakeTeams, inbox: Inbox):
    adapters = [TeamsAdapter(settings_of(fake), name=name) for name in ("", "sales")]
    async with serving(WebhookApp(*adapters)) as url, adapters[1].connect(inbox):
        fake.webhook_url = f"{url}/teams/sales"
        assert await fake.is_taken(fake.says("ann", "hello"))
    assert inbox.messages[0].account == "sales"


# In


async def test_what_a_store_does_not_take_teams_delivers_again(fake: FakeTeams, inbox: Inbox):
    inbox.failure = AWAY
    async with connected(fake, inbox):
        delivery = fake.says("ann", "hello")
        assert (await fake.settle(delivery)).status == 503
        inbox.failure = None
        assert await fake.is_taken(delivery)
    assert [one.text for one in inbox.messages] == ["hello"]


async def test_edits_and_deletions_name_the_message(fake: FakeTeams, inbox: Inbox):
    async with connected(fake, inbox):
        first = fake.says("ann", "helo")
        assert await fake.is_taken(first)
        for change in (fake.edits(first, "hello"), fake.edits(first, "hello!"), fake.deletes(first)):
            assert await fake.is_taken(change)
    said, *edits, deletion = inbox.messages
    assert [one.text for one in edits] == ["hello", "hello!"]
    assert {one.message_id for one in inbox.messages} == {said.message_id}
    assert 0 < edits[0].revision < edits[1].revision
    assert deletion.kind is MessageKind.DELETE


async def test_a_button_of_a_foreign_card_is_answered_as_teams_wants_it(fake: FakeTeams, inbox: Inbox):
    card = {
        "type": "AdaptiveCard",
        "version": "1.5",
        "actions": [{"type": "Action.Execute", "title": "Save", "verb": "save", "data": {"x": 1}}],
    }
    attached = {"contentType": "application/vnd.microsoft.card.adaptive", "content": card}
    target = ReplyTarget(platform="teams", chat_id=fake.chats.chat_of("ann").id)
    async with connected(fake, inbox) as adapter:
        message = OutboundMessage(text="form", extra={"teams": {"attachments": [attached]}})
        sent = await adapter.send(target, message, idempotency_key="k")
        press = fake.presses("ann", "Save")
        assert await fake.is_taken(press)
        other = fake.happens("ann", "invoke", name="task/fetch")
        assert await fake.is_taken(other)
    assert json.loads(press.attempts[0].body)["statusCode"] == 200
    assert other.attempts[0].status == 501
    (message_in,) = inbox.messages
    assert (message_in.action, message_in.reply_to and message_in.reply_to.message_id) == ("save", sent)


async def test_what_is_no_message_is_acknowledged(fake: FakeTeams, inbox: Inbox):
    async with connected(fake, inbox):
        for kind in ("conversationUpdate", "messageReaction", "installationUpdate", "typing"):
            assert await fake.is_taken(fake.happens("ann", kind))
    assert inbox.messages == []


async def test_an_answer_to_the_bot_counts_as_a_mention(fake: FakeTeams, inbox: Inbox):
    async with connected(fake, inbox) as adapter:
        target = ReplyTarget(platform="teams", chat_id=fake.chats.chat_of(group="team").id)
        sent = await adapter.send(target, OutboundMessage(text="my words"), idempotency_key="k")
        assert await fake.is_taken(fake.says("ann", "why?", group="team", mentions=False, answers=sent))
    (message,) = inbox.messages
    assert message.reply_to is not None
    assert (message.reply_to.text, message.reply_to.own) == ("my words", True)


# Tokens of activities


@pytest.mark.parametrize(
    ("claims", "headers", "problem"),
    [
        ({"aud": "another-app"}, {}, "the token is for somebody else"),
        ({"iss": "https://evil.example"}, {}, "the token is of another issuer"),
        ({"exp": 1}, {}, "is the clock of this machine right"),
        ({"serviceurl": "https://evil.example"}, {}, "names another service than its token"),
        ({}, {"kid": "unknown"}, "a key that its issuer does not publish"),
    ],
)
async def test_a_forged_activity_is_refused(
    fake: FakeTeams,
    inbox: Inbox,
    claims: dict[str, object],
    headers: dict[str, str],
    problem: str,
    caplog: pytest.LogCaptureFixture,
):
    fake.claims, fake.token_headers = claims, headers
    async with connected(fake, inbox):
        assert (await fake.settle(fake.says("ann", "hello"))).status == 403
    assert inbox.calls == 0
    if not headers:
        assert problem in caplog.text


async def test_a_stranger_without_a_token_is_refused(fake: FakeTeams, inbox: Inbox):
    async with connected(fake, inbox) as adapter, httpx2.AsyncClient() as client:
        answers = [await client.post(adapter.url, content=body) for body in (b"{}", b"", b"\xff" * 100)]
    assert {one.status_code for one in answers} == {403}


async def test_a_new_key_is_fetched_but_not_for_each_guess(fake: FakeTeams, inbox: Inbox):
    clock = FakeClock()
    fake.clock = clock
    async with connected(fake, inbox, clock=clock):
        assert await fake.is_taken(fake.says("ann", "one"))
        await clock.advance(minutes=1)
        fake.issuer.rotate()
        assert await fake.is_taken(fake.says("ann", "two"))
        fake.token_headers = {"kid": "a guess"}
        for _ in range(5):
            assert (await fake.settle(fake.says("ann", "forged"))).status == 403
    assert [one.text for one in inbox.messages] == ["one", "two"]
    assert [one.method for one in fake.calls].count("keys") == 2


async def test_while_keys_cannot_be_had_teams_delivers_again(fake: FakeTeams, inbox: Inbox):
    async with connected(fake, inbox):
        fake.faults.plan(CutConnection.BEFORE, method="keys")
        fake.faults.plan(ServerFault(), method="keys")
        delivery = fake.says("ann", "hello")
        assert await fake.is_taken(delivery)
    assert [one.status for one in delivery.attempts] == [503, 503, 200]


# Out


async def test_a_wrong_secret_is_told_in_one_sentence(fake: FakeTeams, inbox: Inbox):
    for changes in ({"app_secret": "its-id"}, {"app_id": "unknown"}):
        adapter = adapter_of(fake, settings=settings_of(fake, **changes))
        with pytest.raises(AdapterUnavailableError, match=r"check app_id, app_secret and tenant_id \(AADSTS"):
            async with adapter.connect(inbox):
                pass


async def test_a_login_service_that_is_away_is_unavailable(fake: FakeTeams, inbox: Inbox):
    async with fake.outage():
        with pytest.raises(AdapterUnavailableError, match="teams: cannot be reached"):
            async with adapter_of(fake).connect(inbox):
                pass
    fake.faults.plan(ServerFault(), method="openidconfiguration")
    with pytest.raises(AdapterUnavailableError, match="does not accept the account"):
        async with adapter_of(fake).connect(inbox):
            pass


async def test_one_token_serves_many_calls_and_a_withdrawn_one_is_replaced(fake: FakeTeams, inbox: Inbox):
    target = ReplyTarget(platform="teams", chat_id=fake.chats.chat_of("ann").id)
    async with connected(fake, inbox) as adapter:
        for text in ("one", "two"):
            await adapter.send(target, OutboundMessage(text=text), idempotency_key=text)
        assert fake.tokens_given == 1
        fake.withdraw_tokens()
        await adapter.send(target, OutboundMessage(text="three"), idempotency_key="three")
        assert fake.tokens_given == 2
        fake.faults.plan(RefusedCall(401, "Unauthorized"), method="sendActivity", times=ALWAYS)
        with pytest.raises(AdapterUnavailableError):
            await adapter.send(target, OutboundMessage(text="four"), idempotency_key="four")
    assert fake.texts("ann") == ["one", "two", "three"]


async def test_who_has_blocked_or_removed_the_bot_is_told_apart(fake: FakeTeams, inbox: Inbox):
    fake.chats.chat_of(group="team")
    fake.blocks("ann")
    fake.removes_bot(group="team")
    places = [fake.chats.chat_of("ann").id, fake.chats.chat_of(group="team").id, "a:unknown"]
    problems = ["has blocked the bot", "add it again", "does not exist any more"]
    async with connected(fake, inbox) as adapter:
        for place, problem in zip(places, problems, strict=True):
            target = ReplyTarget(platform="teams", chat_id=place)
            with pytest.raises(DeliveryRefusedError, match=problem):
                await adapter.send(target, OutboundMessage(text="hi"), idempotency_key=place)


async def test_a_message_that_is_gone_cannot_be_edited(fake: FakeTeams, inbox: Inbox):
    target = ReplyTarget(platform="teams", chat_id=fake.chats.chat_of("ann").id)
    async with connected(fake, inbox) as adapter:
        with pytest.raises(DeliveryRefusedError, match="ActivityNotFoundInConversation"):
            await adapter.edit(target, "99", OutboundMessage(text="hi"))


async def test_a_message_into_a_channel_begins_a_thread(fake: FakeTeams, inbox: Inbox):
    target = ReplyTarget(platform="teams", chat_id=fake.chats.chat_of(channel="general").id)
    async with connected(fake, inbox) as adapter:
        first = await adapter.send(target, OutboundMessage(text="news"), idempotency_key="k")
    assert fake.texts(channel="general", thread=first) == ["news"]


# Files


async def test_a_picture_is_fetched_with_the_token(fake: FakeTeams, inbox: Inbox):
    async with connected(fake, inbox) as adapter:
        assert await fake.is_taken(fake.sends_picture("ann", b"\x89PNG" * 100, text="look"))
        (picture,) = inbox.messages[0].attachments
        assert (picture.kind, await adapter.fetch(picture)) == (AttachmentKind.PHOTO, b"\x89PNG" * 100)
        with pytest.raises(InvalidInputError, match="more than 100 bytes"):
            await adapter.fetch(picture, most=100)
    assert inbox.messages[0].text == "look"


async def test_a_file_elsewhere_is_not_fetched(fake: FakeTeams, inbox: Inbox):
    async with connected(fake, inbox) as adapter:
        assert await fake.is_taken(fake.sends_file("ann", "a.docx", url="http://169.254.169.254/latest"))
        (file,) = inbox.messages[0].attachments
        with pytest.raises(InvalidInputError, match=r"a\.docx has an address that is none of Teams'"):
            await adapter.fetch(file)
        with pytest.raises(InvalidInputError, match="the attachment has an address"):
            await adapter.fetch(Attachment(kind=AttachmentKind.PHOTO, url="/etc/passwd"))
