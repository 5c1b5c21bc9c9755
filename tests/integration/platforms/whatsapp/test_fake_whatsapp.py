"""The fake WhatsApp refuses what Meta refuses, and delivers as Meta does."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator
from typing import Any

import httpx2
import pytest

from gateway_sessions.testing.fakes.whatsapp import ACCESS_TOKEN, PHONE_NUMBER_ID, FakeWhatsApp, graph_error
from gateway_sessions.testing.fakes.whatsapp.server import LONGEST


@pytest.fixture
async def fake() -> AsyncGenerator[FakeWhatsApp]:
    async with FakeWhatsApp() as fake:
        fake.says("ann", "hi")
        yield fake


async def posted(fake: FakeWhatsApp, message: dict[str, Any], token: str = ACCESS_TOKEN) -> httpx2.Response:
    frame = {"messaging_product": "whatsapp", "to": fake.person("ann").phone}
    async with httpx2.AsyncClient(headers={"authorization": f"Bearer {token}"}) as client:
        url = f"{fake.url}/v24.0/{PHONE_NUMBER_ID}/messages"
        return await client.post(url, json={**frame, **message})


def text(body: object) -> dict[str, Any]:
    return {"type": "text", "text": {"body": body}}


def question(kind: str, action: dict[str, Any], words: str = "Sure?") -> dict[str, Any]:
    content = {"type": kind, "body": {"text": words}, "action": action}
    return {"type": "interactive", "interactive": content}


def buttons(*titles: str, ids: str = "abcdefgh") -> dict[str, Any]:
    replies = [{"type": "reply", "reply": {"id": ids[at], "title": title}} for at, title in enumerate(titles)]
    return question("button", {"buttons": replies})


ROW = {"id": "a", "title": "A"}


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (text("x" * (LONGEST["text"] + 1)), 100),
        (text(" "), 100),
        (text(7), 100),
        ({"type": "text"}, 131008),
        ({"type": "hologram", "hologram": {}}, 131051),
        ({"type": "image", "image": {"id": "unknown"}}, 131009),
        ({"type": "image", "image": {"link": "https://x", "caption": "x" * 1025}}, 100),
        ({**text("x"), "biz_opaque_callback_data": "x" * 513}, 100),
        ({**text("x"), "messaging_product": "sms"}, 100),
        ({**text("x"), "to": "1"}, 131026),
        (buttons("A", "B", "C", "D"), 131009),
        (buttons("A", "B", ids="aa"), 131009),
        (buttons("x" * 21), 100),
        (question("button", {"buttons": []}), 131009),
        (question("list", {"button": "", "sections": [{"rows": [ROW]}]}), 100),
        (question("list", {"button": "B", "sections": [{"rows": [{**ROW, "title": "x" * 25}]}]}), 100),
        (question("list", {"button": "B", "sections": [{"rows": [{**ROW, "description": "x" * 73}]}]}), 100),
        (question("cta_url", {"parameters": {"display_text": "x" * 21, "url": "https://x"}}), 100),
        (question("carousel", {}), 131009),
        (question("button", {"buttons": []}, "x" * 1025), 100),
    ],
)
async def test_what_meta_refuses_is_refused(fake: FakeWhatsApp, message: dict[str, Any], code: int):
    answer = await posted(fake, message)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)
    assert fake.person("ann").shown == []


async def test_nobody_is_written_to_without_a_name_or_a_token(fake: FakeWhatsApp):
    async with httpx2.AsyncClient(headers={"authorization": f"Bearer {ACCESS_TOKEN}"}) as client:
        url = f"{fake.url}/v24.0/{PHONE_NUMBER_ID}"
        nobody = await client.post(f"{url}/messages", json={"messaging_product": "whatsapp", **text("x")})
        assert nobody.json()["error"]["message"].endswith("The parameter to is required.")
        assert (await client.post(f"{url}/media", json={})).status_code == 400
        assert (await client.get(f"{fake.url}/v24.0/nothing")).status_code == 400
        assert (await client.get(f"{fake.url}/files/nothing")).status_code == 400
        assert (await client.get(f"{fake.url}/v24.0/a/b/c")).status_code == 400
    assert (await posted(fake, text("x"), token="guess")).json()["error"]["code"] == 190


async def test_what_is_sent_is_shown_and_reported(fake: FakeWhatsApp):
    assert (await posted(fake, text("hello"))).status_code == 200
    assert (await posted(fake, buttons("Yes", "No"))).status_code == 200
    assert (await posted(fake, {"type": "image", "image": {"link": "https://x"}})).status_code == 200
    assert fake.texts("ann") == ["hello", "Sure?"]
    assert len(fake.deliveries) == 1 + 2 * 3
    fake.presses("ann", "No")
    assert b'"button_reply": {"id": "b", "title": "No"}' in fake.deliveries[-1].body
    with pytest.raises(AssertionError, match="sees no button 'Maybe'"):
        fake.presses("ann", "Maybe")


async def test_planned_refusals_have_their_code(fake: FakeWhatsApp):
    fake.faults.plan(graph_error(131056))
    assert (await posted(fake, text("x"))).json()["error"]["code"] == 131056


async def test_what_is_under_way_when_the_webhook_goes_is_delivered_when_it_is_back(fake: FakeWhatsApp):
    heard: list[int] = []

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(len(await reader.read(1 << 16)))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        nobody = f"http://127.0.0.1:{listener.getsockname()[1]}"
    fake.webhook_url = nobody
    await fake.settle(fake.deliveries[0])  # nobody listens, so there will be another attempt
    fake.webhook_url = ""
    later = fake.says("ann", "are you there?")
    await asyncio.sleep(0.05)  # the attempts that would follow at once
    async with await asyncio.start_server(take, "127.0.0.1", 0) as server:
        fake.webhook_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        assert await fake.is_taken(fake.deliveries[0])
        assert await fake.is_taken(later)
    assert len(heard) == 2
    assert any(nobody in told for told in fake.failed_deliveries)
