"""The sample events are what their file names say, signed by the providers that will send them."""

from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.unit.providers.cases import NAMES, samples_of, signed
from webhook_inbox.domain.model import BATCH
from webhook_inbox.domain.provider import Sample, Verified

EVENTS = [
    pytest.param(name, path, id=f"{name}/{path.stem}")
    for name in NAMES
    for path in samples_of(name)
]


@pytest.mark.parametrize(("provider", "path"), EVENTS)
def test_a_sample_is_signed_verified_and_named_by_its_file(provider: str, path: Path) -> None:
    kind = unquote(path.stem.partition("__")[0])
    case = signed(provider, Sample("sample-1", kind, path.read_bytes()))

    assert isinstance(case.verdict(), Verified)
    parts = case.provider.batch(case.delivery) if case.provider.batch else None
    named = [case.provider.identify(part) for part in parts or (case.delivery,)]
    assert {BATCH if parts else identity.type for identity in named} == {kind}
    assert len({identity.event_id for identity in named}) == len(named)
