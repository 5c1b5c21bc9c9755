"""From what is written to a configuration: each step goes on after a mistake, and all are told at the end."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, TypeVar, cast

from pydantic import ValidationError

from gateway_sessions.config.document import read_yaml
from gateway_sessions.config.draft import MAX_PROBLEMS, Draft, KeyPath, make_plain
from gateway_sessions.config.environment import merge, overrides
from gateway_sessions.config.gateway_sections import (
    AgentCacheConfig,
    DeliveryConfig,
    DisplayConfig,
    GatewayConfig,
    ModelConfig,
    ServeConfig,
)
from gateway_sessions.config.schema import (
    KEYS,
    Block,
    BudgetsKeys,
    BusyKeys,
    ConfigKeys,
    PlatformKeys,
    PolicyKeys,
)
from gateway_sessions.config.sections import (
    AgentConfig,
    BackupsConfig,
    CacheConfig,
    ChatTypeConfig,
    ExpiryWatcherConfig,
    HooksConfig,
    PlatformConfig,
    PrivacyConfig,
    SearchConfig,
    SessionDBConfig,
    SessionsJsonConfig,
)
from gateway_sessions.config.wording import worded
from gateway_sessions.config.zones import similar_zone
from gateway_sessions.core.budgets import BudgetLimit, Budgets
from gateway_sessions.core.busy import BusyRules
from gateway_sessions.core.cluster import ClusterRules
from gateway_sessions.core.context import HomeChannel
from gateway_sessions.core.policies import PRESETS, Require, ResetMode, SessionResetPolicy
from gateway_sessions.core.policy_book import TERMINAL
from gateway_sessions.errors import ConfigError, InvalidPolicyError

T = TypeVar("T")

_UNIT = re.compile("_(?:ms|seconds|hours|days)$")

_SECTIONS: Final[Mapping[str, Callable[..., Any]]] = MappingProxyType(
    {
        "agent": AgentConfig,
        "agent_cache": AgentCacheConfig,
        "gateway": GatewayConfig,
        "delivery": DeliveryConfig,
        "model": ModelConfig,
        "serve": ServeConfig,
        "display": DisplayConfig,
        "sessiondb": SessionDBConfig,
        "cluster": ClusterRules,
        "sessions_json": SessionsJsonConfig,
        "expiry_watcher": ExpiryWatcherConfig,
        "hooks": HooksConfig,
        "backups": BackupsConfig,
        "cache": CacheConfig,
        "privacy": PrivacyConfig,
        "search": SearchConfig,
    }
)


def read_text(
    make: Callable[..., T],
    text: str,
    *,
    origin: str,
    environ: Mapping[str, str],
    lenient: bool = False,
    **known: Any,
) -> T:
    """Return what *make* builds of a YAML text and of the variables that override it.

    A variable that is not set makes a *lenient* reading leave that key out, and tell so where it is used.
    """
    draft = Draft(origin, unresolved={} if lenient else None)
    read_yaml(draft, text, environ)
    make_plain(draft)
    for path in draft.unresolved or ():
        draft.drop(path)
    _spell_out(draft.values)
    for override in overrides(draft, environ, KEYS):
        _spell_out(override)
        merge(draft.values, override)
        _resolve(draft, override)
    make_plain(draft)
    return _assembled(make, draft, **known)


def _resolve(draft: Draft, override: Mapping[str, Any]) -> None:
    """Forget what could not be read in the file if a variable sets that key anyway."""
    for path in list(draft.unresolved or ()):
        place: Any = override
        for key in path:
            place = cast("dict[str | int, Any]", place).get(key) if isinstance(place, dict) else place
        if place is not None and draft.unresolved is not None:
            del draft.unresolved[path]


def read_mapping(make: Callable[..., T], values: Mapping[str, Any]) -> T:
    """Return what *make* builds of the keys and values of a file."""
    draft = Draft("configuration", values)
    make_plain(draft)
    _spell_out(draft.values)
    return _assembled(make, draft)


def _spell_out(values: dict[str, Any]) -> None:
    """Replace each word that stands for a block by that block."""
    if isinstance(word := values.get("sessions_json"), str):
        values["sessions_json"] = {"mode": word}
    blocks = [values]
    for platform in _blocks_in(values, "platforms"):
        blocks += [platform, *_blocks_in(platform, "chat_types")]
    for block in blocks:
        preset = block.get("session_reset")
        if isinstance(preset, str) and preset in PRESETS:
            block["session_reset"] = keys = PRESETS[preset].to_dict()
            keys["timezone"] = keys.pop("zone")


def _blocks_in(values: dict[str, Any], key: str) -> list[dict[str, Any]]:
    named: Any = values.get(key)
    parts: list[Any] = [*named.values()] if isinstance(named, dict) else []
    return [part for part in parts if isinstance(part, dict)]


def _assembled(make: Callable[..., T], draft: Draft, **known: Any) -> T:
    keys = _checked(draft)
    settings = _given(keys) | known
    if draft.unresolved:
        settings["unresolved"] = tuple(draft.unresolved.values())
    for name, build in _SECTIONS.items():
        if name in settings:
            settings[name] = _section(draft, name, build, _given(settings[name]))
    default = _policy(draft, ("session_reset",), settings.get("session_reset"), SessionResetPolicy())
    settings["session_reset"] = default
    settings["busy"] = busy = _busy(draft, ("busy",), settings.get("busy"), BusyRules())
    if "budgets" in settings:
        settings["budgets"] = _budgets(settings["budgets"])
    platforms: dict[str, PlatformKeys] = settings.get("platforms", {})
    settings["platforms"] = {
        name: _platform(draft, name, keys, default, busy) for name, keys in platforms.items()
    }
    config = _built(draft, make, settings)
    draft.raise_problems()
    return config


def _checked(draft: Draft) -> ConfigKeys:
    """Return the keys with values of the right types; tell the others and set them aside."""
    while True:
        try:
            return ConfigKeys.model_validate(draft.values)
        except ValidationError as error:
            findings = error.errors(include_url=False)
        for finding in findings[:MAX_PROBLEMS]:
            # Of a value that could not be read, only its key can be wrong on its own account.
            if finding["type"] == "extra_forbidden" or finding["loc"] not in draft.set_aside:
                draft.complain(finding["loc"], *worded(finding))
        for finding in findings:
            draft.drop(finding["loc"][:-1] if finding["type"] == "missing" else finding["loc"])


def _given(block: Block) -> dict[str, Any]:
    """Return what the block says, named as the fields of our records are: without units."""
    given = {key: getattr(block, key) for key in block.model_fields_set}
    # What is kept as a number keeps its unit as well.
    return {key if isinstance(value, int) else _UNIT.sub("", key): value for key, value in given.items()}


def _built(draft: Draft, build: Callable[..., T], settings: Mapping[str, Any]) -> T:
    """Build the record, or a default one after telling what it refuses."""
    try:
        return build(**settings)
    except ConfigError as error:
        for problem in error.problems:
            draft.complain(tuple(problem.path.split(".")), problem.message, problem.suggestion)
        return build()


def _section(draft: Draft, name: str, build: Callable[..., T], settings: Mapping[str, Any]) -> T:
    """Build a section; of one that lacks a value, nobody can tell yet whether the rest fits together."""
    if any(path[0] == name for path in draft.unresolved or ()):
        try:
            return build(**settings)
        except ConfigError:
            return build()
    return _built(draft, build, settings)


def _platform(
    draft: Draft, name: str, keys: PlatformKeys, default: SessionResetPolicy, default_busy: BusyRules
) -> PlatformConfig:
    path = ("platforms", name)
    settings = _given(keys)
    if name.strip().lower() == TERMINAL:
        default = PRESETS["never"]
    if "session_reset" in settings:
        settings["session_reset"] = _policy(draft, (*path, "session_reset"), keys.session_reset, default)
    if "busy" in settings:
        settings["busy"] = _busy(draft, (*path, "busy"), keys.busy, default_busy)
    base, busy = settings.get("session_reset", default), settings.get("busy", default_busy)
    chat_types: dict[str, ChatTypeConfig] = {}
    for kind, chat_type in settings.get("chat_types", {}).items():
        below = (*path, "chat_types", kind)
        own: dict[str, Any] = {}
        if chat_type.session_reset:
            own["session_reset"] = _policy(draft, (*below, "session_reset"), chat_type.session_reset, base)
        if chat_type.busy:
            own["busy"] = _busy(draft, (*below, "busy"), chat_type.busy, busy)
        chat_types[kind] = ChatTypeConfig(**own)
    settings["chat_types"] = chat_types
    if channel := settings.get("home_channel"):
        settings["home_channel"] = HomeChannel(platform=name.strip().lower(), **_given(channel))
    return PlatformConfig(**settings)


def _policy(
    draft: Draft, path: KeyPath, keys: PolicyKeys | None, base: SessionResetPolicy
) -> SessionResetPolicy:
    """Change the policy of the level above as the keys say; tell what fits no policy, and leave it."""
    if keys is None:
        return base
    told = {aside[-1] for aside in draft.set_aside if aside[:-1] == path}
    fields = _policy_fields(keys, base, told)
    while True:
        try:
            return replace(base, **fields)
        except InvalidPolicyError as error:
            wrong = error
        key = "timezone" if wrong.field == "zone" else wrong.field
        if key not in told:
            draft.complain((*path, key), wrong.problem, _similar(wrong))
        told.add(key)
        if fields.pop(wrong.field, None) is None:
            return base


def _policy_fields(keys: PolicyKeys, base: SessionResetPolicy, told: set[str | int]) -> dict[str, Any]:
    """Return what the keys change, and what a change of mode brings with it."""
    fields = _given(keys)
    if "timezone" in fields:
        fields["zone"] = fields.pop("timezone")
    if "mode" in told:  # nobody knows which was meant: take one that fits, and check the rest
        fields["mode"] = ResetMode.CRON if fields.get("cron") else ResetMode.BOTH
        told.add("require")
    # These two belong to one mode each, and are not handed down to another.
    mode = fields.get("mode", base.mode)
    if mode is not ResetMode.CRON:
        fields.setdefault("cron", None)
    if mode is not ResetMode.BOTH:
        fields.setdefault("require", Require.ANY)
    return fields


def _busy(draft: Draft, path: KeyPath, keys: BusyKeys | None, base: BusyRules) -> BusyRules:
    """Change the rules of the level above as the keys say; tell what no lane could keep, and leave it."""
    if keys is None:
        return base
    try:
        return replace(base, **_given(keys))
    except ConfigError as error:
        for problem in error.problems:
            key = problem.path.removeprefix("busy.")
            contradicted = {"debounce_seconds", key} if key == "debounce_cap_seconds" else {key}
            if not draft.set_aside & {(*path, one) for one in contradicted}:
                draft.complain((*path, key), problem.message)
        return base


def _budgets(keys: BudgetsKeys) -> Budgets:
    fields = _given(keys)
    for name in fields.keys() & {"session", "person", "day"}:
        fields[name] = BudgetLimit(**_given(fields[name]))
    return Budgets(**fields)


def _similar(error: InvalidPolicyError) -> str | None:
    return similar_zone(error.value) if error.field == "zone" and isinstance(error.value, str) else None
