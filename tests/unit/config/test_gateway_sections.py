"""What a gateway reads of a configuration: busy lanes, turns, replies, warm agents and budgets."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from gateway_sessions.config import (
    AgentCacheConfig,
    AgentConfig,
    Ambiguous,
    ChatTypeConfig,
    Config,
    DeliveryConfig,
    GatewayConfig,
    ModelConfig,
    PlatformConfig,
    ServeConfig,
)
from gateway_sessions.core.delivery.retry_policy import DeliveryRules
from gateway_sessions.core.queue.busy_modes import BusyRules, DropPolicy
from gateway_sessions.core.sessions.busy_mode import BusyMode
from gateway_sessions.core.usage.budgets import BudgetLimit, Budgets, UnknownPrices
from gateway_sessions.errors import ConfigError
from tests.unit.config.config_texts import parse, problems_of

SECRET = "sixteen-bytes-and-more"


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


class TestDefaults:
    def test_they_are_those_of_the_reference(self):
        config = Config()
        assert config.busy == BusyRules(
            mode=BusyMode.QUEUE,
            debounce=seconds(0.35),
            debounce_cap=seconds(1),
            max_queued=32,
            drop=DropPolicy.REJECT_NEW,
            merge_limit=20,
            merge_chars=32_000,
            acknowledge=True,
            ack_cooldown=seconds(30),
        )
        assert config.agent.farewell == seconds(20)
        assert config.agent_cache == AgentCacheConfig(size=128, idle=seconds(3600), close_timeout=seconds(30))
        assert config.budgets == Budgets(warn_percent=80, unknown_prices=UnknownPrices.WARN)
        assert config.gateway == GatewayConfig(
            max_turns=64,
            max_turns_per_owner=8,
            max_waiting=10_000,
            max_waiting_per_owner=1_000,
            max_message_bytes=1 << 20,
            drain_timeout=seconds(30),
            inactivity_timeout=None,
            crash_loop_starts=3,
            crash_loop_window=seconds(60),
            dedup_window=timedelta(days=7),
        )
        assert config.delivery == DeliveryConfig(
            retry=seconds(2),
            retry_cap=seconds(300),
            max_age=timedelta(hours=24),
            timeout=seconds(30),
            ambiguous=Ambiguous.RESEND,
        )

    def test_blocks_without_keys_are_the_default(self):
        blocks = "busy:\nbudgets:\n  session:\ngateway:\ndelivery:\nagent_cache:\n"
        assert parse(blocks + "platforms:\n") == Config()


class TestReading:
    def test_every_key_reaches_its_field(self):
        config = parse("""
busy: {mode: collect, debounce_seconds: 2, debounce_cap_seconds: 3.5, max_queued: 4, drop: drop_oldest,
  merge_limit: 5, acknowledge: false, ack_cooldown_seconds: 0}
agent: {farewell_seconds: 1.5}
agent_cache: {size: 1, idle_seconds: 2, close_timeout_seconds: 3}
budgets: {session: {usd: 1.5, tokens: 1}, person: {usd: 2, tokens: 0}, day: {usd: 0, tokens: 3},
  warn_percent: 100, unknown_prices: stop}
gateway: {max_turns: 1, max_turns_per_owner: 2, max_waiting: 3, max_waiting_per_owner: 2,
  max_message_bytes: 4,
  drain_timeout_seconds: 0, inactivity_timeout_seconds: 6, crash_loop_starts: 7, crash_loop_window_seconds: 8,
  dedup_window_days: 9}
delivery: {retry_seconds: 1, retry_cap_seconds: 1, max_age_hours: 0.5, timeout_seconds: 3, ambiguous: hold}
model: {name: large, base_url: "http://x/v1", api_key: sk-1, instructions: Be kind., history_limit: 1,
  connect_seconds: 2, silence_seconds: 3.5}
serve: {console: true, host: "::1", health_port: 0, webhook_port: 1, webhook_path: /in,
  webhook_callback_url: "https://x/out", webhook_secrets: [sixteen-bytes-and-more]}
platforms:
  telegram: {busy: {mode: steer}, chat_types: {group: {busy: {drop: reject_new}}}}
""")
        base: dict[str, Any] = {
            "debounce": seconds(2),
            "debounce_cap": seconds(3.5),
            "max_queued": 4,
            "merge_limit": 5,
            "acknowledge": False,
            "ack_cooldown": seconds(0),
        }
        steer = BusyRules(mode=BusyMode.STEER, drop=DropPolicy.DROP_OLDEST, **base)
        group = BusyRules(mode=BusyMode.STEER, drop=DropPolicy.REJECT_NEW, **base)
        assert config == Config(
            busy=BusyRules(mode=BusyMode.COLLECT, drop=DropPolicy.DROP_OLDEST, **base),
            agent=AgentConfig(farewell=seconds(1.5)),
            agent_cache=AgentCacheConfig(size=1, idle=seconds(2), close_timeout=seconds(3)),
            budgets=Budgets(
                session=BudgetLimit(usd=1.5, tokens=1),
                person=BudgetLimit(usd=2, tokens=0),
                day=BudgetLimit(usd=0, tokens=3),
                warn_percent=100,
                unknown_prices=UnknownPrices.STOP,
            ),
            gateway=GatewayConfig(
                max_turns=1,
                max_turns_per_owner=2,
                max_waiting=3,
                max_waiting_per_owner=2,
                max_message_bytes=4,
                drain_timeout=seconds(0),
                inactivity_timeout=seconds(6),
                crash_loop_starts=7,
                crash_loop_window=seconds(8),
                dedup_window=timedelta(days=9),
            ),
            delivery=DeliveryConfig(
                retry=seconds(1),
                retry_cap=seconds(1),
                max_age=timedelta(minutes=30),
                timeout=seconds(3),
                ambiguous=Ambiguous.HOLD,
            ),
            model=ModelConfig(
                name="large",
                base_url="http://x/v1",
                api_key="sk-1",
                instructions="Be kind.",
                history_limit=1,
                connect=seconds(2),
                silence=seconds(3.5),
            ),
            serve=ServeConfig(
                console=True,
                host="::1",
                health_port=0,
                webhook_port=1,
                webhook_path="/in",
                webhook_callback_url="https://x/out",
                webhook_secrets=(SECRET,),
            ),
            platforms={
                "telegram": PlatformConfig(busy=steer, chat_types={"group": ChatTypeConfig(busy=group)})
            },
        )

    def test_what_means_off_is_none_inside(self):
        config = parse("agent: {farewell_seconds: 0}\ngateway: {inactivity_timeout_seconds: 0}")
        assert config.agent.farewell is None
        assert config.gateway.inactivity_timeout is None

    @pytest.mark.parametrize("key", ["usd", "tokens"])
    def test_a_budget_of_null_is_no_budget(self, key):
        assert parse(f"budgets: {{day: {{{key}: null}}}}").budgets == Budgets()

    @pytest.mark.parametrize(
        ("variable", "value", "values"),
        [
            ("BUSY__MODE", "interrupt", {"busy": {"mode": "interrupt"}}),
            ("PLATFORMS__SMS__BUSY__MAX_QUEUED", "3", {"platforms": {"sms": {"busy": {"max_queued": 3}}}}),
            ("BUDGETS__PERSON__USD", "2.5", {"budgets": {"person": {"usd": 2.5}}}),
            ("GATEWAY", "{max_turns: 2}", {"gateway": {"max_turns": 2}}),
            ("DELIVERY__MAX_AGE_HOURS", "1", {"delivery": {"max_age_hours": 1}}),
        ],
    )
    def test_a_variable_sets_any_key(self, variable, value, values):
        assert parse("", {f"GATEWAY_SESSIONS__{variable}": value}) == Config.from_mapping(values) != Config()


class TestBusyRules:
    CONFIG = parse("""
busy: {max_queued: 5}
platforms:
  Telegram:
    busy: {mode: interrupt}
    chat_types:
      group: {busy: {max_queued: 9}}
      channel: {session_reset: never}
  slack:
    chat_types: {dm: {busy: {mode: collect}}}
""")

    @pytest.mark.parametrize(
        ("where", "mode", "max_queued"),
        [
            (("discord", "dm"), "queue", 5),
            (("telegram", "dm"), "interrupt", 5),
            ((" TELEGRAM", "dm"), "interrupt", 5),
            (("telegram", "group"), "interrupt", 9),
            (("telegram", "channel"), "interrupt", 5),
            (("slack", "dm"), "collect", 5),
            (("slack", "group"), "queue", 5),
        ],
    )
    def test_an_override_takes_what_it_does_not_set_from_the_level_above(self, where, mode, max_queued):
        rules = self.CONFIG.busy_rules_for(*where)
        assert (rules.mode, rules.max_queued) == (mode, max_queued)
        platform, chat_type = where
        assert self.CONFIG.busy_book().rules_for(platform.strip().lower(), chat_type) == rules

    def test_a_session_may_have_a_mode_or_rules_of_its_own(self):
        mode = self.CONFIG.busy_rules_for("telegram", "group", BusyMode.REJECT)
        assert (mode.mode, mode.max_queued) == (BusyMode.REJECT, 9)
        own = BusyRules(mode=BusyMode.STEER)
        assert self.CONFIG.busy_rules_for("telegram", override=own) is own


class TestDeliveryRules:
    def test_they_are_what_the_keys_say(self):
        config = DeliveryConfig(retry=seconds(3), retry_cap=seconds(9), max_age=timedelta(hours=1))
        assert config.rules == DeliveryRules(
            first_pause=seconds(3), longest_pause=seconds(9), max_age=timedelta(hours=1)
        )
        assert DeliveryConfig().rules == DeliveryRules()

    def test_what_is_held_is_not_sent_a_second_time(self):
        assert DeliveryConfig(ambiguous=Ambiguous.HOLD).rules.max_unclear == 1
        assert DeliveryConfig().rules.max_unclear > 1


SMS = "platforms:\n  sms:\n    busy:\n      "

WRONG = [
    # the text, and of its only problem: line, path, suggestion
    ("busy: interrupt", 1, "busy", None),
    ("busy:\n  mode: interupt", 2, "busy.mode", "interrupt"),
    ("busy:\n  drop: oldest", 2, "busy.drop", "drop_oldest"),
    ("busy:\n  debounce: 1", 2, "busy.debounce", "debounce_seconds"),
    ("busy:\n  debounce_seconds: -1", 2, "busy.debounce_seconds", None),
    ("busy:\n  debounce_seconds: 2", 1, "busy.debounce_cap_seconds", None),
    ("busy:\n  debounce_seconds: x\n  debounce_cap_seconds: 0.1", 2, "busy.debounce_seconds", None),
    ("busy:\n  debounce_seconds: 9\n  debounce_cap_seconds: x", 3, "busy.debounce_cap_seconds", None),
    ("busy:\n  debounce_cap_seconds: 0", 2, "busy.debounce_cap_seconds", None),
    ("busy:\n  max_queued: 0", 2, "busy.max_queued", None),
    ("busy:\n  max_queued: 1.5", 2, "busy.max_queued", None),
    ("busy:\n  acknowledge: off", 2, "busy.acknowledge", "false"),
    ("busy:\n  ack_cooldown_seconds: -1", 2, "busy.ack_cooldown_seconds", None),
    (SMS + "max_queue: 5", 4, "platforms.sms.busy.max_queue", "max_queued"),
    (SMS + "merge_limit: 0", 4, "platforms.sms.busy.merge_limit", None),
    ("display:\n  busy_input_mode: queue", 2, "display.busy_input_mode", "busy.mode"),
    ("display:\n  resume: off", 2, "display.resume", "resume_display"),
    ("display:\n  resume_display: ful", 2, "display.resume_display", "full"),
    ("max_concurrent_sessions: 5", 1, "max_concurrent_sessions", "gateway.max_turns"),
    ("max_turns: 5", 1, "max_turns", "gateway.max_turns"),
    ("agent:\n  farewell_seconds: -1", 2, "agent.farewell_seconds", None),
    ("agent_cache:\n  size: 0", 2, "agent_cache.size", None),
    ("agent_cache:\n  idle_seconds: 0", 2, "agent_cache.idle_seconds", None),
    ("agent_cache:\n  close_timeout_seconds: 0", 2, "agent_cache.close_timeout_seconds", None),
    ("budgets:\n  session:\n    usd: -1", 3, "budgets.session.usd", None),
    ("budgets:\n  session:\n    usd: true", 3, "budgets.session.usd", None),
    ("budgets:\n  session:\n    usd: .nan", 3, "budgets.session.usd", None),
    ("budgets:\n  person:\n    tokens: 1.5", 3, "budgets.person.tokens", None),
    ("budgets:\n  day:\n    dollars: 5", 3, "budgets.day.dollars", None),
    ("budgets:\n  weak: {}", 2, "budgets.weak", None),
    ("budgets:\n  day: 5", 2, "budgets.day", None),
    ("budgets:\n  warn_percent: 0", 2, "budgets.warn_percent", None),
    ("budgets:\n  warn_percent: 101", 2, "budgets.warn_percent", None),
    ("budgets:\n  unknown_prices: ignor", 2, "budgets.unknown_prices", "ignore"),
    ("gateway:\n  max_turns: 0", 2, "gateway.max_turns", None),
    ("gateway:\n  max_turns_per_owner: 0", 2, "gateway.max_turns_per_owner", None),
    ("gateway:\n  max_waiting_per_owner: 0", 2, "gateway.max_waiting_per_owner", None),
    ("gateway:\n  max_waiting: 1000001", 2, "gateway.max_waiting", None),
    ("gateway:\n  max_message_bytes: 16777217", 2, "gateway.max_message_bytes", None),
    ("gateway:\n  drain_timeout_seconds: -1", 2, "gateway.drain_timeout_seconds", None),
    ("gateway:\n  inactivity_timeout_seconds: -1", 2, "gateway.inactivity_timeout_seconds", None),
    ("gateway:\n  crash_loop_starts: 0", 2, "gateway.crash_loop_starts", None),
    ("gateway:\n  crash_loop_window_seconds: 0", 2, "gateway.crash_loop_window_seconds", None),
    ("gateway:\n  dedup_window_days: 0", 2, "gateway.dedup_window_days", None),
    ("gateway:\n  dedup_window_days: 0.5", 2, "gateway.dedup_window_days", None),
    ("gateway:\n  timezone: UTC", 2, "gateway.timezone", "timezone"),
    ("delivery:\n  retry_seconds: 0", 2, "delivery.retry_seconds", None),
    ("delivery:\n  retry_seconds: 301", 1, "delivery.retry_cap_seconds", None),
    ("delivery:\n  retry_cap_seconds: 0", 2, "delivery.retry_cap_seconds", None),
    ("delivery:\n  max_age_hours: 0", 2, "delivery.max_age_hours", None),
    ("delivery:\n  timeout_seconds: 0", 2, "delivery.timeout_seconds", None),
    ("delivery:\n  ambiguous: resent", 2, "delivery.ambiguous", "resend"),
    ("model:\n  name: ''", 2, "model.name", None),
    ("model:\n  history_limit: 0", 2, "model.history_limit", None),
    ("model:\n  connect_seconds: 0", 2, "model.connect_seconds", None),
    ("model:\n  silence_seconds: 0", 2, "model.silence_seconds", None),
    ("serve:\n  health_port: 65536", 2, "serve.health_port", None),
    ("serve:\n  webhook_path: messages", 2, "serve.webhook_path", None),
    ("serve:\n  webhook_callback_url: ftp://x", 2, "serve.webhook_callback_url", None),
    ("serve:\n  webhook_secrets: [short]", 2, "serve.webhook_secrets", None),
    ("serve:\n  webhook_secrets: alone-and-no-list", 2, "serve.webhook_secrets", None),
    (f"serve:\n  webhook_port: 1\n  webhook_secrets: [{SECRET}]", 1, "serve.webhook_callback_url", None),
    ("serve:\n  webhook_port: 1\n  webhook_callback_url: http://x", 1, "serve.webhook_secrets", None),
]


class TestMistakes:
    @pytest.mark.parametrize(("text", "line", "path", "suggestion"), WRONG)
    def test_each_is_told_with_its_place_and_what_was_meant(self, text, line, path, suggestion):
        [problem] = problems_of(text)
        assert (problem.line, problem.path, problem.suggestion) == (line, path, suggestion)

    def test_the_rules_of_all_levels_are_checked_and_all_is_told(self):
        problems = problems_of(
            "busy: {max_queued: 0}\nplatforms:\n  a:\n    busy: {merge_limit: 0}\n"
            "    chat_types:\n      dm: {busy: {ack_cooldown_seconds: -1}}\n"
            "      group:\n        busy:\n          mode: x\n          max_queued: 0\n"
        )
        assert [one.line for one in problems] == [1, 4, 6, 9, 10]

    def test_a_mistake_in_one_budget_hides_none_in_another(self):
        problems = problems_of(
            "budgets:\n  session: {usd: x}\n  person:\n    tokens: -1\n    usd: 1\n  warn_percent: 0"
        )
        assert [one.line for one in problems] == [2, 4, 6]

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("budgets: {day: {usd: x}}", "must be a number of dollars, 0 or more, or null"),
            ("budgets: {day: {tokens: x}}", "must be a whole number of tokens, 0 or more, or null"),
            ("budgets: {warn_percent: 0}", "must be from 1 to 100"),
            ("busy: {debounce_seconds: 5}", "must not be less than debounce_seconds"),
        ],
    )
    def test_they_are_explained_in_plain_words(self, text, message):
        [problem] = problems_of(text)
        assert problem.message == message


class TestRecords:
    @pytest.mark.parametrize(
        ("build", "paths"),
        [
            (lambda: AgentConfig(farewell=seconds(0)), ["agent.farewell_seconds"]),
            (
                lambda: GatewayConfig(max_turns=0, dedup_window=seconds(0)),
                ["gateway.max_turns", "gateway.dedup_window_days"],
            ),
            (lambda: DeliveryConfig(retry=seconds(9), retry_cap=seconds(8)), ["delivery.retry_cap_seconds"]),
            (
                lambda: AgentCacheConfig(size=0, idle=seconds(0)),
                ["agent_cache.size", "agent_cache.idle_seconds"],
            ),
        ],
    )
    def test_a_program_cannot_make_what_a_file_could_not_say(self, build, paths):
        with pytest.raises(ConfigError) as caught:
            build()
        assert [problem.path for problem in caught.value.problems] == paths
