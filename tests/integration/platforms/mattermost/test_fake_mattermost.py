"""The fake Mattermost, asked over HTTP: it answers as its API does."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import httpx2
import pytest

from gateway_sessions.testing.fakes.faults import CutConnection, ServerFault
from gateway_sessions.testing.fakes.mattermost import FakeMattermost


@pytest.fixture
async def fake() -> AsyncGenerator[FakeMattermost]:
    async with FakeMattermost() as fake:
        yield fake


@pytest.fixture
async def client(fake: FakeMattermost) -> AsyncGenerator[httpx2.AsyncClient]:
    headers = {"authorization": f"Bearer {fake.token}"}
    async with httpx2.AsyncClient(base_url=f"{fake.url}/api/v4/", headers=headers) as client:
        yield client


async def test_posts_are_listed_by_page_and_by_change(fake: FakeMattermost, client: httpx2.AsyncClient):
    ids = [fake.says("ann", str(number)) for number in range(5)]
    channel = fake.channel("ann")
    path = f"channels/{channel.id}/posts"
    page = (await client.get(path, params={"per_page": 2})).json()
    assert page["order"] == [ids[4], ids[3]]
    before = (await client.get(path, params={"per_page": 2, "before": ids[3]})).json()
    assert before["order"] == [ids[2], ids[1]]
    since = channel.posts[ids[4]]["update_at"]
    fake.edits(ids[0], "zero")
    fake.deletes(ids[1])
    answer = fake.says("ann", "to the second", thread=ids[2])
    changed = (await client.get(path, params={"since": since})).json()
    assert set(changed["order"]) == {ids[0], ids[1], ids[2], answer}
    assert changed["posts"][ids[0]]["edit_at"] > since
    assert changed["posts"][ids[1]]["delete_at"] > since
    assert changed["posts"][ids[2]]["edit_at"] == 0, "only its thread has grown"
    (listed,) = (await client.get("users/me/channels")).json()
    assert (listed["type"], listed["last_post_at"]) == ("D", channel.posts[answer]["create_at"])
    thread = (await client.get(f"posts/{ids[2]}/thread")).json()
    assert set(thread["posts"]) == {ids[2], answer}


async def test_a_pending_id_makes_one_post_until_it_is_forgotten(
    fake: FakeMattermost, client: httpx2.AsyncClient
):
    body = {"channel_id": fake.channel("ann").id, "message": "once", "pending_post_id": "k"}
    first, second = [(await client.post("posts", json=body)).json()["id"] for _ in range(2)]
    assert first == second
    fake.forget_pending()
    assert (await client.post("posts", json=body)).json()["id"] != first
    assert fake.texts("ann") == ["once", "once"]


async def test_what_breaks_the_rules_is_refused(fake: FakeMattermost, client: httpx2.AsyncClient):
    channel = fake.channel("ann")
    elsewhere = fake.channel("bob", "old", with_bot=False)
    said = fake.says("ann", "mine")

    async def refusal(path: str, body: dict[str, Any], method: str = "POST") -> tuple[int, str]:
        answer = await client.request(method, path, json=body)
        return answer.status_code, answer.json()["id"]

    post = {"channel_id": channel.id, "message": "x"}
    assert await refusal("posts", {**post, "message": "x" * 16_384}) == (
        400, "model.post.is_valid.message_length.app_error"
    )  # fmt: skip
    assert (await refusal("posts", {**post, "message": ""}))[0] == 400
    assert (await refusal("posts", {**post, "root_id": "nothing"}))[0] == 400
    assert (await refusal("posts", {**post, "channel_id": elsewhere.id}))[0] == 403
    assert (await refusal(f"posts/{said}/patch", {"message": "yours"}, "PUT"))[0] == 403
    assert (await refusal("nothing", {}))[0] == 404
    assert (await client.get("users/nobody")).status_code == 404
    assert (await client.get("files/nothing")).status_code == 403
    stranger = {"authorization": "Bearer nobody"}
    assert (await client.get("users/me", headers=stranger)).status_code == 401


async def test_faults_happen_as_planned(fake: FakeMattermost, client: httpx2.AsyncClient):
    body = {"channel_id": fake.channel("ann").id, "message": "x"}
    fake.faults.plan(CutConnection.AFTER, method="create_post")
    fake.faults.plan(ServerFault(done=True), method="create_post")
    with pytest.raises(httpx2.HTTPError):
        await client.post("posts", json=body)
    assert (await client.post("posts", json=body)).status_code == 502
    assert fake.texts("ann") == ["x", "x"]
