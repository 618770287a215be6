"""Keys that verify JSON Web Tokens: shared, published, or one agent's own.

The form of a key alone determines its algorithms: a token cannot make a public key act as a shared
secret.
Source: RFC 7517, RFC 7518 section 3, RFC 8725 section 3.1.
"""

import binascii
from base64 import b64decode, urlsafe_b64decode
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from webhook_inbox.domain.json_path import parse
from webhook_inbox.providers.schemes import tokens
from webhook_inbox.providers.schemes.signatures.asymmetric import RSA_BITS, pem, private_key

Head = Mapping[str, Any]
PEM: Final = "-----BEGIN"
# RFC 7518 requires as many bits as the hash has; shorter keys can be guessed.
SHARED_BYTES: Final = 32
CURVES: Final[Mapping[str, type[ec.EllipticCurve]]] = {
    "ES256": ec.SECP256R1,
    "ES384": ec.SECP384R1,
    "ES512": ec.SECP521R1,
}
SYMMETRIC: Final = ("HS256", "HS384", "HS512")
ASYMMETRIC: Final = (*("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), *CURVES, "EdDSA")


class JsonWebKey(NamedTuple):
    """A key that may have made a token, and its agent; "" for an issuer's key."""

    material: Any
    agent: str = ""


# (a secret's text or the fetched text, the token's header) to the keys that may have made it;
# () if none can, None if the text holds no key.
KeyFinder = Callable[[str, Head], Sequence[JsonWebKey] | None]


def shared(secret: str, _: Head) -> Sequence[JsonWebKey] | None:
    """Takes the secret's text as the key; an empty one is rejected, since anyone has it."""
    return (JsonWebKey(secret),) if secret else None


def published(material: str, header: Head) -> Sequence[JsonWebKey] | None:
    """Returns the key in a JWK, a JWK set or PEM that the token's `kid` names.

    PEM has no `kid`, so it is used for any. None if the text holds no key.
    """
    if material.startswith(PEM):
        return (JsonWebKey(material),)
    known = _listed(material)
    if not known:
        return None
    named = [key for key in known if key.get("kid") == header.get("kid")]
    return [JsonWebKey(key) for jwk in named if (key := _imported(jwk)) is not None]


def _listed(material: str) -> list[dict[str, Any]]:
    """Returns the JWKs in a text, usable or not."""
    try:
        found = parse(material)
    except ValueError:
        return []
    one = found.get("key", found) if isinstance(found, dict) else found
    listed = one.get("keys", [one]) if isinstance(one, dict) else []
    if not isinstance(listed, list):
        return []
    return [key for key in listed if isinstance(key, dict) and "kty" in key]


class CachedKeys(NamedTuple):
    """A key as a text holds it.

    Attributes:
        material: a public or private key's object, or the bytes of a shared one.
        agent: its agent, or "".
        kid: its id in tokens, or None.
        alg: its only algorithm, or None.
    """

    material: Any
    agent: str = ""
    kid: object = None
    alg: object = None

    def fits(self, alg: str) -> bool:
        """Returns whether the key can verify, or sign, tokens of this algorithm."""
        key = self.material
        if self.alg not in (None, alg):
            return False
        if isinstance(key, bytes):
            return alg in SYMMETRIC
        if isinstance(key, rsa.RSAPublicKey | rsa.RSAPrivateKey):
            return alg[:2] in {"RS", "PS"} and key.key_size >= RSA_BITS
        if isinstance(key, ec.EllipticCurvePublicKey | ec.EllipticCurvePrivateKey):
            return alg in CURVES and isinstance(key.curve, CURVES[alg])
        return alg == "EdDSA"


def of_agents(secret: str, head: Head) -> Sequence[JsonWebKey] | None:
    """Returns the keys in a secret that may have made a token, each with its agent.

    If some keys belong to agents, a key without a name is ignored: its tokens could claim any
    agent.
    """
    every = verifying(secret)
    held = [key for key in every if key.agent] or every
    return (
        [JsonWebKey(key.material, key.agent) for key in _candidates(held, head)] if held else None
    )


def of_issuer(text: str, head: Head) -> Sequence[JsonWebKey] | None:
    """Returns an issuer's published keys that may have made a token; None if the text has none."""
    every = verifying(text)
    if not every and not _listed(text):
        return None
    return [JsonWebKey(key.material) for key in _candidates(every, head)]


def _candidates(held: Sequence[CachedKeys], head: Head) -> list[CachedKeys]:
    """Returns the key that the token's `kid` names, or all keys without a name."""
    kid = head.get("kid")
    fitting = [key for key in held if key.fits(head["alg"])]
    named = [key for key in fitting if kid is not None and kid in (key.kid, key.agent)]
    return named or [key for key in fitting if kid is None or key.kid is None]


# Reading a key costs more than checking a signature with it.
@lru_cache(maxsize=32)
def verifying(text: str) -> tuple[CachedKeys, ...]:
    """Returns every key in a text that verifies: public ones, and shared ones."""
    public = (rsa.RSAPublicKey, ec.EllipticCurvePublicKey, ed25519.Ed25519PublicKey)
    return tuple(key for key in _held(text) if isinstance(key.material, (*public, bytes)))


def signing(text: str) -> tuple[CachedKeys, ...]:
    """Returns every key in a text that signs: private ones, and shared ones."""
    private = (rsa.RSAPrivateKey, ec.EllipticCurvePrivateKey, ed25519.Ed25519PrivateKey)
    return tuple(key for key in _held(text) if isinstance(key.material, (*private, bytes)))


def _held(text: str) -> list[CachedKeys]:
    """Returns every key in a text: PEM, base64, a JWK, a JWK set, or an object of agents."""
    document = tokens.secret_document(text)
    if document is None:
        return _read(text.strip(), "")
    listed = document.get("keys")
    if isinstance(listed, list):
        # In a secret the key's name is the agent's; for an issuer's keys it is not used.
        return [key for jwk in listed for key in _read(jwk, _kid(jwk))]
    if "kty" in document:
        return _read(document, "")
    return [key for agent, value in tokens.named_agents(document) for key in _read(value, agent)]


def _read(value: object, agent: str) -> list[CachedKeys]:
    if isinstance(value, str) and (jwk := tokens.secret_document(value)) is not None:
        value = jwk
    if not isinstance(value, dict):
        key = _material(value)
        return [] if key is None else [CachedKeys(key, agent)]
    key = _imported(value)
    if key is None or value.get("use", "sig") != "sig":
        return []
    return [CachedKeys(key, agent, value.get("kid"), value.get("alg"))]


def _kid(jwk: object) -> str:
    kid = jwk.get("kid") if isinstance(jwk, dict) else None
    return kid if isinstance(kid, str) and tokens.is_agent_name(kid) else ""


def _material(value: object) -> Any | None:
    """Returns the key in PEM or base64, or None."""
    if not isinstance(value, str):
        return None
    if PEM in value:
        return _from_pem(value)
    try:
        raw = b64decode(_padded(value.translate({ord("-"): "+", ord("_"): "/"})), validate=True)
    except (ValueError, binascii.Error):
        return None
    return raw if len(raw) >= SHARED_BYTES and not _is_public(raw) else None


def _from_pem(value: str) -> Any | None:
    try:
        if "PRIVATE KEY" in value:
            return private_key(value)
        return pem(value)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return None


def _is_public(raw: bytes) -> bool:
    # A public key whose PEM lost its first and last line: anyone has it, so it is no shared key.
    try:
        serialization.load_der_public_key(raw)
    except (ValueError, UnsupportedAlgorithm):
        return False
    return True


def _imported(jwk: dict[str, Any]) -> Any | None:
    """Returns the key in a JWK, as bytes if it is shared; None if it is invalid."""
    try:
        if jwk.get("kty") == "oct":
            raw = urlsafe_b64decode(_padded(jwk["k"]))
            return raw if len(raw) >= SHARED_BYTES else None
        return jwt.PyJWK(jwk).key
    except (jwt.PyJWTError, UnsupportedAlgorithm, ValueError, TypeError, KeyError, AttributeError):
        return None


def _padded(text: str) -> str:
    bare = text.rstrip("=")
    return bare + "=" * (-len(bare) % 4)
