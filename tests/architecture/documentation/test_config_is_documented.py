"""Every setting is in the example and in the reference, as the records of the configuration declare it."""

import re
from datetime import timedelta
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
import yaml

from gateway_sessions.config import Config, PlatformConfig, parse_config
from gateway_sessions.config.core_blocks import BUDGETS, BUSY, CLUSTER, RESET_POLICY
from gateway_sessions.config.keys import Block, value_paths
from gateway_sessions.config.kinds import Count, Duration
from gateway_sessions.config.model import ALL_KEYS
from gateway_sessions.config.origins import default_values
from gateway_sessions.core.transcript.session_context_prompt import HomeChannel
from gateway_sessions.errors import GatewaySessionsError

ROOT = Path(__file__).parents[3]
EXAMPLE = (ROOT / "config.example.yaml").read_text(encoding="utf-8")
FOLDER = ROOT / "docs" / "reference"
REFERENCE = (FOLDER / "config.md").read_text(encoding="utf-8")

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
SETTINGS = {names(path) for path in value_paths(ALL_KEYS)}


def names_in(values: object, path: tuple[str, ...] = ()) -> set[str]:
    override = "platforms" in path and path[-1] in OVERRIDDEN
    if override or not isinstance(values, dict):
        return {names(path)}
    wild = path[-1:] in (("platforms",), ("chat_types",))
    return {name for key in values for name in names_in(values[key], (*path, "*" if wild else key))}


@pytest.fixture(scope="module")
def maker():
    spec = spec_from_file_location("make_config", FOLDER / "make_config.py")
    assert spec is not None
    assert spec.loader is not None
    script = module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def test_the_example_is_made_of_what_the_records_declare(maker):
    assert maker.example() == EXAMPLE, "run docs/reference/make_config.py"


def test_the_reference_is_made_of_what_the_records_declare(maker):
    assert maker.tables(REFERENCE) == REFERENCE, "run docs/reference/make_config.py"


CORE = (RESET_POLICY, BUSY, BUDGETS, CLUSTER)
COUNTS = [(block, key) for block in CORE for key in block.keys if isinstance(key.kind, Count)]
DURATIONS = [(block, key) for block in CORE for key in block.keys if isinstance(key.kind, Duration)]


@pytest.mark.parametrize(("block", "key"), COUNTS, ids=lambda one: getattr(one, "name", ""))
def test_the_core_counts_within_the_limits_that_are_told(block: Block, key):
    least, most = key.kind.least, key.kind.most
    for within in filter(lambda one: one is not None, (least, most)):
        assert getattr(block.record(**{key.field: within}), key.field) == within
    for beyond in [*([] if least is None else [least - 1]), *([] if most is None else [most + 1])]:
        with pytest.raises(GatewaySessionsError):
            block.record(**{key.field: beyond})


@pytest.mark.parametrize(("block", "key"), DURATIONS, ids=lambda one: getattr(one, "name", ""))
def test_the_core_measures_within_the_limits_that_are_told(block: Block, key):
    zeros = {one.field: timedelta(0) for in_block, one in DURATIONS if in_block is block and one.kind.zero}
    assert block.record(**zeros)
    with pytest.raises(GatewaySessionsError):
        block.record(**{key.field: timedelta(seconds=-1) if key.kind.zero else timedelta(0)})


def test_the_example_is_the_default_configuration():
    assert parse_config(EXAMPLE, origin="config.example.yaml", environ={}) == Config()


def test_the_defaults_that_are_explained_are_those_of_the_example():
    shown: dict[str, object] = {}
    for path, value in default_values(ALL_KEYS, Config()):
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
