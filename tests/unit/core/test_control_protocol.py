import random
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import msgspec
import pytest

from gateway_sessions import (
    GatewaySessionsError,
    InvalidInputError,
    Scope,
    SessionBusyError,
    SessionEntry,
    SessionNotFoundError,
    SessionResetPolicy,
    SessionSource,
    StoreBusyError,
    errors,
)
from gateway_sessions.core.control_protocol import (
    ControlAnswer,
    ControlFailure,
    ControlRequest,
    FrameDecoder,
    decode,
    encode,
    encode_frame,
    error_from_failure,
    failure_from_error,
)
from gateway_sessions.errors import ControlError, InvalidSourceError

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
REQUEST = ControlRequest(do="reset_session", parameters=msgspec.Raw(b'{"session_key":"a"}'), seconds=3)


def bodies(data: bytes, limit: int, *, pieces: int) -> list[bytes]:
    frames = FrameDecoder(limit)
    return [body for at in range(0, len(data), pieces) for body in frames.feed(data[at : at + pieces])]


@pytest.mark.parametrize("pieces", [1, 3, 4, 5, 1000])
def test_frames_are_found_however_their_bytes_arrive(pieces: int):
    sent = [b"{}", b"", b"[" + b"1," * 50 + b"1]"]
    stream = b"".join(len(body).to_bytes(4, "big") + body for body in sent)
    assert bodies(stream, 1000, pieces=pieces) == sent


def test_a_frame_that_has_begun_is_told_apart_from_silence():
    frames = FrameDecoder(100)
    assert not frames.has_partial_frame
    assert list(frames.feed(b"\0\0\0\2{")) == []
    assert frames.has_partial_frame
    assert list(frames.feed(b"}")) == [b"{}"]
    assert not frames.has_partial_frame


def test_a_frame_beyond_the_limit_is_refused_before_it_arrives():
    with pytest.raises(InvalidInputError, match="4294967295 bytes is larger than 100"):
        list(FrameDecoder(100).feed(b"\xff\xff\xff\xff"))
    with pytest.raises(InvalidInputError, match="larger than 10"):
        encode_frame("x" * 20, 10)


def test_a_request_survives_the_way():
    assert decode(bodies(encode_frame(REQUEST, 1000), 1000, pieces=7)[0], ControlRequest) == REQUEST


def test_values_of_ours_survive_the_way():
    entry = SessionEntry(
        session_key="agent:main:telegram:dm:1",
        session_id="20260301_120000_abcd",
        created_at=NOW,
        updated_at=NOW,
        last_interaction_at=NOW,
        origin=SessionSource(platform="telegram", chat_id="1"),
        reset_policy=SessionResetPolicy(idle_minutes=3),
        extra={"unknown": [1, {"deep": None}]},
    )
    assert decode(encode(entry), SessionEntry) == entry
    scope = Scope(owners=frozenset({"main:telegram:user:1"}))
    assert decode(encode(scope), Scope) == scope
    assert encode(ZoneInfo("Europe/Berlin")) == b'"Europe/Berlin"'


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        b'{"do":1,"seconds":1}',
        b'{"do":"x"}',
        b'{"do":"x","seconds":NaN}',
        b'{"do":"\\ud800","seconds":1}',
        b'{"do":"x","seconds":1,"more":1}',
        b'{"do":"x","seconds":1,"parameters":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
)
def test_what_is_no_request_is_refused_by_name(body: bytes):
    with pytest.raises(InvalidInputError, match="not a Request as expected"):
        decode(body, ControlRequest)


def test_random_bytes_are_refused_or_wait_for_more():
    chance = random.Random(7)
    for _ in range(2000):
        frames = FrameDecoder(50)
        try:
            for body in frames.feed(chance.randbytes(chance.randrange(40))):
                decode(body, ControlRequest)
        except InvalidInputError:
            continue


def test_what_does_not_travel_is_refused_where_it_is_sent():
    for value in (object(), "\ud800"):
        with pytest.raises(InvalidInputError, match="cannot be sent"):
            encode(value)


def test_what_we_cannot_revive_is_refused():
    with pytest.raises(InvalidInputError, match="complex"):
        decode(b"1", complex)


@pytest.mark.parametrize(
    "error",
    [
        SessionNotFoundError("s1"),
        SessionBusyError("lane", "s1"),
        StoreBusyError("/there", "process 7"),
        InvalidSourceError("chat_id", "is odd"),
        ControlError("/there", "did not answer", may_have_happened=True),
        GatewaySessionsError("plain"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_is_the_same_on_the_other_side(error: GatewaySessionsError):
    answer = decode(encode(ControlAnswer(failure=failure_from_error(error))), ControlAnswer)
    assert answer.failure is not None
    back = error_from_failure(answer.failure)
    assert (type(back), str(back), vars(back)) == (type(error), str(error), vars(error))


def test_every_error_of_ours_can_travel():
    names = [name for name in {**vars(errors), **vars(errors)} if name.endswith("Error")]
    assert {"OperatorsTaskError", "NotGivenUpError"} < set(names)
    for name in names:
        assert type(error_from_failure(ControlFailure(kind=name, message="m", facts={}))).__name__ == name


def test_facts_that_are_no_plain_values_stay_behind():
    error = GatewaySessionsError("m")
    error.odd = object()  # type: ignore[attr-defined]
    error.names = ("a", "b")  # type: ignore[attr-defined]
    assert failure_from_error(error).facts == {"names": ("a", "b")}


def test_an_error_of_a_newer_program_is_still_an_error_of_ours():
    back = error_from_failure(ControlFailure(kind="NewerError", message="something new", facts={}))
    assert isinstance(back, ControlError)
    assert "NewerError: something new" in str(back)
    assert back.may_have_happened
