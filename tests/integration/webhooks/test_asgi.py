"""Webhooks in other people's applications: Starlette and FastAPI on uvicorn, mounted and alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import anyio.lowlevel
import httpx2
import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.routing import Mount

from gateway_sessions.adapters.webhooks import WebhookApp
from gateway_sessions.adapters.webhooks.adapter import WebhookAdapter
from gateway_sessions.adapters.webhooks.asgi import AsgiMessage
from gateway_sessions.adapters.webhooks.engine import TAKEN
from gateway_sessions.errors import StorageUnavailableError
from gateway_sessions.testing.contract.adapter import Inbox
from tests.integration.webhooks.example_world import FailingInbox, serving
from tests.unit.adapters.webhooks.example_platform import SECRET, ExampleRules, FakeExample, signature


@pytest.fixture
async def fake() -> AsyncGenerator[FakeExample]:
    async with FakeExample() as fake:
        yield fake


def alone(hooks: WebhookApp) -> tuple[Any, str]:
    return hooks, ""


def in_starlette(hooks: WebhookApp) -> tuple[Any, str]:
    return Starlette(routes=[Mount("/hooks", app=hooks)]), "/hooks"


def in_fastapi(hooks: WebhookApp) -> tuple[Any, str]:
    app = FastAPI()
    app.mount("/api/hooks", hooks)
    return app, "/api/hooks"


def deep_in_starlette(hooks: WebhookApp) -> tuple[Any, str]:
    inner = Starlette(routes=[Mount("/in", app=hooks)])
    return Starlette(routes=[Mount("/out", app=inner)]), "/out/in"


Home = Callable[[WebhookApp], tuple[Any, str]]


@pytest.fixture(params=[alone, in_starlette, in_fastapi, deep_in_starlette])
def home(request: pytest.FixtureRequest) -> Home:
    return request.param


@asynccontextmanager
async def at_home(fake: FakeExample, inbox: Inbox, home: Home = alone) -> AsyncIterator[str]:
    adapter = WebhookAdapter(ExampleRules(fake.url))
    app, mount = home(WebhookApp(adapter))
    async with adapter.connect(inbox), serving(app) as url:
        fake.webhook_url = f"{url}{mount}{adapter.path}"
        yield fake.webhook_url


async def test_messages_arrive_wherever_the_application_is_mounted(fake: FakeExample, home: Home):
    inbox = FailingInbox(hello=StorageUnavailableError("sessions.db", "is away"))
    async with at_home(fake, inbox, home) as url:
        delivery = fake.says("ann", "hello", "you")
        assert await fake.is_taken(delivery)
        async with httpx2.AsyncClient() as client:
            challenge = await client.get(url, params={"secret": SECRET, "challenge": "7"})
            nobody = await client.post(f"{url}/nobody")
            stranger = await client.post(url)
            head = await client.head(url)
    assert [one.text for one in inbox.messages] == ["hello", "you"]
    assert [one.status for one in delivery.attempts] == [503, 200]
    assert delivery.attempts[1].headers[TAKEN] == "durable"
    assert (challenge.status_code, challenge.text) == (200, "7")
    assert [one.status_code for one in (nobody, stranger, head)] == [404, 401, 405]


async def test_before_a_gateway_is_connected_platforms_are_asked_to_come_again(fake: FakeExample):
    adapter = WebhookAdapter(ExampleRules(fake.url))
    async with serving(WebhookApp(adapter)) as url:
        fake.webhook_url = f"{url}/example"
        delivery = fake.says("ann", "hello")
        assert (await fake.settle(delivery)).status == 503
        async with adapter.connect(inbox := Inbox()):
            assert await fake.is_taken(delivery)
        late = fake.says("ann", "late")
        assert (await fake.settle(late)).status == 503
    assert [one.text for one in inbox.messages] == ["hello"]


async def test_what_is_too_large_is_refused_before_it_is_read(fake: FakeExample):
    inbox, sent = Inbox(), 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(1000):
            sent += 64 << 10
            yield b" " * (64 << 10)
            await anyio.lowlevel.checkpoint()

    async with at_home(fake, inbox) as url, httpx2.AsyncClient() as client:
        told = await client.post(url, content=b" " * (ExampleRules.max_body + 1))
        assert told.status_code == 413
        with suppress(httpx2.HTTPError):  # the server does not wait for the rest
            assert (await client.post(url, content=endless())).status_code == 413
    assert sent < 64 << 20
    assert inbox.calls == 0


class Exchange:
    """Calls an ASGI application by hand, as a server does that misbehaves."""

    def __init__(self, *messages: AsgiMessage, **scope: Any) -> None:
        self.scope = {"type": "http", "method": "POST", "path": "/example", "headers": [], **scope}
        self.messages = list(messages)
        self.sent: list[AsgiMessage] = []

    async def receive(self) -> AsgiMessage:
        if not self.messages:
            await asyncio.Event().wait()
        return self.messages.pop(0)

    async def send(self, message: AsgiMessage) -> None:
        self.sent.append(message)

    async def run(self, app: WebhookApp) -> list[AsgiMessage]:
        await app(self.scope, self.receive, self.send)
        return self.sent


def part(body: bytes, *, more: bool = True) -> AsgiMessage:
    return {"type": "http.request", "body": body, "more_body": more}


@pytest.fixture
def app() -> WebhookApp:
    return WebhookApp(WebhookAdapter(ExampleRules()), arrival_seconds=0.05)


async def test_a_body_that_does_not_arrive_is_not_waited_for(app: WebhookApp):
    start, body = await Exchange(part(b"{")).run(app)
    assert (start["status"], body["body"]) == (408, b"")


async def test_a_body_in_parts_is_read_no_further_than_it_may_be_long(app: WebhookApp):
    exchange = Exchange(*[part(b" " * 40_000)] * 5)
    assert (await exchange.run(app))[0]["status"] == 413
    assert len(exchange.messages) == 3


async def test_a_length_that_is_told_is_enough_to_refuse(app: WebhookApp):
    exchange = Exchange(part(b""), headers=[(b"Content-Length", b"999999")])
    assert (await exchange.run(app))[0]["status"] == 413
    assert len(exchange.messages) == 1


async def test_a_client_that_has_left_gets_no_answer(app: WebhookApp):
    assert await Exchange({"type": "http.disconnect"}).run(app) == []


async def test_more_requests_than_there_is_room_for_are_asked_to_come_again(app: WebhookApp):
    patient = WebhookApp(WebhookAdapter(ExampleRules()), arrival_seconds=30)
    async with asyncio.TaskGroup() as tasks:
        waiting = [tasks.create_task(Exchange().run(patient)) for _ in range(64)]
        await anyio.lowlevel.checkpoint()
        assert (await Exchange(part(b"", more=False)).run(patient))[0]["status"] == 503
        for one in waiting:
            one.cancel()
    inbox, adapter = Inbox(), WebhookAdapter(ExampleRules())
    async with adapter.connect(inbox):
        body = b'{"events": []}'
        request = Exchange(part(body, more=False), headers=[(b"X-Signature", signature(body).encode())])
        assert (await request.run(WebhookApp(adapter)))[0]["status"] == 200


async def test_headers_that_come_twice_are_joined(app: WebhookApp):
    adapter = WebhookAdapter(ExampleRules())
    async with adapter.connect(Inbox()):
        twice = [(b"x-signature", b"a"), (b"x-signature", b"b")]
        exchange = Exchange(part(b"{}", more=False), headers=twice)
        assert (await exchange.run(WebhookApp(adapter)))[0]["status"] == 401


@pytest.mark.parametrize(
    ("path", "root", "status"),
    [
        ("/example", "", 503),
        ("/example/", "", 503),
        ("/hooks/example", "/hooks", 503),
        ("/example", "/hooks", 503),
        ("/hooks", "/hooks", 404),
        ("/hooksexample", "/hooks", 404),
    ],
)
async def test_the_path_of_a_mount_may_stand_in_the_path_or_not(
    app: WebhookApp, path: str, root: str, status: int
):
    exchange = Exchange(part(b"", more=False), path=path, root_path=root)
    assert (await exchange.run(app))[0]["status"] == status


async def test_a_socket_is_closed_and_other_scopes_are_unknown(app: WebhookApp):
    assert await Exchange(type="websocket").run(app) == [{"type": "websocket.close", "code": 1000}]
    with pytest.raises(NotImplementedError, match="'telnet'"):
        await Exchange(type="telnet").run(app)


async def test_the_start_and_the_end_of_a_server_are_confirmed(app: WebhookApp):
    events = [{"type": f"lifespan.{name}"} for name in ("startup", "else", "shutdown")]
    sent = await Exchange(*events, type="lifespan").run(app)
    assert [one["type"] for one in sent] == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
