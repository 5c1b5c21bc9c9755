"""Updates that cannot be read, and attachments that cannot be shown: nothing is lost silently."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from gateway_sessions.adapters import put_aside
from gateway_sessions.core.delivery.adapter_capabilities import AdapterCapabilities
from gateway_sessions.core.delivery.outbound_messages import OutboundMessage
from gateway_sessions.core.queue.inbound import Attachment, AttachmentKind
from gateway_sessions.testing.fake_platform import FakePlatform

PHOTO = Attachment(kind=AttachmentKind.PHOTO, url="https://x/1", name="cat.jpg")
VOICE = Attachment(kind=AttachmentKind.VOICE)


@pytest.mark.parametrize("update", [{"id": 7, "text": None}, ["\ud800", 1 << 70], "text", b"\xff", object])
async def test_an_update_is_kept_as_it_came_once_and_for_its_owner_only(
    tmp_path: Path, update: object, caplog: pytest.LogCaptureFixture
):
    folder = tmp_path / "new" / "aside"
    platform = FakePlatform("telegram", "support")
    with caplog.at_level(logging.ERROR):
        paths = [await put_aside(folder, update, KeyError("loft"), adapter=platform) for _ in range(2)]
    assert [one.name for one in folder.iterdir()] == [paths[0].name] == [paths[1].name]
    assert (folder.stat().st_mode & 0o777, paths[0].stat().st_mode & 0o777) == (0o700, 0o600)
    kept = json.loads(paths[0].read_text())
    assert (kept["platform"], kept["account"], kept["problem"]) == ("telegram", "support", "KeyError: 'loft'")
    assert kept["update"] == (update if isinstance(update, dict | list | str) else repr(update))
    assert [one.action for one in caplog.records] == ["update_put_aside"] * 2  # type: ignore[attr-defined]


SHOWN = (None, frozenset(AttachmentKind), frozenset({AttachmentKind.PHOTO}), frozenset[AttachmentKind]())


@pytest.mark.parametrize("shown", SHOWN)
def test_an_attachment_is_shown_or_told_in_words(shown: frozenset[AttachmentKind] | None):
    message = OutboundMessage(text="Look:", attachments=(PHOTO, VOICE))
    told = AdapterCapabilities(attachments=shown).in_words(message)
    for one, words in ((PHOTO, "[photo: cat.jpg https://x/1]"), (VOICE, "[voice: unnamed]")):
        is_shown = shown is None or one.kind in shown
        assert (one in told.attachments, words in told.text) == (is_shown, not is_shown)
    assert told.text.startswith("Look:")
