"""Platforms that call a gateway share one port, beside those to which it connects by itself."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path

import pytest

from gateway_sessions import Scope, SessionStore
from gateway_sessions.adapters._http import listening_socket
from gateway_sessions.cli.exit_codes import Exit
from gateway_sessions.testing.fakes.slack import FakeSlack
from gateway_sessions.testing.fakes.teams import FakeTeams
from gateway_sessions.testing.fakes.telegram.server import FakeTelegram
from tests.integration.command_line.conftest import Gsess
from tests.integration.command_line.platforms.platforms_to_serve import SLACK_EVENTS, TEAMS, TELEGRAM
from tests.integration.command_line.platforms.served_programs import program, read_until
from tests.integration.platforms.bot_processes import free_port
from tests.programs import PATIENCE

EXAMPLE = Path(__file__).parents[4] / "examples" / "serve" / "three_platforms.yaml"
LINE = "{platform: line, channel_secret: s, channel_access_token: t"
TAKEN = f"serve: {{webhooks: {{port: %d}}, adapters: [{LINE}}}]}}"


async def test_three_platforms_are_served_from_one_store(tmp_path: Path):
    port = free_port()
    async with FakeTelegram() as telegram, FakeSlack() as slack, FakeTeams() as teams:
        fakes = {TELEGRAM: telegram, SLACK_EVENTS: slack, TEAMS: teams}
        environ = {"PORT": str(port), "TEAMS_TENANT_ID": "contoso.example"}
        for platform, fake in fakes.items():
            environ |= platform.variables(fake)
        slack.listen_at(f"http://127.0.0.1:{port}/slack")
        teams.webhook_url = f"http://127.0.0.1:{port}/teams"
        async with program(tmp_path, "--config", str(EXAMPLE), "serve", **environ) as process:
            told = await read_until(process.stderr, "Webhooks: ")
            assert "Serving telegram and slack and teams." in told
            assert f"slack at http://127.0.0.1:{port}/slack, teams at http://127.0.0.1:{port}/teams." in told
            for platform, fake in fakes.items():
                platform.says(fake, "ann", f"hello, {platform.platform}")
            for platform, fake in fakes.items():
                await fake.wait_until(lambda p=platform, f=fake: p.texts(f, "ann"), seconds=PATIENCE)
            process.terminate()
            _, errors = await asyncio.wait_for(process.communicate(), PATIENCE)
        assert process.returncode == Exit.DONE, errors
        for platform, fake in fakes.items():
            (text,) = platform.texts(fake, "ann")
            assert f"hello, {platform.platform}" in text
    async with SessionStore.open(tmp_path) as store:
        lanes = await store.list_sessions(scope=Scope.operator())
    assert sorted(one.session_key.split(":")[2] for one in lanes) == ["slack", "teams", "telegram"]


async def test_telegram_calls_if_it_is_told_an_address(tmp_path: Path):
    port = free_port()
    url = f"http://127.0.0.1:{port}/telegram"
    (tmp_path / "config.yaml").write_text(
        f"serve:\n  webhooks: {{port: {port}}}\n  adapters:\n    - platform: telegram\n"
        "      token: ${TELEGRAM_TOKEN}\n      api_url: ${TELEGRAM_URL}\n"
        f"      webhook_url: {url}\n      secret: a-secret-of-many-letters\n"
    )
    async with FakeTelegram() as telegram:
        async with program(tmp_path, "serve", **TELEGRAM.variables(telegram)) as process:
            assert f"telegram at {url}." in await read_until(process.stderr, "Webhooks: ")
            telegram.says("ann", "hello")
            await telegram.wait_until(lambda: telegram.texts("ann"), seconds=PATIENCE)
            process.terminate()
            assert await asyncio.wait_for(process.wait(), PATIENCE) == Exit.DONE
        assert not [one for one in telegram.calls if one.method == "getUpdates"]


def test_a_port_that_is_taken_is_one_sentence(gsess: Gsess, tmp_path: Path):
    config = tmp_path / "config.yaml"
    with closing(listening_socket("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        config.write_text(TAKEN.replace("%d", str(port)))
        ended = gsess("--home", tmp_path / "home", "--config", config, "serve")
    assert ended.code == Exit.BUSY
    assert f"serve.webhooks.port: another program listens at 127.0.0.1:{port}" in " ".join(ended.err.split())
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    ("serve", "told"),
    [
        (f"adapters: [{LINE}}}, {LINE}, name: b, path: /line}}]", "two webhooks have the path '/line'"),
        (f"webhooks: {{host: 192.0.2.1}}, adapters: [{LINE}}}]", "cannot listen at 192.0.2.1:8080"),
        (f"webhooks: {{port: 65536}}, adapters: [{LINE}}}]", "must be from 0 to 65535"),
        ("webhooks: {ports: 1}, console: true", "is not a known key"),
    ],
)
def test_what_cannot_be_is_said_before_anything_begins(gsess: Gsess, tmp_path: Path, serve: str, told: str):
    config = tmp_path / "config.yaml"
    config.write_text(f"serve: {{{serve}}}")
    ended = gsess("--home", tmp_path / "home", "--config", config, "serve")
    assert ended.code == Exit.WRONG_USE
    assert told in " ".join(ended.err.split())
    assert not (tmp_path / "home").exists()


async def test_a_port_without_such_a_platform_stays_closed(tmp_path: Path):
    with closing(listening_socket("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        (tmp_path / "config.yaml").write_text(f"serve: {{console: true, webhooks: {{port: {port}}}}}")
        async with program(tmp_path, "serve") as process:
            assert "Webhooks" not in await read_until(process.stderr, "Serving the console.")
