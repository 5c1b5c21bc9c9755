"""Reading of a configuration into records, which reports all problems at the end."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypeVar, cast

from gateway_sessions.config.core_blocks import HOME_CHANNEL, RESET_POLICY
from gateway_sessions.config.draft import Draft, KeyPath, copy_to_plain_values, dotted_path
from gateway_sessions.config.environment_overrides import environment_overrides, merge_override
from gateway_sessions.config.keys import (
    Block,
    ConfigKey,
    NamedBlocks,
    block_of_record,
    kind_below,
    value_paths,
)
from gateway_sessions.config.kinds import Choice, Kind, ValueProblem, closest_choice
from gateway_sessions.config.yaml_source import read_yaml
from gateway_sessions.core.sessions.policy_rules import TERMINAL
from gateway_sessions.core.sessions.reset_policy import PRESETS, Require, ResetMode, SessionResetPolicy
from gateway_sessions.errors import ConfigError, InvalidPolicyError

T = TypeVar("T")
_Above: TypeAlias = Mapping[str, Any]

_SKIPPED: Final[Any] = object()
"""Stands for a refused value; its field keeps the default."""
_WORD = re.compile(r"\w+")
_HERMES_KEYS: Final = MappingProxyType(
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


def read_config_text(
    record: type[T],
    text: str,
    *,
    origin: str,
    environ: Mapping[str, str],
    lenient: bool = False,
    **known: Any,
) -> T:
    """Return the record of a whole configuration from a YAML text and the variables that override it.

    A *lenient* reading leaves out keys that name a variable which is not set; `Config.require` reports them.
    """
    draft, whole = Draft(origin, unresolved={} if lenient else None), block_of_record(record)
    read_yaml(draft, text, environ)
    copy_to_plain_values(draft)
    for path in draft.unresolved or ():
        draft.remove_value(path)
    _expand_words(whole, draft.values)
    for override in environment_overrides(draft, environ, whole):
        _expand_words(whole, override)
        merge_override(draft.values, override)
        _excuse_overridden_variables(draft, override)
    copy_to_plain_values(draft)
    return cast("T", _build_config(whole, draft, **known))


def read_config_mapping(record: type[T], values: Mapping[str, Any]) -> T:
    """Return the record of a whole configuration from a mapping with the keys of a file."""
    draft, whole = Draft("configuration", values), block_of_record(record)
    copy_to_plain_values(draft)
    _expand_words(whole, draft.values)
    return cast("T", _build_config(whole, draft))


def _excuse_overridden_variables(draft: Draft, override: Mapping[str, Any]) -> None:
    """Forget unset variables in the file where an override sets that key anyway."""
    for path in list(draft.unresolved or ()):
        place: Any = override
        for key in path:
            place = cast("dict[str | int, Any]", place).get(key) if isinstance(place, dict) else place
        if place is not None and draft.unresolved is not None:
            del draft.unresolved[path]


def _expand_words(kind: Kind, values: object) -> None:
    """Replace each word that stands for a block by the block, so that variables can override its keys."""
    if not isinstance(values, dict):
        return
    block = cast("dict[str, Any]", values)
    for name, value in block.items():
        inner = kind_below(kind, name)
        if isinstance(inner, Block) and (spelled := inner.keys_for_word(value)) is not None:
            block[name] = {**spelled}
        elif inner is not None:
            _expand_words(inner, value)


def _build_config(whole: Block, draft: Draft, **known: Any) -> Any:
    if draft.unresolved:
        known["unresolved"] = tuple(draft.unresolved.values())
    make = partial(whole.record, **known)
    config = _RecordReader(draft, whole).read_record(whole, draft.values, (), make, {})
    draft.raise_problems()
    return config


class _RecordReader:
    """Turns plain values into records, block by block; a refused value is reported and left out."""

    def __init__(self, draft: Draft, whole: Block) -> None:
        self._draft = draft
        self._whole = whole

    def read_record(
        self, block: Block, values: object, path: KeyPath, make: Callable[..., Any], above: _Above
    ) -> Any:
        """Return the record that *make* builds from a block; *above* holds inherited records by field."""
        if values is None:
            return None if block.null else make()
        if not isinstance(values, dict):
            return self._refuse_value(path, _problem_of_no_block(block, values))
        known = cast("dict[str, Any]", values)
        for name in (name for name in known if block.find_key(name) is None):
            self._draft.add_problem_at(
                (*path, name), *_explain_unknown_key((*path, name), block, self._whole)
            )
        fields: dict[str, Any] = {}
        for key in block.keys:
            place = (*path, key.name)
            found = self._read_value(key, known[key.name], place, above) if key.name in known else _SKIPPED
            if found is not _SKIPPED:
                fields[key.field] = found
            elif key.required:
                self._refuse_value(place, ValueProblem("is missing"))
            if isinstance(key.kind, Block) and key.kind.inherits and key.field in fields:
                above = {**above, key.field: found}
        lacks = any(key.required and key.field not in fields for key in block.keys)
        return _SKIPPED if lacks else self._build_record(block, path, make, fields)

    def _read_value(self, key: ConfigKey, value: object, path: KeyPath, above: _Above) -> Any:
        match key.kind:
            case Block() as block:
                return self.read_record(
                    block, value, path, _record_maker(block, key.field, path, above), above
                )
            case NamedBlocks() as named:
                return self._read_named_blocks(named, value, path, above)
            case kind:
                found = kind.read_value(value)
        return self._refuse_value(path, found) if isinstance(found, ValueProblem) else found

    def _read_named_blocks(self, kind: NamedBlocks, values: object, path: KeyPath, above: _Above) -> Any:
        if values is None:
            return {}
        if not isinstance(values, dict):
            return self._refuse_value(path, kind.wrong_type("a block of names", values))
        records: dict[str, Any] = {}
        for name, value in cast("dict[str, Any]", values).items():
            base = above
            if path == ("platforms",) and name.strip().lower() == TERMINAL:
                base = {**above, "session_reset": PRESETS["never"]}
            found = self.read_record(kind.block, value, (*path, name), kind.block.record, base)
            if found is not _SKIPPED:
                records[name] = found
        return records

    def _build_record(
        self, block: Block, path: KeyPath, make: Callable[..., Any], fields: dict[str, Any]
    ) -> Any:
        """Build the record; values that it refuses are reported and left out."""
        while True:
            try:
                return make(**fields)
            except (ConfigError, InvalidPolicyError) as error:
                findings = [*_problems_in_error(error)]
            for name, finding in findings:
                told = self._follows_from_refused_key(path, finding.message)
                self._refuse_value((*path, name), None if told else finding)
            refused = {key.field for name, _ in findings if (key := block.find_key(name))}
            if not refused & fields.keys():
                return make()
            fields = {name: value for name, value in fields.items() if name not in refused}

    def _follows_from_refused_key(self, path: KeyPath, message: str) -> bool:
        """Return whether a contradiction names a refused key, and so may be none."""
        refused = {str(one[-1]) for one in self._draft.set_aside if one and one[:-1] == path}
        return not refused.isdisjoint(_WORD.findall(message))

    def _refuse_value(self, path: KeyPath, wrong: ValueProblem | None) -> Any:
        """Report the problem of a value, unless one was reported already, and refuse the value."""
        place = (*path, *wrong.place) if wrong else path
        if wrong and not self._draft.set_aside & {path, place}:
            self._draft.add_problem_at(place, wrong.message, wrong.suggestion)
        self._draft.set_aside.add(path)
        return _SKIPPED


def _record_maker(block: Block, field: str, path: KeyPath, above: _Above) -> Callable[..., Any]:
    """Return the function that builds the record of a block at that path."""
    if block is HOME_CHANNEL:
        return partial(block.record, platform=str(path[1]).strip().lower())
    if not block.inherits:
        return block.record
    base = above.get(field) or block.record()
    return partial(_inherit_policy if block is RESET_POLICY else replace, base)


def _inherit_policy(base: SessionResetPolicy, **fields: Any) -> SessionResetPolicy:
    """Return the policy of the level above with these fields changed."""
    mode = fields.get("mode", base.mode)
    # Each of these two belongs to one mode, and is not inherited by another.
    if mode is not ResetMode.CRON:
        fields.setdefault("cron", None)
    if mode is not ResetMode.BOTH:
        fields.setdefault("require", Require.ANY)
    return replace(base, **fields)


def _problems_in_error(error: ConfigError | InvalidPolicyError) -> Iterator[tuple[str, ValueProblem]]:
    if isinstance(error, InvalidPolicyError):
        yield "timezone" if error.field == "zone" else error.field, ValueProblem(error.problem)
    else:
        for one in error.problems:
            yield one.path.rpartition(".")[2], ValueProblem(one.message, one.suggestion)


def _problem_of_no_block(block: Block, value: object) -> ValueProblem:
    """Return the problem of a value that is no block, with a suggestion if a word may replace the block."""
    mode = block.find_key("mode")
    modes = [*mode.kind.words] if mode and isinstance(mode.kind, Choice) else []
    words = [*block.words] if block.words else modes if block.word_of else []
    if not words:
        return block.wrong_type("a block of keys", value)
    message = f"must be a block of keys or one of {', '.join(words)}"
    if value is False:
        return ValueProblem(message, "never" if "never" in words else "off")
    if isinstance(value, str) and value.lower() in modes:
        return ValueProblem(message, f"{{mode: {value.lower()}}}")
    return ValueProblem(message, closest_choice(value, words))


def _explain_unknown_key(path: KeyPath, block: Block, whole: Block) -> tuple[str, str | None]:
    """Return the problem of an unknown key, and the key that was probably meant."""
    name = str(path[-1])
    if (known := _HERMES_KEYS.get(dotted_path(path))) is not None:
        return "is not a key of this program", known
    elsewhere = [dotted_path(known) for known in value_paths(whole) if known[-1] == name and "*" not in known]
    misplaced = name if whole.find_key(name) else next(iter(elsewhere), None)
    close = closest_choice(name, [key.name for key in block.keys])
    return "is not a known key", (misplaced or close) if len(path) == 1 else (close or misplaced)
