"""Who looks at a store needs neither the secrets of its gateway nor the name of its configuration."""

import asyncio
import json
import os
from pathlib import Path

import pytest

from gateway_sessions import SessionStore, load_config
from gateway_sessions.cli.exit_codes import Exit
from gateway_sessions.runtime.store.database_opening import CONFIG_NOTE, noted_config_file
from tests.integration.command_line.conftest import Gsess, key_of_person

NEEDY = """
timezone: Asia/Tokyo
session_reset: {mode: idle, idle_minutes: 77}
serve:
  webhook_port: 0
  webhook_callback_url: "https://shop.example/replies?token=${CALLBACK_TOKEN}"
  webhook_secrets: ["${WEBHOOK_SECRET}"]
model: {name: small, base_url: "https://me:geheim@api.example/v1?key=geheim", api_key: "${MODEL_KEY}"}
"""
SECRETS = {"CALLBACK_TOKEN": "t", "WEBHOOK_SECRET": "s" * 32, "MODEL_KEY": "k"}
LOOKING = (
    "sessions list", "sessions show {session}", "sessions search auth", "sessions stats", "insights",
    "explain {lane}", "queue list", "top --once", "doctor", "sessiondb check", "config explain",
    "sessions delete {session} --dry-run", "sessions prune --older-than 1d --dry-run",
)  # fmt: skip


@pytest.fixture
def elsewhere(home: Path, tmp_path: Path) -> Path:
    """The configuration of a store that has had an owner with all secrets."""
    path = tmp_path / "etc" / "gateway.yaml"
    path.parent.mkdir()
    path.write_text(NEEDY)
    config = load_config(path, environ=SECRETS)

    async def own() -> None:
        async with SessionStore.open(home, config):
            pass

    asyncio.run(own())
    return path


@pytest.mark.parametrize("typed", LOOKING)
@pytest.mark.parametrize("named", [True, False], ids=["named", "noted"])
@pytest.mark.usefixtures("elsewhere")
def test_who_looks_needs_no_secret(gsess: Gsess, home: Path, elsewhere: Path, typed: str, named: bool):
    session = json.loads(gsess("--home", home, "--json", "sessions", "list").out)["results"][0]["session_id"]
    option = ("--config", elsewhere) if named else ()
    words = typed.format(session=session, lane=key_of_person(0)).split()
    ended = gsess("--home", home, *option, *words)
    assert ended.code in (Exit.DONE, Exit.UNSOUND), ended
    assert "WEBHOOK_SECRET" not in ended.err


def test_the_configuration_of_the_last_owner_counts(gsess: Gsess, home: Path, elsewhere: Path):
    told = gsess("--home", home, "explain", key_of_person(0))
    assert "Asia/Tokyo" in told.out
    assert str(elsewhere) in told.out
    (home / "config.yaml").write_text("timezone: Europe/Paris\n")
    assert "Asia/Tokyo" in gsess("--home", home, "explain", key_of_person(0)).out
    assert (
        "Europe/Paris"
        in gsess("--home", home, "--config", home / "config.yaml", "explain", key_of_person(0)).out
    )
    elsewhere.unlink()
    assert "Europe/Paris" in gsess("--home", home, "explain", key_of_person(0)).out


def test_a_visitor_leaves_no_word(gsess: Gsess, home: Path, elsewhere: Path, tmp_path: Path):
    other = tmp_path / "other.yaml"
    other.write_text("timezone: Europe/Paris\n")
    assert gsess("--home", home, "--config", other, "sessions", "rename", "loose", "kept").code == 0
    assert noted_config_file(home) == elsewhere


def test_an_owner_without_a_file_takes_the_word_back(home: Path, elsewhere: Path):
    async def own() -> None:
        async with SessionStore.open(home):
            pass

    assert noted_config_file(home) == elsewhere
    asyncio.run(own())
    assert noted_config_file(home) is None
    assert not (home / CONFIG_NOTE).exists()


def test_who_serves_or_asks_whether_all_is_right_needs_every_secret(
    gsess: Gsess, home: Path, elsewhere: Path
):
    for words in (("serve",), ("config", "validate")):
        ended = gsess("--home", home, "--config", elsewhere, *words)
        assert ended.code == Exit.WRONG_USE
        for name in SECRETS:
            assert name in ended.err
    assert gsess("--home", home, "config", "validate").code == Exit.WRONG_USE


def test_who_changes_something_needs_what_counts_for_the_store(gsess: Gsess, home: Path, elsewhere: Path):
    assert gsess("--home", home, "sessions", "rename", "loose", "kept").code == Exit.DONE
    elsewhere.write_text("session_reset: {mode: idle, idle_minutes: '${MINUTES}'}\n")
    ended = gsess("--home", home, "sessions", "rename", "loose", "changed")
    assert (ended.code, "MINUTES" in ended.err) == (Exit.WRONG_USE, True)
    assert gsess("--home", home, "sessions", "list").code == Exit.DONE


def test_addresses_are_shown_without_their_secrets(
    gsess: Gsess, home: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
):
    shown = gsess("--home", home, "--json", "config", "explain")
    values = {one["key"]: one for one in json.loads(shown.out)["results"]}
    assert values["model.base_url"]["value"] == "https://***@api.example/v1?***"
    assert values["serve.webhook_callback_url"]["value"] == "https://shop.example/replies?***"
    assert values["serve.webhook_secrets"]["value"] == "[${WEBHOOK_SECRET}]"
    assert values["serve.webhook_secrets"]["where"].endswith("of a variable that is not set")
    for name in SECRETS:
        monkeypatch.setenv(name, "geheim" * 6)
    shown = gsess("--home", home, "config", "explain")
    assert "geheim" not in shown.out
    assert "https://shop.example/replies?***" in shown.out


def test_a_note_that_another_user_could_have_made_is_not_followed(home: Path, tmp_path: Path):
    (home / CONFIG_NOTE).symlink_to(tmp_path / "note")
    (tmp_path / "note").write_bytes(os.fsencode(tmp_path / "secret.yaml"))
    (tmp_path / "secret.yaml").write_text("")
    if os.geteuid() == 0:
        os.chown(home, 12345, 12345)
        assert noted_config_file(home) is None
