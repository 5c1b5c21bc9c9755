"""Fuzzing of a platform's part: a recorded request, broken in ten thousand ways, is never lost.

`assert_survives(platform, recorded, sign)` breaks the bodies of recorded requests: members vanish or change
their type, events come twice, bytes flip, the end is missing. Each broken body is signed anew by *sign*, so
that it reaches the reading. Then `verify` must answer, and `parse` must return an event for something, or
raise `InvalidInputError`: then the engine puts the body aside. Anything else is a failure.
"""

from __future__ import annotations

import copy
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

from gateway_sessions.adapters import InboundMessage
from gateway_sessions.adapters.webhooks import (
    CallNeeded,
    DeliveryStatus,
    PassedOver,
    Request,
    UnreadableEvent,
    Verdict,
    WebhookPlatform,
)
from gateway_sessions.errors import InvalidInputError

TIMES: Final = 10_000
NOW: Final = datetime(2026, 11, 20, 12, tzinfo=UTC)
ODD: Final[tuple[Any, ...]] = (
    *(
        None,
        True,
        False,
        0,
        -1,
        2**63,
        10**400,
        1e308,
        -0.0,
        "",
        " ",
        "\x00",
        "\ud800",
        "\u202e",
        "7",
        "x" * 5000,
    ),
    *(
        "1e999",
        "2026-13-40",
        [],
        {},
        [None],
        [[]],
        {"": None},
        {"id": {}},
        [[[[[[[[]]]]]]]],
        "\U0001f600" * 300,
    ),
)
_MUST_BE: Final = (InboundMessage, DeliveryStatus, PassedOver, UnreadableEvent)


def assert_survives(
    platform: WebhookPlatform,
    recorded: Sequence[Request],
    sign: Callable[[Request], Request],
    *,
    times: int = TIMES,
    seed: int = 20261120,
) -> Counter[str]:
    """Assert that no broken request is lost or raises; return how often each kind of event came."""
    chance, seen = random.Random(seed), Counter[str]()
    for body, original in _broken(recorded, chance, times):
        request = sign(Request(original.method, original.target, original.headers, body))
        verdict = platform.verify(request, NOW)
        assert verdict is Verdict.GENUINE or isinstance(verdict, CallNeeded), (verdict, body)
        try:
            platform.answer_challenge(request)
            events = platform.parse(request)
        except InvalidInputError:
            seen["unreadable body"] += 1
            continue
        assert events, f"nothing is told of {body!r}"
        for event in events:
            assert isinstance(event, _MUST_BE), event
            seen[type(event).__name__] += 1
    return seen


def assert_forgeries_fail(
    platform: WebhookPlatform, genuine: Request, *, times: int = 2000, seed: int = 7
) -> None:
    """Assert that a signed request is forged once a byte of its body or a character of a header changes."""
    chance = random.Random(seed)
    assert platform.verify(genuine, NOW) is Verdict.GENUINE
    for _ in range(times):
        headers = {name: _odd_header(value, chance) for name, value in genuine.headers.items()}
        platform.verify(Request(genuine.method, genuine.target, headers, genuine.body), NOW)  # raises nothing
        if genuine.body:
            broken = flipped(genuine.body, chance)
            request = Request(genuine.method, genuine.target, genuine.headers, broken)
            assert platform.verify(request, NOW) is not Verdict.GENUINE, broken


def flipped(body: bytes, chance: random.Random) -> bytes:
    """Return some bytes with one of them changed."""
    at = chance.randrange(len(body))
    return body[:at] + bytes([body[at] ^ chance.randrange(1, 256)]) + body[at + 1 :]


def _odd_header(value: str, chance: random.Random) -> str:
    return chance.choice(
        [value, "", value[:-1], value + "0", value.upper(), "é\xff", "=" * 9, value[::-1], "9" * 99]
    )


def _broken(
    recorded: Sequence[Request], chance: random.Random, times: int
) -> Iterator[tuple[bytes, Request]]:
    forms = [(request, _form_of(request)) for request in recorded]
    for _ in range(times):
        request, form = chance.choice(forms)
        if form is None or chance.random() < 0.1:
            yield _broken_bytes(request.body, chance), request
        else:
            changed = copy.deepcopy(form)
            for _ in range(chance.choice([1, 1, 1, 2, 4])):
                changed = _change(changed, chance)
            yield _encoded(changed, request), request


def _form_of(request: Request) -> Any:
    if request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        return dict(parse_qsl(request.body.decode(), keep_blank_values=True))
    try:
        return json.loads(request.body)
    except ValueError:
        return None


def _encoded(form: Any, request: Request) -> bytes:
    if request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        pairs = form.items() if isinstance(form, dict) else [("odd", form)]
        return urlencode([(str(name), str(value)) for name, value in pairs], errors="replace").encode()
    return json.dumps(form).encode()


def _broken_bytes(body: bytes, chance: random.Random) -> bytes:
    if not body:
        return b"\xff"
    match chance.randrange(5):
        case 0:
            return body[: chance.randrange(len(body))]
        case 1:
            return flipped(body, chance)
        case 2:
            return body + body
        case 3:
            return b"[" * 100_000
        case _:
            return body.replace(b'"', b"'")


def _places(form: Any) -> list[tuple[Any, Any]]:
    """Return each container and key of a form."""
    found: list[tuple[Any, Any]] = []
    open_forms = [form]
    while open_forms:
        one = open_forms.pop()
        pairs = list(
            one.items() if isinstance(one, dict) else enumerate(one) if isinstance(one, list) else ()
        )
        found += [(one, key) for key, _ in pairs]
        open_forms += [value for _, value in pairs]
    return found


def _change(form: Any, chance: random.Random) -> Any:
    places = _places(form)
    if not places:
        return chance.choice(ODD)
    container, key = chance.choice(places)
    match chance.randrange(5):
        case 0:
            del container[key]
        case 1 | 2:
            container[key] = copy.deepcopy(chance.choice(ODD))
        case 3 if isinstance(container, list):
            container.insert(chance.randrange(len(container) + 1), copy.deepcopy(container[key]))
        case 3:
            container[f"{key}2"] = container.pop(key)
        case _:
            other, at = chance.choice(places)
            try:
                container[key] = copy.deepcopy(other[at])
            except (KeyError, IndexError):  # it was just removed
                container[key] = None
    return form
