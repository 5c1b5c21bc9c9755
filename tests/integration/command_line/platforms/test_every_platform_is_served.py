"""Each platform needs a few lines of YAML: a person writes, the bot answers, and a signal ends it."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from gateway_sessions.cli.exit_codes import Exit
from gateway_sessions.integrations.registry import BUILT_IN
from tests.integration.command_line.conftest import Gsess
from tests.integration.command_line.platforms.platforms_to_serve import TO_SERVE, PlatformToServe
from tests.integration.command_line.platforms.served_programs import program, read_until
from tests.programs import PATIENCE
from tests.unit.integrations.google_key import google_key_file

URL = re.compile(r"http://[^\s,]+[^\s,.]")


@pytest.fixture(params=TO_SERVE)
def served(request: pytest.FixtureRequest) -> PlatformToServe:
    return TO_SERVE[str(request.param)]


def test_every_platform_is_among_them():
    assert {one.platform for one in TO_SERVE.values()} == set(BUILT_IN)


async def test_a_few_lines_of_yaml_are_a_bot(served: PlatformToServe, tmp_path: Path):
    assert len(served.yaml.splitlines()) <= 10
    (tmp_path / "config.yaml").write_text(served.yaml)
    async with served.make_fake() as fake:
        async with program(tmp_path, "serve", command=served.command, **served.variables(fake)) as process:
            begun = await read_until(process.stderr, f"Serving {served.platform}.")
            if served.listen is not None:
                told = await read_until(process.stderr, "Webhooks: ")
                (url,) = URL.findall(told)
                assert f"{served.platform} at http://127.0.0.1:" in told
                assert url.endswith(f"/{served.platform}")
                served.listen(fake, url)
            served.says(fake, "ann", "hello")
            await fake.wait_until(lambda: served.texts(fake, "ann"), seconds=PATIENCE)
            served.says(fake, "ann", "good day")
            await fake.wait_until(lambda: len(served.texts(fake, "ann")) > 1, seconds=PATIENCE)
            process.terminate()
            _, errors = await asyncio.wait_for(process.communicate(), PATIENCE)
        assert process.returncode == Exit.DONE, errors
        assert b"Ended: all turns have ended." in errors
        assert b"ERROR" not in errors, errors.decode()
        assert "HTTP Request" not in begun + errors.decode()
        assert served.variables(fake)[served.wrong] not in begun + errors.decode()
        first, second = served.texts(fake, "ann")
        assert "hello" in first
        assert "Before that, 1 more" in second


async def test_doctor_asks_the_platform(served: PlatformToServe, tmp_path: Path):
    (tmp_path / "config.yaml").write_text(served.yaml_with_wrong_account)
    async with served.make_fake() as fake:
        variables = served.variables(fake)
        variables["WRONG"] = changed(variables[served.wrong])
        async with program(
            tmp_path, "doctor", "--quick", "--online", command=served.command, **variables
        ) as asked:
            output, errors = await asyncio.wait_for(asked.communicate(), PATIENCE)
    assert asked.returncode == Exit.UNSOUND, errors
    good, _, bad = " ".join(output.decode().split()).partition(f"Adapter {served.platform} other: ")
    assert f"Adapter {served.platform}: connects" in good
    assert served.refused in bad
    assert variables["WRONG"] not in bad


def changed(token: str) -> str:
    """Return a token of the same form that opens nothing."""
    return f"{token[:-3]}abc"


@pytest.mark.parametrize("platform", BUILT_IN)
def test_init_writes_what_can_be_served(
    gsess: Gsess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, platform: str
):
    done = gsess("init", "--platform", platform, "--yes", "--home", str(tmp_path))
    assert done.code == Exit.DONE, done.err
    text = (tmp_path / "config.yaml").read_text()
    for name in re.findall(r"^ +\w+: \$\{(\w+)\}", text, re.MULTILINE):
        assert f"export {name}=…" in " ".join(done.out.split())
        monkeypatch.setenv(name, EXAMPLES.get(name, "7"))
    found = gsess("doctor", "--quick", "--home", str(tmp_path))
    assert f"Adapter {platform}: is set up; --online asks the platform" in " ".join(found.out.split())


EXAMPLES = {
    "GOOGLE_CHAT_KEY_FILE": str(google_key_file()),
    "MATRIX_HOMESERVER": "https://matrix.example",
    "MATRIX_USER": "@bot:matrix.example",
    "MATTERMOST_URL": "https://mattermost.example",
    "SLACK_TOKEN": "xoxb-7",
    "SLACK_APP_TOKEN": "xapp-7",
    "TELEGRAM_TOKEN": "123456789:seven",
    "TWILIO_PUBLIC_URL": "https://bots.example/twilio",
}
