"""Whatever is given, the answer is a configuration or a `ConfigError`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from hypothesis import assume, example, given
from hypothesis import strategies as st

from gateway_sessions.config import Config, parse_config
from gateway_sessions.config.keys import Block, NamedBlocks, value_paths
from gateway_sessions.config.kinds import Kind
from gateway_sessions.config.model import ALL_KEYS
from gateway_sessions.errors import ConfigError

ANY_TEXT = st.text(st.characters(), max_size=12)
WORDS = st.sampled_from(
    [
        "none",
        "idle",
        "both",
        "cron",
        "all",
        "never",
        "off",
        "sync",
        "0 4 * * *",
        "UTC",
        "Europe/Berlin",
        "${A}",
        "a",
    ]
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=-2, max_value=30)
    | st.floats()
    | ANY_TEXT
    | WORDS
    | st.binary(max_size=2)
)
JSON_LIKE = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=8,
)


def shaped_like(kind: Kind) -> st.SearchStrategy[Any]:
    """Values that mostly have the right keys, so that the checks behind them are met as well."""
    if isinstance(kind, NamedBlocks):
        block = st.dictionaries(
            st.sampled_from(["telegram", "SMS", "dm"]) | ANY_TEXT, shaped_like(kind.block), max_size=2
        )
    elif isinstance(kind, Block):
        known = {key.name: shaped_like(key.kind) for key in kind.keys}
        block = st.fixed_dictionaries({}, optional=known)
    else:
        return SCALARS | st.lists(WORDS, max_size=2)
    return block | block | block | JSON_LIKE


def outcome(make: Callable[[], Config]) -> Config | ConfigError:
    """What comes of it; any other exception fails the test."""
    try:
        return make()
    except ConfigError as error:
        return error


def read_mapping(values: Any) -> Config | ConfigError:
    return outcome(lambda: Config.from_mapping(values))


def read_text(text: str, environ: dict[str, str] | None = None) -> Config | ConfigError:
    return outcome(lambda: parse_config(text, origin="text", environ=environ or {}))


def assert_tells(error: ConfigError, lines: int) -> None:
    found = [problem.line for problem in error.problems if problem.line is not None]
    assert error.problems
    assert found == sorted(found)
    assert all(1 <= line <= lines for line in found)
    assert all(line.isprintable() for line in str(error).splitlines())


@given(JSON_LIKE | st.dictionaries(st.integers() | ANY_TEXT | st.none(), JSON_LIKE, max_size=3))
def test_any_value_is_a_configuration_or_a_config_error(values: Any) -> None:
    found = read_mapping(values)
    if isinstance(found, ConfigError):
        assert_tells(found, lines=0)


@given(shaped_like(ALL_KEYS))
def test_any_values_under_the_right_keys_are_a_configuration_or_a_config_error(values: Any) -> None:
    found = read_mapping(values)
    if isinstance(found, ConfigError):
        assert_tells(found, lines=0)
    else:
        resolved = found.policy_book("UTC").resolve("telegram", "dm")
        assert resolved.policy == found.get_reset_policy("telegram", "dm")


@example({"platforms": {"\U00010000": {}}})
@given(shaped_like(ALL_KEYS))
def test_a_file_says_what_a_mapping_says(values: Any) -> None:
    try:
        text = json.dumps(values, allow_nan=False)
    except (TypeError, ValueError):
        assume(False)
    assume("${" not in text)
    from_mapping, from_text = read_mapping(values), read_text(text)
    assert isinstance(from_mapping, ConfigError) or from_text == from_mapping


KEYWORDS = [
    "session_reset",
    "cache",
    "entries",
    "platforms",
    "sms",
    "never",
    "5",
    "1e9",
    "${A}",
    "${",
    "${B:-1}",
]
SYNTAX = [
    ": ",
    ":",
    "\n",
    "\n  ",
    "- ",
    "[",
    "]",
    "{",
    "}",
    ",",
    "&a ",
    "*a",
    "!!int ",
    "'",
    '"',
    "|",
    ">",
    "? ",
    "#",
]
FRAGMENTS = st.sampled_from([*KEYWORDS, *SYNTAX, "\t", "---", "%YAML 1.1", "<<"])


@example("a: \x00", {})
@example("\ufeffcache: {}", {})
@example('"\\ud800": 1', {})
@example("cache: " + "[" * 500, {})
@given(
    st.text(st.characters(), max_size=40) | st.lists(FRAGMENTS, max_size=25).map("".join),
    st.dictionaries(st.sampled_from(["A", "SESSION_RESET_HOUR", "SESSION_IDLE_MINUTES"]), ANY_TEXT | WORDS),
)
def test_any_text_is_a_configuration_or_a_config_error(text: str, environ: dict[str, str]) -> None:
    found = read_text(text, environ)
    if isinstance(found, ConfigError):
        assert_tells(found, lines=len(text.splitlines()) + 1)


VARIABLES = [
    f"GATEWAY_SESSIONS__{'__'.join(path).upper()}".replace("*", name)
    for path in value_paths(ALL_KEYS)
    for name in ("TELEGRAM", "")
]


@given(
    st.dictionaries(
        st.sampled_from(VARIABLES) | ANY_TEXT.map("GATEWAY_SESSIONS__{}".format), ANY_TEXT | WORDS, max_size=4
    )
)
def test_any_variables_give_a_configuration_or_a_config_error(environ: dict[str, str]) -> None:
    found = read_text("session_reset: {mode: idle}\nplatforms: {telegram: {}}", environ)
    if isinstance(found, ConfigError):
        assert_tells(found, lines=2)
