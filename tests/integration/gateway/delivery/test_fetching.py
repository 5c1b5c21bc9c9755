"""An agent gets the files that people send, through the adapter that brought them."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway_sessions import Attachment, AttachmentKind, TurnContext
from gateway_sessions.errors import FencedError, InvalidInputError
from gateway_sessions.testing.fake_platform import FakePlatform
from tests.integration.gateway.gateway_harness import open_harness

PHOTO = Attachment(kind=AttachmentKind.PHOTO, url="fake:1", name="a.png")


class PlatformWithFiles(FakePlatform):
    """It keeps one file, and its adapter does not count bytes."""

    async def fetch(self, attachment: Attachment, *, most: int) -> bytes:
        assert attachment == PHOTO
        return b"abc"


TURNS: list[TurnContext] = []


async def read_photo(turn: TurnContext) -> str:
    (photo,) = turn.messages[0].attachments
    TURNS.append(turn)
    with pytest.raises(InvalidInputError, match=r"a\.png has 3 bytes, at most 2 are fetched"):
        await turn.fetch(photo, most=2)
    return (await turn.fetch(photo)).decode()


async def find_no_photo(turn: TurnContext) -> str:
    with pytest.raises(InvalidInputError) as refused:
        await turn.fetch(turn.messages[0].attachments[0])
    return str(refused.value)


async def test_an_agent_reads_a_photo_during_its_turn(tmp_path: Path):
    TURNS.clear()
    async with open_harness(tmp_path, agent=read_photo, platform=PlatformWithFiles()) as harness:
        await harness.platform.says("ann", "look", attachments=(PHOTO,))
        await harness.clock.advance(seconds=5)  # for further photos
        await harness.wait_until_idle()
        assert harness.platform.shown("ann") == ["abc"]
        with pytest.raises(FencedError):
            await TURNS[0].fetch(PHOTO)


async def test_where_nobody_can_fetch_the_agent_is_told(tmp_path: Path):
    async with open_harness(tmp_path, agent=find_no_photo) as harness:
        await harness.platform.says("ann", "look", attachments=(PHOTO,))
        await harness.clock.advance(seconds=5)  # for further photos
        await harness.wait_until_idle()
        assert harness.platform.shown("ann") == ["files of this platform cannot be fetched"]
