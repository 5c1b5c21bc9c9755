"""The blocks whose records belong to the core, with the kind of each field.

Fields, defaults, limits and descriptions come from the records. A limit that stands here as well is there for
the reference, and a test compares it with the limit of the core.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from gateway_sessions.config.keys import Block, ConfigKey
from gateway_sessions.config.kinds import (
    ZONE,
    Amount,
    Choice,
    Count,
    Duration,
    Flag,
    Identifier,
    Kind,
    Text,
    Texts,
)
from gateway_sessions.core.cluster import ClusterRules
from gateway_sessions.core.identity.source import check_identifier
from gateway_sessions.core.queue.busy_modes import BusyRules, DropPolicy
from gateway_sessions.core.sessions.busy_mode import BusyMode
from gateway_sessions.core.sessions.reset_policy import PRESETS, Require, ResetMode, SessionResetPolicy
from gateway_sessions.core.sessions.reset_times import check_cron
from gateway_sessions.core.transcript.session_context_prompt import HomeChannel
from gateway_sessions.core.usage.budgets import ALL, BudgetLimit, Budgets, UnknownPrices

_LAST_HOUR: Final = 23
_KEY_OF_FIELD: Final = MappingProxyType({"zone": "timezone"})
"""Fields whose keys have other names."""


_is_identifier: Final = partial(check_identifier, "")


def _keys_of_kinds(**kinds: Kind) -> tuple[ConfigKey, ...]:
    return tuple(
        ConfigKey(_KEY_OF_FIELD.get(name, f"{name}{kind.suffix}"), name, kind) for name, kind in kinds.items()
    )


def _policy_as_written(policy: SessionResetPolicy) -> Mapping[str, Any]:
    return {_KEY_OF_FIELD.get(name, name): value for name, value in policy.to_dict().items()}


RESET_POLICY: Final = Block(
    SessionResetPolicy,
    _keys_of_kinds(
        mode=Choice(ResetMode),
        at_hour=Count(0, _LAST_HOUR),
        idle_minutes=Count(1, None),
        cron=Text(null=True, check_with=check_cron),
        require=Choice(Require),
        grace_minutes=Count(0, None),
        zone=ZONE,
        notify=Flag(),
        notify_exclude_platforms=Texts(kind_name="list of platforms"),
        bg_process_max_age_hours=Count(None, None),
    ),
    words={word: _policy_as_written(policy) for word, policy in PRESETS.items()},
    inherits=True,
)
BUSY: Final = Block(
    BusyRules,
    _keys_of_kinds(
        mode=Choice(BusyMode),
        debounce=Duration(zero=True),
        debounce_cap=Duration(zero=True),
        max_queued=Count(),
        drop=Choice(DropPolicy),
        merge_limit=Count(),
        acknowledge=Flag(),
        ack_cooldown=Duration(zero=True),
    ),
    inherits=True,
)
_LIMIT: Final = Block(
    BudgetLimit,
    _keys_of_kinds(
        usd=Amount(field="usd", kind_name="number of dollars", null=True),
        tokens=Amount(field="tokens", kind_name="whole number of tokens", null=True),
    ),
)
BUDGETS: Final = Block(
    Budgets,
    _keys_of_kinds(
        session=_LIMIT,
        person=_LIMIT,
        day=_LIMIT,
        warn_percent=Count(1, ALL),
        unknown_prices=Choice(UnknownPrices),
    ),
)
CLUSTER: Final = Block(
    ClusterRules,
    _keys_of_kinds(
        name=Text(null=True),
        heartbeat=Duration(),
        ttl=Duration(),
        sticky=Duration("milliseconds", zero=True),
        poll=Duration("milliseconds"),
        poll_only=Flag(),
    ),
)
HOME_CHANNEL: Final = Block(
    HomeChannel,
    (
        ConfigKey(
            "chat_id",
            "chat_id",
            Identifier(kind_name="text or whole number", check_with=_is_identifier),
            required=True,
        ),
        ConfigKey("name", "name", Text()),
        ConfigKey(
            "thread_id",
            "thread_id",
            Identifier(kind_name="text, whole number", null=True, check_with=_is_identifier),
        ),
    ),
    null=True,
)
