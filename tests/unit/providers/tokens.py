"""Tokens as agents make them, with PyJWT alone: every claim and header is the test's to choose."""

import json
from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from tests.unit.providers.deliveries import NOW, delivery, provider_of
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Provider

ISSUER = "https://agents.example"
AUDIENCE = "https://inbox.example/webhooks/agents"
BODY = b'{"type":"task.completed","task":{"id":"task_1"}}'
SHARED = b64encode(b"a shared key of the planner's: no secret, only 64 bytes of a test").decode()
SETTINGS: Mapping[str, Any] = {
    "issuer": ISSUER,
    "audience": AUDIENCE,
    "event_id": {"header": "X-Event-Id"},
    "event_type": {"json": "type"},
}
SECONDS = int(NOW.timestamp())


@cache
def private(agent: str, kind: str = "RS256") -> Any:
    """Returns an agent's private key; making one of RSA takes a while."""
    del agent
    if kind.startswith("ES"):
        curves = {"ES256": ec.SECP256R1(), "ES384": ec.SECP384R1(), "ES512": ec.SECP521R1()}
        return ec.generate_private_key(curves[kind])
    if kind == "EdDSA":
        return ed25519.Ed25519PrivateKey.generate()
    return rsa.generate_private_key(65537, 1024 if kind == "weak" else 2048)


def private_pem(key: Any) -> str:
    made: bytes = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return made.decode()


def pem(key: Any) -> str:
    made: bytes = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return made.decode()


def jwk(key: Any, **more: object) -> dict[str, Any]:
    """Returns a public key as a JWK."""
    algorithm = RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else ECAlgorithm
    made: dict[str, Any] = json.loads(algorithm.to_jwk(key.public_key()))
    return {**made, **more}


def secret(**agents: object) -> str:
    """Returns a source's secret with a key of each agent."""
    return json.dumps(agents)


def claims(**changed: object) -> dict[str, Any]:
    """Returns what a valid token claims, with these instead; None leaves a claim out."""
    valid = {"iss": ISSUER, "aud": AUDIENCE, "sub": "planner", "iat": SECONDS, "exp": SECONDS + 300}
    return {name: value for name, value in {**valid, **changed}.items() if value is not None}


def token(
    key: Any, *, alg: str = "RS256", head: Mapping[str, Any] | None = None, **changed: object
) -> str:
    """Returns a token; every claim may be changed."""
    return jwt.encode(claims(**changed), key, algorithm=alg, headers=dict(head or {}))


def sent(written: str, *, body: bytes = BODY, **headers: str) -> Delivery:
    """Returns a delivery with a token."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    given = {"Authorization": f"Bearer {written}", "X-Event-Id": "evt-1", **named}
    return delivery(given, body)


def provider(**changed: object) -> Provider:
    """Returns the provider of a source with these settings instead."""
    return provider_of("jwt", {**SETTINGS, **changed})
