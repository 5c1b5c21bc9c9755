"""The keys of a configuration and the types of their values, as pydantic checks them.

Names are the keys as they are written. Defaults and limits belong to the records that are made of them, so a
key that is not given stays absent.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Annotated, Any, Final, TypeAlias, cast, get_args, get_origin

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator
from pydantic_core import PydanticCustomError

from gateway_sessions.config.gateway_sections import Ambiguous, UnknownCommands
from gateway_sessions.config.key_tree import KeyTree
from gateway_sessions.config.sections import Durability, Provider, SnapshotMode
from gateway_sessions.core.budgets import ALL, BudgetLimit, UnknownPrices
from gateway_sessions.core.busy import DropPolicy
from gateway_sessions.core.busy_mode import BusyMode
from gateway_sessions.core.entry_codec import Dialect
from gateway_sessions.core.policies import Require, ResetMode
from gateway_sessions.core.recap import RecapForm
from gateway_sessions.core.search_stems import Stemming
from gateway_sessions.core.source import check_identifier
from gateway_sessions.errors import InvalidInputError, InvalidSourceError
from gateway_sessions.plugins import PROVIDERS, registered

ABSENT: Final[Any] = None
OWN: Final = "own"
"""The type of an error whose message is ours."""


def _duration(unit: str, *, off: bool = False) -> Callable[[object], timedelta | None]:
    """Make a reader of a number of *unit*; if *off*, zero stands for None."""

    def read(value: object) -> timedelta | None:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise PydanticCustomError(OWN, "must be a number of {unit}", {"unit": unit})
        if off and not value:
            return None
        try:
            return timedelta(**{unit: value})
        except (OverflowError, ValueError):
            raise PydanticCustomError(OWN, "must be a century at most") from None

    return read


def _identifier(value: object) -> object:
    """Platforms hand out numbers, and people write them as numbers."""
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    try:
        check_identifier("", text)
    except InvalidSourceError as error:
        raise PydanticCustomError(OWN, "{problem}", {"problem": error.problem}) from None
    return text


def _not_empty(text: str) -> str:
    if not text.strip():
        raise PydanticCustomError(OWN, "must not be empty")
    return text


def _whole_days(*, off: bool = False) -> Callable[[object], timedelta | None]:
    read = _duration("days", off=off)

    def read_whole(value: object) -> timedelta | None:
        if isinstance(value, float):
            raise PydanticCustomError(OWN, "must be a whole number of days")
        return read(value)

    return read_whole


def _usd(value: object) -> float | None:
    try:
        return BudgetLimit(usd=cast("float | None", value)).usd
    except InvalidInputError:
        raise PydanticCustomError(OWN, "must be a number of dollars, 0 or more, or null") from None


def _tokens(value: object) -> int | None:
    try:
        return BudgetLimit(tokens=cast("int | None", value)).tokens
    except InvalidInputError:
        raise PydanticCustomError(OWN, "must be a whole number of tokens, 0 or more, or null") from None


def _percent(value: int) -> int:
    if not 1 <= value <= ALL:
        raise PydanticCustomError(OWN, "must be from 1 to 100")
    return value


def _provider(value: object) -> str:
    """One of ours, or what a package has registered: looked up only if need be, for that takes its time."""
    known: list[str] = [*Provider]
    if value not in known:
        known += sorted(registered(PROVIDERS))
    if not isinstance(value, str) or value not in known:
        expected = ", ".join(map(repr, map(str, known)))
        raise PydanticCustomError("enum", "must be one of {expected}", {"expected": expected})
    return value


Text: TypeAlias = Annotated[str, AfterValidator(_not_empty)]
Identifier: TypeAlias = Annotated[Text, BeforeValidator(_identifier)]
Seconds: TypeAlias = Annotated[timedelta, PlainValidator(_duration("seconds"))]
SecondsOrOff: TypeAlias = Annotated[timedelta | None, PlainValidator(_duration("seconds", off=True))]
Milliseconds: TypeAlias = Annotated[timedelta, PlainValidator(_duration("milliseconds"))]
Hours: TypeAlias = Annotated[timedelta, PlainValidator(_duration("hours"))]
Days: TypeAlias = Annotated[timedelta, PlainValidator(_whole_days())]
DaysOrOff: TypeAlias = Annotated[timedelta | None, PlainValidator(_whole_days(off=True))]

CHOICE: Final = Field(ABSENT, strict=False)
"""Of an enum, whose values are written as words."""

OFF_IS_A_WORD: Final = BeforeValidator(lambda value: "off" if value is False else value)
"""Other readers of YAML than ours take the word for a flag."""
EMPTY: Final = BeforeValidator(lambda value: {} if value is None else value)
"""A block whose keys are all commented out is null, and means an empty one."""


class Block(BaseModel):
    """Keys with exact types, and no others."""

    model_config = ConfigDict(extra="forbid", strict=True)


class PolicyKeys(Block):
    """`session_reset`, at any level."""

    mode: ResetMode = CHOICE
    at_hour: int = ABSENT
    idle_minutes: int = ABSENT
    cron: Text | None = ABSENT
    require: Require = CHOICE
    grace_minutes: int = ABSENT
    timezone: Text | None = ABSENT
    notify: bool = ABSENT
    notify_exclude_platforms: list[Text] = ABSENT
    bg_process_max_age_hours: int = ABSENT


class AgentKeys(Block):
    """`agent`."""

    gateway_auto_continue_freshness: SecondsOrOff = ABSENT
    gateway_timeout: SecondsOrOff = ABSENT
    max_restart_attempts: int = ABSENT
    farewell_seconds: SecondsOrOff = ABSENT


class AgentCacheKeys(Block):
    """`agent_cache`."""

    size: int = ABSENT
    idle_seconds: Seconds = ABSENT
    close_timeout_seconds: Seconds = ABSENT


class BusyKeys(Block):
    """`busy`, at any level."""

    mode: BusyMode = CHOICE
    debounce_seconds: Seconds = ABSENT
    debounce_cap_seconds: Seconds = ABSENT
    max_queued: int = ABSENT
    drop: DropPolicy = CHOICE
    merge_limit: int = ABSENT
    acknowledge: bool = ABSENT
    ack_cooldown_seconds: Seconds = ABSENT


class BudgetLimitKeys(Block):
    """One of the `budgets`."""

    usd: Annotated[float | None, PlainValidator(_usd)] = ABSENT
    tokens: Annotated[int | None, PlainValidator(_tokens)] = ABSENT


class BudgetsKeys(Block):
    """`budgets`."""

    session: Annotated[BudgetLimitKeys, EMPTY] = ABSENT
    person: Annotated[BudgetLimitKeys, EMPTY] = ABSENT
    day: Annotated[BudgetLimitKeys, EMPTY] = ABSENT
    warn_percent: Annotated[int, AfterValidator(_percent)] = ABSENT
    unknown_prices: UnknownPrices = CHOICE


class GatewayKeys(Block):
    """`gateway`."""

    max_turns: int = ABSENT
    max_turns_per_owner: int = ABSENT
    max_waiting: int = ABSENT
    max_waiting_per_owner: int = ABSENT
    max_message_bytes: int = ABSENT
    drain_timeout_seconds: Seconds = ABSENT
    inactivity_timeout_seconds: SecondsOrOff = ABSENT
    crash_loop_starts: int = ABSENT
    crash_loop_window_seconds: Seconds = ABSENT
    dedup_window_days: Days = ABSENT
    unknown_commands: UnknownCommands = CHOICE


class DeliveryKeys(Block):
    """`delivery`."""

    retry_seconds: Seconds = ABSENT
    retry_cap_seconds: Seconds = ABSENT
    max_age_hours: Hours = ABSENT
    timeout_seconds: Seconds = ABSENT
    ambiguous: Ambiguous = CHOICE


class ModelKeys(Block):
    """`model`."""

    name: Text | None = ABSENT
    base_url: Text | None = ABSENT
    api_key: Text | None = ABSENT
    instructions: Text | None = ABSENT
    history_limit: int | None = ABSENT
    connect_seconds: Seconds = ABSENT
    silence_seconds: Seconds = ABSENT


class ServeKeys(Block):
    """`serve`."""

    console: bool = ABSENT
    host: Text = ABSENT
    health_port: int | None = ABSENT
    webhook_port: int | None = ABSENT
    webhook_path: Text = ABSENT
    webhook_callback_url: Text | None = ABSENT
    webhook_secrets: list[Text] = ABSENT


class DisplayKeys(Block):
    """`display`."""

    resume_display: RecapForm = CHOICE


class SessionDBKeys(Block):
    """`sessiondb`."""

    provider: Annotated[str, PlainValidator(_provider)] = ABSENT
    url: Text | None = ABSENT
    durability: Durability = CHOICE
    allow_network_filesystem: bool = ABSENT
    prepared_statements: bool = ABSENT
    pool_size: int = ABSENT


class ClusterKeys(Block):
    """`cluster`."""

    name: Text | None = ABSENT
    heartbeat_seconds: Seconds = ABSENT
    ttl_seconds: Seconds = ABSENT
    sticky_ms: Milliseconds = ABSENT
    poll_ms: Milliseconds = ABSENT
    poll_only: bool = ABSENT


class SessionsJsonKeys(Block):
    """`sessions_json`."""

    mode: SnapshotMode | None = CHOICE
    format: Dialect = CHOICE
    interval_seconds: Seconds = ABSENT


class ExpiryWatcherKeys(Block):
    """`expiry_watcher`."""

    first_pass_seconds: Seconds = ABSENT
    interval_seconds: Seconds = ABSENT
    prune_interval_seconds: Seconds = ABSENT


class HooksKeys(Block):
    """`hooks`."""

    timeout_seconds: Seconds = ABSENT
    max_attempts: int = ABSENT
    retry_seconds: Seconds = ABSENT
    concurrency: int = ABSENT


class BackupsKeys(Block):
    """`backups`."""

    interval_days: DaysOrOff = ABSENT
    keep: int = ABSENT


class CacheKeys(Block):
    """`cache`."""

    entries: int = ABSENT


class SearchKeys(Block):
    """`search`."""

    stemming: Annotated[Stemming, OFF_IS_A_WORD] = CHOICE


class PrivacyKeys(Block):
    """`privacy`."""

    redact_pii: bool = ABSENT


class HomeChannelKeys(Block):
    """`home_channel` of a platform."""

    chat_id: Identifier
    name: Text = ABSENT
    thread_id: Identifier | None = ABSENT


class ChatTypeKeys(Block):
    """One of a platform's `chat_types`."""

    session_reset: Annotated[PolicyKeys, EMPTY] = ABSENT
    busy: Annotated[BusyKeys, EMPTY] = ABSENT


class PlatformKeys(Block):
    """One of the `platforms`."""

    enabled: bool = ABSENT
    session_reset: Annotated[PolicyKeys, EMPTY] = ABSENT
    busy: Annotated[BusyKeys, EMPTY] = ABSENT
    chat_types: Annotated[dict[str, Annotated[ChatTypeKeys, EMPTY]], EMPTY] = ABSENT
    home_channel: HomeChannelKeys | None = ABSENT


class ConfigKeys(Block):
    """The top level."""

    group_sessions_per_user: bool = ABSENT
    thread_sessions_per_user: bool = ABSENT
    multiplex_profiles: bool = ABSENT
    allow_unidentified_sources: bool = ABSENT
    session_store_max_age_days: DaysOrOff = ABSENT
    session_retention_days: DaysOrOff = ABSENT
    timezone: Text | None = ABSENT
    session_reset: Annotated[PolicyKeys, EMPTY] = ABSENT
    busy: Annotated[BusyKeys, EMPTY] = ABSENT
    agent: Annotated[AgentKeys, EMPTY] = ABSENT
    agent_cache: Annotated[AgentCacheKeys, EMPTY] = ABSENT
    budgets: Annotated[BudgetsKeys, EMPTY] = ABSENT
    gateway: Annotated[GatewayKeys, EMPTY] = ABSENT
    delivery: Annotated[DeliveryKeys, EMPTY] = ABSENT
    model: Annotated[ModelKeys, EMPTY] = ABSENT
    serve: Annotated[ServeKeys, EMPTY] = ABSENT
    display: Annotated[DisplayKeys, EMPTY] = ABSENT
    sessiondb: Annotated[SessionDBKeys, EMPTY] = ABSENT
    cluster: Annotated[ClusterKeys, EMPTY] = ABSENT
    sessions_json: Annotated[SessionsJsonKeys, EMPTY] = ABSENT
    expiry_watcher: Annotated[ExpiryWatcherKeys, EMPTY] = ABSENT
    hooks: Annotated[HooksKeys, EMPTY] = ABSENT
    backups: Annotated[BackupsKeys, EMPTY] = ABSENT
    cache: Annotated[CacheKeys, EMPTY] = ABSENT
    search: Annotated[SearchKeys, EMPTY] = ABSENT
    privacy: Annotated[PrivacyKeys, EMPTY] = ABSENT
    platforms: Annotated[dict[str, Annotated[PlatformKeys, EMPTY]], EMPTY] = ABSENT


def _tree(annotation: Any) -> KeyTree:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return {key: _tree(one.annotation) for key, one in annotation.model_fields.items()}
    trees = [tree for part in get_args(annotation) if (tree := _tree(part))]
    if not trees:
        return {}
    return {"*": trees[0]} if get_origin(annotation) is dict else trees[0]


KEYS: Final = _tree(ConfigKeys)
"""All keys there are."""
