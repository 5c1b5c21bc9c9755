"""`serve` runs the platforms of its configuration: ten lines of YAML are a bot."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from gateway_sessions.cli.exit_codes import Exit
from gateway_sessions.testing.fakes.telegram.server import TOKEN, FakeTelegram
from tests.integration.command_line.conftest import Gsess
from tests.integration.command_line.platforms.served_programs import program, read_until
from tests.integration.command_line.terminal.terminals import ENTER, terminal_session
from tests.programs import PATIENCE

TEN_LINES = """\
serve:
  adapters:
    - platform: telegram
      token: ${TELEGRAM_TOKEN}
      api_url: ${TELEGRAM_URL}
platforms:
  telegram:
    home_channel:
      chat_id: 1
sessions_json: {mode: off}
"""


async def test_ten_lines_of_yaml_are_a_bot_that_loses_nothing(tmp_path: Path):
    assert len(TEN_LINES.splitlines()) == 10
    (tmp_path / "config.yaml").write_text(TEN_LINES)
    async with FakeTelegram() as telegram:
        environ = {"TELEGRAM_TOKEN": telegram.token, "TELEGRAM_URL": telegram.url}
        async with program(tmp_path, "serve", **environ) as served:
            assert "The demo agent answers" in await read_until(served.stderr, "Serving telegram")
            telegram.says("ann", "hello")
            await telegram.wait_until(lambda: telegram.texts("ann"), seconds=PATIENCE)
            served.terminate()
            assert await asyncio.wait_for(served.wait(), PATIENCE) == Exit.DONE
        telegram.says("ann", "still there?")
        async with program(tmp_path, "serve", **environ):
            await telegram.wait_until(lambda: len(telegram.texts("ann")) > 1, seconds=PATIENCE)
        first, second = telegram.texts("ann")
        assert "hello" in first
        assert "still there?" in second


async def test_two_accounts_of_a_platform_are_told_apart(tmp_path: Path):
    async with FakeTelegram() as sales, FakeTelegram(token="987654321:AAAnother") as support:
        adapters = [
            f"{{platform: telegram, name: {name}, token: '{one.token}', api_url: '{one.url}', groups: all}}"
            for name, one in (("sales", sales), ("support", support))
        ]
        (tmp_path / "config.yaml").write_text(f"serve: {{adapters: [{', '.join(adapters)}]}}")
        async with program(tmp_path, "serve") as served:
            told = await read_until(served.stderr, "Serving")
            assert "telegram as 'sales' and telegram as 'support'" in told
            sales.says("ann", "hello", group="team")
            support.says("bob", "help")
            await support.wait_until(lambda: support.texts("bob"), seconds=PATIENCE)
            await sales.wait_until(lambda: sales.texts(group="team"), seconds=PATIENCE)
            assert sales.texts("bob") == support.texts("ann") == []


@pytest.mark.parametrize(
    ("adapter", "told"),
    [
        ("{platform: telegram}", "needs token: write `token: ${TELEGRAM_TOKEN}`, and set that variable"),
        ("{platform: telegram, token: nonsense}", "the token is none of Telegram's"),
        (
            "{platform: telegram, token: '1:a', group: all}",
            "is not a key of telegram (did you mean 'groups'?)",
        ),
        ("{platform: telegram, token: '1:a', groups: some}", "must be one of mention, all"),
        ("{platform: telegram, token: [1]}", "must be text"),
        ("{platform: telegramm, token: '1:a'}", "no adapter for 'telegramm' is installed"),
        ("{token: '1:a'}", "needs a platform, such as `platform: telegram`"),
        ("{platform: 7}", "must have text as its platform"),
        ("telegram", "must be a block with a platform, not text"),
        ("{platform: t, name: a}, {platform: t, name: a}", "has t twice: give each account"),
    ],
)
def test_what_is_wrong_with_an_adapter_is_one_sentence(gsess: Gsess, tmp_path: Path, adapter: str, told: str):
    config = tmp_path / "wrong.yaml"
    config.write_text(f"serve: {{adapters: [{adapter}]}}")
    failed = gsess("serve", "--config", str(config))
    assert failed.code == Exit.WRONG_USE
    assert told in " ".join(failed.err.split())
    assert "Traceback" not in failed.err


def test_a_list_is_asked_for(gsess: Gsess, tmp_path: Path):
    config = tmp_path / "wrong.yaml"
    config.write_text("serve: {adapters: {platform: telegram}}")
    failed = gsess("config", "validate", str(config))
    assert failed.code == Exit.WRONG_USE
    assert "must be a list of blocks" in failed.err


def test_tokens_are_not_shown(gsess: Gsess, tmp_path: Path):
    config = tmp_path / "config.yaml"
    config.write_text(f"serve: {{adapters: [{{platform: telegram, token: '{TOKEN}'}}]}}")
    explained = gsess("config", "explain", "serve.adapters", "--config", str(config))
    assert explained.code == Exit.DONE
    assert TOKEN not in explained.out + explained.err
    assert "***" in explained.out


class TestInit:
    def test_it_writes_a_configuration_that_can_be_served(self, gsess: Gsess, tmp_path: Path):
        home = tmp_path / "new"
        done = gsess("init", "--platform", "telegram", "--yes", "--home", str(home))
        assert done.code == Exit.DONE, done.err
        assert "export TELEGRAM_TOKEN=…, then gateway-sessions serve" in " ".join(done.out.split())
        text = (home / "config.yaml").read_text()
        assert "token: ${TELEGRAM_TOKEN}" in text
        assert (home / "config.yaml").stat().st_mode & 0o077 == 0
        os.environ["TELEGRAM_TOKEN"] = TOKEN
        try:
            assert gsess("config", "validate", "--home", str(home)).code == Exit.DONE
        finally:
            del os.environ["TELEGRAM_TOKEN"]

    def test_without_a_platform_it_serves_the_terminal(self, gsess: Gsess, tmp_path: Path):
        assert gsess("init", "--yes", "--home", str(tmp_path)).code == Exit.DONE
        assert "console: true" in (tmp_path / "config.yaml").read_text()
        assert gsess("config", "validate", "--home", str(tmp_path)).code == Exit.DONE

    def test_a_file_that_is_there_stays_as_it_is(self, gsess: Gsess, tmp_path: Path):
        (tmp_path / "config.yaml").write_text("timezone: UTC\n")
        failed = gsess("init", "--platform", "telegram", "--yes", "--home", str(tmp_path))
        assert failed.code == Exit.WRONG_USE
        assert "left as it is" in " ".join(failed.err.split())
        assert (tmp_path / "config.yaml").read_text() == "timezone: UTC\n"

    def test_a_file_elsewhere_is_named(self, gsess: Gsess, tmp_path: Path):
        file = tmp_path / "here" / "bot.yaml"
        assert gsess("init", "--yes", "--config", str(file)).code == Exit.DONE
        assert file.exists()
        failed = gsess("init", "--yes", "--home", "postgresql://nobody/x")
        assert failed.code == Exit.WRONG_USE
        assert "--config" in failed.err

    def test_an_unknown_platform_is_refused(self, gsess: Gsess, tmp_path: Path):
        failed = gsess("init", "--platform", "pigeons", "--yes", "--home", str(tmp_path))
        assert failed.code == Exit.WRONG_USE
        assert "no adapter for 'pigeons' is installed; there are" in " ".join(failed.err.split())

    def test_what_is_typed_goes_to_a_file_of_its_own_and_the_platform_is_asked(self, tmp_path: Path):
        home = tmp_path / "a bot"
        with FakeTelegram() as fake:
            said = ("--home", home, "init", "--set", f"api_url={fake.url}")
            with terminal_session(*said, columns=400, lines=30) as person:
                person.watch_until("or nothing for this terminal:")
                person.press("telegram", ENTER)
                person.watch_until("TELEGRAM_TOKEN (@BotFather gives it out):")
                person.press(fake.token, ENTER)
                person.watch_until("[y/N]")
                person.press("y", ENTER)
                assert person.watch_to_end() == Exit.DONE, person.screen.text
                told = " ".join(person.screen.text.split())
        assert "Adapter telegram: connects." in told
        assert "Then open the bot in Telegram, press Start, and write hello." in told
        assert fake.token not in told
        files = {one.name: one for one in home.iterdir()}
        assert [one for one in files.values() if one.stat().st_mode & 0o077] == []
        assert files["secrets"].read_text() == f"TELEGRAM_TOKEN={fake.token}\n"
        assert fake.token not in files["config.yaml"].read_text()
        unit = files["gateway-sessions.service"].read_text()
        assert f"EnvironmentFile=-{home}/secrets" in unit
        assert f'-m gateway_sessions --home "{home}" --config "{home}/config.yaml" serve' in unit

    def test_a_token_that_opens_nothing_is_told_at_once(
        self, gsess: Gsess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        with FakeTelegram() as fake:
            monkeypatch.setenv("TELEGRAM_TOKEN", f"{fake.token}x")
            asked = ("init", "--platform", "telegram", "--set", f"api_url={fake.url}", "--yes", "--home")
            failed = gsess(*asked, str(tmp_path / "asked"))
            assert failed.code == Exit.UNSOUND
            assert "does not know this token" in " ".join(failed.out.split())
            assert not (tmp_path / "asked" / "secrets").exists(), "it is in the environment"
            before = len(fake.calls)
            assert gsess(*asked, str(tmp_path / "not"), "--offline").code == Exit.DONE
            assert len(fake.calls) == before

    @pytest.mark.parametrize(
        ("given", "told"),
        [("groups", "write KEY=VALUE"), ("token=1:a", "set TELEGRAM_TOKEN in the environment")],
    )
    def test_a_further_key_is_a_key_with_a_value(self, gsess: Gsess, tmp_path: Path, given: str, told: str):
        failed = gsess("init", "--platform", "telegram", "--set", given, "--yes", "--home", str(tmp_path))
        assert failed.code == Exit.WRONG_USE
        assert told in " ".join(failed.err.split())
        assert list(tmp_path.iterdir()) == []


class TestDoctor:
    def test_it_says_which_adapters_are_set_up_and_which_are_not(self, gsess: Gsess, tmp_path: Path):
        config = tmp_path / "config.yaml"
        config.write_text(
            f"serve: {{adapters: [{{platform: telegram, token: '{TOKEN}'}}, "
            "{platform: telegram, name: b, token: nonsense}]}"
        )
        found = gsess("doctor", "--quick", "--home", str(tmp_path), "--config", str(config))
        told = " ".join(found.out.split())
        assert "Adapter telegram: is set up; --online asks the platform" in told
        assert "Adapter telegram b: the token is none of Telegram's" in told

    def test_it_names_a_variable_that_is_not_set(self, gsess: Gsess, tmp_path: Path):
        """It had said nothing of the adapters at all."""
        (tmp_path / "config.yaml").write_text(TEN_LINES)
        told = " ".join(gsess("doctor", "--quick", "--home", str(tmp_path)).out.split())
        assert "! Adapters: line 4: serve.adapters[0].token: needs the environment variable" in told

    def test_what_it_finds_in_the_settings_the_check_of_the_configuration_finds_as_well(
        self, gsess: Gsess, tmp_path: Path
    ):
        """`serve` had refused a file, with the advice to have it checked, and the check found it right."""
        file = tmp_path / "config.yaml"
        file.write_text("serve: {adapters: [{platform: telegram, token: nonsense}]}")
        checked = gsess("config", "validate", str(file))
        assert checked.code == Exit.WRONG_USE
        assert "serve.adapters[0].token: the token is none of Telegram's" in " ".join(checked.err.split())

    async def test_online_it_asks_the_platform_and_takes_nothing(self, tmp_path: Path):
        async with FakeTelegram() as telegram:
            telegram.says("ann", "hello")
            good = f"{{platform: telegram, token: '{telegram.token}', api_url: '{telegram.url}'}}"
            other = f"{{platform: telegram, name: b, token: '1:a', api_url: '{telegram.url}'}}"
            (tmp_path / "config.yaml").write_text(f"serve: {{adapters: [{good}, {other}]}}")
            async with program(tmp_path, "doctor", "--quick", "--online") as asked:
                output, _ = await asyncio.wait_for(asked.communicate(), PATIENCE)
            told = " ".join(output.decode().split())
            assert "Adapter telegram: connects" in told
            assert "does not know this token" in told
            assert telegram.pending == 1, "the gateway gets it"
