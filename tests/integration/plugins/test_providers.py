"""Databases that other packages bring along: found by their address, and what is wrong with one is said."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway_sessions import SessionDB, SessionSource, SessionStore
from gateway_sessions.config import Config, Provider, SessionDBConfig, parse_config
from gateway_sessions.errors import (
    BrokenProviderError,
    ConfigError,
    InvalidInputError,
    UnknownProviderError,
    UnsupportedStorageError,
)
from gateway_sessions.storage.engines.registry import all_providers
from tests.providers import PACKAGE, install_provider

ALICE = SessionSource(platform="telegram", chat_id="1", user_id="alice")
CONFIG = "sessiondb: {provider: notebook, url: 'notebook://desk'}"


@pytest.fixture(autouse=True)
def _state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


@pytest.fixture
def _installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with install_provider(monkeypatch):
        yield


@pytest.mark.usefixtures("_installed")
async def test_a_store_is_opened_by_the_address_alone():
    for _ in range(2):
        async with SessionStore.open("notebook://desk") as store:
            entry = await store.get_or_create_session(ALICE)
            assert store.db.place == "notebook://…"
    assert (store.home / "notebook.db").is_file()
    async with SessionDB.open_reader("notebook://desk") as db:
        assert await db.get_session(entry.session_id)


@pytest.fixture
def config(_installed: None) -> Config:
    return parse_config(CONFIG, origin="config.yaml", environ={})


async def test_a_store_is_opened_as_the_configuration_says(tmp_path: Path, config: Config):
    assert config.sessiondb == SessionDBConfig(provider="notebook", url="notebook://desk")
    async with SessionStore.open(tmp_path / "home", config) as store:
        await store.get_or_create_session(ALICE)
    assert (tmp_path / "home" / "notebook.db").is_file()


@pytest.mark.usefixtures("_installed")
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("missing", "that_is_not_there:PROVIDER of notebook-database 1.0 cannot be imported (ModuleNotFound"),
        ("older", "written for contract 0, and this version has 1: update notebook-database 1.0"),
        ("newer", "written for contract 2, and this version has 1: update gateway-sessions"),
        ("renamed", "calls itself 'notebook', and is registered as 'renamed'"),
        ("something", "notebook_database:SOMETHING of notebook-database 1.0 is no SessionDBProvider"),
    ],
)
def test_what_is_wrong_with_a_package_is_said(name: str, says: str):
    with pytest.raises(BrokenProviderError) as refused:
        SessionDB.open(f"{name}://desk?password=hunter2")
    assert says in str(refused.value)
    assert refused.value.what == f"{name}://…"
    assert "hunter2" not in str(refused.value)


@pytest.mark.usefixtures("_installed")
def test_a_name_of_ours_stays_ours():
    found = {one.name: one for one in all_providers() if one.package == "notebook-database 1.0"}
    assert found["mysql"].problem == "its name is that of a kind of ours, which is used instead"
    assert found["notebook"].problem is None
    assert [one.name for one in all_providers()][:3] == ["sqlite", "postgresql", "mysql"]


@pytest.mark.usefixtures("_installed")
def test_an_address_that_nobody_knows_is_refused_with_what_is_installed():
    with pytest.raises(UnknownProviderError) as refused:
        SessionDB.open("notebok://me:hunter2@desk")
    there_is = "sqlite, postgresql, mysql, missing, mysql, newer, notebook, older, renamed, something"
    assert refused.value.problem.endswith(there_is)
    assert str(refused.value).startswith(
        "notebok://…: is a kind of database that is not installed (did you mean 'notebook'?); there is sq"
    )
    assert isinstance(refused.value, UnsupportedStorageError)


async def test_a_store_cannot_be_opened_in_what_is_not_installed():
    with pytest.raises(UnknownProviderError, match=r"there is sqlite, postgresql, mysql$"):
        async with SessionStore.open("notebook://desk"):
            pass


def test_what_is_not_installed_is_nothing_for_a_configuration():
    with pytest.raises(ConfigError) as wrong:
        parse_config(CONFIG, origin="config.yaml", environ={})
    assert "must be one of sqlite, postgresql, mysql" in str(wrong.value)


@pytest.mark.usefixtures("_installed")
def test_a_name_that_is_spelt_wrong_is_found_in_the_configuration():
    with pytest.raises(ConfigError, match="did you mean 'notebook'"):
        parse_config("sessiondb: {provider: notebok}", origin="config.yaml", environ={})


@pytest.mark.parametrize("value", ["5", "[notebook]", "null"])
def test_a_provider_is_a_word(value: str):
    text = f"sessiondb: {{provider: {value}}}"
    with pytest.raises(ConfigError, match="must be one of"):
        parse_config(text, origin="config.yaml", environ={})


def test_an_address_fits_its_provider():
    for url in (None, "postgresql://host/name", "desk"):
        with pytest.raises(InvalidInputError, match=r"url: must be notebook://…"):
            SessionDBConfig(provider="notebook", url=url)
    settings = SessionDBConfig(provider="notebook", url="notebook://me:hunter2@desk")
    assert (settings.is_server, settings.shown_url) == (True, "notebook://…")
    assert "hunter2" not in repr(settings)
    assert SessionDBConfig(provider="sqlite").provider is Provider.SQLITE
    assert Config(sessiondb=SessionDBConfig()).sessiondb.is_server is False


@pytest.mark.usefixtures("_installed")
def test_a_pool_is_refused_by_what_has_no_use_for_it(tmp_path: Path):
    for place in ("notebook://desk", tmp_path / "sessions.db"):
        with pytest.raises(InvalidInputError, match="leave pool out"):
            SessionDB.open(place, pool=object())


class Shell:
    """The command line, with that package installed."""

    def __init__(self, home: Path) -> None:
        self.home = home
        paths = [str(PACKAGE), *filter(None, [os.environ.get("PYTHONPATH")])]
        self.environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "gateway_sessions", "--home", str(self.home), *words]
        return subprocess.run(command, capture_output=True, text=True, env=self.environment, check=False)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    return Shell(home)


@pytest.mark.timeout(60)
def test_the_doctor_lists_what_is_installed_and_says_what_cannot_be_used(shell: Shell):
    told = shell.run("doctor", "--json", "--quick")
    found: list[dict[str, Any]] = json.loads(told.stdout)["results"]
    (kinds,) = [one for one in found if one["what"] == "Databases"]
    assert kinds["health"] == "warning"
    assert (
        "older cannot be used: notebook_database:OLDER of notebook-database 1.0 was written for"
        in kinds["told"]
    )
    assert "newer cannot be used" in kinds["told"]


@pytest.mark.timeout(60)
def test_a_person_learns_on_the_command_line_that_nobody_knows_an_address(shell: Shell):
    told = shell.run("sessiondb", "migrate", "--from", "notebok://desk", "postgresql://x")
    assert told.returncode == 1
    assert "did you mean 'notebook'?" in told.stderr
    assert "Traceback" not in told.stderr
