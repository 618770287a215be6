from dataclasses import replace
from pathlib import Path

import pytest

from webhook_inbox.domain.manifest import DestinationSpec, Manifest, SourceSpec
from webhookctl.errors import CommandError
from webhookctl.local.banner import banner
from webhookctl.local.deployment.functions import deployed
from webhookctl.local.deployment.synth import Project
from webhookctl.local.runtime import Runtime, Settings, api_id

OUTPUTS = {
    "ApiUrl": "https://abc123.execute-api.us-east-1.amazonaws.com",
    "IngestFunctionName": "i",
    "ReplayFunctionName": "r",
    "ReconcilerFunctionName": "c",
    "ProcessorFunctionNames": '{"default": "p"}',
}


@pytest.fixture
def runtime(tmp_path: Path) -> Runtime:
    project = Project(tmp_path, tmp_path / "functions", tmp_path / ".local")
    made = Runtime(project, Settings(8787, 8788, {"acme": "given-value"}), print)
    made.manifest = Manifest(
        sources={
            "github": SourceSpec("github", "github", "github"),
            "acme": SourceSpec("acme", "hmac", "acme"),
        },
        destinations={"sink": DestinationSpec("sink", "sink/notes")},
    )
    made.secrets = {"github": "dev-only-github-1", "acme": "given-value"}
    return made


def test_it_says_where_to_post_for_every_source(runtime: Runtime) -> None:
    text = banner(runtime, seconds=3.21)
    assert "Ready in 3.2 s" in text
    assert "http://127.0.0.1:8787/webhooks/github  (github)" in text
    assert "http://127.0.0.1:8787/webhooks/acme  (hmac)" in text


def test_it_says_when_data_is_deleted(runtime: Runtime) -> None:
    assert "Events and effects are deleted when the session ends" in banner(runtime, seconds=1)


def test_it_shows_fake_secrets_and_never_given_ones(runtime: Runtime) -> None:
    text = banner(runtime, seconds=1)
    assert "dev-only-github-1" in text
    assert "given-value" not in text
    assert "acme  (as given)" in text


def test_it_suggests_samples_that_exist(runtime: Runtime) -> None:
    samples = runtime.project.root / "events" / "ingest" / "github"
    samples.mkdir(parents=True)
    (samples / "push__basic.json").touch()
    text = banner(runtime, seconds=1)
    assert all(len(line) <= 80 for line in text.splitlines())
    text = text.replace(" \\\n    ", " ")
    assert "webhookctl --local send events/ingest/github/push__basic.json --source github" in text
    assert "--source acme" not in text
    assert "webhookctl --local inbox list" in text


def test_it_warns_of_each_destination_that_is_called_for_real(runtime: Runtime) -> None:
    assert "Warning:" not in banner(runtime, seconds=1)
    named = {
        "here": DestinationSpec("here", "http://127.0.0.1:3000"),
        "crm": DestinationSpec("crm", "https://crm.example"),
    }
    runtime.manifest = replace(
        runtime.manifest, destinations={**runtime.manifest.destinations, **named}
    )
    text = banner(runtime, seconds=1)
    assert text.count("Warning:") == 1
    assert "calls https://crm.example for destination crm;" in text
    assert 'base_url = "sink" in [stages.local.destinations.crm] prevents it' in text


def test_the_apis_id_is_in_its_url() -> None:
    assert api_id(OUTPUTS) == "abc123"
    with pytest.raises(CommandError, match="is not the URL of an HTTP API"):
        api_id({"ApiUrl": "https://hooks.example/"})


def test_processors_are_named_by_lane_where_there_are_several() -> None:
    assert [f.shown for f in deployed(OUTPUTS)] == ["ingest", "processor", "replay", "reconciler"]
    two = {**OUTPUTS, "ProcessorFunctionNames": '{"default": "p", "slow": "s"}'}
    assert [f.shown for f in deployed(two) if f.kind == "processor"] == [
        "processor/default",
        "processor/slow",
    ]
