"""The fake Twilio is proven with Twilio's own library: its signatures are valid, and its answers are read."""

from __future__ import annotations

import asyncio

import pytest
from twilio.base.exceptions import TwilioRestException
from twilio.http.http_client import TwilioHttpClient
from twilio.request_validator import RequestValidator
from twilio.rest import Client

from gateway_sessions.testing.fakes.faults import RateLimit
from gateway_sessions.testing.fakes.twilio import FakeTwilio
from tests.integration.platforms.client_libraries.webhook_catcher import caught_from


def client_of(fake: FakeTwilio, token: str = "") -> Client:
    """Return a client that keeps no connection: nothing of its library would ever close one."""
    client = Client(
        fake.account_sid, token or fake.auth_token, http_client=TwilioHttpClient(pool_connections=False)
    )
    client.api.base_url = fake.url
    return client


async def test_its_validator_accepts_what_the_fake_posts():
    async with FakeTwilio() as fake, caught_from(fake) as requests:
        fake.says("ann", "grüß dich & co")
        request = await requests.get()
        form, signature = request.parameters(), request.headers["x-twilio-signature"]
        validator = RequestValidator(fake.auth_token)
        assert form["Body"] == "grüß dich & co"
        assert validator.validate(fake.public_url, form, signature)
        assert not validator.validate(fake.public_url, {**form, "Body": "send money"}, signature)


async def test_its_client_sends_and_reads():
    async with FakeTwilio() as fake:
        client, ann = client_of(fake), fake.person("ann")
        sent = await asyncio.to_thread(
            client.messages.create,
            to=ann,
            from_=fake.number,
            body="hello",
            media_url=["https://e.org/cat.png"],
        )
        assert sent.sid.startswith("MM")
        assert (sent.status, fake.texts("ann")) == ("queued", ["hello\nhttps://e.org/cat.png"])
        assert await asyncio.to_thread(client.messages.list, to=ann) == []


async def test_its_client_understands_the_refusals():
    async with FakeTwilio() as fake:
        client, ann = client_of(fake), fake.person("ann")

        async def refused(client: Client, **fields: str) -> tuple[int, int]:
            with pytest.raises(TwilioRestException) as caught:
                await asyncio.to_thread(client.messages.create, to=ann, **fields)
            return caught.value.status, caught.value.code

        assert await refused(client, from_=fake.number, body="x" * 1601) == (400, 21617)
        assert await refused(client, body="from whom?") == (400, 21603)
        assert await refused(client_of(fake, "another token"), from_=fake.number, body="hi") == (401, 20003)
        fake.says("ann", "STOP")
        assert await refused(client, from_=fake.number, body="hi") == (400, 21610)
        fake.faults.plan(RateLimit(retry_after=1))
        assert await refused(client, from_=fake.number, body="hi") == (429, 20429)
