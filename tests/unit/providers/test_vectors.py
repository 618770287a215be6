"""Deliveries that the providers publish, or that their own libraries signed.

Their secrets are base64 so that no scanner takes them for live ones.
"""

import json
from base64 import b64decode
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.unit.providers.deliveries import delivery, recipe_of, verdict
from webhook_inbox.errors import Reason
from webhook_inbox.recipe import Verified

DIRECTORY = Path(__file__).parents[2] / "vectors"
VECTORS = [
    pytest.param(path.stem.replace("_", "-"), vector, id=vector["id"])
    for path in sorted(DIRECTORY.glob("*.json"))
    for vector in json.loads(path.read_text())
]


def word(judged: Verified | Reason) -> str:
    return "valid" if isinstance(judged, Verified) else str(judged)


@pytest.mark.parametrize(("provider", "vector"), VECTORS)
def test_the_verdict_is_the_published_one(provider: str, vector: dict[str, Any]) -> None:
    at = datetime.fromtimestamp(vector["now"], UTC)
    sent = delivery(vector["headers"], b64decode(vector["body_base64"]), at=at)
    secret = b64decode(vector["secret_base64"]).decode()

    judged = verdict(recipe_of(provider), sent, (secret,))

    assert word(judged) in {vector["expect"], *vector["expect_also"]}


@pytest.mark.parametrize(("provider", "vector"), VECTORS)
def test_no_published_delivery_passes_under_another_secret(
    provider: str, vector: dict[str, Any]
) -> None:
    at = datetime.fromtimestamp(vector["now"], UTC)
    sent = delivery(vector["headers"], b64decode(vector["body_base64"]), at=at)

    assert word(verdict(recipe_of(provider), sent, ("b3RoZXI=",))) in {
        "invalid-signature",
        "malformed",
    }


def test_every_provider_but_the_declared_one_has_vectors() -> None:
    assert {path.stem for path in DIRECTORY.glob("*.json")} >= {
        "cycles",
        "github",
        "shopify",
        "slack",
        "standard_webhooks",
        "stripe",
    }
