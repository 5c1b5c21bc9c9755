"""What an agent is told about its conversation, through the store's own configuration and secret."""

from pathlib import Path

import pytest

from gateway_sessions import Config, SessionSource, SessionStore
from gateway_sessions.sessions import build_session_context

WHATSAPP = {
    "privacy": {"redact_pii": True},
    "platforms": {
        "whatsapp": {"home_channel": {"chat_id": "4915550000001", "name": "Family"}},
        "discord": {"enabled": False},
    },
}
ANN = SessionSource(platform="whatsapp", chat_id="4915551234567", user_id="4915551234567")


def test_only_enabled_platforms_are_connected():
    context = build_session_context(ANN, Config.from_mapping(WHATSAPP))
    assert context.connected_platforms == ("whatsapp",)
    assert context.home_channels["whatsapp"].name == "Family"


async def test_with_redaction_no_id_reaches_the_agent(tmp_path: Path):
    async with SessionStore.open(tmp_path, Config.from_mapping(WHATSAPP)) as store:
        entry = await store.get_or_create_session(ANN)
        prompt = store.session_prompt(ANN, entry)
    assert "49155" not in prompt
    assert "Family" in prompt


async def test_pseudonyms_belong_to_one_store_and_outlive_a_restart(tmp_path: Path):
    prompts: list[str] = []
    for home in ("one", "one", "other"):
        async with SessionStore.open(tmp_path / home, Config.from_mapping(WHATSAPP)) as store:
            prompts.append(store.session_prompt(ANN))
    assert prompts[0] == prompts[1]
    assert prompts[0] != prompts[2]


@pytest.mark.parametrize("redact", [False, True])
async def test_an_id_is_shown_where_nobody_wants_it_hidden(tmp_path: Path, redact: bool):
    config = Config.from_mapping({"privacy": {"redact_pii": redact}})
    async with SessionStore.open(tmp_path, config) as store:
        assert ("4915551234567" in store.session_prompt(ANN)) is not redact
