"""The configuration of this repository's app."""

from pathlib import Path

import pytest

from webhook_inbox.configuration.compile import compile_manifest

FUNCTIONS = Path(__file__).parents[2] / "functions"


@pytest.mark.parametrize("stage", ["dev", "local", "prod"])
def test_it_compiles_in_every_stage(stage: str) -> None:
    manifest = compile_manifest(FUNCTIONS, stage=stage)
    assert manifest.handlers
    assert {spec.source for spec in manifest.handlers.values()} <= set(manifest.sources)
