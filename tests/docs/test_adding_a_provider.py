"""The worked example of docs/adding-a-provider.md is a provider that works."""

import hmac
import importlib.util
import json
import re
import shlex
import sys
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scripts import providers as page
from tests.docs.blocks import blocks
from webhook_inbox import providers
from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.domain.manifest import SourceSpec
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Provider, Sample, Verified
from webhookctl import conformance

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "adding-a-provider.md"
BLOCKS = {block.language: block.text for block in blocks(GUIDE)}
[VECTOR] = json.loads(BLOCKS["json"])
SECRETS = conformance.secrets_of(VECTOR)


@pytest.fixture(autouse=True)
def _added(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Adds the example's module."""
    module = "buildkite"
    file = tmp_path / f"{module}.py"
    file.write_text(BLOCKS["python"], encoding="utf-8")
    spec = importlib.util.spec_from_file_location(f"webhook_inbox.providers.{module}", file)
    assert spec
    assert spec.loader
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    monkeypatch.setitem(sys.modules, made.__name__, made)
    monkeypatch.setitem(providers.MODULES, module, module)  # type: ignore[arg-type]


def provider() -> Provider:
    return providers.load(SourceSpec("builds", "buildkite", "builds"))


def delivery() -> Delivery:
    return conformance.delivery_of(VECTOR)


def refusal(broken: Delivery) -> Reason:
    with pytest.raises(Rejected) as raised:
        provider().verify(broken, SECRETS)
    return raised.value.reason


def test_the_vector_was_signed_as_it_says() -> None:
    body, secret = (b64decode(VECTOR[key]) for key in ("body_base64", "secret_base64"))
    made = hmac.new(secret, b"1795248000." + body, "sha256").hexdigest()

    assert VECTOR["headers"]["X-Buildkite-Signature"] == f"timestamp=1795248000,signature={made}"


def test_the_vector_agrees() -> None:
    verdict = conformance.judge(VECTOR)

    assert verdict.agrees, verdict.detail


def test_a_flipped_byte_and_an_old_time_do_not() -> None:
    valid = delivery()

    assert refusal(replace(valid, body=valid.body[:-1] + b"]")) is Reason.INVALID_SIGNATURE
    later = valid.received_at.replace(hour=valid.received_at.hour + 1)
    assert refusal(replace(valid, received_at=later)) is Reason.STALE


def test_it_is_named_by_its_content_and_is_not_guarded_since_its_time_is_signed() -> None:
    named = provider().identify(delivery())

    assert named.type == "build.finished"
    assert named.event_id == provider().identify(delivery()).event_id
    assert provider().guard is None


def test_it_signs_what_it_verifies() -> None:
    [sample] = set(re.findall(r"`events/ingest/\S+`", GUIDE.read_text()))
    assert Path(sample.strip("`")).name.partition("__")[0] == "build.finished"
    body = delivery().body
    headers: Mapping[str, Any] = provider().sign(
        Sample("1", "build.finished", body), SECRETS[0], delivery().received_at
    )

    assert isinstance(provider().verify(replace(delivery(), headers=headers), SECRETS), Verified)


def test_its_facts_become_a_section_of_the_page() -> None:
    text = page.render()

    assert "## buildkite\n\nBuildkite\n" in text
    assert "| source | buildkite/docs `pages/apis/webhooks/pipelines.md`. |" in text


def test_what_it_names_is_there() -> None:
    named = re.findall(r"`((?:functions|tests|scripts)/[\w./-]+)`", GUIDE.read_text())
    ours = [path for path in named if "buildkite" not in path]
    assert ours
    assert all((ROOT / path).exists() for path in ours)
    copied = re.findall(r"`(\w+)` \(", GUIDE.read_text().partition("to copy from:")[2])
    assert len(copied) == 6
    assert set(copied) <= set(providers.MODULES.values())
    for line in BLOCKS["sh"].splitlines():
        assert shlex.split(line)[0].startswith(".venv/bin/")
