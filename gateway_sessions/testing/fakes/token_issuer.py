"""`FakeIssuer`: an issuer of signed tokens, with keys that a test can change, withdraw or misuse."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

KEY_BITS: Final = 2048
"""The size of the platforms' keys."""


@cache
def _private_key(number: int) -> rsa.RSAPrivateKey:
    """Return the key of that number: it takes a while to make one, so a process makes each once."""
    assert number >= 0
    return rsa.generate_private_key(public_exponent=65537, key_size=KEY_BITS)


class FakeIssuer:
    """Signs tokens, and publishes the keys by which they are checked."""

    def __init__(self, issuer: str, *, endorsements: Sequence[str] = ()) -> None:
        self.issuer = issuer
        self._endorsements = endorsements
        self._current = 0
        self._published = {0}

    @property
    def key_id(self) -> str:
        """The id of the key that signs now."""
        return f"key-{self._current}"

    def rotate(self, *, published: bool = True) -> None:
        """Sign with another key from now on; the one before is withdrawn."""
        self._current += 1
        self._published = {self._current} if published else self._published

    def publish(self) -> None:
        """Publish the key that signs now, and no other one."""
        self._published = {self._current}

    def key_set(self) -> dict[str, Any]:
        """Return the keys as the issuer publishes them."""
        return {"keys": [self._public_key(number) for number in sorted(self._published)]}

    def sign(self, claims: Mapping[str, Any], **headers: Any) -> str:
        """Return a token with these claims; *headers* change those of the token."""
        key = _private_key(self._current)
        members = {"iss": self.issuer, **claims}
        given = {name: value for name, value in members.items() if value is not None}
        return jwt.encode(given, key, algorithm="RS256", headers={"kid": self.key_id, **headers})

    def sign_bytes(self, content: bytes) -> str:
        """Return a token whose content is no claims."""
        key = _private_key(self._current)
        return jwt.PyJWS().encode(content, key, algorithm="RS256", headers={"kid": self.key_id})

    def private_pem(self) -> str:
        """Return the key that signs now, as the owner of an account gets it."""
        form, kind = serialization.PrivateFormat.PKCS8, serialization.Encoding.PEM
        return _private_key(self._current).private_bytes(kind, form, serialization.NoEncryption()).decode()

    def public_pem(self) -> str:
        """Return the key by which the signatures of now are checked."""
        form, kind = serialization.PublicFormat.SubjectPublicKeyInfo, serialization.Encoding.PEM
        return _private_key(self._current).public_key().public_bytes(kind, form).decode()

    def _public_key(self, number: int) -> dict[str, Any]:
        published = RSAAlgorithm.to_jwk(_private_key(number).public_key())
        endorsed = {"endorsements": list(self._endorsements)} if self._endorsements else {}
        return {**json.loads(published), "kid": f"key-{number}", "use": "sig", "alg": "RS256", **endorsed}
