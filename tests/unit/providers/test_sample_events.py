"""The sample events are what their file names say, signed by the recipes that will send them."""

from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.unit.providers.deliveries import NOW, OTHER, SECRET, delivery, recipe_of, verdict
from webhook_inbox import configuration, providers
from webhook_inbox.errors import Reason
from webhook_inbox.recipe import Sample, Verified

ROOT = Path(__file__).parents[3]
EVENTS = sorted((ROOT / "events" / "ingest").glob("*/*.json"))
EVERY_EVENT = pytest.mark.parametrize("path", EVENTS, ids=lambda p: f"{p.parent.name}/{p.stem}")


@EVERY_EVENT
def test_a_sample_is_signed_verified_and_named_by_its_file(path: Path) -> None:
    recipe = recipe_of("hmac" if path.parent.name == "acme" else path.parent.name)
    type_ = unquote(path.stem.partition("__")[0])
    sample = Sample("sample-1", type_, path.read_bytes())

    sent = delivery(recipe.sign(sample, SECRET, NOW), sample.body)

    assert isinstance(verdict(recipe, sent), Verified)
    assert verdict(recipe, sent, (OTHER,)) is Reason.INVALID_SIGNATURE
    identity = recipe.identify(sent)
    assert identity.type == type_
    assert identity.event_id


@EVERY_EVENT
def test_a_sample_is_named_type_and_variant(path: Path) -> None:
    type_, separator, variant = path.stem.partition("__")

    assert type_
    assert separator
    assert variant
    assert path.read_bytes().endswith(b"}\n")


def test_every_source_of_our_own_configuration_has_a_sample() -> None:
    sources = configuration.load(ROOT / "functions" / "inbox.toml", stage="local").sources
    directories = {path.parent.name for path in EVENTS}

    assert {source.provider for source in sources.values()} == set(providers.MODULES)
    assert directories == set(providers.MODULES) - {"hmac"} | {"acme"}
