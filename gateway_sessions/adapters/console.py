"""`Console`: the adapter for one person at a terminal or a pipe, where each line is a message."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import logging
import os
import re
import select
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import Final

import anyio

from gateway_sessions._process.background import in_background
from gateway_sessions._process.waits import rests_while_waiting
from gateway_sessions.adapters.protocol import Submit
from gateway_sessions.core.delivery.adapter_capabilities import AdapterCapabilities, describe_attachment
from gateway_sessions.core.delivery.outbound_messages import GROWING, OutboundMessage, ReplyTarget
from gateway_sessions.core.identity.source import Platform, SessionSource
from gateway_sessions.core.queue.inbound import Attachment, InboundMessage
from gateway_sessions.errors import AdapterError, DeliveryRefusedError

logger: Final = logging.getLogger(__name__)

MAX_LINE: Final = 1 << 20
"""The most characters of a line; a longer one is split, so that no pipe fills the memory."""
CHUNK: Final = 1 << 16
"""The bytes of one read, as many as a pipe holds."""

_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
"""Characters that control a terminal or have no encoding."""


class Console:
    """An adapter that reads from one file descriptor and writes to another, without blocking the loop.

    A line has no id, so a line that is typed twice is two messages. An empty line is no message.
    """

    name = ""
    platform: str = str(Platform.LOCAL)

    def __init__(
        self,
        *,
        stdin: int = 0,
        stdout: int = 1,
        person: str = "local",
        growing: bool = False,
        before_first: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        """Create a console; with *growing*, for terminals, a reply is shown while it is made.

        *before_first* is awaited before the first line is submitted; as long as it fails, no line is.
        """
        self.capabilities: AdapterCapabilities = AdapterCapabilities(
            edit=growing, min_edit_interval=timedelta()
        )
        self._stdin = stdin
        self._stdout = stdout
        self._source = SessionSource(platform=self.platform, chat_id=person, user_id=person)
        self._before_first = before_first
        self._ended = asyncio.Event()
        self._output_lock = asyncio.Lock()  # a text is written in pieces, which two writers would mix
        self._growing_reply: tuple[str, str] | None = None
        """The key of a reply whose last line is not ended yet, and the text that is written of it."""

    async def ended(self) -> None:
        """Wait for the end of the input."""
        await self._ended.wait()

    @asynccontextmanager
    async def connect(self, submit: Submit) -> AsyncGenerator[None]:
        """Submit each line, one after the other, until the input or the block ends."""
        self._ended.clear()
        async with in_background(partial(self._submit_lines, submit)):
            yield

    async def send(
        self, target: ReplyTarget, message: OutboundMessage, *, idempotency_key: str
    ) -> str | None:
        """Write a message on lines of its own; only a growing reply has an id."""
        grows = self.capabilities.edit and idempotency_key.startswith(GROWING)
        async with self._output_lock:
            await self._write_on_new_line(_text_to_show(message), idempotency_key if grows else None)
        return idempotency_key if grows else None

    async def edit(self, target: ReplyTarget, message_id: str, message: OutboundMessage) -> None:
        """Write what a growing reply has more than before; written text stays."""
        if not self.capabilities.edit:
            raise DeliveryRefusedError(self.platform, "what is written cannot be changed")
        shown, whole = _text_to_show(message), message.replaces is not None
        async with self._output_lock:
            begun = (
                self._growing_reply[1]
                if self._growing_reply is not None and self._growing_reply[0] == message_id
                else None
            )
            if begun is not None and shown.startswith(begun):
                await self._write(shown.removeprefix(begun) + ("\n" if whole else ""))
                self._growing_reply = None if whole else (message_id, shown)
            elif whole:
                await self._write_on_new_line(shown)

    async def typing(self, target: ReplyTarget) -> None:
        """Do nothing: a terminal needs no sign of typing."""

    async def _submit_lines(self, submit: Submit) -> None:
        lines = _LineReader(self._stdin)
        while (line := await lines.next_line()) is not None:
            if line.strip():
                await self._submit_line(submit, line)
        self._ended.set()

    async def _submit_line(self, submit: Submit, line: str) -> None:
        try:
            if self._before_first is not None:
                await self._before_first()
                self._before_first = None
            await submit(InboundMessage(source=self._source, text=line, account=self.name))
        except Exception as error:  # the person is told, and may try again
            logger.exception("a line was not taken", extra={"action": "console_failed"})
            with contextlib.suppress(AdapterError, OSError):
                async with self._output_lock:
                    await self._write_on_new_line(f"(not taken: {error})")

    async def _write_on_new_line(self, text: str, grows: str | None = None) -> None:
        """Write a text on a new line, which is not ended if the text *grows* under that key."""
        before, behind = "\n" if self._growing_reply is not None else "", "\n" if grows is None else ""
        await self._write(f"{before}{text}{behind}")
        self._growing_reply = (grows, text) if grows is not None else None

    async def _write(self, text: str) -> None:
        """Write a text. `DeliveryRefusedError` if nobody reads, and not one byte was written."""
        left = text.encode()
        began = False
        while left:
            try:
                await _wait_writable(self._stdout)
                # A write of at most PIPE_BUF bytes to a writable pipe does not block.
                written = await asyncio.to_thread(os.write, self._stdout, left[: select.PIPE_BUF])
            except BrokenPipeError as error:
                if began:
                    raise
                raise DeliveryRefusedError(self.platform, "nobody reads what is written") from error
            left, began = left[written:], True


class _LineReader:
    """Reads lines from a descriptor, wherever its reads end."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._whole: deque[str] = deque()
        self._begun = ""
        self._over = False

    async def next_line(self) -> str | None:
        """Return the next line without its end; None after the last one."""
        while not self._whole:
            if self._over:
                return None
            self._split_into_lines(await _wait_and_read(self._descriptor))
        return self._whole.popleft().removesuffix("\r")

    def _split_into_lines(self, data: bytes) -> None:
        self._over = not data
        *whole, self._begun = (self._begun + self._decoder.decode(data, final=self._over)).split("\n")
        if self._over or len(self._begun) > MAX_LINE:
            whole, self._begun = [*whole, self._begun], ""
        self._whole.extend(whole)


async def _wait_and_read(descriptor: int) -> bytes:
    """Return the next bytes; none at the end, or if the terminal is gone."""
    try:
        await _wait_readable(descriptor)
        return await asyncio.to_thread(os.read, descriptor, CHUNK)
    except OSError:
        return b""


@rests_while_waiting
async def _wait_readable(descriptor: int) -> None:
    with contextlib.suppress(PermissionError):  # a file cannot be waited for, and is always readable
        await anyio.wait_readable(descriptor)


async def _wait_writable(descriptor: int) -> None:
    with contextlib.suppress(PermissionError):
        await anyio.wait_writable(descriptor)


def _text_to_show(message: OutboundMessage) -> str:
    lines = [*filter(None, [message.text]), *map(_attachment_line, message.attachments)]
    return _CONTROL.sub("\ufffd", "\n".join(lines))


def _attachment_line(attachment: Attachment) -> str:
    return f"[{attachment.kind}: {describe_attachment(attachment)}]"
