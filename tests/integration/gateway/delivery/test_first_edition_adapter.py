"""An adapter written for the first edition knows nothing of what adapters can state since, and works."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gateway_sessions import (
    Attachment,
    AttachmentKind,
    Gateway,
    InboundMessage,
    Reply,
    SessionSource,
    SessionStore,
    TurnContext,
)
from gateway_sessions.adapters import (
    AdapterCapabilities,
    Button,
    OutboundMessage,
    ReplyTarget,
    Submit,
    TextFormat,
)

NOTE = Attachment(kind=AttachmentKind.DOCUMENT, name="a.pdf", url="https://e.org/a.pdf")


class PigeonAdapter:
    """All that the first edition asked of an adapter, and nothing else."""

    platform = "pigeons"
    name = ""

    def __init__(self) -> None:
        with pytest.warns(DeprecationWarning, match="idempotent_send"):
            self.capabilities = AdapterCapabilities(
                edit=True, typing=True, idempotent_send=True, max_length=80
            )
        self.shown: dict[str, str] = {}
        self.submit: Submit | None = None

    @asynccontextmanager
    async def connect(self, submit: Submit) -> AsyncGenerator[None]:
        self.submit = submit
        yield

    async def send(
        self, target: ReplyTarget, message: OutboundMessage, *, idempotency_key: str
    ) -> str | None:
        assert (target.platform, target.chat_id) == ("pigeons", "ann")
        assert len(message.text) <= 80
        self.shown[idempotency_key] = message.text
        return idempotency_key

    async def edit(self, target: ReplyTarget, message_id: str, message: OutboundMessage) -> None:
        self.shown[message_id] = message.text

    async def typing(self, target: ReplyTarget) -> None:
        """Nothing: pigeons do not type."""


async def answer(turn: TurnContext) -> Reply:
    stream = turn.stream(format=TextFormat.MARKDOWN)
    await stream.write("You said **")
    await stream.write(f"{turn.text}**. ")
    return Reply(
        stream.text + "word " * 30,
        format=TextFormat.MARKDOWN,
        attachments=(NOTE,),
        buttons=(Button("Yes", "yes"),),
        platform_extra={"pigeons": {"new": "and unknown to it"}},
    )


async def test_replies_grow_are_cut_and_shown_through_it(tmp_path: Path):
    adapter = PigeonAdapter()
    async with (
        SessionStore.open(tmp_path) as store,
        Gateway(store, agent=answer, adapters=[adapter]) as gateway,
    ):
        await gateway.settled()
        assert adapter.submit is not None
        ann = SessionSource(platform="pigeons", chat_id="ann", user_id="ann")
        for _ in range(2):  # the platform delivers it twice
            await adapter.submit(InboundMessage(source=ann, text="hello", message_id="1"))
        await gateway.settled()
    shown = "\n".join(adapter.shown.values())
    assert shown.startswith("You said **hello**.")
    assert shown.count("word") == 30
    assert "Yes" in shown
