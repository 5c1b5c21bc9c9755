"""`check_token`: who signed a token, for whom and until when, checked without I/O.

The keys are given, and so is the time: a token that is signed with a key that nobody knows yet raises
`UnknownKeyError`, so that the caller can fetch newer keys and ask again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, TypeAlias

import msgspec

from gateway_sessions.errors import InvalidInputError

try:
    import jwt
except ModuleNotFoundError as _error:
    if _error.name != "jwt":
        raise
    _problem = "signed tokens need pyjwt: pip install 'gateway-sessions[webhooks]'"
    raise InvalidInputError(_problem) from _error

ALGORITHMS: Final = ("RS256",)
"""The only signature that the platforms use; a token must not choose a weaker one by itself."""
SKEW: Final = timedelta(minutes=5)
"""The greatest difference between two clocks, as the platforms' own libraries have it."""
LONGEST_TOKEN: Final = 16 << 10
"""The most characters of a token: those of the platforms have about one thousand."""
MOST_KEYS: Final = 100
"""The most keys of an issuer that are read; issuers have fewer than ten."""
BEARER: Final = "bearer "


class TokenRefusedError(InvalidInputError):
    """A token is not valid; the text says why, and quotes nothing of the token."""


class UnknownKeyError(TokenRefusedError):
    """The key that signed a token is not among those that were fetched."""

    def __init__(self) -> None:
        super().__init__("the token is signed with a key that its issuer does not publish")


class KeysUnreadableError(InvalidInputError):
    """What an issuer publishes is no set of keys."""


class _KeySet(msgspec.Struct, frozen=True):
    keys: list[dict[str, Any]] = []


Claims: TypeAlias = Mapping[str, Any]
"""The statements of a token."""


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A public key of an issuer."""

    key: jwt.PyJWK = field(repr=False)
    endorsements: frozenset[str] = frozenset()
    """The channels in whose name the key may sign, where an issuer tells them."""


SigningKeys: TypeAlias = Mapping[str, SigningKey]
"""The keys of an issuer by their ids."""


@dataclass(frozen=True, slots=True)
class TokenRules:
    """Whose tokens are accepted, and for whom."""

    issuers: tuple[str, ...]
    audiences: tuple[str, ...]
    skew: timedelta = SKEW


@dataclass(frozen=True, slots=True)
class CheckedToken:
    """A token whose signature, issuer, audience and time are right."""

    claims: Claims
    key: SigningKey


def read_keys(content: object) -> SigningKeys:
    """Return the usable keys of a JSON Web Key Set; `KeysUnreadableError` if it is none."""
    try:
        published = msgspec.convert(content, _KeySet).keys[:MOST_KEYS]
    except msgspec.ValidationError as error:
        problem = f"the keys of the issuer cannot be read ({error})"
        raise KeysUnreadableError(problem) from error
    return {str(one["kid"]): key for one in published if "kid" in one and (key := _key_of(one)) is not None}


def _key_of(published: Mapping[str, Any]) -> SigningKey | None:
    """Return a key; None for one of another kind, which signs nothing that is accepted."""
    if published.get("kty") != "RSA" or published.get("use", "sig") != "sig":
        return None
    try:
        key = jwt.PyJWK.from_dict(dict(published), algorithm=ALGORITHMS[0])
    except (jwt.PyJWTError, ValueError, TypeError, KeyError):
        return None
    told = published.get("endorsements")
    return SigningKey(key, frozenset(map(str, told)) if isinstance(told, list) else frozenset())  # pyright: ignore[reportUnknownArgumentType]  # JSON


def bearer_token(headers: Mapping[str, str]) -> str:
    """Return the token of a request; `TokenRefusedError` if it has none. Names are in lower case."""
    given = headers.get("authorization", "")
    if given[: len(BEARER)].lower() != BEARER:
        problem = "the request has no bearer token"
        raise TokenRefusedError(problem)
    return given[len(BEARER) :].strip()


def check_token(token: str, keys: SigningKeys, rules: TokenRules, now: datetime) -> CheckedToken:
    """Return what a token states, if an issuer signed it for us and it is valid now."""
    key = _key_for(token, keys)
    try:
        claims = jwt.decode(
            token,
            key.key,
            algorithms=list(ALGORITHMS),
            audience=list(rules.audiences),
            issuer=list(rules.issuers),
            # The library would ask the machine's clock; the times are checked below, by the given one.
            options={
                "require": ["exp", "iss", "aud"],
                "verify_exp": False,
                "verify_nbf": False,
                "verify_iat": False,
            },
        )
    except jwt.PyJWTError as error:
        raise TokenRefusedError(_problem_of(error)) from error
    _check_times(claims, rules.skew, now)
    return CheckedToken(claims, key)


def sign_token(claims: Claims, private_key: str, key_id: str) -> str:
    """Return a token of our own; `InvalidInputError` if the key is none in PEM."""
    try:
        return jwt.encode(dict(claims), private_key, algorithm=ALGORITHMS[0], headers={"kid": key_id})
    except (jwt.PyJWTError, ValueError, TypeError) as error:
        problem = "the private key is none: it begins with -----BEGIN PRIVATE KEY----- and has lines"
        raise InvalidInputError(problem) from error


def _key_for(token: str, keys: SigningKeys) -> SigningKey:
    if len(token) > LONGEST_TOKEN:
        problem = f"the token has more than {LONGEST_TOKEN} characters"
        raise TokenRefusedError(problem)
    try:
        header = jwt.get_unverified_header(token)
    except (jwt.PyJWTError, ValueError, RecursionError) as error:
        problem = "this is no signed token"
        raise TokenRefusedError(problem) from error
    if header.get("alg") not in ALGORITHMS:
        problem = f"the token is not signed with {ALGORITHMS[0]}"
        raise TokenRefusedError(problem)
    if (key := keys.get(str(header.get("kid", "")))) is None:
        raise UnknownKeyError
    return key


def _problem_of(error: jwt.PyJWTError) -> str:
    match error:
        case jwt.InvalidSignatureError():
            return "the signature of the token is wrong"
        case jwt.InvalidIssuerError():
            return "the token is of another issuer"
        case jwt.InvalidAudienceError():
            return "the token is for somebody else"
        case jwt.MissingRequiredClaimError():
            return f"the token does not say its {error.claim!r}"
        case _:
            return "the token cannot be read"


def _check_times(claims: Claims, skew: timedelta, now: datetime) -> None:
    """Refuse a token that is not valid yet, or not any more."""
    at, tolerance = now.timestamp(), skew.total_seconds()
    ends, begins = _seconds(claims, "exp"), _seconds(claims, "nbf")
    if ends is None or ends <= at - tolerance:
        problem = "the token has expired; is the clock of this machine right?"
        raise TokenRefusedError(problem)
    if begins is not None and begins > at + tolerance:
        problem = "the token is not valid yet; is the clock of this machine right?"
        raise TokenRefusedError(problem)


def _seconds(claims: Claims, name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        problem = f"the token's {name!r} is no time"
        raise TokenRefusedError(problem)
    return value
