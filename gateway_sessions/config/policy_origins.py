"""Who has decided what about a policy: each of its fields, with the line that won."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, cast

from gateway_sessions.config.draft import KeyPath, dotted
from gateway_sessions.config.origins import Placed
from gateway_sessions.core.policies import PRESETS, SessionResetPolicy, deciding_fields
from gateway_sessions.core.policy_book import PolicyLevel, ResolvedPolicy

THEIR_OWN: Final = "this session's own policy"
OF_THE_CHAT: Final = "this chat's own zone"
DEFAULT: Final = "the default"
OF_THE_MACHINE: Final = "the zone of this machine"
_BLOCK: Final = "session_reset"
_ZONE: Final = "timezone"
_DEFAULTS: Final = SessionResetPolicy()


@dataclass(frozen=True, slots=True)
class FieldOrigin:
    """What one field of a policy is, and who has decided that."""

    field: str
    """As it is called in a configuration."""
    value: str
    key: str | None
    """The key that was written; None: nobody has written one."""
    where: str
    """The file and its line, the variable, or in words what else has decided."""


_Block: TypeAlias = Mapping[str, Placed]
"""The fields of a policy that one level of a configuration sets."""


def policy_origins(
    resolved: ResolvedPolicy,
    written: Sequence[Placed],
    platform: str | None,
    chat_type: str,
    chat_zone: str | None,
) -> list[FieldOrigin]:
    """Each field that decides when sessions of that chat reset, or that is not as it is by default."""
    policy = resolved.policy
    deciding = deciding_fields(policy.mode)
    others = [name for name in policy.to_dict() if name not in (*deciding, "zone")]
    blocks = list(_blocks(written, resolved.level, platform or "", chat_type))
    found = [
        _origin_of(name, resolved, blocks)
        for name in (*deciding, *others)
        if name in deciding or getattr(policy, name) != getattr(_DEFAULTS, name)
    ]
    return [*found, _origin_of_zone(resolved, written, blocks, chat_zone)]


def _blocks(written: Sequence[Placed], level: PolicyLevel, platform: str, chat_type: str) -> Iterator[_Block]:
    """What the levels of the configuration say that this one is made of, the strongest first."""
    names = {str(one.path[1]) for one in written if one.path[0] == "platforms" and len(one.path) > 1}
    for name in (name for name in names if name.strip().lower() == platform):
        if level is PolicyLevel.CHAT_TYPE:
            yield _block(written, ("platforms", name, "chat_types", chat_type, _BLOCK))
        if level in (PolicyLevel.CHAT_TYPE, PolicyLevel.PLATFORM):
            yield _block(written, ("platforms", name, _BLOCK))
    yield _block(written, (_BLOCK,))


def _block(written: Sequence[Placed], path: KeyPath) -> _Block:
    found: dict[str, Placed] = {}
    for one in written:
        if one.path == path and isinstance(one.value, str) and one.value in PRESETS:
            for name, value in PRESETS[one.value].to_dict().items():
                found[_ZONE if name == "zone" else name] = replace(one, value=value)
        elif one.path[:-1] == path:
            found[str(one.path[-1])] = one
    return found


def _origin_of(name: str, resolved: ResolvedPolicy, blocks: Sequence[_Block]) -> FieldOrigin:
    value: object = getattr(resolved.policy, name)
    shown = ", ".join(map(str, cast("tuple[str, ...]", value))) if isinstance(value, tuple) else str(value)
    called = _ZONE if name == "zone" else name
    if resolved.level is PolicyLevel.SESSION:
        return FieldOrigin(called, shown, None, THEIR_OWN)
    won = next((block[called] for block in blocks if called in block), None)
    # A level between whose mode knows no `require` has not handed it down.
    if won is None or (name == "require" and str(won.value) != shown):
        return FieldOrigin(called, shown, None, DEFAULT)
    return FieldOrigin(called, shown, dotted(won.path), won.where)


def _origin_of_zone(
    resolved: ResolvedPolicy,
    written: Sequence[Placed],
    blocks: Sequence[_Block],
    chat_zone: str | None,
) -> FieldOrigin:
    if resolved.policy.zone is not None:
        return _origin_of("zone", resolved, blocks)
    if chat_zone is not None:
        return FieldOrigin(_ZONE, resolved.zone_name, None, OF_THE_CHAT)
    won = next((one for one in written if one.path == (_ZONE,) and one.value is not None), None)
    if won is None:
        return FieldOrigin(_ZONE, resolved.zone_name, None, OF_THE_MACHINE)
    return FieldOrigin(_ZONE, resolved.zone_name, dotted(won.path), won.where)
