"""A terminal, a pipe, a file: lines in, replies out, and an end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import pty
import tty
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway_sessions import Receipt
from gateway_sessions.adapters import console as console_module
from gateway_sessions.adapters.console import Console
from gateway_sessions.core.delivery.outbound_messages import OutboundMessage, ReplyTarget
from gateway_sessions.core.queue.inbound import Attachment, AttachmentKind, InboundMessage
from gateway_sessions.errors import DeliveryRefusedError, StorageFullError
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.contract.adapter import Inbox

TARGET = ReplyTarget(platform="local", chat_id="local")


@pytest.fixture
def descriptors() -> Iterator[contextlib.ExitStack]:
    with contextlib.ExitStack() as stack:
        yield stack


@pytest.fixture
def inbox() -> Inbox:
    return Inbox()


def piped(descriptors: contextlib.ExitStack, data: bytes) -> int:
    """The reading end of a pipe into which all that will ever come is written."""
    reading, writing = os.pipe()
    descriptors.callback(os.close, reading)
    os.write(writing, data)
    os.close(writing)
    return reading


def opened(descriptors: contextlib.ExitStack, path: Path, flags: int) -> int:
    descriptor = os.open(path, flags)
    descriptors.callback(os.close, descriptor)
    return descriptor


async def heard(console: Console, inbox: Inbox) -> list[str]:
    async with console.connect(inbox), asyncio.timeout(5):
        await console.ended()
    return [one.text for one in inbox.messages]


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"\n\n \n", []),
        (b"one\ntwo\n", ["one", "two"]),
        (b"one\r\ntwo", ["one", "two"]),
        (b"  indented\n", ["  indented"]),
        ("grüße 😀\n".encode(), ["grüße 😀"]),
        (b"broken \xff\xc3\n", ["broken \ufffd\ufffd"]),
        (b"cut \xe2\x82", ["cut \ufffd"]),
    ],
)
async def test_each_line_that_says_something_is_a_message(
    descriptors: contextlib.ExitStack, inbox: Inbox, data: bytes, lines: list[str]
):
    assert await heard(Console(stdin=piped(descriptors, data)), inbox) == lines


REPLY = "stream:lane:7"


async def told(path: Path, descriptors: contextlib.ExitStack, *steps: tuple[str, str]) -> str:
    """What is written where replies grow: of messages that are sent, shown so far, or whole in the end."""
    path.touch()
    console = Console(stdout=opened(descriptors, path, os.O_WRONLY), growing=True)
    assert console.capabilities.edit
    for what, text in steps:
        message = OutboundMessage(text=text)
        match what:
            case "said":
                assert await console.send(TARGET, message, idempotency_key="reply:1") is None
            case "begun":
                assert await console.send(TARGET, message, idempotency_key=REPLY) == REPLY
            case "so far":
                await console.edit(TARGET, REPLY, message)
            case _:
                await console.edit(TARGET, what, message.instead_of(what))
    return path.read_text("utf-8")


@pytest.mark.parametrize(
    ("steps", "written"),
    [
        ([("begun", "Six"), ("so far", "Six o'"), (REPLY, "Six o'clock.")], "Six o'clock.\n"),
        ([("begun", "Six"), ("so far", "Six o'")], "Six o'"),
        ([("begun", "Six"), (REPLY, "Six")], "Six\n"),
        ([("begun", "Six"), (REPLY, "Seven"), ("said", "Bye")], "Six\nSeven\nBye\n"),
        ([("begun", "Six"), ("said", "Wait"), ("so far", "Six o'"), (REPLY, "Six!")], "Six\nWait\nSix!\n"),
        ([("begun", "Six"), ("begun", "One"), (REPLY, "One.")], "Six\nOne.\n"),
        ([("said", "Hello"), ("stream:of a process before", "Six")], "Hello\nSix\n"),
        ([("begun", "a\x1b[31m"), (REPLY, "a\x1b[31mb")], "a\ufffd[31mb\n"),
    ],
)
async def test_on_a_terminal_a_reply_grows_where_it_stands(
    descriptors: contextlib.ExitStack, tmp_path: Path, steps: list[tuple[str, str]], written: str
):
    assert await told(tmp_path / "out", descriptors, *steps) == written


async def test_what_is_not_taken_is_said_below_a_reply_that_grows(
    descriptors: contextlib.ExitStack, tmp_path: Path
):
    async def full(message: InboundMessage) -> Receipt:
        raise StorageFullError("disk", "is full")

    out = tmp_path / "out"
    out.touch()
    console = Console(
        stdin=piped(descriptors, b"hello\n"), stdout=opened(descriptors, out, os.O_WRONLY), growing=True
    )
    await console.send(TARGET, OutboundMessage(text="Six"), idempotency_key=REPLY)
    async with console.connect(full), asyncio.timeout(5):
        await console.ended()
    assert out.read_text("utf-8") == "Six\n(not taken: disk: is full)\n"


async def test_a_letter_that_comes_in_two_pieces_is_one(descriptors: contextlib.ExitStack, inbox: Inbox):
    reading, writing = os.pipe()
    descriptors.callback(os.close, reading)
    os.set_blocking(writing, False)
    console = Console(stdin=reading)
    async with console.connect(inbox):
        os.write(writing, b"a \xe2\x82")
        await asyncio.sleep(0.01)
        os.write(writing, b"\xac\n")
        assert [one.text for one in await inbox.wait_for(1)] == ["a €"]
        os.close(writing)
        await console.ended()


async def test_a_line_without_an_end_is_taken_in_pieces(
    descriptors: contextlib.ExitStack, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(console_module, "MAX_LINE", 10)
    monkeypatch.setattr(console_module, "CHUNK", 8)
    lines = await heard(Console(stdin=piped(descriptors, b"x" * 40)), inbox)
    assert "".join(lines) == "x" * 40
    assert all(len(line) <= 18 for line in lines)


async def test_a_file_is_read_to_its_end_and_replies_can_go_to_one(
    descriptors: contextlib.ExitStack, inbox: Inbox, tmp_path: Path
):
    (tmp_path / "in").write_text("one\ntwo\n", encoding="utf-8")
    (tmp_path / "out").touch()
    console = Console(
        stdin=opened(descriptors, tmp_path / "in", os.O_RDONLY),
        stdout=opened(descriptors, tmp_path / "out", os.O_WRONLY),
    )
    assert await heard(console, inbox) == ["one", "two"]
    await console.send(TARGET, OutboundMessage(text="three"), idempotency_key="k")
    assert (tmp_path / "out").read_text(encoding="utf-8") == "three\n"


async def test_a_program_without_input_and_output_lives(descriptors: contextlib.ExitStack, inbox: Inbox):
    null = opened(descriptors, Path(os.devnull), os.O_RDWR)
    console = Console(stdin=null, stdout=null)
    assert await heard(console, inbox) == []
    assert await console.send(TARGET, OutboundMessage(text="x"), idempotency_key="k") is None


@contextlib.contextmanager
def terminal() -> Iterator[tuple[int, int]]:
    keyboard, slave = pty.openpty()
    tty.setraw(slave)
    os.set_blocking(keyboard, False)
    try:
        yield keyboard, slave
    finally:
        os.close(slave)
        with contextlib.suppress(OSError):
            os.close(keyboard)


async def test_a_terminal_is_read_and_written(inbox: Inbox):
    with terminal() as (keyboard, slave):
        console = Console(stdin=slave, stdout=slave, person="ann")
        async with console.connect(inbox):
            os.write(keyboard, b"hello\n")
            (message,) = await inbox.wait_for(1)
            assert (message.text, message.source.chat_id, message.source.platform) == (
                "hello",
                "ann",
                "local",
            )
            await console.send(TARGET, OutboundMessage(text="hi"), idempotency_key="k")
            assert os.read(keyboard, 100) == b"hi\n"


async def test_a_terminal_that_is_gone_is_the_end(inbox: Inbox):
    with terminal() as (keyboard, slave):
        console = Console(stdin=slave)
        async with console.connect(inbox), asyncio.timeout(5):
            os.close(keyboard)
            await console.ended()


async def test_a_descriptor_that_is_closed_is_the_end(inbox: Inbox):
    reading, writing = os.pipe()
    os.close(reading)
    os.close(writing)
    assert await heard(Console(stdin=reading), inbox) == []


async def test_the_next_line_waits_until_the_last_one_is_taken(
    descriptors: contextlib.ExitStack, inbox: Inbox
):
    inbox.open.clear()
    console = Console(stdin=piped(descriptors, b"one\ntwo\n"))
    async with console.connect(inbox):
        await inbox.wait_for_call()
        await asyncio.sleep(0.01)
        assert inbox.calls == 1
        inbox.open.set()
        assert [one.text for one in await inbox.wait_for(2)] == ["one", "two"]


async def test_whoever_types_what_cannot_be_taken_is_told(
    descriptors: contextlib.ExitStack, inbox: Inbox, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.ERROR)
    inbox.failure = StorageFullError("sessions.db", "has no room")
    screen, written = os.pipe()
    descriptors.callback(os.close, screen)
    descriptors.callback(os.close, written)
    assert await heard(Console(stdin=piped(descriptors, b"hello\n"), stdout=written), inbox) == []
    assert os.read(screen, 1000) == b"(not taken: sessions.db: has no room)\n"
    assert [getattr(one, "action", None) for one in caplog.records] == ["console_failed"]


async def test_it_goes_on_even_if_nobody_can_be_told(
    descriptors: contextlib.ExitStack, inbox: Inbox, caplog: pytest.LogCaptureFixture
):
    inbox.failure = RuntimeError("a mistake")
    screen, written = os.pipe()
    descriptors.callback(os.close, written)
    os.close(screen)
    assert await heard(Console(stdin=piped(descriptors, b"one\ntwo\n"), stdout=written), inbox) == []
    assert inbox.calls == 2
    assert len(caplog.records) == 2


async def test_what_nobody_can_read_was_certainly_not_said(descriptors: contextlib.ExitStack):
    screen, written = os.pipe()
    descriptors.callback(os.close, written)
    os.close(screen)
    with pytest.raises(DeliveryRefusedError):
        await Console(stdout=written).send(TARGET, OutboundMessage(text="x"), idempotency_key="k")


async def test_what_was_said_in_part_is_not_certain(descriptors: contextlib.ExitStack):
    screen, written = os.pipe()
    descriptors.callback(os.close, written)
    console = Console(stdout=written)
    long = OutboundMessage(text="x" * (1 << 18))
    sending = asyncio.create_task(console.send(TARGET, long, idempotency_key="k"))
    await asyncio.to_thread(os.read, screen, 1)
    assert not sending.done()
    os.close(screen)
    with pytest.raises(BrokenPipeError):
        await sending


async def test_replies_do_not_run_into_each_other(descriptors: contextlib.ExitStack):
    screen, written = os.pipe()
    descriptors.callback(os.close, screen)
    descriptors.callback(os.close, written)
    console = Console(stdout=written)
    async with asyncio.TaskGroup() as tasks:
        for letter in "abc":
            message = OutboundMessage(text=letter * 20_000)
            tasks.create_task(console.send(TARGET, message, idempotency_key=letter))
    assert os.read(screen, 1 << 17) == b"".join(letter * 20_000 + b"\n" for letter in (b"a", b"b", b"c"))


async def test_no_reply_moves_the_cursor(descriptors: contextlib.ExitStack):
    screen, written = os.pipe()
    descriptors.callback(os.close, screen)
    descriptors.callback(os.close, written)
    message = OutboundMessage(text="\x1b[2J\x07tab\tline\n\x9b1m\ud800end")
    await Console(stdout=written).send(TARGET, message, idempotency_key="k")
    shown = os.read(screen, 1000).decode()
    assert shown == "\ufffd[2J\ufffdtab\tline\n\ufffd1m\ufffdend\n"


async def test_what_is_attached_is_named(descriptors: contextlib.ExitStack):
    screen, written = os.pipe()
    descriptors.callback(os.close, screen)
    descriptors.callback(os.close, written)
    attached = (
        Attachment(kind=AttachmentKind.PHOTO, url="file:///a.png"),
        Attachment(kind=AttachmentKind.DOCUMENT, url="file:///b.pdf", name="report.pdf"),
        Attachment(kind=AttachmentKind.VOICE),
    )
    await Console(stdout=written).send(TARGET, OutboundMessage(attachments=attached), idempotency_key="k")
    assert os.read(screen, 1000).decode().splitlines() == [
        "[photo: file:///a.png]",
        "[document: report.pdf file:///b.pdf]",
        "[voice: unnamed]",
    ]


async def test_somebody_who_types_nothing_does_not_hold_up_a_fake_clock(
    descriptors: contextlib.ExitStack, inbox: Inbox
):
    reading, writing = os.pipe()
    descriptors.callback(os.close, reading)
    descriptors.callback(os.close, writing)
    clock = FakeClock()
    async with Console(stdin=reading).connect(inbox), asyncio.timeout(2):
        await clock.advance(hours=1)
