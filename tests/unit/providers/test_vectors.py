"""Deliveries that the providers publish, that their own libraries signed, or that we recorded.

Judged by what `webhookctl conformance` runs. Their secrets are base64, so that no scanner takes
them for live ones.
"""

from typing import Any

import pytest

from tests.unit.providers.cases import PUBLISHED, vectors_of
from webhookctl import conformance

VECTORS = [
    pytest.param(vector, id=vector["id"]) for name in PUBLISHED for vector in vectors_of(name)
]


@pytest.mark.parametrize("vector", VECTORS)
def test_the_verdict_is_the_published_one(vector: dict[str, Any]) -> None:
    verdict = conformance.judge(vector)

    assert verdict.agrees, verdict


def test_every_vector_has_a_name_of_its_own() -> None:
    names = [vector.values[0]["id"] for vector in VECTORS]  # type: ignore[index,call-overload]

    assert len(set(names)) == len(names)
