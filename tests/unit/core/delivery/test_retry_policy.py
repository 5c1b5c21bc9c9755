"""How a reply goes on that could not be sent, or may have been."""

from __future__ import annotations

import itertools
import math
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway_sessions.core.delivery.adapter_capabilities import AdapterCapabilities
from gateway_sessions.core.delivery.message_parts import REPEATED, mark_as_repeat, split_message
from gateway_sessions.core.delivery.outbound_messages import OutboundMessage, TextFormat
from gateway_sessions.core.delivery.retry_policy import (
    LONGEST_PAUSE,
    DeliveryRules,
    Failed,
    GiveUp,
    GiveUpReason,
    ResendMarked,
    RetryAt,
    SendFailure,
    Tried,
    classify_failure,
    is_too_old,
    pause_after_attempts,
    plan_delivery,
)
from gateway_sessions.core.queue.inbound import Attachment, AttachmentKind
from gateway_sessions.core.text_length import LengthUnit
from gateway_sessions.errors import (
    AdapterError,
    AdapterUnavailableError,
    DeliveryRefusedError,
    InvalidInputError,
    RateLimitedError,
)

NOW = datetime(2026, 6, 10, 12, tzinfo=UTC)
RULES = DeliveryRules()
UNAVAILABLE = Failed(SendFailure.UNAVAILABLE)
REFUSED = Failed(SendFailure.REFUSED)
UNKNOWN = Failed(SendFailure.UNKNOWN)
PHOTO = Attachment(kind=AttachmentKind.PHOTO, url="file:///a.png")

seconds = st.floats(0, 1e9).map(lambda value: timedelta(seconds=value))


def tried(attempts: int = 1, unclear: int = 0, *, age: timedelta = timedelta()) -> Tried:
    return Tried(reply_id="r1", owed_since=NOW - age, attempts=attempts, unclear=unclear)


def plan(failed: Failed, done: Tried, *, idempotent: bool = False, rules: DeliveryRules = RULES):
    return plan_delivery(failed, done, now=NOW, idempotent=idempotent, rules=rules)


# What an error tells


@pytest.mark.parametrize(
    ("error", "failed"),
    [
        (AdapterUnavailableError("x", "is away"), UNAVAILABLE),
        (DeliveryRefusedError("x", "no such chat"), REFUSED),
        (RateLimitedError("x", 2.5), Failed(SendFailure.RATE_LIMITED, timedelta(seconds=2.5))),
        (RateLimitedError("x"), Failed(SendFailure.RATE_LIMITED)),
        (RateLimitedError("x", -1), Failed(SendFailure.RATE_LIMITED)),
        (RateLimitedError("x", math.nan), Failed(SendFailure.RATE_LIMITED)),
        (RateLimitedError("x", math.inf), Failed(SendFailure.RATE_LIMITED, LONGEST_PAUSE)),
        (RateLimitedError("x", 1e300), Failed(SendFailure.RATE_LIMITED, LONGEST_PAUSE)),
        (TimeoutError(), UNKNOWN),
        (ConnectionResetError(), UNKNOWN),
        (AdapterError("x", "something"), UNKNOWN),
        (ValueError("a mistake in an adapter"), UNKNOWN),
        (None, UNKNOWN),
    ],
    ids=repr,
)
def test_only_what_an_adapter_says_for_certain_is_certain(error: BaseException | None, failed: Failed):
    assert classify_failure(error) == failed


def test_the_errors_of_an_adapter_tell_what_to_do():
    assert (
        str(RateLimitedError("telegram", 30)) == "telegram: takes no messages for 30 s; this one was not sent"
    )
    assert "for a while" in str(RateLimitedError("telegram"))
    assert str(DeliveryRefusedError("telegram", "no such chat")) == "telegram: no such chat"


# Pauses


@given(attempts=st.integers(-1, 10_000), reply_id=st.text(max_size=8))
def test_a_pause_is_never_longer_than_it_may_be_and_never_much_shorter(attempts: int, reply_id: str):
    pause = pause_after_attempts(attempts, RULES, reply_id)
    full = min(2.0 * 2 ** min(max(attempts - 1, 0), 60), 300)
    assert 0.75 * full <= pause.total_seconds() <= full
    assert pause_after_attempts(attempts, RULES, reply_id) == pause


def test_pauses_double_until_they_are_long_enough():
    spread = [pause_after_attempts(attempts, RULES, "r1").total_seconds() for attempts in range(1, 12)]
    full = [2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]
    assert all(0.75 * most <= pause <= most for pause, most in zip(spread, full, strict=True))


def test_replies_that_failed_together_come_back_apart():
    pauses = {pause_after_attempts(5, RULES, f"reply {number}") for number in range(100)}
    assert len(pauses) == 100
    assert max(pauses) - min(pauses) > timedelta(seconds=4)


# Failures that are certain


@pytest.mark.parametrize("attempts", [1, 2, 9, 500])
@pytest.mark.parametrize("how", [SendFailure.UNAVAILABLE, SendFailure.RATE_LIMITED])
@pytest.mark.parametrize("idempotent", [False, True])
def test_what_was_not_sent_is_sent_later_however_often_it_takes(
    attempts: int, how: SendFailure, idempotent: bool
):
    assert plan(Failed(how), tried(attempts), idempotent=idempotent) == RetryAt(
        NOW + pause_after_attempts(attempts, RULES, "r1")
    )


@pytest.mark.parametrize("idempotent", [False, True])
@pytest.mark.parametrize("unclear", [0, 1, 9])
def test_what_a_platform_refuses_is_not_sent_again(idempotent: bool, unclear: int):
    assert plan(REFUSED, tried(9, unclear), idempotent=idempotent) == GiveUp(GiveUpReason.REFUSED)


def test_a_platform_is_given_the_time_it_asked_for():
    pause = timedelta(hours=2)
    assert plan(Failed(SendFailure.RATE_LIMITED, pause), tried()) == RetryAt(NOW + pause)


def test_a_platform_that_asks_for_less_than_our_pause_gets_our_pause():
    asked = Failed(SendFailure.RATE_LIMITED, timedelta(milliseconds=1))
    assert plan(asked, tried(6)) == RetryAt(NOW + pause_after_attempts(6, RULES, "r1"))


def test_a_pause_that_outlasts_the_reply_ends_it_at_once():
    asked = Failed(SendFailure.RATE_LIMITED, timedelta(hours=25))
    assert plan(asked, tried()) == GiveUp(GiveUpReason.TOO_OLD)


def test_a_reply_that_is_too_old_is_given_up():
    assert plan(UNAVAILABLE, tried(300, age=timedelta(hours=24))) == GiveUp(GiveUpReason.TOO_OLD)
    assert isinstance(plan(UNAVAILABLE, tried(300, age=timedelta(hours=23))), RetryAt)


def test_age_is_counted_to_the_last_moment():
    day = timedelta(hours=24)
    assert not is_too_old(NOW - day, NOW, RULES)
    assert is_too_old(NOW - day - timedelta(microseconds=1), NOW, RULES)


def test_a_clock_that_was_set_back_makes_no_reply_old():
    assert isinstance(plan(UNAVAILABLE, tried(age=timedelta(hours=-5))), RetryAt)


# Failures that are not


def test_what_may_have_been_sent_says_so_when_it_is_sent_again():
    assert plan(UNKNOWN, tried(1, 1)) == ResendMarked(NOW + pause_after_attempts(1, RULES, "r1"))


@pytest.mark.parametrize("how", [SendFailure.UNAVAILABLE, SendFailure.RATE_LIMITED])
def test_it_still_says_so_after_a_failure_that_was_certain(how: SendFailure):
    assert isinstance(plan(Failed(how), tried(2, 1)), ResendMarked)


def test_it_is_not_sent_again_for_ever():
    assert isinstance(plan(UNKNOWN, tried(2, 2)), ResendMarked)
    assert plan(UNKNOWN, tried(3, 3)) == GiveUp(GiveUpReason.UNCLEAR)


def test_failures_that_were_certain_do_not_use_up_its_tries():
    assert isinstance(plan(UNKNOWN, tried(200, 1)), ResendMarked)
    assert isinstance(plan(UNAVAILABLE, tried(200, 3)), ResendMarked)


def test_whoever_wants_no_repeats_gets_none():
    rules = DeliveryRules(max_unclear=1)
    assert plan(UNKNOWN, tried(1, 1), rules=rules) == GiveUp(GiveUpReason.UNCLEAR)


def test_a_platform_that_shows_repeats_once_needs_no_mark_and_no_limit():
    for unclear in (1, 3, 50):
        assert isinstance(plan(UNKNOWN, tried(unclear, unclear), idempotent=True), RetryAt)


@pytest.mark.parametrize(
    ("how", "unclear", "idempotent", "old"),
    list(itertools.product(SendFailure, (0, 1, 2, 3, 4), (False, True), (False, True))),
)
def test_every_case_has_its_plan(how: SendFailure, unclear: int, idempotent: bool, old: bool):
    done = tried(5, unclear, age=timedelta(hours=30) if old else timedelta())
    made = plan(Failed(how), done, idempotent=idempotent)
    match made:
        case GiveUp(GiveUpReason.REFUSED):
            assert how is SendFailure.REFUSED
        case GiveUp(GiveUpReason.UNCLEAR):
            assert (how, idempotent) == (SendFailure.UNKNOWN, False)
            assert unclear >= RULES.max_unclear
        case GiveUp(GiveUpReason.TOO_OLD):
            assert old
        case ResendMarked(at):
            assert not old
            assert not idempotent
            assert unclear > 0
            assert at > NOW
        case RetryAt(at):
            assert not old
            assert idempotent or unclear == 0
            assert at > NOW


@given(
    how=st.sampled_from(SendFailure), asked=seconds, attempts=st.integers(1, 10**6), unclear=st.integers(0, 5)
)
def test_no_platform_is_asked_before_it_wants_to_be(
    how: SendFailure, asked: timedelta, attempts: int, unclear: int
):
    made = plan(Failed(how, asked), tried(attempts, min(unclear, attempts)))
    if not isinstance(made, GiveUp):
        assert NOW + asked <= made.at <= NOW + RULES.max_age


@pytest.mark.parametrize(
    "members",
    [
        {"first_pause": timedelta()},
        {"first_pause": timedelta(hours=1)},
        {"longest_pause": timedelta(seconds=1)},
        {"max_age": timedelta()},
        {"max_unclear": 0},
    ],
)
def test_rules_that_make_no_sense_are_refused(members: dict[str, timedelta]):
    with pytest.raises(InvalidInputError):
        DeliveryRules(**members)


# What is sent


def test_a_repeat_says_first_what_it_is():
    message = OutboundMessage(text="```\ncode\n```", attachments=(PHOTO,), format=TextFormat.MARKDOWN)
    assert mark_as_repeat(message) == message.with_text(f"{REPEATED}\n```\ncode\n```")


def test_a_repeat_of_a_photo_says_so_as_well():
    assert mark_as_repeat(OutboundMessage(attachments=(PHOTO,))).text == REPEATED


@pytest.mark.parametrize("capabilities", [AdapterCapabilities(), AdapterCapabilities(max_length=100)])
@pytest.mark.parametrize("text", ["", "short", "x" * 76])
def test_a_message_that_fits_is_sent_as_it_is(capabilities: AdapterCapabilities, text: str):
    message = OutboundMessage(text=text, attachments=(PHOTO,))
    assert split_message(message, capabilities) == (message,)


def test_a_long_message_comes_in_parts_and_what_is_attached_with_the_last():
    message = OutboundMessage(
        text="word " * 60, attachments=(PHOTO,), is_notice=True, format=TextFormat.MARKDOWN
    )
    parts = split_message(message, AdapterCapabilities(max_length=100))
    assert " ".join(part.text.strip() for part in parts) == message.text.strip()
    assert [part.attachments for part in parts] == [()] * (len(parts) - 1) + [(PHOTO,)]
    assert {(part.is_notice, part.format) for part in parts} == {(True, TextFormat.MARKDOWN)}


def test_of_a_long_message_the_first_part_takes_the_place_of_what_was_shown():
    message = OutboundMessage(text="word " * 60, attachments=(PHOTO,), replaces="r1")
    parts = split_message(message, AdapterCapabilities(max_length=100))
    assert [part.replaces for part in parts] == ["r1"] + [None] * (len(parts) - 1)
    assert [part.attachments for part in parts] == [()] * (len(parts) - 1) + [(PHOTO,)]


@pytest.mark.parametrize("unit", LengthUnit)
@pytest.mark.parametrize("idempotent", [False, True])
@pytest.mark.parametrize("max_length", [64, 100, 4096])
def test_each_part_has_room_for_the_mark(unit: LengthUnit, idempotent: bool, max_length: int):
    capabilities = AdapterCapabilities(
        max_length=max_length, length_unit=unit, idempotent_for=timedelta.max if idempotent else None
    )
    for text in ("😀ä" * 5000, "word " * 5000, "```sh\n" + "line of code\n" * 1000 + "```"):
        for part in split_message(OutboundMessage(text=text), capabilities):
            assert capabilities.fits(part.text)
            assert idempotent or capabilities.fits(mark_as_repeat(part).text)


def test_a_long_text_of_blanks_is_one_empty_message():
    message = OutboundMessage(text=" " * 500, attachments=(PHOTO,))
    assert split_message(message, AdapterCapabilities(max_length=100)) == (message.with_text(""),)
