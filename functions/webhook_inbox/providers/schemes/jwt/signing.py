"""Signing keys of JSON Web Tokens: for `webhookctl send`, the local inbox and tests."""

import json
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.providers.schemes.jwt.keys import CURVES, signing
from webhook_inbox.providers.schemes.signatures.asymmetric import RSA_BITS

KID: Final = "sample"


class Signer(NamedTuple):
    """A signing key, its algorithm, and its `kid`, which may be ""."""

    material: Any
    algorithm: str
    kid: str


# (a secret's text, the accepted algorithms) to the signing key; raises ConfigurationError.
SignerFinder = Callable[[str, Sequence[str]], Signer]


def as_it_is(secret: str, algorithms: Sequence[str]) -> Signer:
    """Uses the secret's text as the signing key."""
    return Signer(secret, algorithms[0], KID)


def first_that_signs(secret: str, algorithms: Sequence[str]) -> Signer:
    """Returns the first key in a secret that can sign with one of the algorithms."""
    for key in signing(secret):
        for alg in filter(key.fits, algorithms):
            return Signer(key.material, alg, key.agent or str(key.kid or ""))
    raise ConfigurationError(
        f"the secret holds no key that signs {', '.join(algorithms)}; give an agent's private key,"
        ' as PEM or { "AGENT": "PEM" }'
    )


def pair(algorithm: str, *, agent: str) -> tuple[str, str]:
    """Makes a private and a public key as PEM; with an agent, in a JSON object by its name."""
    key = _made(algorithm)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    texts = private.decode(), public.decode()
    return (json.dumps({agent: texts[0]}), json.dumps({agent: texts[1]})) if agent else texts


def _made(algorithm: str) -> Any:
    if algorithm in CURVES:
        return ec.generate_private_key(CURVES[algorithm]())
    if algorithm == "EdDSA":
        return ed25519.Ed25519PrivateKey.generate()
    return rsa.generate_private_key(65537, RSA_BITS)
