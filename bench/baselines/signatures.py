"""Verifies a delivery of Stripe or of GitHub, for all baselines; the secrets are variables."""

import hashlib
import hmac
import json
import os
import time
from collections.abc import Mapping
from typing import Final

STRIPE: Final = os.environ["STRIPE_SECRET"].encode()
GITHUB: Final = os.environ["GITHUB_SECRET"].encode()
# Seconds.
TOLERANCE: Final = 300


class RefusedError(Exception):
    """The signature is not that of the body."""


def verified(source: str, headers: Mapping[str, str], body: bytes) -> str:
    """Returns the id of a delivery; raises RefusedError."""
    if source == "github":
        expected = hmac.new(GITHUB, body, hashlib.sha256).hexdigest()
        if not hmac.compare_digest(f"sha256={expected}", headers["x-hub-signature-256"]):
            raise RefusedError
        return headers["x-github-delivery"]
    parts = dict(part.split("=", 1) for part in headers["stripe-signature"].split(","))
    expected = hmac.new(STRIPE, parts["t"].encode() + b"." + body, hashlib.sha256).hexdigest()
    if not hmac.compare_digest(expected, parts["v1"]):
        raise RefusedError
    if abs(time.time() - int(parts["t"])) > TOLERANCE:
        raise RefusedError
    return str(json.loads(body)["id"])
