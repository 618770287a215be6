"""The bodies are JSON of the stated sizes, and each delivery has an id of its own."""

import json
from functools import cache
from typing import Any

import pytest

from bench.deliveries import ROOT, SIZES, deliveries
from webhook_inbox.configuration.compile import compile_manifest


@cache
def made(source: str, size: int) -> list[dict[str, Any]]:
    manifest = compile_manifest(ROOT / "functions", stage="dev")
    return deliveries(manifest, source, size, 3, seed=7)


@pytest.mark.parametrize("source", ["stripe", "github"])
@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_a_body_has_its_size(source: str, size: int) -> None:
    for event in made(source, size):
        assert size <= len(event["body"].encode()) <= size * 1.02 + 300
        assert json.loads(event["body"])


def test_every_delivery_is_another_event() -> None:
    stripe = {json.loads(event["body"])["id"] for event in made("stripe", 1_000)}
    github = {event["headers"]["x-github-delivery"] for event in made("github", 1_000)}
    contents = {event["body"] for event in made("github", 1_000)}
    assert (len(stripe), len(github), len(contents)) == (3, 3, 3)
