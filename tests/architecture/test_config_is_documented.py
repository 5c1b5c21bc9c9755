"""Every setting is in the example and in the reference, with the default it has."""

import re
from pathlib import Path

import yaml

from gateway_sessions.config import Config, PlatformConfig, parse_config
from gateway_sessions.config.defaults import defaults
from gateway_sessions.config.key_tree import paths
from gateway_sessions.config.schema import KEYS
from gateway_sessions.core.context import HomeChannel

ROOT = Path(__file__).parents[2]
EXAMPLE = (ROOT / "config.example.yaml").read_text(encoding="utf-8")
REFERENCE = (ROOT / "docs" / "reference" / "config.md").read_text(encoding="utf-8")

# In the example prose begins with "# "; what is only commented out keeps its indentation after the "#".
COMMENTED_OUT = re.compile(r"^#(?=  )", re.MULTILINE)
ROW = re.compile(r"^\| `([^`]+)` \| (.+) \| (.+) \| (.+) \|$", re.MULTILINE)


def names(path: tuple[str, ...]) -> str:
    """The documented name of a setting: the keys of what overrides a block are those of the block."""
    if path[0] == "platforms" and (overrides := OVERRIDDEN.intersection(path)):
        path = path[: path.index(*overrides) + 1]
    text = ".".join(path)
    return text.replace("*", "<name>", 1).replace("*", "<type>", 1)


OVERRIDDEN = {"session_reset", "busy"}
SETTINGS = {names(path) for path in paths(KEYS)}


def names_in(values: object, path: tuple[str, ...] = ()) -> set[str]:
    override = "platforms" in path and path[-1] in OVERRIDDEN
    if override or not isinstance(values, dict):
        return {names(path)}
    wild = path[-1:] in (("platforms",), ("chat_types",))
    return {name for key in values for name in names_in(values[key], (*path, "*" if wild else key))}


def test_the_example_is_the_default_configuration():
    assert parse_config(EXAMPLE, origin="config.example.yaml", environ={}) == Config()


def test_the_defaults_that_are_explained_are_those_of_the_example():
    shown: dict[str, object] = {}
    for path, value in defaults():
        for key in reversed(path):
            value = {key: value}  # noqa: PLW2901 -- from the inside out
        merge(shown, value)
    assert shown | {"platforms": {}} == yaml.safe_load(EXAMPLE) | {"platforms": {}}


def test_the_example_shows_every_setting():
    everything = COMMENTED_OUT.sub("", EXAMPLE)
    assert names_in(yaml.safe_load(everything)) == SETTINGS


def test_what_the_example_comments_out_is_a_configuration():
    config = parse_config(COMMENTED_OUT.sub("", EXAMPLE), origin="config.example.yaml", environ={})
    assert [*config.platforms] == ["telegram"]


def test_every_setting_of_the_example_has_a_comment_above_it():
    lines = COMMENTED_OUT.sub("", EXAMPLE).splitlines()
    blocks = {
        "agent",
        "agent_cache",
        "gateway",
        "delivery",
        "sessiondb",
        "expiry_watcher",
        "hooks",
        "backups",
        "cache",
        "privacy",
        "search",
        "telegram",
        "chat_types",
        "group",
        "home_channel",
        "mode",
    }
    uncommented = {
        line.split(":")[0].strip()
        for above, line in zip(["", *lines], lines, strict=False)
        if ":" in line and not line.strip().startswith("#") and not above.strip().startswith("#")
    }
    assert uncommented - blocks == set()


def test_the_reference_has_every_setting_once():
    documented = [row[0] for row in ROW.findall(REFERENCE)]
    assert sorted(documented) == sorted(SETTINGS)


def test_the_defaults_of_the_reference_are_the_defaults():
    lines = []
    for name, _, default, _ in ROW.findall(REFERENCE):
        if default.startswith("`"):
            *above, key = name.replace("<name>", "sms").replace("<type>", "dm").split(".")
            opening = "".join(f"{{{part}: " for part in above)
            lines.append(yaml.safe_load(f"{opening}{{{key}: {default.strip('`')}}}{'}' * len(above)}"))
    values: dict[str, object] = {}
    for line in lines:
        merge(values, line)
    merge(values, {"platforms": {"sms": {"home_channel": {"chat_id": "1"}}}})
    home = PlatformConfig(home_channel=HomeChannel(platform="sms", chat_id="1"))
    assert Config.from_mapping(values) == Config(platforms={"sms": home})


def merge(values: dict, more: dict) -> None:
    for key, value in more.items():
        if isinstance(value, dict):
            merge(values.setdefault(key, {}), value)
        else:
            values[key] = value
