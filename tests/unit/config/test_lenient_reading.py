"""Values that stand for variables that are not set: told where they are used, and nowhere else."""

from pathlib import Path

import pytest

from gateway_sessions.config import Config, load_config
from gateway_sessions.errors import ConfigError

SERVED = """
timezone: Europe/Berlin
serve:
  webhook_port: 8080
  webhook_callback_url: https://shop.example/replies
  webhook_secrets: ["${WEBHOOK_SECRET}"]
model: {name: small, api_key: "${MODEL_KEY}"}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.yaml"


def lenient(file: Path, text: str, **environ: str) -> Config:
    file.write_text(text)
    return load_config(file, environ=environ, lenient=True)


def needs(config: Config, *sections: str) -> list[str]:
    with pytest.raises(ConfigError) as raised:
        config.require(*sections)
    assert raised.value.origin == str(config.file)
    return [f"{problem.path}: {problem.message}" for problem in raised.value.problems]


def test_a_secret_is_not_needed_by_who_only_looks(file: Path):
    config = lenient(file, SERVED)
    config.require_for_store()
    config.require("sessiondb", "session_reset")
    assert config.policy_book().zone_name == "Europe/Berlin"


def test_what_is_used_names_the_variable_that_it_needs(file: Path):
    config = lenient(file, SERVED)
    assert needs(config, "serve") == [
        "serve.webhook_secrets[0]: needs the environment variable WEBHOOK_SECRET, which is not set"
    ]
    assert needs(config, "model", "serve")[1].startswith("model.api_key: needs")


def test_the_strict_reading_is_as_it_was(file: Path):
    file.write_text(SERVED)
    with pytest.raises(ConfigError, match=r"(?s)line 6: .*WEBHOOK_SECRET.*line 7: .*MODEL_KEY"):
        load_config(file, environ={})


def test_with_its_variables_a_lenient_reading_is_the_strict_one(file: Path):
    environ = {"WEBHOOK_SECRET": "s" * 32, "MODEL_KEY": "key"}
    config = lenient(file, SERVED, **environ)
    assert config == load_config(file, environ=environ)
    assert (config.unresolved, config.file) == ((), file)


@pytest.mark.parametrize(
    ("text", "uses"),
    [
        ("timezone: ${ZONE}", "timezone"),
        ("session_reset: {idle_minutes: '${N}'}", "session_reset"),
        ("session_reset: ${PRESET}", "session_reset"),
        ("platforms: {telegram: {session_reset: {at_hour: '${HOUR}'}}}", "platforms"),
        ("busy: {mode: '${MODE}'}", "busy"),
    ],
)
def test_nobody_owns_a_store_by_half_a_policy(file: Path, text: str, uses: str):
    config = lenient(file, text)
    needs(config, uses)
    with pytest.raises(ConfigError):
        config.require_for_store()
    with pytest.raises(ConfigError):
        config.busy_book() if uses in ("busy",) else config.policy_book()


def test_where_a_platform_is_at_home_says_nothing_of_its_policy(file: Path):
    config = lenient(
        file, "platforms: {telegram: {session_reset: never, home_channel: {chat_id: '${CHAT}'}}}"
    )
    assert config.get_reset_policy("telegram") == config.platforms["telegram"].session_reset
    with pytest.raises(ConfigError, match="CHAT"):
        config.require_for_store()


def test_a_variable_of_ours_stands_for_what_the_file_lacks(file: Path):
    config = lenient(file, "timezone: ${ZONE}", GATEWAY_SESSIONS__TIMEZONE="Asia/Tokyo")
    assert (config.timezone, config.unresolved) == ("Asia/Tokyo", ())


def test_other_mistakes_are_told_at_once(file: Path):
    with pytest.raises(ConfigError) as raised:
        lenient(file, f"{SERVED}\nsession_reset: {{mode: dayly}}\ncache: {{entries: '${{'}}\n")
    assert [problem.path for problem in raised.value.problems] == ["session_reset.mode", "cache.entries"]


def test_each_place_of_an_alias_lacks_the_variable(file: Path):
    config = lenient(file, "serve: {webhook_path: &it '${IT}'}\nmodel: {name: *it, base_url: *it}")
    assert len(needs(config, "serve", "model")) == 3
    assert config.model.name is None


def test_many_places_of_an_alias_are_no_flood(file: Path):
    rows = ["a0: &a0 ['${X}', '${X}']"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    with pytest.raises(ConfigError):
        lenient(file, "\n".join(rows))
