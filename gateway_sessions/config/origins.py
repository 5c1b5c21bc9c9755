"""The origin of each value: the line, the variable or the session that has set it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

from gateway_sessions.config.core_blocks import RESET_POLICY
from gateway_sessions.config.draft import Draft, KeyPath, copy_to_plain_values, dotted_path
from gateway_sessions.config.environment_overrides import environment_overrides, merge_override
from gateway_sessions.config.keys import Block, NamedBlocks, kind_below
from gateway_sessions.config.kinds import Kind
from gateway_sessions.config.loading import read_file_text
from gateway_sessions.config.model import ALL_KEYS, Config
from gateway_sessions.config.yaml_source import read_yaml
from gateway_sessions.core.sessions.policy_rules import PolicyLevel, ResolvedPolicy
from gateway_sessions.core.sessions.reset_policy import SessionResetPolicy, deciding_fields

THEIR_OWN: Final = "this session's own policy"
OF_THE_CHAT: Final = "this chat's own zone"
DEFAULT: Final = "the default"
OF_THE_MACHINE: Final = "the zone of this machine"
_NOWHERE: Final = "default"
"""The origin of a value that nobody has set."""
_BLOCK: Final = "session_reset"
_ZONE: Final = "timezone"
_DEFAULTS: Final = SessionResetPolicy()


@dataclass(frozen=True, slots=True)
class Setting:
    """One value of the configuration that is in force."""

    key: str
    value: str
    """The value without passwords."""
    where: str
    """The file and its line, the variable, or `default`."""
    is_set: bool = True
    """Whether a file or a variable has set the value."""


@dataclass(frozen=True, slots=True)
class WrittenValue:
    """One value as a file or a variable sets it; it may hold secrets."""

    path: KeyPath
    value: object
    where: str
    is_set: bool = True
    """Whether every variable in the value is set; otherwise the value is the text as written."""


@dataclass(frozen=True, slots=True)
class FieldOrigin:
    """One field of a policy, and the origin of its value."""

    field: str
    """The name in a configuration."""
    value: str
    key: str | None
    """The key that sets the field. None: no key does."""
    where: str
    """The file and its line, the variable, or another origin in words."""


_PolicyBlock: TypeAlias = Mapping[str, WrittenValue]
"""The fields of a policy that one level of a configuration sets."""


def effective_settings(path: Path | None, environ: Mapping[str, str] | None = None) -> list[Setting]:
    """Return all values that are in force: those that are set, and the defaults of all other keys."""
    found = {one.path: one for one in written_values(path, environ) if not _is_empty_block(one)}
    usual = {
        place: WrittenValue(place, value, _NOWHERE) for place, value in default_values(ALL_KEYS, Config())
    }
    order = {place[:length]: at for at, place in reversed([*enumerate(usual)]) for length in (1, 2, 3)}
    counting = found | {place: one for place, one in usual.items() if not _is_key_set(place, found)}
    return [
        Setting(dotted_path(place), _masked_text(one), one.where, is_set=place in found)
        for place, one in sorted(counting.items(), key=lambda item: order.get(item[0], len(usual)))
    ]


def default_values(block: Block, record: object, above: KeyPath = ()) -> Iterator[tuple[KeyPath, object]]:
    """Yield the path and the default of each key, as a file writes it; names of platforms are no keys."""
    for key in block.keys:
        value: object = getattr(record, key.field)
        if isinstance(key.kind, Block):
            yield from default_values(key.kind, value, (*above, key.name))
        elif not isinstance(key.kind, NamedBlocks):
            yield (*above, key.name), key.kind.as_written(value)


def _kind_at(path: KeyPath) -> Kind | None:
    return reduce(kind_below, path, cast("Kind | None", ALL_KEYS))


def _is_empty_block(one: WrittenValue) -> bool:
    return one.value is None and isinstance(_kind_at(one.path), Block | NamedBlocks)


def _is_key_set(place: KeyPath, found: Mapping[KeyPath, WrittenValue]) -> bool:
    """Return whether the key is set, or a word that stands for its block."""
    kind, block = _kind_at(place[:1]), found.get(place[:1])
    spelled = kind.keys_for_word(block.value) if isinstance(kind, Block) and block is not None else None
    return place in found or (spelled is not None and place[1] in spelled)


def written_values(path: Path | None, environ: Mapping[str, str] | None = None) -> list[WrittenValue]:
    """Return all values that a file and the environment set, with their secrets."""
    draft = read_draft(path, environ)
    return [_written_value(draft, place, value) for place, value in _leaf_values(draft.values, ())]


def read_draft(path: Path | None, environ: Mapping[str, str] | None = None) -> Draft:
    """Return what a file and the environment set, with the lines, before keys and values are checked."""
    known = os.environ if environ is None else environ
    draft = Draft(str(path) if path is not None else "environment", unresolved={})
    read_yaml(draft, "" if path is None else read_file_text(path), known)
    copy_to_plain_values(draft)
    for override in environment_overrides(draft, known, ALL_KEYS):
        merge_override(draft.values, override)
    draft.raise_problems()
    return draft


def _written_value(draft: Draft, place: KeyPath, value: object) -> WrittenValue:
    unset = next((path for path in draft.unresolved or () if path[: len(place)] == place), None)
    if unset is None or "${" not in str(value):
        return WrittenValue(place, value, _origin_text(draft, place))
    return WrittenValue(
        place, value, f"{_origin_text(draft, place)}, of a variable that is not set", is_set=False
    )


def _leaf_values(values: object, above: KeyPath) -> Iterator[tuple[KeyPath, object]]:
    if not isinstance(values, dict):
        yield above, values
        return
    for key, value in cast("dict[str, Any]", values).items():
        yield from _leaf_values(value, (*above, key))


def _origin_text(draft: Draft, place: KeyPath) -> str:
    for length in range(len(place), 0, -1):
        part = place[:length]
        if part in draft.variables:
            return f"${draft.variables[part]}"
        if part in draft.lines:
            return f"{draft.origin}, line {draft.lines[part]}"
    return draft.origin


def _masked_text(one: WrittenValue) -> str:
    kind, text = _kind_at(one.path), _as_file_text(one.value)
    if kind is None or (kind.secret and not (one.value and one.is_set)):
        return text  # an unset secret holds nothing to hide
    return kind.mask_secrets(text)


def _as_file_text(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_as_file_text, cast('list[object]', value)))}]"
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def policy_origins(
    resolved: ResolvedPolicy,
    written: Sequence[WrittenValue],
    platform: str | None,
    chat_type: str,
    chat_zone: str | None,
) -> list[FieldOrigin]:
    """Return the fields of a policy that decide when sessions reset, or differ from their default."""
    policy = resolved.policy
    deciding = deciding_fields(policy.mode)
    others = [name for name in policy.to_dict() if name not in (*deciding, "zone")]
    blocks = list(_policy_blocks(written, resolved.level, platform or "", chat_type))
    found = [
        _field_origin(name, resolved, blocks)
        for name in (*deciding, *others)
        if name in deciding or getattr(policy, name) != getattr(_DEFAULTS, name)
    ]
    return [*found, _zone_origin(resolved, written, blocks, chat_zone)]


def _policy_blocks(
    written: Sequence[WrittenValue], level: PolicyLevel, platform: str, chat_type: str
) -> Iterator[_PolicyBlock]:
    """Yield the policy blocks that make up the policy of a level, the strongest first."""
    names = {str(one.path[1]) for one in written if one.path[0] == "platforms" and len(one.path) > 1}
    for name in (name for name in names if name.strip().lower() == platform):
        if level is PolicyLevel.CHAT_TYPE:
            yield _policy_block_at(written, ("platforms", name, "chat_types", chat_type, _BLOCK))
        if level in (PolicyLevel.CHAT_TYPE, PolicyLevel.PLATFORM):
            yield _policy_block_at(written, ("platforms", name, _BLOCK))
    yield _policy_block_at(written, (_BLOCK,))


def _policy_block_at(written: Sequence[WrittenValue], path: KeyPath) -> _PolicyBlock:
    found: dict[str, WrittenValue] = {}
    for one in written:
        if one.path == path:
            keys = RESET_POLICY.keys_for_word(one.value) or {}
            found |= {name: replace(one, value=value) for name, value in keys.items()}
        elif one.path[:-1] == path:
            found[str(one.path[-1])] = one
    return found


def _field_origin(name: str, resolved: ResolvedPolicy, blocks: Sequence[_PolicyBlock]) -> FieldOrigin:
    value: object = getattr(resolved.policy, name)
    shown = ", ".join(map(str, cast("tuple[str, ...]", value))) if isinstance(value, tuple) else str(value)
    called = _ZONE if name == "zone" else name
    if resolved.level is PolicyLevel.SESSION:
        return FieldOrigin(called, shown, None, THEIR_OWN)
    won = next((block[called] for block in blocks if called in block), None)
    # A level between whose mode knows no `require` has not handed it down.
    if won is None or (name == "require" and str(won.value) != shown):
        return FieldOrigin(called, shown, None, DEFAULT)
    return FieldOrigin(called, shown, dotted_path(won.path), won.where)


def _zone_origin(
    resolved: ResolvedPolicy,
    written: Sequence[WrittenValue],
    blocks: Sequence[_PolicyBlock],
    chat_zone: str | None,
) -> FieldOrigin:
    if resolved.policy.zone is not None:
        return _field_origin("zone", resolved, blocks)
    if chat_zone is not None:
        return FieldOrigin(_ZONE, resolved.zone_name, None, OF_THE_CHAT)
    won = next((one for one in written if one.path == (_ZONE,) and one.value is not None), None)
    if won is None:
        return FieldOrigin(_ZONE, resolved.zone_name, None, OF_THE_MACHINE)
    return FieldOrigin(_ZONE, resolved.zone_name, dotted_path(won.path), won.where)
