"""The fake Teams keeps the rules that are documented for the Bot Connector, whoever calls it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import httpx2
import pytest

from gateway_sessions.testing.fakes.teams import FakeTeams

CARD = "application/vnd.microsoft.card.adaptive"


@pytest.fixture
async def fake() -> AsyncGenerator[FakeTeams]:
    async with FakeTeams() as fake:
        yield fake


@pytest.fixture
async def client(fake: FakeTeams) -> AsyncGenerator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient() as client:
        form = {"grant_type": "client_credentials", "scope": "https://api.botframework.com/.default"}
        form |= {"client_id": fake.app_id, "client_secret": fake.app_secret}
        answer = await client.post(f"{fake.url}/botframework.com/oauth2/v2.0/token", data=form)
        client.headers["authorization"] = f"Bearer {answer.json()['access_token']}"
        yield client


def place(fake: FakeTeams, *rest: str) -> str:
    chat = fake.chats.chat_of("ann")
    return "/".join((f"{fake.service_url}v3/conversations/{chat.id}/activities", *rest))


async def post(fake: FakeTeams, client: httpx2.AsyncClient, **activity: Any) -> httpx2.Response:
    return await client.post(place(fake), json={"type": "message", **activity})


async def test_a_token_needs_all_parts_of_its_form(fake: FakeTeams):
    async with httpx2.AsyncClient() as client:
        answer = await client.post(f"{fake.url}/t/oauth2/v2.0/token", data={"grant_type": "password"})
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")


async def test_metadata_lead_to_the_keys(fake: FakeTeams, client: httpx2.AsyncClient):
    metadata = (await client.get(fake.openid_url)).json()
    (key,) = (await client.get(metadata["jwks_uri"])).json()["keys"]
    assert (key["kid"], key["endorsements"]) == (fake.issuer.key_id, ["msteams", "skype"])
    fake.issuer.rotate(published=False)
    assert fake.issuer.key_set()["keys"] == [key]
    fake.issuer.publish()
    assert [one["kid"] for one in fake.issuer.key_set()["keys"]] == [fake.issuer.key_id]


async def test_only_the_bot_may_call(fake: FakeTeams):
    async with httpx2.AsyncClient() as client:
        assert (await post(fake, client, text="x")).status_code == 401


async def test_a_message_is_shown_changed_and_deleted(fake: FakeTeams, client: httpx2.AsyncClient):
    message_id = (await post(fake, client, text="one")).json()["id"]
    changed = await client.put(place(fake, message_id), json={"type": "message", "text": "two"})
    assert (changed.json(), fake.texts("ann")) == ({"id": message_id}, ["two"])
    assert (await client.delete(place(fake, message_id))).status_code == 200
    assert fake.texts("ann") == []


async def test_the_words_of_others_cannot_be_changed(fake: FakeTeams, client: httpx2.AsyncClient):
    fake.says("ann", "mine")
    (message_id,) = fake.chats.chat_of("ann").messages
    changed = await client.put(place(fake, message_id), json={"type": "message", "text": "yours"})
    assert changed.status_code == 403


@pytest.mark.parametrize(
    ("activity", "status"),
    [
        ({"text": "x"}, 201),
        ({"text": " "}, 400),
        ({"type": "trace", "text": "x"}, 400),
        ({"text": "x", "textFormat": "html"}, 400),
        ({"text": "x" * (28 << 10)}, 413),
        (
            {
                "attachments": [
                    {"contentType": "image/png", "contentUrl": "data:image/png;base64," + "A" * 40_000}
                ]
            },
            201,
        ),
        ({"attachments": [{"contentType": "application/pdf", "contentUrl": "https://e.org"}]}, 400),
        ({"attachments": [{"contentType": CARD, "content": {"type": "AdaptiveCard"}}]}, 400),
        (
            {
                "attachments": [
                    {
                        "contentType": CARD,
                        "content": {
                            "type": "AdaptiveCard",
                            "version": "1.4",
                            "body": [{"actions": [{}] * 7}],
                        },
                    }
                ]
            },
            400,
        ),
    ],
)
async def test_activities_are_checked(
    fake: FakeTeams, client: httpx2.AsyncClient, activity: dict[str, Any], status: int
):
    assert (await post(fake, client, **activity)).status_code == status


async def test_a_thread_that_does_not_exist_takes_nothing(fake: FakeTeams, client: httpx2.AsyncClient):
    channel = fake.chats.chat_of(channel="general").id
    url = f"{fake.service_url}v3/conversations/{channel};messageid=1/activities"
    assert (await client.post(url, json={"type": "message", "text": "x"})).status_code == 404


async def test_a_button_that_nobody_sees_cannot_be_pressed(fake: FakeTeams, client: httpx2.AsyncClient):
    await post(
        fake,
        client,
        text="no buttons",
        attachments=[{"contentType": "image/png", "contentUrl": "https://e.org"}],
    )
    with pytest.raises(AssertionError, match="ann sees no button 'Yes'"):
        fake.presses("ann", "Yes")
