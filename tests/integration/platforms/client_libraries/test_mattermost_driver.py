"""The fake Mattermost is proven with mattermostautodriver, which is made from the server's description."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

import pytest
from mattermostautodriver import TypedDriver
from mattermostautodriver.exceptions import NoAccessTokenProvided, NotEnoughPermissions

from gateway_sessions.testing.fakes.mattermost import FakeMattermost


def driver_of(fake: FakeMattermost, token: str = "") -> TypedDriver:
    address = urlsplit(fake.url)
    where = {"scheme": "http", "url": address.hostname, "port": address.port}
    return TypedDriver({**where, "token": token or fake.token})


async def test_its_client_reads_and_writes():
    async with FakeMattermost() as fake:
        with driver_of(fake) as driver:
            await asyncio.to_thread(driver.login)
            assert driver.client.userid == fake.bot.id
            root = fake.says("ann", "@helper hello", channel="team")
            channel = fake.channel("ann", "team")
            found = await asyncio.to_thread(driver.posts.get_posts_for_channel, channel.id)
            assert found["posts"][root]["message"] == "@helper hello"
            sent = await asyncio.to_thread(
                driver.posts.create_post, channel_id=channel.id, message="good day", root_id=root
            )
            await asyncio.to_thread(driver.posts.patch_post, sent["id"], message="good evening")
            assert fake.texts(channel="team", thread=root) == ["good evening"]
            thread = await asyncio.to_thread(driver.posts.get_post_thread, root)
            assert thread["order"] == [sent["id"], root]


async def test_its_client_understands_the_refusals():
    async with FakeMattermost() as fake:
        expired = pytest.raises(NoAccessTokenProvided, match="Invalid or expired session")
        with driver_of(fake, "another") as stranger, expired:
            await asyncio.to_thread(stranger.login)
        with driver_of(fake) as driver:
            await asyncio.to_thread(driver.login)
            with pytest.raises(NotEnoughPermissions):
                await asyncio.to_thread(driver.posts.create_post, channel_id="unknown", message="hello")
