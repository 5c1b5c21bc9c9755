"""What pydantic found, in the words of somebody who writes a configuration."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from functools import reduce
from types import MappingProxyType
from typing import Final

from pydantic_core import ErrorDetails

from gateway_sessions.config.draft import KeyPath, dotted
from gateway_sessions.config.key_tree import child, paths
from gateway_sessions.config.schema import KEYS
from gateway_sessions.config.sections import SnapshotMode
from gateway_sessions.core.policies import PRESETS, ResetMode

_EXPECTED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "bool_type": "must be true or false",
        "int_type": "must be a whole number",
        "string_type": "must be text",
        "list_type": "must be a list",
        "dict_type": "must be a block of names",
        "model_type": "must be a block of keys",
    }
)
_TYPES: Final[Mapping[object, str]] = MappingProxyType(
    {
        bool: "true or false",
        int: "a number",
        float: "a number",
        str: "text",
        list: "a list",
        dict: "a block",
        type(None): "null",
    }
)
_FLAGS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {"true": ("true", "yes", "on", "y", "1"), "false": ("false", "no", "off", "n", "0")}
)
_HERMES_KEYS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "default_reset_policy": "session_reset",
        "reset_by_platform": "platforms.<name>.session_reset",
        "reset_by_type": "platforms.<name>.chat_types.<type>.session_reset",
        "write_sessions_json": "sessions_json.mode",
        "home_channels": "platforms.<name>.home_channel",
        "display.busy_input_mode": "busy.mode",
        "max_concurrent_sessions": "gateway.max_turns",
    }
)
_WORDS: Final[Mapping[str | int, list[str]]] = MappingProxyType(
    {"session_reset": [*PRESETS], "sessions_json": [*SnapshotMode]}
)
_CHOICES = re.compile(r"'([^']*)'")


def worded(finding: ErrorDetails) -> tuple[str, str | None]:
    """Return the message for one finding, and what may have been meant. The value itself is never shown."""
    kind, path, value = finding["type"], finding["loc"], finding["input"]
    if kind == "extra_forbidden":
        return _unknown_key(path)
    if kind == "enum":
        choices = _CHOICES.findall(finding.get("ctx", {}).get("expected", ""))
        return f"must be one of {', '.join(choices)}", _closest(value, choices)
    if kind == "model_type" and path and path[-1] in _WORDS:
        return _unknown_word(str(path[-1]), value)
    if kind not in _EXPECTED:
        return "is missing" if kind == "missing" else finding["msg"], None
    message = f"{_EXPECTED[kind]}, not {_TYPES.get(value.__class__, 'that')}"
    if kind != "bool_type":
        return message, None
    meant = (flag for flag, words in _FLAGS.items() if str(value).lower() in words)
    return message, next(meant, None)


def _unknown_key(path: KeyPath) -> tuple[str, str | None]:
    """Explain a key of another program, a misspelt one, or one that stands in another block."""
    key = str(path[-1])
    if (known := _HERMES_KEYS.get(dotted(path))) is not None:
        return "is not a key of this program", known
    siblings = reduce(child, path[:-1], KEYS)
    elsewhere = [dotted(known) for known in paths(KEYS) if known[-1] == key and "*" not in known]
    misplaced = next(iter([key] if key in KEYS else elsewhere), None)
    close = _closest(key, list(siblings))
    return "is not a known key", (misplaced or close) if len(path) == 1 else (close or misplaced)


def _unknown_word(key: str, value: object) -> tuple[str, str | None]:
    """Explain a word, or something else, in place of a block for which some words can stand."""
    message = f"must be a block of keys or one of {', '.join(_WORDS[key])}"
    if key == "session_reset" and isinstance(value, str) and value.lower() in list(ResetMode):
        return message, f"{{mode: {value.lower()}}}"
    if value is False:
        return message, "never" if key == "session_reset" else "off"
    return message, _closest(value, _WORDS[key])


def _closest(word: object, choices: list[str]) -> str | None:
    return next(iter(get_close_matches(str(word)[:80].lower(), choices, n=1)), None)
